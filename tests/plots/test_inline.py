"""Drawings in a page: colors of the scheme, names of their own, words."""

import re

import pytest

from dpublish.plots.charts import bar_chart
from dpublish.plots.inline import DARK, in_either_scheme, inline
from dpublish.plots.style import FRAME, INK, LESS, MORE, PAGE, PALE, TEXT, WHISKER

BRIGHT_PAGE, DARK_PAGE = PAGE, DARK[PAGE]


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("color", [TEXT, WHISKER, "#000000"])
def test_what_is_read_has_enough_contrast_in_both_schemes(color):
    assert contrast(color, BRIGHT_PAGE) >= 4.5
    assert contrast(DARK[color], DARK_PAGE) >= 4.5


@pytest.mark.parametrize("color", [INK, FRAME, LESS, MORE])
def test_what_is_seen_has_enough_contrast_in_both_schemes(color):
    assert contrast(color, BRIGHT_PAGE) >= 3
    assert contrast(DARK.get(color, color), DARK_PAGE) >= 3


def test_words_on_dark_boxes_stay_readable():
    assert contrast(PAGE, INK) >= 4.5
    assert contrast(DARK[PAGE], DARK[INK]) >= 4.5
    assert contrast("#000000", PALE) >= 4.5
    assert contrast(DARK["#000000"], DARK[PALE]) >= 4.5


def test_names_that_are_used_are_kept_apart_and_others_go():
    svg = '<svg><g id="a"><use xlink:href="#b"/><path id="b" clip-path="url(#c)"/></g></svg>'
    first, second = inline(svg, 1, "x"), inline(svg, 2, "x")
    assert re.findall(r'id="(.*?)"', first + second) == ["d1-b", "d2-b"]
    assert 'href="#d1-b"' in first
    assert "url(#d2-c)" in second


def test_text_of_a_drawing_is_left_alone():
    text = "fill: #1f5f8b; id=&quot;a&quot; url(#a)"
    drawn = inline(f'<svg role="img"><text style="fill: #1f5f8b">{text}</text></svg>', 1, "<&>")
    assert f">{text}</text>" in drawn
    assert 'style="fill: var(--c-1f5f8b, #1f5f8b)"' in drawn
    assert drawn.startswith('<svg role="img" aria-label="&lt;&amp;&gt;">')


def test_a_chart_of_a_nasty_column_stays_one_drawing():
    nasty = '</svg><script>alert(1)</script> fill="#ffffff" id="x"'
    drawn = inline(
        bar_chart([nasty, "b"], [1, 2], float("nan"), title=nasty, ordered=False), 1, nasty
    )
    assert drawn.count("</svg>") == 1
    assert "<script" not in drawn


def test_a_picture_brings_the_colors_of_both_schemes():
    drawn = in_either_scheme(bar_chart(["a", "b"], [1, 2], float("nan"), title="t", ordered=False))
    used = set(re.findall(r"var\((--c-[0-9a-f]{6}), #", drawn))
    style = re.search(r"<style>@media \(prefers-color-scheme: dark\) \{ svg \{(.*?)\} \}", drawn)[1]
    assert used
    assert used <= set(re.findall(r"--c-[0-9a-f]{6}(?=:)", style))
    assert "fill: #e7ebee" in style  # of what has no color of its own
    assert drawn.count("</svg>") == 1

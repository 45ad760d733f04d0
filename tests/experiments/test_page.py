"""Pages and plots of experiments: whole by themselves, and the same line looks the same."""

import re

from dpublish.experiments.page import Listing, Page, Section, render_page
from dpublish.plots import comparisons
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples

LAYOUT = Layout(across="x", up="y", ticks=[1, 2], is_log=True)


def line(label, is_ours=True):
    return Line(label, [1, 2], [0.3, 0.2], [0.01, 0.02], is_ours)


def test_text_is_escaped_and_figures_are_not():
    section = Section(
        "a < b",
        ["<script>alert(1)</script>"],
        figure="<svg>drawn</svg>",
        listings=[Listing(["name", "error"], [["<b>", "0.1"]], "caption")],
        points=["one & two"],
    )
    page = render_page(Page("title", "lead.", [section, Section("bare")]), "NOT PRIVATE")
    assert "<script>" not in page
    assert "<svg>drawn</svg>" in page
    assert page.count("<figure>") == 1
    assert '<td class="number">0.1</td>' in page
    assert "one &amp; two" in page
    assert "NOT PRIVATE" in page


def test_a_line_keeps_its_color_where_others_are_absent():
    panels = [
        Panel("both", [line("first"), line("second"), line("reference", is_ours=False)]),
        Panel("one", [line("second"), line("reference", is_ours=False)]),
    ]
    drawn = small_multiples(panels, LAYOUT)
    assert drawn.startswith("<svg")
    assert "<metadata" not in drawn
    strokes = re.findall(r'id="line2d_\d+">\s*<path [^>]*stroke: (#\w+)', drawn)
    assert strokes.count("#0072b2") == 1 + 1  # in a panel and in the legend
    assert strokes.count("#d55e00") == 2 + 1
    assert drawn == small_multiples(panels, LAYOUT)


def test_an_empty_place_in_the_grid_is_no_panel():
    drawn = small_multiples([Panel(name, [line("a")]) for name in "abcde"], LAYOUT)
    assert drawn.count('id="patch_1"') == 1
    assert all(f">{name}</text>" in drawn for name in "abcde")


def test_a_dollar_sign_is_a_dollar_sign():
    drawn = small_multiples([Panel("$_2$", [line("pay in $")])], LAYOUT)
    assert "$_2$" in drawn


def test_without_matplotlib_there_is_no_plot(monkeypatch):
    monkeypatch.setattr(comparisons, "can_draw", lambda: False)
    assert small_multiples([Panel("p", [line("a")])], LAYOUT) is None

"""Pages and plots of experiments: whole by themselves, and the same line looks the same."""

import re

from dpublish.plots import comparisons
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples
from dpublish.report.html import Page, render_page
from dpublish.report.section import Figure, Listing, Section

LAYOUT = Layout(across="x", up="y", ticks=[1, 2], is_log=True)


def line(label, is_ours=True):
    return Line(label, [1, 2], [0.3, 0.2], [0.01, 0.02], is_ours)


def test_text_is_escaped_and_figures_are_not():
    section = Section(
        "a < b",
        ["<script>alert(1)</script>"],
        figures=[Figure("drawn <here>", "<svg>drawn</svg>")],
        listings=[Listing(["name", "error"], [["<b>", "0.1"]], "caption")],
        points=["one & two"],
        pairs={"<i>": "<u>"},
        code=["if a < b:"],
        notes=["small <s>print</s>"],
    )
    page = render_page(Page("title", "lead.", [section, Section("bare")], ["NOT PRIVATE <x>"]))
    for tag in ("<script>", "<here>", "<b>", "<i>", "<u>", "<s>", "<x>", "a < b"):
        assert tag not in page, tag
    assert '<svg role="img" aria-label="drawn &lt;here&gt;">drawn</svg>' in page
    assert page.count("<figure>") == 1
    assert '<td class="number">0.1</td>' in page
    assert "<td>&lt;b&gt;</td>" in page
    assert "one &amp; two" in page
    assert "NOT PRIVATE" in page


def test_columns_of_numbers_are_those_that_hold_nothing_else():
    rows = [["a", "1,000", "0.5 ±0.1*", "1", ""], ["2", "", "cannot run", "one", ""]]
    assert Listing("vwxyz", rows).numeric == [False, True, True, False, False]
    ranges = Listing(["age", "day", "share"], [["36..55", "2020-01-31", "-12.5 %"]])
    assert ranges.numeric == [False, False, True]
    assert Listing(["x", "y"], []).numeric == [False, False]


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


def test_an_empty_position_of_the_grid_is_no_panel():
    drawn = small_multiples([Panel(name, [line("a")]) for name in "abcde"], LAYOUT)
    assert drawn.count('id="patch_1"') == 1
    assert all(f">{name}</text>" in drawn for name in "abcde")


def test_a_dollar_sign_is_a_dollar_sign():
    drawn = small_multiples([Panel("$_2$", [line("pay in $")])], LAYOUT)
    assert "$_2$" in drawn


def test_without_matplotlib_there_is_no_plot(monkeypatch):
    monkeypatch.setattr(comparisons, "can_draw", lambda: False)
    assert small_multiples([Panel("p", [line("a")])], LAYOUT) is None

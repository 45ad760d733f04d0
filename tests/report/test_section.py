"""Sections show the first drawing and short tables, and fold the rest."""

import pytest

from dpublish.report.html import Page, render_page
from dpublish.report.section import Figure, Listing, Section


def listing(rows, **options):
    return Listing(["a"], [[str(n)] for n in range(rows)], **options)


@pytest.mark.parametrize(
    ("section", "folded"),
    [
        (Section(listings=[listing(12)]), [False]),
        (Section(listings=[listing(13)]), [True]),
        (Section(listings=[listing(2), listing(2)]), [False, True]),
        (Section(listings=[listing(4)], figures=[Figure("x", "<svg></svg>")]), [False]),
        (Section(listings=[listing(5)], figures=[Figure("x", "<svg></svg>")]), [True]),
        (Section(listings=[listing(1, is_folded=True)]), [True]),
    ],
)
def test_short_first_tables_are_open(section, folded):
    assert [section.folds(each) for each in section.listings] == folded
    page = render_page(Page("t", "l", [section]))
    assert page.count("<details>") == sum(folded)


def test_all_drawings_but_the_first_are_folded_and_counted():
    figures = [Figure(f"number {n}", f"<svg>{n}</svg>", f"words {n}") for n in range(3)]
    page = render_page(Page("t", "l", [Section("h", figures=figures)]))
    opened, closed = page.split("<details>")
    assert 'aria-label="words 0"' in opened
    assert "2 more charts" in closed
    assert closed.count("<figure>") == 2


def test_a_folded_section_keeps_its_heading_and_its_anchor():
    sections = [Section("one"), Section("two", is_folded=True), Section("<three>")]
    page = render_page(Page("t", "l", sections))
    assert "<summary><h2>two</h2></summary>" in page
    assert [f'href="#part-{n}"' in page for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert [f'id="part-{n}"' in page for n in (1, 2, 3)] == [True] * 3
    assert "<nav" not in render_page(Page("t", "l", sections[:2]))


def test_tables_have_captions_and_scopes():
    one = Listing(["name", ""], [["a", "1"]], "First. Second.")
    page = render_page(Page("t", "l", [Section("h", pairs={"p": "q"}, listings=[one])]))
    assert '<caption class="unseen">h</caption>' in page
    assert '<th scope="row">p</th>' in page
    assert '<th scope="col">name</th><td></td>' in page
    assert "<caption>First. Second.</caption>" in page


def test_the_label_of_a_folded_table_is_short():
    assert Listing(["a", "", "b"], []).title == "Table: a, b"
    assert Listing(list("abcdef"), []).title == "Table: a, b, c, d, …"
    assert Listing(["a"], [], "All of 1.5 rows. More.").title == "All of 1.5 rows"

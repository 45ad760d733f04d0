"""No figure and no table of a document is left out."""

import re
from pathlib import Path

import pytest

from dpublish.experiments.reproduce.documents import DOCUMENTS, all_items, items_of
from dpublish.experiments.reproduce.rerun import jobs_of

ROOT = Path(__file__).parents[3]

CAPTIONS = {
    "su-thesis": {
        "Figure": {2: range(1, 3), 3: range(1, 13), 4: range(1, 9), 5: range(1, 17)},
        "Table": {3: range(1, 3), 4: range(1, 6), 5: range(1, 7)},
    },
    "privpfc": {"Figure": {0: range(2, 14)}, "Table": {0: range(1, 3)}},
    "li-thesis": {
        "Figure": {3: range(1, 11), 4: range(1, 10), 5: range(1, 12)},
        "Table": {3: range(1, 3), 4: range(1, 3)},
    },
    "privgene": {"Figure": {0: range(1, 8)}, "Table": {0: range(1, 3)}},
    "wavecluster": {"Figure": {0: range(1, 9)}, "Table": {}},
}


def captions(document):
    return {
        f"{kind} {chapter}.{number}" if chapter else f"{kind} {number}"
        for kind, chapters in CAPTIONS[document].items()
        for chapter, numbers in chapters.items()
        for number in numbers
    }


def named(text):
    """List the figures and tables that "Figures 5.9, 5.11; Tables 5.1 to 5.3" names.

    >>> sorted(named("Figures 5.9, 5.11(a); Tables 5.1 to 5.3"))
    ['Figure 5.11', 'Figure 5.9', 'Table 5.1', 'Table 5.2', 'Table 5.3']
    """
    found, kind = set(), None
    for word, first, last in re.findall(
        r"(Figure|Table|Claim|Eq)|(\d[\d.]*)(?: to (\d[\d.]*))?", text
    ):
        kind = word or kind
        if first and kind in ("Figure", "Table"):
            found |= {f"{kind} {number}" for number in between(first.strip("."), last.strip("."))}
    return found


def between(first, last):
    if not last:
        return [first]
    chapter, _, begin = first.rpartition(".")
    end = int(last.rpartition(".")[2])
    return [f"{chapter}.{n}" if chapter else str(n) for n in range(int(begin), end + 1)]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_figure_and_table_has_an_item(document):
    items = items_of(document, all_items())
    found = set().union(*(named(item.numbers[document]) for item in items))
    assert captions(document) - found == set()


def test_every_test_that_an_item_names_is_there():
    named_tests = {
        word.strip(",;`").partition("::")[0]
        for item in all_items()
        for word in item.tested.split()
        if word.startswith(("tests/", "docs/"))
    }
    assert len(named_tests) > 20
    assert [path for path in sorted(named_tests) if not (ROOT / path).exists()] == []


def test_no_run_is_refused_where_its_tables_are(real_data):
    items = all_items()
    for is_full in (False, True):
        for job in jobs_of(items, is_full=is_full, data_folder=str(real_data)):
            assert job.plan().trials, job.run


def test_the_list_of_captions_knows_every_document():
    assert set(CAPTIONS) == set(DOCUMENTS)
    assert named("Claim, 5.4; Figure 4.4(a)") == {"Figure 4.4"}

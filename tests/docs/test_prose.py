"""`make lint` reads pages with tools/check_prose.py: it finds long sentences and empty words."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_prose", ROOT / "tools" / "check_prose.py")
check_prose = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_prose)
LONG = "word " * 41 + "end."


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        f"Short. {LONG}",
        "Simply add noise.",
        "Leverage it.",
        f"- {LONG}",
        f'A "{"word " * 41}" title.',
        'Simply read "A Title".',
        '"A Title" is easy.',
        'Five inches (5") are easy to see.',
        '"One" is easy, "two" is not.',
    ],
)
def test_what_reads_badly_is_noticed(text):
    assert len(list(check_prose.faults("page.md", f"First.\n{text}\n"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"```text\n{LONG}\n```",
        f"| {LONG} |",
        f"# {LONG}",
        f"`{LONG}`",
        f"$$\n{LONG}\n$$",
        f"<!-- {LONG} -->",
        'See "GUPT: Privacy Preserving Data Analysis Made Easy", SIGMOD 2012.',
        "See “Clustering Made Easy”.",
        "word " * 39 + "end.",
        "word " * 30 + "end. " + "word " * 30 + "end.",
    ],
)
def test_code_tables_and_formulas_are_not_read(text):
    assert list(check_prose.faults("page.md", text)) == []

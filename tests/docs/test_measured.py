"""The tables of docs/compare/measured.md are those of the measurements that lie beside it."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks" / "peers"
PAGE = ROOT / "docs" / "compare" / "measured.md"


@pytest.fixture
def figures(monkeypatch):
    """Import the module as the command does, from its own folder."""
    monkeypatch.syspath_prepend(str(PEERS))
    yield importlib.import_module("figures")
    for name in ("figures", "environments"):
        sys.modules.pop(name, None)


def test_the_page_holds_what_was_measured(figures, tmp_path):
    copy = tmp_path / "measured.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    figures.fill_page(copy, figures.load())
    assert copy.read_text("utf-8") == PAGE.read_text("utf-8")


def test_a_figure_that_was_changed_by_hand_is_noticed(figures, tmp_path):
    copy = tmp_path / "measured.md"
    text = PAGE.read_text("utf-8")
    line = next(each for each in text.splitlines() if each.startswith("| adult | 0.1 | dpublish"))
    copy.write_text(text.replace(line, line.replace("0.1", "0.2", 1), 1), "utf-8")
    figures.fill_page(copy, figures.load())
    assert copy.read_text("utf-8") == text


def test_every_figure_says_what_it_guarantees_and_when_it_was_measured(figures):
    found = figures.load()
    assert {each.task for each in found} >= {"classes", "centers", "synthesis"}
    for each in found:
        assert each.measures
        assert each.date.startswith("2026-")
        assert each.epsilon == "none" or each.neighbors, each


def test_the_readme_and_the_page_agree(figures):
    readme = (ROOT / "README.md").read_text("utf-8")
    (ours,) = [
        each
        for each in figures.load()
        if (each.task, each.table, each.epsilon, each.method)
        == ("classes", "adult", "0.1", "privpfc")
    ]
    (errors,) = ours.measures.values()
    mean = sum(errors) / len(errors)
    assert any(f"wrong for {shown:.1f} %" in readme for shown in (mean, 100 * mean))

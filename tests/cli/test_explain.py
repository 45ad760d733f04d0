"""`dpublish explain` and `dpublish ledger plan`: words before anything is spent."""

import pytest

from dpublish.ledger.ledger import Ledger


def test_explain_prints_the_odds_the_sum_and_the_groups(run):
    told = run("explain", "0.5")
    assert told.code == 0
    for words in ("at most 62.3 % sure", "thought before", "releases", "people", "8.25 %"):
        assert words in told.out
    assert "52        26" in told.out


def test_explain_takes_several_epsilons_and_numbers_of_releases(run):
    told = run("explain", "0.1", "0.5,2", "--releases", "3", "--json").json()
    assert [each["epsilon"] for each in told] == ["0.1", "0.5", "2"]
    assert [each["releases"][0]["epsilon"] for each in told] == ["0.3", "1.5", "6"]


@pytest.mark.parametrize("words", [[], ["x"], ["0"], ["1", "--releases", "0"]])
def test_explain_says_what_is_wrong(run, words):
    told = run("explain", *words)
    assert told.code == 1
    assert told.err.startswith("dpublish: ")


def test_a_plan_of_a_year_spends_nothing(run, workdir):
    told = run("ledger", "plan", "books.db", "people", "--releases", "12", "--per", "month")
    assert told.code == 0
    assert "12 releases, one per month, can cost epsilon 0.1666 each" in told.out
    assert "12     0.1666   1.9992           0.0008" in told.out
    assert "88.1 %" in told.out
    with Ledger(workdir / "books.db") as books:
        assert len(books.entries()) == 2


def test_a_long_plan_is_shown_by_its_ends(run, workdir):
    told = run("ledger", "plan", "books.db", "people", "--per", "week", "--keep", "20%").out
    assert "kept for later: 0.4" in told
    assert "\n...\n" in told
    assert "\n52 " in told
    assert "\n10 " not in told


def test_a_plan_counts_what_earlier_releases_spent(run, release, workdir):
    assert release(epsilon="1").code == 0
    told = run("ledger", "plan", "books.db", "people", "--epsilon", "0.4").out
    assert "people: 1 of 2 is left; 2 releases can cost epsilon 0.4 each" in told
    assert "cost 0.8: who thinks it 50 % likely that a given record is in the table" in told
    assert "85.9 %" in told  # after 1.8 in all
    assert run("ledger", "plan", "books.db", "people", "--epsilon", "1.5").code == 2


def test_a_plan_for_programs(run, workdir):
    told = run("ledger", "plan", "books.db", "people", "--releases", "3", "--json").json()
    assert told == {
        "dataset": "people",
        "releases": 3,
        "cap": "2",
        "left": "2",
        "kept": "0",
        "available": "2",
        "epsilon": "0.6666",
        "total": "1.9998",
        "remainder": "0.0002",
    }


def test_levels_are_planned_by_level(run, workdir):
    with Ledger(workdir / "books.db") as books:
        books.add("survey", levels=("0.01", "1"))
    told = run("ledger", "plan", "books.db", "survey", "--per", "quarter").out
    assert "each level pays at most its part" in told
    assert "ordinary releases can cost epsilon 0.0025 each" in told

"""What an account with levels hides is one thing: epsilons of different changes do not add up."""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest

from dpublish.errors import BudgetExhausted, InvalidParameter, LedgerTampered
from dpublish.privacy import ledger as ledger_module
from dpublish.privacy.ledger import Ledger
from dpublish.randomness import secure
from privacy.ledger_forgery import edit_body, read, reseal, verify, write

LEVELS = (Fraction(1, 10), Fraction(1))
PART = {level: level / 4 for level in LEVELS}


@pytest.fixture
def path(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("survey", levels=LEVELS)
        ledger.add("census", cap="1")
    return tmp_path / "books.db"


@pytest.fixture
def ledger(path):
    with Ledger(path) as ledger:
        yield ledger


def by_level(ledger, hides, amounts=PART):
    return ledger.grant_levels("survey", amounts, purpose="ages", rng=secure(), hides=hides)


def ordinary(ledger, epsilon="0.01", dataset="survey"):
    return ledger.grant(dataset, epsilon=epsilon, purpose="ages", rng=secure())


GRANTS = {
    "ordinary": ("presence", ordinary),
    "presence": ("presence", lambda ledger: by_level(ledger, "presence")),
    "values": ("values", lambda ledger: by_level(ledger, "values")),
}


@pytest.mark.parametrize("second", GRANTS)
@pytest.mark.parametrize("first", GRANTS)
def test_the_first_grant_decides_what_all_others_hide(path, first, second):
    (hides, start), (wanted, more) = GRANTS[first], GRANTS[second]
    with Ledger(path) as ledger:
        assert ledger.status("survey").hides is None
        budget = start(ledger)
        ledger.publish(budget.grant, "id", "hash")  # the last entry is no grant
    with Ledger(path) as ledger:
        assert ledger.status("survey").hides == hides
        before = ledger.entries()
        if wanted == hides:
            more(ledger)
        else:
            with pytest.raises(InvalidParameter, match="add it under another name"):
                more(ledger)
            assert ledger.entries() == before
        assert ledger.verify().problems == ()


def test_a_refused_grant_decides_nothing(ledger):
    ordinary(ledger, "1", "census")
    with pytest.raises(BudgetExhausted):
        ordinary(ledger, "0.2")
    by_level(ledger, "values")
    assert ledger.status("survey").hides == "values"
    with pytest.raises(InvalidParameter, match="no value for hides: 'nothing'"):
        by_level(ledger, "nothing")


def test_an_account_without_levels_says_nothing_of_it(ledger):
    ordinary(ledger, "0.1", "census")
    assert ledger.status("census").hides is None
    assert "hides" not in json.loads(ledger.entries()[-1].body)
    assert "hides" not in ledger.status("census").to_plain()


def test_the_status_says_in_json_what_is_hidden(ledger):
    assert ledger.status("survey").to_plain()["hides"] is None
    by_level(ledger, "values")
    assert ledger.status("survey").to_plain()["hides"] == "values"


WISHES = ("values", "presence", "values", "presence")


def lost(ledger):
    """Add up what exchanging her values costs a person, over all that WISHES get.

    A release that hides presence costs her twice its amount: she goes out and comes in.
    """
    found = dict.fromkeys(LEVELS, Fraction(0))
    for hides in WISHES:
        try:
            by_level(ledger, hides)
        except InvalidParameter:
            continue
        for level, amount in PART.items():
            found[level] += amount * (2 if hides == "presence" else 1)
    return found


def test_whoever_is_promised_that_values_are_hidden_loses_her_level_at_most(ledger):
    assert all(0 < cost <= level for level, cost in lost(ledger).items())


def test_a_ledger_that_adds_up_whatever_is_asked_for_is_caught(ledger, monkeypatch):
    monkeypatch.setattr(ledger_module, "fix_notion", lambda *_: None)
    assert all(cost > level for level, cost in lost(ledger).items())
    assert [level.left for level in ledger.status("survey").levels] == [0, 0]  # it sees nothing


# The file


def format_of(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def test_programs_that_know_no_notions_cannot_open_a_ledger_that_hides_values(path, ledger):
    ordinary(ledger, "0.1", "census")
    assert format_of(path) == 2
    by_level(ledger, "values")
    assert format_of(path) == 3
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert verify(path).problems == (
        "it hides values alone, but a format that lets older programs forget it",
    )


def without_hides(entry):
    """Write an entry as it was written before there were notions."""
    body = {name: value for name, value in json.loads(entry.body).items() if name != "hides"}
    return replace(entry, body=json.dumps(body))


def test_a_ledger_from_before_hides_presence(path, ledger):
    budget = by_level(ledger, "presence")
    ledger.publish(budget.grant, "id", "hash")
    write(path, reseal([without_hides(entry) for entry in read(path)]))
    assert verify(path).is_intact
    with Ledger(path) as old:
        assert old.status("survey").hides == "presence"
        with pytest.raises(InvalidParameter, match="add it under another name"):
            by_level(old, "values")
        ordinary(old)
        assert old.verify().is_intact


FORGERIES = {  # entries: 0 create, 1 and 2 add, 3 and 4 grants that hide values, 5 publish
    "a grant that hides something else": (4, {"hides": "presence"}, "earlier releases hide values"),
    "a first grant that hides something else": (3, {"hides": "presence"}, "releases hide presence"),
    "a publication that forgets": (5, {"hides": "presence"}, "not what the entries"),
    "a start that hides something": (1, {"hides": "values"}, "not what the entries"),
    "an account without levels": (2, {"hides": "presence"}, "not what the entries"),
    "a notion that never was": (4, {"hides": "names"}, "cannot be read"),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_notion_is_found_behind_fitting_hashes(path, ledger, case):
    budget = by_level(ledger, "values")
    by_level(ledger, "values")
    ledger.publish(budget.grant, "id", "hash")
    place, changes, message = FORGERIES[case]
    entries = read(path)
    entries[place] = edit_body(entries[place], **changes)
    write(path, reseal(entries))
    assert message in " ".join(verify(path).problems)


def test_a_notion_that_was_taken_out_of_a_grant_is_found(path, ledger):
    by_level(ledger, "values")
    by_level(ledger, "values")
    entries = read(path)
    entries[4] = without_hides(entries[4])
    write(path, reseal(entries))
    assert "earlier releases hide values" in " ".join(verify(path).problems)
    with Ledger(path) as forged, pytest.raises(LedgerTampered):
        forged.status("survey")

"""How levels stand in the file: none where there are none, and no forged one goes unnoticed."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dpublish.errors import InvalidParameter
from dpublish.ledger.chain import write_notion
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_forgery import edit_body, read, reseal, verify, write
from ledger.ledger_levels import personal

LEVELS = (Fraction(1, 100), Fraction(1, 10), Fraction(1))


@pytest.fixture
def path(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("survey", levels=LEVELS)
    return tmp_path / "books.db"


@pytest.fixture
def ledger(path):
    with Ledger(path) as ledger:
        yield ledger


def ordinary(ledger, epsilon, dataset="survey"):
    return ledger.grant(
        dataset,
        epsilon=epsilon,
        purpose="ages",
        hides=AddRemoveRecord(),
        rng=secure(),
        all_have_levels=dataset == "survey",
    )


def by_level(ledger, *amounts):
    asked = dict(zip(LEVELS, map(Fraction, amounts), strict=True))
    return ledger.grant_levels(
        "survey", asked, purpose="ages", hides=personal(LEVELS), rng=secure()
    )


def test_entries_of_a_dataset_without_levels_hold_none(tmp_path):
    path = tmp_path / "plain.db"
    with Ledger.create(path) as ledger:
        ledger.add("census")
        budget = ordinary(ledger, "0.1", "census")
        ledger.publish(budget.grant, "id", "hash")
        with pytest.raises(InvalidParameter):
            ledger.add("census", levels=LEVELS)  # a refused one leaves no trace either
    assert [set(json.loads(entry.body)) - {"salt"} for entry in read(path)] == [
        {"format"},
        {"cap", "spent", "note"},
        {"cap", "spent", "hides", "epsilon", "purpose", "fingerprinted", "all_have_levels"},
        {"cap", "spent", "hides", "grant", "release_id", "release_hash"},
    ]


def edit(index, **changes):
    return lambda entries: entries.__setitem__(index, edit_body(entries[index], **changes))


def stated(*spent):
    return [[str(float(e)), s] for e, s in zip(LEVELS, spent, strict=True)]


FORGERIES = {  # entries: 0 create, 1 add, 2 grant by level, 3 ordinary grant, 4 publish
    "a level's total": (edit(4, levels=stated("0", "0.051", "0.501")), "not what the entries"),
    "a level's debit": (edit(2, amounts=stated("0", "0.05", "0.5")), "not what the entries"),
    "a level that is gone": (edit(4, levels=stated("0.002", "0.051", "0.501")[1:]), "not what"),
    "all levels of an entry": (edit(3, levels=[]), "not what the entries"),
    "levels of an ordinary kind": (edit(3, levels=None), "cannot be read"),
    "a start that is not empty": (edit(1, levels=stated("0.001", "0", "0")), "not what"),
    "a cap that is no level": (edit(1, cap="5"), "cap is not its highest level"),
    "a grant of other levels": (
        edit(2, amounts=[["0.1", "0.05"], ["1", "0.5"]]),
        "debits other levels than its release has",
    ),
    "a grant of levels that the dataset does not have": (
        edit(
            2,
            amounts=[["0.02", "0.01"], ["1", "0.5"]],
            hides=write_notion(personal(("0.02", "1"))),
        ),
        "debits levels that 'survey' does not have",
    ),
    "an ordinary grant that no one vouched for": (
        edit(3, all_have_levels=False),
        "no one said that all records have levels",
    ),
    "a grant of less than it says": (edit(2, epsilon="0.4"), "not the most that a level pays"),
    "a grant above a level": (
        edit(2, amounts=stated("0.02", "0.05", "0.5")),
        "pays from 0 up to its own number",
    ),
    "an ordinary grant made too large": (edit(3, epsilon="0.05"), "has spent more than it may"),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_levels_that_do_not_add_up_are_found_behind_fitting_hashes(path, ledger, case):
    budget = by_level(ledger, "0.001", "0.05", "0.5")
    ordinary(ledger, "0.001")
    ledger.publish(budget.grant, "id", "hash")
    assert ledger.verify().is_intact
    forge, message = FORGERIES[case]
    entries = read(path)
    forge(entries)
    write(path, reseal(entries))
    assert message in " ".join(verify(path).problems)


def test_a_cap_change_slipped_in_among_levels_is_found(path, ledger):
    ledger.add("census", cap="1")
    ledger.change_cap("census", "2", reason="asked")
    entries = read(path)
    start = json.loads(entries[1].body)
    changes = {"cap": "2", "levels": start["levels"]}
    entries[3] = replace(edit_body(entries[3], **changes), dataset="survey")
    write(path, reseal(entries))
    assert "changes the cap of people who have numbers of their own" in " ".join(
        verify(path).problems
    )

"""Budgets that are shared over levels, and receipts that say what each level paid."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import BudgetAlreadyUsed, CorruptRelease, InvalidParameter
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import AddRemoveRecord, PersonalRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import secure

GRANT = Grant("survey", 3, "f" * 64)
CENT, TENTH, ONE = Fraction(1, 100), Fraction(1, 10), Fraction(1)
HALVES = ((CENT, CENT / 2), (TENTH, TENTH / 2), (ONE, ONE / 2))
PERSONAL = PersonalRecord("pref", ("0.01", "0.1", "1"), "levels")


def granted(levels=HALVES):
    return Budget.granted(max(amount for _, amount in levels), "ages", grant=GRANT, levels=levels)


def issue(budget=None, **changes):
    settings = {"method": "partitioning", "settings": {}, "rng": secure()}
    settings |= {"budget": budget or granted(), "neighbors": PERSONAL}
    return Receipt.issue(**settings | changes)


# Budgets


@given(
    amounts=st.lists(st.fractions(min_value=Fraction(1, 10**6), max_value=9), min_size=1),
    weight=st.integers(1, 9),
)
def test_groups_get_their_own_amounts_and_cost_the_largest(amounts, weight):
    whole = Budget.seeded(max(amounts))
    groups = whole.share_groups({f"g{index}": amount for index, amount in enumerate(amounts)})
    assert [group.epsilon for group in groups.values()] == amounts
    for group in groups.values():
        group.split(size=1, counts=weight)
    assert whole.cost() == max(amounts)
    assert whole.parallel_purposes() == ["release"]


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({}, "at least one part"),
        ({"a": TENTH}, r"largest amount \(0\.1\) must be the whole budget \(1\)"),
        ({"a": ONE, "b": ONE + CENT}, r"largest amount \(1\.01\) must be the whole budget"),
        ({"a": ONE, "b": Fraction(0)}, "greater than 0"),
        ({"a": ONE, "b": -ONE}, "greater than 0"),
        ({"a": ONE, "b": 0.5}, "must be a Fraction"),
    ],
)
def test_groups_that_lose_or_invent_budget_are_refused_and_the_budget_stays_shut(amounts, message):
    whole = Budget.seeded(ONE)
    with pytest.raises(InvalidParameter, match=message):
        whole.share_groups(amounts)
    assert not whole.is_used


def test_a_budget_is_shared_over_groups_once():
    whole = Budget.seeded(ONE)
    whole.share_groups({"a": ONE})
    with pytest.raises(BudgetAlreadyUsed):
        whole.share_groups({"a": ONE})


def test_the_levels_of_a_grant_are_known_to_all_its_budgets():
    whole = granted()
    size, rest = whole.split(size=1, rest=3).values()
    (part,) = rest.share_groups({"all": rest.epsilon}).values()
    assert whole.levels == size.levels == part.levels == HALVES
    assert Budget.seeded(ONE).split(only=1)["only"].levels is None


def test_a_budget_holds_what_its_highest_payer_pays():
    with pytest.raises(InvalidParameter, match="epsilon must be the largest amount"):
        Budget.seeded(ONE, levels=HALVES)


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        (((CENT, CENT), *HALVES[1:]), r"cost level 0\.01 0\.01, but only 0\.005 was granted"),
        (HALVES[1:], "other levels than the grant"),
        (((CENT, Fraction(0)), (TENTH, Fraction(0)), (ONE, ONE)), r"level 1 1, but only 0\.5"),
    ],
)
def test_no_level_pays_more_than_was_granted_there(amounts, message):
    with pytest.raises(InvalidParameter, match=message):
        granted().require_levels(amounts)


def test_less_than_was_granted_is_fine_and_an_ordinary_budget_covers_all_levels_alike():
    granted().require_levels(tuple((level, amount / 2) for level, amount in HALVES))
    Budget.seeded(ONE / 2).require_levels(HALVES)
    with pytest.raises(InvalidParameter, match=r"level 1 0\.5, but only 0\.4"):
        Budget.seeded("0.4").require_levels(HALVES)


# Receipts


def test_a_receipt_says_in_plain_words_what_each_level_paid():
    receipt = issue()
    assert receipt.personal == HALVES
    assert receipt.guarantee() == (
        "Whatever anyone learns from this release would have been almost as likely if any one "
        "record, with the level that 'pref' gives it, were added to the table or removed from "
        "it: no outcome's probability differs by more than a factor of e^ε, where ε goes by the "
        "record's level: 0.005 at level 0.01, 0.05 at level 0.1 and 0.5 at level 1. At most that "
        "is e^ε = e^0.5 ≈ 1.64872. Records below the first level, or without one, are not in "
        "the release."
    )


def test_a_personal_receipt_survives_a_file():
    receipt = issue()
    plain = json.loads(json.dumps(receipt.to_dict()))
    assert plain["personal"] == [["0.01", "0.005"], ["0.1", "0.05"], ["1", "0.5"]]
    assert Receipt.from_dict(plain) == receipt


def test_the_guarantee_of_people_with_several_records_speaks_of_people():
    receipt = issue(neighbors=replace(PERSONAL, unit="patient_id"))
    assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt
    words = replace(receipt, stamps=()).guarantee()
    assert "all records of any one person ('patient_id'), at the smallest level" in words
    assert "ε goes by the person's level: " in words
    assert "People with a record below the first level, or without one, are not in" in words


def test_other_receipts_are_written_and_read_as_they_always_were():
    receipt = issue(Budget.seeded(ONE), neighbors=AddRemoveRecord())
    assert "personal" not in receipt.to_dict()
    assert Receipt.from_dict(receipt.to_dict()).personal == ()
    assert "level" not in receipt.guarantee()


def test_a_budget_granted_by_level_never_pays_for_an_ordinary_release():
    with pytest.raises(InvalidParameter, match="must hide records of the same levels"):
        issue(neighbors=AddRemoveRecord())


def test_a_receipt_cannot_claim_more_at_a_level_than_was_granted():
    thirds = tuple((level, level / 3) for level, _ in HALVES)
    with pytest.raises(InvalidParameter, match="but only"):
        issue(personal=((CENT, CENT), *HALVES[1:]))
    assert issue(Budget.seeded(ONE / 3), personal=thirds).personal == thirds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"personal": HALVES[:2]}, "most that any level pays"),
        ({"neighbors": PersonalRecord("pref", ("0.1", "1"), "levels")}, "the same levels"),
        ({"personal": ((CENT, ONE / 2), *HALVES[1:])}, "up to its own number"),
        ({"personal": HALVES[::-1]}, "must rise"),
    ],
)
def test_a_personal_receipt_that_contradicts_itself_does_not_exist(changes, message):
    with pytest.raises(InvalidParameter, match=message):
        replace(issue(), **changes)


@pytest.mark.parametrize("personal", ["x", [["1"]], [[1, 1]], [["1", "-1"]], [["1", "2"]], None])
def test_a_broken_personal_receipt_is_refused_as_such(personal):
    plain = issue().to_dict() | {"personal": personal}
    with pytest.raises(CorruptRelease):
        Receipt.from_dict(plain)

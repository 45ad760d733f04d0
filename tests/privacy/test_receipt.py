import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy import receipt as receipts
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    ReplaceRecord,
    UserInWindow,
)
from dpublish.privacy.receipt import (
    SEEDED,
    UNACCOUNTED,
    Receipt,
    json_schema,
    refuse_other_notion,
    refuse_part,
    refuse_seeded_grant,
)
from dpublish.randomness import secure, seeded

GRANT = Grant("census", 3, "f" * 64)


def issue(budget=None, **changes):
    settings = {
        "method": "histogram",
        "settings": {"columns": ["age"]},
        "budget": budget or Budget.granted("0.5", "ages", grant=GRANT),
        "neighbors": AddRemoveRecord(),
        "rng": secure(),
    }
    return Receipt.issue(**settings | changes)


def round_trip(receipt):
    return Receipt.from_dict(json.loads(json.dumps(receipt.to_dict())))


def test_a_receipt_states_the_budget_and_where_it_came_from():
    budget = Budget.granted("0.5", "ages", grant=GRANT)
    budget.split(size=1, counts=4)
    receipt = issue(budget)
    assert receipt.epsilon == Fraction(1, 2)
    assert receipt.shares == (
        ("ages/size", Fraction(1, 10)),
        ("ages/counts", Fraction(2, 5)),
    )
    assert (receipt.dataset, receipt.anchor) == ("census", (3, "f" * 64))
    assert receipt.package_version == version("dpublish")
    assert receipt.stamps == ()
    assert receipt.is_private


def test_shares_over_disjoint_parts_are_marked_so_that_no_one_adds_them_up():
    budget = Budget.granted("0.5", "ages", grant=GRANT)
    budget.split(size=1, groups=4)["groups"].share_disjoint(["young", "old"])
    receipt = issue(budget)
    assert receipt.parallel == ("ages/groups",)
    assert sum(share for _, share in receipt.shares) == Fraction(9, 10)
    assert round_trip(receipt) == receipt


def test_a_receipt_whose_shares_do_not_add_up_does_not_exist():
    with pytest.raises(InvalidParameter, match=r"shares add up to 0\.4, but epsilon is 0\.5"):
        Receipt("m", {}, Fraction(1, 2), (("a", Fraction(2, 5)),), AddRemoveRecord())


@pytest.mark.parametrize(
    ("grant", "rng", "stamps"),
    [
        (GRANT, secure(), ()),
        (None, secure(), (UNACCOUNTED,)),
        (None, seeded(1), (SEEDED, UNACCOUNTED)),
    ],
)
def test_stamps_say_what_the_release_lacks(grant, rng, stamps):
    budget = Budget.granted("1", grant=grant) if grant else Budget.seeded("1")
    receipt = issue(budget, rng=rng)
    assert receipt.stamps == stamps
    assert receipt.is_private == (SEEDED not in stamps)
    assert (receipt.anchor is None) == (grant is None)


def test_the_stamps_read_as_the_documentation_says():
    assert SEEDED == "NOT PRIVATE: seeded"
    assert UNACCOUNTED == "NOT ACCOUNTED: no ledger granted this budget"


def test_a_granted_budget_is_never_spent_on_seeded_noise():
    budget = Budget.granted("1", grant=GRANT)
    with pytest.raises(InvalidParameter, match=r"must come from randomness\.secure"):
        refuse_seeded_grant(budget, seeded(1))
    share = budget.split(only=1)["only"]
    with pytest.raises(InvalidParameter, match=r"must come from randomness\.secure"):
        issue(share, rng=seeded(1))
    refuse_seeded_grant(budget, secure())
    refuse_seeded_grant(Budget.seeded("1"), seeded(1))


def test_two_receipts_for_the_same_release_differ_in_their_time_and_id_alone():
    budget = Budget.granted("1", grant=GRANT)
    first, second = issue(budget), replace(issue(budget), created="1999-12-31T00:00:00+00:00")
    assert first == second
    assert first.release_id != second.release_id
    assert len(bytes.fromhex(first.release_id)) == 16


def test_the_guarantee_is_in_plain_words():
    assert issue().guarantee() == (
        "Whatever anyone learns from this release would have been almost as likely if any one "
        "record were added to the table or removed from it: no outcome's probability differs by "
        "more than a factor of e^ε = e^0.5 ≈ 1.64872."
    )
    told = issue(neighbors=AddRemoveUnit("patient_id")).guarantee()
    assert "if all records of any one person ('patient_id') were added" in told
    assert "e^(1/3) ≈ 1.39561" in issue(Budget.granted("1/3", grant=GRANT)).guarantee()
    assert "factor of e^ε = e^1000000." in issue(Budget.granted("1e6", grant=GRANT)).guarantee()


def test_a_release_that_hides_nothing_guarantees_nothing():
    guarantee = issue(Budget.seeded("0.5"), rng=seeded(1)).guarantee()
    assert guarantee.startswith("This release guarantees nothing")
    assert "e^" not in guarantee


def test_a_release_without_a_ledger_says_what_the_guarantee_leaves_out():
    assert (
        issue(Budget.seeded("0.5"))
        .guarantee()
        .endswith("No ledger adds it to other releases from the same data.")
    )


SETTINGS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(
    settings=SETTINGS,
    epsilon=st.fractions(min_value=Fraction(1, 10**9), max_value=100),
    weights=st.lists(st.integers(1, 10**20), min_size=1, max_size=6),
)
def test_a_receipt_survives_a_file_exactly(settings, epsilon, weights):
    budget = Budget.granted(epsilon, "ages", grant=GRANT)
    budget.split(**{f"part{index}": weight for index, weight in enumerate(weights)})
    receipt = issue(budget, settings=settings, neighbors=UserInWindow("person", 3))
    again = round_trip(receipt)
    assert again == receipt
    assert (again.created, again.release_id) == (receipt.created, receipt.release_id)


def test_shares_of_any_length_survive_a_file():
    share = Fraction(1, 3**300)
    receipt = issue(Budget.granted(share, grant=GRANT))
    assert round_trip(receipt).shares == (("release", share),)


def test_settings_are_kept_as_a_file_would_give_them_back():
    given_settings = {"levels": (1, 2), "share": Fraction(1, 4), "nested": {"a": (None, 0.1)}}
    receipt = issue(settings=given_settings)
    assert receipt.settings == {"levels": [1, 2], "share": "0.25", "nested": {"a": [None, 0.1]}}
    given_settings["nested"]["a"] = "changed later"
    assert round_trip(receipt) == receipt


@pytest.mark.parametrize(
    "value",
    [np.int64(3), np.arange(3), object, {1: 2}, {"set"}, float("nan"), float("inf"), Decimal(1)],
    ids=str,
)
def test_settings_that_do_not_fit_a_file_are_refused(value):
    with pytest.raises(InvalidParameter, match="setting 'odd' cannot be written"):
        issue(settings={"odd": [value]})


BROKEN = {
    "no epsilon": lambda plain: plain.pop("epsilon"),
    "a float": lambda plain: plain.update(epsilon=0.5),
    "zero": lambda plain: plain.update(epsilon="0", shares=[]),
    "a bomb": lambda plain: plain.update(epsilon="1e999999999"),
    "another epsilon": lambda plain: plain.update(epsilon="0.4"),
    "a larger share": lambda plain: plain["shares"][0].update(epsilon="0.6"),
    "unknown neighbors": lambda plain: plain.update(neighbors={"name": "everyone"}),
    "neighbors with more": lambda plain: plain["neighbors"].update(window=3),
    "settings that are a list": lambda plain: plain.update(settings=[]),
    "a stamp that is a number": lambda plain: plain.update(stamps=[1]),
    "no stamps": lambda plain: plain.pop("stamps"),
    "an entry that is text": lambda plain: plain.update(ledger_entry="3"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_receipt_is_refused(case):
    plain = issue().to_dict()
    BROKEN[case](plain)
    with pytest.raises(CorruptRelease, match="the receipt cannot be read"):
        Receipt.from_dict(plain)


@pytest.mark.parametrize("plain", [None, [], "receipt", 5])
def test_what_is_no_receipt_at_all_is_refused(plain):
    with pytest.raises(CorruptRelease, match="the receipt cannot be read"):
        Receipt.from_dict(plain)


def test_fields_of_a_later_version_are_ignored():
    receipt = issue()
    assert Receipt.from_dict(receipt.to_dict() | {"later": 1}) == receipt


def test_a_receipt_cannot_be_changed():
    with pytest.raises(AttributeError):
        issue().epsilon = Fraction(1)


def test_a_receipt_anchors_the_ledger_and_shows_no_fingerprint(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("census")
        budget = ledger.grant(
            "census",
            epsilon="0.5",
            purpose="ages",
            hides=AddRemoveRecord(),
            rng=secure(),
            fingerprint="of-the-rows",
        )
        receipt = issue(budget)
        ledger.publish(budget.grant, receipt.release_id, "hash")
        assert ledger.verify(anchors=[receipt.anchor]).is_intact
        assert not ledger.verify(anchors=[(receipt.ledger_entry, "0" * 64)]).is_intact
    assert "of-the-rows" not in json.dumps(receipt.to_dict())


# Parts of a grant, and other notions than it was granted for


def test_a_part_of_a_grant_does_not_pay_for_a_release_of_its_own():
    whole = Budget.granted("1", grant=GRANT)
    refuse_part(whole)
    with pytest.raises(InvalidParameter, match=r"part of a grant.* grant one for this release"):
        refuse_part(whole.split(only=1)["only"])
    refuse_part(Budget.seeded("1").split(only=1)["only"])  # no ledger records that one


@pytest.mark.parametrize(
    ("granted", "hidden"),
    [
        (AddRemoveUnit("person"), AddRemoveRecord()),
        (AddRemoveRecord(), ReplaceRecord()),
        (AddRemoveUnit("person"), AddRemoveUnit("basket")),
        (UserInWindow("person", 3), UserInWindow("person", 2)),
    ],
)
def test_a_release_hides_what_the_ledger_was_told(granted, hidden):
    budget = Budget.granted("1", grant=GRANT, hides=granted)
    refuse_other_notion(budget, granted)
    refuse_other_notion(Budget.seeded("1"), hidden)  # no ledger was told anything
    with pytest.raises(InvalidParameter) as caught:
        issue(budget, neighbors=hidden)
    assert granted.brief() in str(caught.value)
    assert f"hides={hidden!r}" in str(caught.value)


# Releases of single rows, stated for units


def test_rows_of_a_unit_are_stated_at_what_all_of_them_cost_it():
    unit = AddRemoveUnit("person")
    whole = Budget.granted(0.9, "ages", grant=GRANT, hides=unit)
    size, counts = whole.split(size=1, counts=8).values()
    size.spend()
    rows = counts.for_rows(4)
    rows.split(a=1, b=3)
    inner = issue(rows, settings={"columns": ["age"]})
    assert inner.epsilon == Fraction(1, 5)
    told = inner.for_unit(
        4, budget=whole, neighbors=unit, settings={"max_rows": 4}, steps=["kept 4 rows"]
    )
    assert told.shares == (
        ("ages/size", Fraction(1, 10)),
        ("ages/counts/a", Fraction(1, 5)),
        ("ages/counts/b", Fraction(3, 5)),
    )
    assert (told.epsilon, told.neighbors, told.contribution) == (Fraction(9, 10), unit, 4)
    assert told.settings == {"columns": ["age"], "max_rows": 4}
    assert told.steps == ("kept 4 rows",)
    assert "the float 0.9" in told.epsilon_read
    assert told.anchor == inner.anchor
    assert round_trip(told) == told


def test_levels_of_rows_are_stated_at_what_all_rows_of_a_person_cost():
    levels = ((Fraction(1, 2), Fraction(1, 4)), (Fraction(1), Fraction(1)))
    unit = PersonalRecord("own", ("0.5", "1"), "levels", unit="person")
    row = PersonalRecord("own", ("0.5", "1"), "levels")
    whole = Budget.granted("1", grant=GRANT, hides=unit, levels=levels)
    rows = whole.for_rows(3, hides=row)
    rows.spend()
    inner = issue(rows, neighbors=row, steps=["ages above 17"])
    told = inner.for_unit(3, budget=whole, neighbors=unit, settings={}, steps=["not these"])
    assert (inner.personal, told.personal) == (rows.levels, levels)
    assert told.steps == ("ages above 17",)


def test_a_unit_is_not_stated_for_a_grant_that_hides_another():
    whole = Budget.granted("1", grant=GRANT, hides=AddRemoveUnit("person"))
    rows = whole.for_rows(2)
    rows.spend()
    other = {"neighbors": AddRemoveUnit("basket"), "settings": {}}
    with pytest.raises(InvalidParameter, match="the ledger was told"):
        issue(rows).for_unit(2, budget=whole, **other)


# Files


MORE = {
    "assumptions": ("rows are independent",),
    "contribution": 3,
    "steps": ("ages above 17",),
    "epsilon_read": "the float 0.5",
}


@pytest.mark.parametrize("name", MORE)
def test_what_not_every_receipt_has_is_written_where_there_is_something(name):
    plain, more = issue().to_dict(), replace(issue(), **{name: MORE[name]})
    assert not plain.keys() & {*MORE, "personal"}
    assert more.to_dict().keys() - plain.keys() == {name}
    assert getattr(round_trip(more), name) == MORE[name]
    assert round_trip(more) == more != issue()


def test_the_schema_describes_receipts_of_every_kind():
    checker = jsonschema.Draft202012Validator(json_schema())
    checker.check_schema(json_schema())
    personal = replace(
        issue(),
        personal=((Fraction(1, 2), Fraction(1, 2)),),
        neighbors=PersonalRecord("own", ("0.5",), "levels"),
    )
    for receipt in (issue(), issue(Budget.seeded("0.5")), replace(issue(), **MORE), personal):
        assert list(checker.iter_errors(json.loads(json.dumps(receipt.to_dict())))) == []
    seen = {"personal"} | issue().to_dict().keys() | MORE.keys()
    assert json_schema()["properties"].keys() == seen
    assert all(part["description"] for part in json_schema()["properties"].values())


@pytest.mark.parametrize(
    "case",
    ["no epsilon", "a float", "settings that are a list", "no stamps", "a stamp that is a number"],
)
def test_the_schema_refuses_what_is_no_receipt(case):
    plain = json.loads(json.dumps(issue().to_dict()))
    BROKEN[case](plain)
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(plain)


def test_a_package_that_was_not_installed_has_no_version_and_still_writes_receipts(monkeypatch):
    def missing(name):
        assert name == "dpublish"
        raise PackageNotFoundError(name)

    monkeypatch.setattr(receipts, "version", missing)
    assert issue().package_version == "unknown"

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, UserInWindow
from dpublish.privacy.receipt import SEEDED, UNACCOUNTED, Receipt, refuse_seeded_grant
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
    given_settings = {"levels": (1, 2), "share": Fraction(1, 4), "nested": {"a": (None, True)}}
    receipt = issue(settings=given_settings)
    assert receipt.settings == {"levels": [1, 2], "share": "0.25", "nested": {"a": [None, True]}}
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

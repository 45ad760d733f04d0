"""A budget that was granted to hide one thing cannot be spent on hiding another."""

from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure

PEOPLE = Schema((column("home", "category", values=["a", "b"]),))
ROWS = pa.table({"home": ["a", "b"], "own": [0.1, 1.0], "theirs": [1.0, 0.1]})


def minimum(mode="levels", preference="own"):
    levels = {"preference": preference, "levels": ("0.1", "1"), "mode": mode}
    return make_method("minimum", {"inner": "histogram columns=home", **levels})


def release(method, granted, tmp_path, pay=lambda budget: budget):
    """Spend on one method what was granted for another."""
    table = open_table(ROWS, method.prepare(PEOPLE))
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", levels=("0.1", "1"))
        amounts, hides = (
            method.spending(Fraction(1)),
            granted.preferences.neighbors(granted.prepare(PEOPLE)),
        )
        budget = ledger.grant_levels("people", amounts, purpose="x", hides=hides, rng=secure())
        return method.release(table, budget=pay(budget), rng=secure())


@pytest.mark.parametrize("mode", ["levels", "values-only"])
def test_what_was_granted_is_published(mode, tmp_path):
    assert release(minimum(mode), minimum(mode), tmp_path).receipt.personal


@pytest.mark.parametrize(
    ("wanted", "granted"),
    [
        ({}, {"mode": "values-only"}),
        ({"mode": "values-only"}, {}),
        ({}, {"preference": "theirs"}),
    ],
)
def test_what_was_granted_for_something_else_is_refused(wanted, granted, tmp_path):
    with pytest.raises(InvalidParameter, match="the ledger was told that this release hides"):
        release(minimum(**wanted), minimum(**granted), tmp_path)


def test_a_part_of_a_budget_hides_what_the_whole_does(tmp_path):
    with pytest.raises(InvalidParameter, match="part of a grant"):
        release(minimum("values-only"), minimum(), tmp_path, lambda b: b.split(a=1)["a"])
    with Ledger.create(tmp_path / "others.db") as ledger:
        ledger.add("people")
        asked = {"purpose": "x", "hides": AddRemoveRecord()}
        whole = ledger.grant("people", epsilon="0.5", rng=secure(), **asked)
        assert whole.split(a=1)["a"].hides == AddRemoveRecord()


@pytest.mark.parametrize("account", [{"levels": ("0.1", "1")}, {"cap": "2"}])
def test_an_ordinary_grant_does_not_pay_for_hiding_values_alone(tmp_path, account):
    method = minimum("values-only")
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", **account)
        asked = {"purpose": "x", "hides": AddRemoveRecord(), "all_have_levels": "levels" in account}
        budget = ledger.grant("people", epsilon="0.05", rng=secure(), **asked)
        with pytest.raises(InvalidParameter, match="the ledger was told"):
            method.release(open_table(ROWS, method.prepare(PEOPLE)), budget=budget, rng=secure())


def test_no_receipt_is_issued_for_another_change_than_was_granted(tmp_path):
    rows = pa.table({"home": ["a", "b"], "user": ["u", "v"]})
    table = open_table(rows, Schema(PEOPLE.columns, unit="user"))
    method = make_method("topk", {"column": "home", "count": "1"})
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people")
        asked = {"purpose": "x", "hides": AddRemoveRecord()}
        budget = ledger.grant("people", epsilon="1", rng=secure(), **asked)
        with pytest.raises(InvalidParameter, match="hides one record, and it hides all records"):
            method.release(table, budget=budget, rng=secure())

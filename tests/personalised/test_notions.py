"""A budget that was granted to hide one thing cannot be spent on hiding another."""

from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.privacy.ledger import Ledger
from dpublish.randomness import secure
from dpublish.recipes import make_recipe

PEOPLE = Schema((column("home", "category", values=["a", "b"]),))
ROWS = pa.table({"home": ["a", "b"], "own": [0.1, 1.0]})


def release(mode, hides, tmp_path, pay=lambda budget: budget):
    settings = {"inner": "histogram columns=home", "preference": "own", "levels": ("0.1", "1")}
    method = make_recipe("minimum", {**settings, "mode": mode})
    table = open_table(ROWS, method.prepare(PEOPLE))
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", levels=("0.1", "1"))
        amounts = method.spending(Fraction(1))
        given = {} if hides is None else {"hides": hides}
        budget = ledger.grant_levels("people", amounts, purpose="x", rng=secure(), **given)
        return method.release(table, budget=pay(budget), rng=secure())


@pytest.mark.parametrize(("mode", "hides"), [("levels", None), ("values-only", "values")])
def test_what_was_granted_is_published(mode, hides, tmp_path):
    assert release(mode, hides, tmp_path).receipt.personal


@pytest.mark.parametrize(("mode", "hides"), [("levels", "values"), ("values-only", None)])
def test_what_was_granted_for_something_else_is_refused(mode, hides, tmp_path):
    with pytest.raises(InvalidParameter, match="hides"):
        release(mode, hides, tmp_path)


def test_a_part_of_a_budget_hides_what_the_whole_does(tmp_path):
    with pytest.raises(InvalidParameter, match="hides"):
        release("values-only", None, tmp_path, pay=lambda budget: budget.split(a=1)["a"])


@pytest.mark.parametrize("account", [{"levels": ("0.1", "1")}, {"cap": "2"}])
def test_an_ordinary_grant_does_not_pay_for_hiding_values_alone(tmp_path, account):
    settings = {"preference": "own", "levels": ("0.1", "1"), "mode": "values-only"}
    method = make_recipe("minimum", {**settings, "inner": "histogram columns=home"})
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", **account)
        budget = ledger.grant("people", epsilon="0.05", purpose="x", rng=secure())
        with pytest.raises(InvalidParameter, match="hides"):
            method.release(open_table(ROWS, method.prepare(PEOPLE)), budget=budget, rng=secure())

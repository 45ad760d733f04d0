"""Counts that rest on each column alone, at the bounds of a column, and for units with rules."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish import (
    Budget,
    Combination,
    Formula,
    KnownTotal,
    Schema,
    Synth,
    column,
    open_table,
    seeded,
)
from dpublish.errors import InvalidParameter
from dpublish.methods.synth.choice import whole_scores


def publish(table, schema, epsilon, seed, **settings):
    method = Synth(**settings)
    opened = open_table(table, schema)
    return method.release(opened, budget=Budget.seeded(epsilon), rng=seeded(seed))


def test_what_each_column_alone_allows_holds_where_columns_barely_overlap():
    # Of 2,000 records 1,600 have each value and 1,200 both: the least that is possible.  Long
    # columns make the number of records uncertain, which must widen the bound.
    values = [f"v{i}" for i in range(100)]
    schema = Schema(tuple(column(name, "category", values=values) for name in "ab"))
    a = ["v0"] * 1600 + ["v1"] * 400
    b = ["v0"] * 1200 + ["v2"] * 400 + ["v0"] * 400
    table = pa.table({"a": a, "b": b})
    inside = 0
    for seed in range(40):
        release = publish(table, schema, "0.2", seed, quality_share=Fraction(0))
        answer = release.count("a = v0 and b = v0")
        inside += answer.low <= 1200 <= answer.high
    assert inside >= 36


@pytest.mark.parametrize(
    ("query", "truth"),
    [("a >= 100", 500), ("a >= 100 and b = y", 250), ("a > 200", None), ("a < 0", None)],
)
def test_records_at_a_bound_are_in_the_interval_and_none_is_claimed_beyond(query, truth):
    schema = Schema(
        (
            column("a", "numeric", bounds=[0, 100], bins=5),
            column("b", "category", values=["x", "y"]),
        )
    )
    table = pa.table(
        {"a": np.r_[np.full(500, 100.0), np.linspace(1, 70, 500)], "b": ["x", "y"] * 500}
    )
    answer = publish(table, schema, "4", 1).count(query)
    assert answer.assumption
    if truth is None:
        assert (answer.low, answer.high) == (None, None)
    else:
        assert answer.low <= truth <= answer.high


def test_columns_that_rules_fill_in_are_there_for_units_too():
    schema = Schema(
        (
            column("a", "integer", bounds=[0, 9]),
            column("b", "category", values=["x", "y"]),
            column("d", "integer", bounds=[0, 18]),
        ),
        unit="id",
        functions=(Formula("d", "2 * a"),),
    )
    number = np.arange(3000)
    table = pa.table(
        {
            "id": number % 1500,
            "a": number % 10,
            "b": np.where(number % 10 < 4, "x", "y"),
            "d": 2 * (number % 10),
        }
    )
    for names in ((), ("a", "b", "d")):
        release = publish(table, schema, "4", 1, contribution=2, columns=names)
        rows = release.rows(200, seed=1).to_pydict()
        assert list(rows) == ["a", "b", "d"]
        assert rows["d"] == [2 * value for value in rows["a"]]
        assert any("d = 2 * a" in said for said in release.receipt.assumptions)


def test_only_functions_that_are_published_are_on_the_receipt():
    schema = Schema(
        tuple(column(name, "integer", bounds=[0, 18]) for name in "abd"),
        functions=(Formula("d", "2 * a"),),
    )
    table = pa.table({name: [1, 2, 3] for name in "abd"})
    release = publish(table, schema, "1", 1, columns=("a", "b"))
    assert release.receipt.assumptions == ()


def test_statements_about_columns_that_rules_fill_in_are_refused_and_not_forgotten():
    columns = tuple(column(name, "integer", bounds=[0, 18]) for name in "abd")
    table = pa.table({name: [1, 2, 3] for name in "abd"})
    for facts in (
        {"impossible": (Combination("b = 1 and d = 2"),)},
        {"totals": (KnownTotal("d = 2", count=1),)},
    ):
        schema = Schema(columns, functions=(Formula("d", "2 * a"),), **facts)
        with pytest.raises(InvalidParameter, match="a rule of the schema fills in"):
            publish(table, schema, "1", 1)
        assert publish(table, schema, "1", 1, columns=("a", "b")).receipt.assumptions == ()


def test_one_column_alone_gets_all_that_is_planned():
    schema = Schema((column("a", "integer", bounds=[0, 18]),))
    unknown = Synth().expected_error(schema, None, Fraction(1))
    assert (
        unknown.figures["one_value_95"]
        == Synth().expected_error(schema, 10_000, Fraction(1)).figures["one_value_95"]
    )


def test_scores_have_one_type_whatever_they_are():
    found = whole_scores([3, 1 << 80, -(1 << 90)])
    assert found.dtype == np.int64
    assert found.tolist() == [3, 1 << 60, -(1 << 60)]

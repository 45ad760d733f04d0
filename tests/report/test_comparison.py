"""Two releases are compared from what they publish; intervals hold the distance of the tables."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish import Budget, Histogram, Marginals, Schema, column, open_table, seeded
from dpublish.errors import InvalidParameter
from dpublish.report.comparison import _distance_ends, compare_releases

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("ward", "category", values=["north", "south", "west"]),
    )
)


def release(norths, seed, *, method=None, epsilon="0.5", schema=SCHEMA, rows=400):
    wards = ["north"] * norths + ["south"] * (rows - norths)
    table = open_table(pa.table({"age": [row % 100 for row in range(rows)], "ward": wards}), schema)
    made = method or Histogram(columns=("ward",))
    return made.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


def distance(found, name="ward"):
    return next(each for each in found.distances if each.column == name)


def test_the_interval_holds_the_distance_of_the_tables():
    truth = 0.25  # 200 and 300 of 400 records
    held = 0
    for seed in range(40):
        found = distance(compare_releases(release(200, seed), release(300, 1000 + seed)))
        assert found.low <= found.value <= found.high
        held += found.low <= truth <= found.high
    assert held == 40  # Bonferroni is on the safe side of 95 %


def test_the_interval_is_not_idle():
    found = distance(compare_releases(release(200, 1), release(300, 2)))
    assert found.low > 0.1
    assert found.high < 0.4
    wide = distance(compare_releases(release(200, 1), release(300, 2), confidence=0.9999))
    assert wide.low < found.low
    assert wide.high > found.high


def test_a_release_is_no_distance_from_itself():
    one = release(200, 1)
    found = distance(compare_releases(one, one))
    assert (found.value, found.low) == (0, 0)
    assert not [pair for pair in compare_releases(one, one).receipts if pair.differs]


def test_kinds_may_differ():
    other = release(300, 2, method=Marginals(columns=("age", "ward")))
    found = compare_releases(release(200, 1), other)
    assert {pair.name: (pair.first, pair.second) for pair in found.receipts}["method"] == (
        "histogram",
        "marginals",
    )
    assert distance(found).low > 0
    assert [pair.name for pair in found.columns] == ["age"]
    assert found.columns[0].first == "not there"


def test_columns_that_are_divided_differently_have_no_distance():
    others = Schema((SCHEMA["age"], column("ward", "category", values=["north", "south"])))
    found = distance(compare_releases(release(200, 1), release(200, 2, schema=others)))
    assert found.value is None
    assert "differently" in found.note


def test_a_release_without_counts_has_no_distance():
    other = release(200, 2, method=Histogram(columns=("age",)))
    assert compare_releases(release(200, 1), other).distances == ()


def test_the_ends_hold_every_distance_between_them():
    rng = np.random.default_rng(5)  # noqa: TID251 - numbers for a test, not noise
    for _ in range(300):
        one, other = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        slack = rng.uniform(0, 0.2, (4, 5))
        ends = (one - slack[0], one + slack[1], other - slack[2], other + slack[3])
        low, high = _distance_ends(*ends)
        true = np.abs(one - other).sum() / 2
        assert low - 1e-12 <= true <= high + 1e-12


def test_a_confidence_that_is_none_is_refused():
    with pytest.raises(InvalidParameter, match="confidence"):
        compare_releases(release(200, 1), release(200, 2), confidence=2)

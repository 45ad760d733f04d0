"""Counts of columns that a rule fills in: their intervals hold, whatever the records are."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from dpublish import Budget, Formula, Schema, Synth, ValueMap, column, open_table, seeded
from dpublish.core.query.rows import ClearRows
from dpublish.data.query.language import parse_query
from dpublish.methods.synth.function_counts import source_extent

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10, missing="category"),
        column("town", "category", values=["Ost", "West", "Nord"]),
        column("sex", "category", values=["F", "M"]),
        column("double", "integer", bounds=[0, 198], bins=9, missing="category"),
        column("side", "category", values=["here", "there"]),
        column("sum", "integer", bounds=[0, 297], bins=3, missing="category"),
    ),
    functions=(
        Formula("double", "2 * age"),
        ValueMap("side", "town", {"Ost": "here", "West": "there", "Nord": "there"}),
        Formula("sum", "age + double"),
    ),
)
QUERIES = {
    ("age", "double"): (
        *("double >= 100", "double < 31", "double in 20..59", "double = 18", "double != 0"),
    ),
    ("town", "side"): ("side = here", "side = there"),
}
RELEASES = 40
MOST = binom.ppf(0.999, RELEASES, 0.05)
"""Releases whose interval for a query may miss, if each does with probability 5 %."""


def table(last):
    """Records at the first or the last integer of bins of ten, so that no bin is even."""
    steps = np.minimum(np.random.Generator(np.random.Philox(3)).geometric(0.3, 400) - 1, 9)
    ages = 10 * steps + (9 if last else 0)
    towns = np.array(["Ost", "West", "Nord"])[steps % 3]
    return pa.table(
        {
            "age": pa.array(ages, mask=steps == 4),
            "town": towns,
            "sex": np.where(steps % 2, "F", "M"),
            "double": pa.array(2 * ages, mask=steps == 4),
            "side": np.where(towns == "Ost", "here", "there"),
            "sum": pa.array(3 * ages, mask=steps == 4),
        }
    )


@pytest.mark.parametrize("columns", QUERIES)
@pytest.mark.parametrize("last", [False, True])
def test_intervals_of_function_columns_hold(last, columns):
    rows = table(last)
    clear = ClearRows(rows, SCHEMA)
    truths = {query: int(clear.matches(query).sum()) for query in QUERIES[columns]}
    missed = dict.fromkeys(truths, 0)
    for seed in range(RELEASES):
        release = Synth(columns=columns).release(
            open_table(rows, SCHEMA), budget=Budget.seeded("1"), rng=seeded(seed)
        )
        for query, truth in truths.items():
            answer = release.count(query)
            assert answer.interval == "confidence"
            missed[query] += not answer.low <= truth <= answer.high
    assert max(missed.values()) <= MOST


def test_an_interval_that_forgets_cut_bins_would_be_caught():
    """The broken twin: bins that satisfy a condition in part count as none of it does."""
    rows = table(last=False)
    truth = int(ClearRows(rows, SCHEMA).matches("double < 31").sum())
    source, extent = source_extent(SCHEMA, parse_query("double < 31"))
    missed = 0
    for seed in range(RELEASES):
        release = Synth(columns=("age", "double")).release(
            open_table(rows, SCHEMA), budget=Budget.seeded("1"), rng=seeded(seed)
        )
        marginal = release.marginals[release.names.index(source)]
        inner = extent.inner.astype(np.float64)
        missed += not marginal.bound(inner, 0.95, -1) <= truth <= marginal.bound(inner, 0.95, 1)
    assert missed > MOST


def test_a_condition_is_one_on_the_source():
    source, extent = source_extent(SCHEMA, parse_query("double < 31"))
    assert source == "age"  # 0 to 15: the first bin of ten whole, the second in part
    assert np.flatnonzero(extent.inner).tolist() == [0]
    assert np.flatnonzero(extent.outer).tolist() == [0, 1, 10]  # a missing age may lead anywhere
    source, extent = source_extent(SCHEMA, parse_query("side = there"))
    assert source == "town"
    assert extent.inner.tolist() == extent.outer.tolist() == [False, True, True]


@pytest.mark.parametrize("query", ["age > 3", "sum > 9"])
def test_what_does_not_follow_from_one_measured_column_is_not_traced(query):
    assert source_extent(SCHEMA, parse_query(query)) is None

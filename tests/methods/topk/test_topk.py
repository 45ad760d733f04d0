"""The most frequent values: what is chosen, what it costs, what one person can change."""

import tomllib
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.aggregates.counts import Counts
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.datasets.baskets import baskets, baskets_schema
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.topk.topk import TopK
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveUnit, ReplaceRecord
from dpublish.randomness import seeded

BASKETS = from_dict(tomllib.loads(baskets_schema(20)))
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["item-001", "item-002", "?"])))


def table_of(pairs):
    units = pa.array([unit for unit, _ in pairs], pa.int64())
    return pa.table({"basket": units, "item": pa.array([i for _, i in pairs], pa.string())})


def supports(pairs):
    return open_table(table_of(pairs), BASKETS).sum(Counts(BASKETS, ((("item", None),),)))


@given(PAIRS, st.lists(st.sampled_from(["item-001", "item-002", "?"]), max_size=5))
def test_one_basket_moves_every_count_by_at_most_one_and_all_upwards(pairs, items):
    newcomer = [(99, item) for item in items]
    moved = supports([*pairs, *newcomer]) - supports(pairs)
    assert set(moved.tolist()) <= {0, 1}
    assert moved.sum() == len({item for item in items if item != "?"})


def release(source, schema=BASKETS, epsilon="1", seed=1, **settings):
    method = TopK(**{"column": "item", "count": 3} | settings)
    return method.release(
        open_table(source, schema), budget=Budget.seeded(epsilon), rng=seeded(seed)
    )


@pytest.mark.parametrize(
    "selection", ["one-shot", "peel-permute-and-flip", "peel-exponential", "sparse-vector"]
)
def test_with_a_large_budget_the_truly_most_frequent_are_found(selection):
    data = baskets(3000, items=20)
    ranking = Counter(item for _, item in {tuple(r.values()) for r in data.to_pylist()})
    wanted = [name for name, _ in ranking.most_common(3)]
    found = release(data, epsilon="200", selection=selection)
    assert sorted(found.values) == sorted(wanted)
    if selection != "sparse-vector":
        assert list(found.values) == wanted
    assert found.receipt.neighbors == AddRemoveUnit("basket")


def test_counts_of_units_carry_noise_for_as_many_values_as_were_chosen():
    # A basket may hold all three chosen items, so its counts move by three in all.
    noisy = release(baskets(50, items=20), epsilon="1", with_counts=True)
    assert noisy.noise_rate == Fraction(1, 2) / 3
    assert [purpose for purpose, _ in noisy.receipt.shares] == [
        "release/selection",
        "release/counts",
    ]


def test_counts_of_single_records_carry_noise_for_one():
    plain = from_dict(tomllib.loads(baskets_schema(20).replace('unit = "basket"\n', "")))
    noisy = release(baskets(50, items=20), schema=plain, with_counts=True)
    assert noisy.noise_rate == Fraction(1, 2)


def test_published_counts_vary_as_the_noise_rate_says():
    data, truth = baskets(200, items=5), None
    schema = from_dict(tomllib.loads(baskets_schema(5)))
    truth = open_table(data, schema).sum(Counts(schema, ((("item", None),),)))
    errors = []
    for seed in range(600):
        found = release(data, schema, "3", seed, count=2, with_counts=True)
        errors.extend(found.counts - truth[found.chosen])
    expected = noise_variance(Fraction(3, 4))
    assert np.var(errors) == pytest.approx(expected, rel=0.25)
    assert np.var(errors) != pytest.approx(noise_variance(Fraction(3, 2)), rel=0.25)


@pytest.mark.parametrize("selection", ["one-shot", "peel-permute-and-flip", "peel-exponential"])
def test_the_predicted_error_holds_in_nineteen_of_twenty_releases(selection):
    data = baskets(400, items=20)
    truth = open_table(data, BASKETS).sum(Counts(BASKETS, ((("item", None),),)))
    method = TopK(column="item", count=4, selection=selection)
    bound = method.expected_error(BASKETS, None, Fraction(1, 5)).figures["omitted_excess_95"]
    misses = 0
    for seed in range(200):
        chosen = release(data, epsilon="0.2", seed=seed, count=4, selection=selection).chosen
        omitted = np.delete(truth, chosen)
        misses += omitted.max() - truth[chosen].min() > bound
    assert misses <= 20


@pytest.mark.parametrize("with_counts", [False, True])
def test_the_sparse_vector_claims_no_order_that_it_does_not_know(with_counts):
    data = baskets(3000, items=20)
    for seed in range(20):
        settings = {"selection": "sparse-vector", "with_counts": with_counts}
        found = release(data, epsilon="20", seed=seed, **settings)
        assert found.is_ranked == with_counts
        assert ("rank" in found.tables()["values"].column_names) == with_counts
        if with_counts:
            assert list(found.counts) == sorted(found.counts, reverse=True)
        else:
            assert list(found.chosen) == sorted(found.chosen)
        assert "nan" not in str(found.summary())
        assert "threshold" in found.summary()["error"]


def test_tables_that_hide_something_else_are_refused():
    class Replacing:
        schema, neighbors = BASKETS, ReplaceRecord()

    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match="nothing else"):
        TopK(column="item").release(Replacing(), budget=budget, rng=seeded(1))
    assert not budget.is_used


def test_more_values_than_there_are_gives_all_of_them():
    assert len(release(baskets(20, items=20), count=99).values) == 20


def test_queries_about_published_values_only():
    found = release(baskets(3000, items=20), epsilon="50", with_counts=True)
    answer = found.count(f'item = "{found.values[0]}"')
    assert answer.low <= found.counts[0] <= answer.high
    omitted = next(v for v in found.axis.labels if v not in found.values)
    for query in (f'item = "{omitted}"', "", "item != item-001", "basket = 3"):
        with pytest.raises(InvalidQuery):
            found.count(query)
    with pytest.raises(InvalidQuery, match="with-counts"):
        release(baskets(10, items=20)).count('item = "item-001"')
    with pytest.raises(InvalidQuery):
        found.rows(5)


@pytest.mark.parametrize(
    "bad",
    [
        {"column": ""},
        {"column": None},
        {"column": "item", "selection": "best"},
        {"column": "item", "count": 0},
        {"column": "item", "count": 2.5},
        {"column": "item", "counts_share": Fraction(1)},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        TopK(**bad)

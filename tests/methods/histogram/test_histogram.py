"""The histogram method: one record moves one cell, and the noise is what the proof says."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.accuracy.noise_distribution import noise_pmf, noise_survival
from dpublish.aggregates.counts import Counts
from dpublish.data.query.language import quote
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import MAX_DENSE_CELLS, Histogram
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss
from method_examples import ROWS, SCHEMA, arrow_table

ROW = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(-300, 300),
        "sex": st.none() | st.sampled_from(["Female", "Male", "?", ""]),
        "height": st.none() | st.floats(),
        "town": st.none() | st.sampled_from(["Ost", "West", "Atlantis"]),
        "note": st.just("x"),
    }
)
COLUMNS = st.lists(
    st.sampled_from(["age", "age@1", "age@3", "sex", "height", "town", "town@0"]),
    min_size=1,
    max_size=4,
    unique_by=lambda text: text.partition("@")[0],
)


def exact_counts(rows, columns):
    axes = Histogram(columns=tuple(columns))._axes(SCHEMA)
    kernel = Counts(SCHEMA, (tuple((axis.column, axis.level) for axis in axes),))
    return open_table(arrow_table(rows), SCHEMA).sum(kernel)


@given(st.lists(ROW, max_size=5), ROW, COLUMNS)
def test_one_record_whatever_it_holds_moves_at_most_one_cell_by_one(rows, record, columns):
    moved = exact_counts([*rows, record], columns) - exact_counts(rows, columns)
    assert np.abs(moved).sum() <= 1
    assert moved.min() >= 0


def worst_loss(rate, epsilon):
    """Loss between a cell of 0 and a cell of 1, over outcomes that matter."""
    outcomes = np.arange(-40, 41)
    here = dict(zip(outcomes.tolist(), noise_pmf(rate, outcomes), strict=True))
    there = dict(zip(outcomes.tolist(), noise_pmf(rate, outcomes - 1), strict=True))
    return privacy_loss(here, there) <= float(epsilon) + 1e-9


def test_the_noise_rate_keeps_the_guarantee_and_a_greater_one_would_not():
    release = Histogram(columns=("sex",)).release(
        open_table(arrow_table(), SCHEMA), budget=Budget.seeded("0.5"), rng=seeded(1)
    )
    assert worst_loss(release.noise_rate, release.receipt.epsilon)
    assert not worst_loss(release.noise_rate * Fraction(101, 100), release.receipt.epsilon)


def noise_of_many_releases(epsilon, threshold=None):
    method = Histogram(columns=("age", "sex"), threshold=threshold)
    table, rng = open_table(arrow_table(), SCHEMA), seeded(5)
    exact = exact_counts(ROWS, ("age", "sex"))
    samples = []
    for _ in range(400):
        release = method.release(table, budget=Budget.seeded(epsilon), rng=rng)
        samples.extend((release.counts - exact[release.cells]).tolist())
    return samples


def test_published_counts_carry_just_the_noise_of_the_proof():
    values = np.arange(-60, 61)
    distribution = dict(zip(values.tolist(), noise_pmf(0.7, values), strict=True))
    twin = dict(zip(values.tolist(), noise_pmf(1.4, values), strict=True))
    samples = noise_of_many_releases("0.7")
    assert frequency_p_value(samples, distribution) > 1e-4
    assert frequency_p_value(samples, twin) < 1e-20  # half the noise would be noticed


def thresholded_distribution(counts, rate, threshold, cap):
    """Probability of each outcome when every cell is perturbed and small ones are dropped."""
    distribution = {(): 1.0}
    for cell, count in enumerate(counts):
        values = np.arange(threshold, cap)
        probabilities = dict(zip(values.tolist(), noise_pmf(rate, values - count), strict=True))
        probabilities[cap] = float(noise_survival(rate, cap - count))
        dropped = 1 - sum(probabilities.values())
        distribution = {
            (*outcome, *kept): weight * probability
            for outcome, weight in distribution.items()
            for kept, probability in [
                ((), dropped),
                *((((cell, v),), p) for v, p in probabilities.items()),
            ]
        }
    return distribution


def test_a_sparse_release_has_the_distribution_of_perturbing_every_cell_and_dropping_small_ones():
    table, rng = open_table(arrow_table(ROWS * 3), SCHEMA), seeded(6)
    columns = ("sex", "town")
    counts = exact_counts(ROWS * 3, columns)
    assert (counts == 0).sum() >= 4
    method = Histogram(columns=columns, threshold=3)
    samples = []
    for _ in range(3000):
        release = method.release(table, budget=Budget.seeded("0.8"), rng=rng)
        capped = np.minimum(release.counts, 4).tolist()
        samples.append(tuple(zip(release.cells.tolist(), capped, strict=True)))
    assert frequency_p_value(samples, thresholded_distribution(counts, 0.8, 3, 4)) > 1e-4
    # The twin that forgets empty cells would publish occupied ones only.
    twin = thresholded_distribution(np.where(counts > 0, counts, -100), 0.8, 3, 4)
    assert frequency_p_value(samples, twin) < 1e-20


@pytest.mark.parametrize(
    "bad",
    [
        {"columns": ()},
        {"columns": 3},
        {"columns": ("age",), "threshold": 0},
        {"columns": ("age",), "threshold": 1.5},
        {"columns": ("age",), "threshold": True},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        Histogram(**bad)


@pytest.mark.parametrize("columns", [("age", "age@1"), ("age", "age"), ("wealth",), ("age@9",)])
def test_columns_that_do_not_fit_the_schema_are_refused(columns):
    with pytest.raises(InvalidParameter):
        Histogram(columns=columns).expected_error(SCHEMA, None, Fraction(1))


def test_odd_names_of_columns_are_no_obstacle():
    names = ["a,b", "a", "a@1", "noisy_count"]
    odd = Schema(tuple(column(name, "category", values=["x", "y"]) for name in names))
    table = open_table(pa.table({name: ["x", "y"] for name in names}), odd)
    for chosen in (("a,b", "a@1"), ("a", "a@1"), ("a@0", "a,b@1")):
        release = Histogram(columns=chosen).release(table, budget=Budget.seeded(1), rng=seeded(1))
        assert len(release.axes) == 2
        release.count(f"{quote(release.axes[0].column)} = x")
    with pytest.raises(InvalidParameter, match="rename"):
        Histogram(columns=("noisy_count",)).expected_error(odd, None, Fraction(1))


def test_what_a_release_would_refuse_the_plan_refuses():
    wide = Schema(tuple(column(f"c{i}", "integer", bounds=[0, 999]) for i in range(22)))
    four = ("c0", "c1", "c2", "c3")
    for settings in (
        {"columns": four, "threshold": 1},
        {"columns": four, "threshold": 2**62},
        {"columns": tuple(f"c{i}" for i in range(22)), "threshold": "auto"},
        {"columns": four},
    ):
        with pytest.raises(InvalidParameter):
            Histogram(**settings).expected_error(wide, None, Fraction(1))


def test_published_cells_of_a_sparse_release_are_as_near_as_it_says():
    domain = Schema(tuple(column(name, "integer", bounds=[0, 9999]) for name in "ab"))
    rows = pa.table({"a": np.arange(9000), "b": np.arange(9000)})  # each alone in its cell
    table, rng = open_table(rows, domain), seeded(3)
    method = Histogram(columns=("a", "b"), threshold="auto")
    misses = 0
    for _ in range(60):
        release = method.release(table, budget=Budget.seeded("0.5"), rng=rng)
        first, second = release.indices()
        misses += np.any(
            np.abs(release.counts - (first == second)) > release.expected_error()["all_cells_95"]
        )
    assert misses <= 9  # 3 expected


def test_a_refused_release_costs_nothing():
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match="no column"):
        Histogram(columns=("wealth",)).release(
            open_table(arrow_table(), SCHEMA), budget=budget, rng=seeded(1)
        )
    assert not budget.is_used
    assert MAX_DENSE_CELLS >= 10**6


def test_the_auto_threshold_lets_about_one_empty_cell_through():
    method = Histogram(columns=("age", "height", "town"), threshold="auto")
    figures = method.expected_error(SCHEMA, None, Fraction(1, 2)).figures
    assert 0.3 < figures["expected_false_cells"] <= 1

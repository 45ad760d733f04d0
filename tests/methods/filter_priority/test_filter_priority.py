"""The method filter-priority: noise first, then a sample that is right on average."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.filter_priority.filter_priority import FilterPriority, priority_sample
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss

EPSILON = 0.8
LONG = 80
CAP = 4
TWO_CELLS = Schema((column("x", "integer", bounds=[0, 1]),))


def publish(values, seed=1, rng=None, schema=TWO_CELLS, **settings):
    table = open_table(pa.table({"x": pa.array(values, pa.int64())}), schema)
    method = FilterPriority(**settings)
    return method.release(table, budget=Budget.seeded("0.8"), rng=rng or seeded(seed))


def probability_of_first(first, second):
    """Probability that first / u > second / v for uniform u and v; 0 stands for no cell."""
    if not first or not second:
        return float(first > 0)
    return 1 - second / (2 * first) if first >= second else first / (2 * second)


def distribution(counts):
    """Distribution of one sampled cell of two: noise, then the filter at 1, then priorities."""
    values = np.arange(LONG)
    perturbed = []
    for count in counts:
        probabilities = noise_pmf(EPSILON, values - count)
        probabilities[0] = 1 - probabilities[1:].sum()  # below the threshold
        perturbed.append(probabilities)
    outcomes = {}
    for a, one in enumerate(perturbed[0]):
        for b, two in enumerate(perturbed[1]):
            if not a and not b:
                outcomes[()] = one * two
                continue
            first = probability_of_first(a, b)
            for cell, value, part in ((0, a, first), (1, b, 1 - first)):
                if part:
                    key = (cell, min(value, CAP))
                    outcomes[key] = outcomes.get(key, 0.0) + part * one * two
    return outcomes


def distribution_of_twin(counts):
    """The twin samples a cell by its true count, and perturbs that one only."""
    outcomes = {(): 0.0}
    first = probability_of_first(*counts)
    for cell, part in ((0, first), (1, 1 - first if any(counts) else 0.0)):
        for value in range(1, LONG):
            probability = part * float(noise_pmf(EPSILON, [value - counts[cell]])[0])
            if probability:
                key = (cell, min(value, CAP))
                outcomes[key] = outcomes.get(key, 0.0) + probability
    outcomes[()] = 1 - sum(outcomes.values())
    return outcomes


WORLDS = [((0, 0), (1, 0)), ((1, 0), (1, 1)), ((2, 1), (2, 2)), ((3, 1), (2, 1)), ((2, 0), (2, 1))]


@pytest.mark.parametrize(("here", "there"), WORLDS)
def test_the_sample_keeps_the_guarantee(here, there):
    assert privacy_loss(distribution(here), distribution(there)) <= EPSILON + 1e-9


def test_a_sample_taken_before_the_noise_is_caught():
    losses = [
        privacy_loss(distribution_of_twin(here), distribution_of_twin(there))
        for here, there in WORLDS
    ]
    assert max(losses) > EPSILON + 0.1


def test_the_method_has_the_distribution_of_the_proof_not_that_of_the_twin(rng):
    samples = []
    for _ in range(3000):
        release = publish([0, 0, 1], rng=rng, sample=1, threshold=1)
        shown = zip(release.cells.tolist(), release.counts.tolist(), strict=True)
        samples.append(next(((cell, min(count, CAP)) for cell, count in shown), ()))
    assert frequency_p_value(samples, distribution((2, 1))) > 1e-4
    assert frequency_p_value(samples, distribution_of_twin((2, 1))) < 1e-20


def test_weights_of_a_sample_add_up_to_the_counts_on_average(rng):
    counts = np.array([1, 1, 2, 3, 5, 8, 40, 200, 1, 7])
    part = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1, 0], dtype=bool)
    sums, twins = [], []
    for _ in range(4000):
        kept, cutoff = priority_sample(counts, 4, rng)
        assert kept.size == 4
        inside = counts[kept] * part[kept]
        sums.append(np.sum(np.maximum(counts[kept], cutoff) * part[kept]))
        twins.append(inside.sum())
    truth = counts[part].sum()
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - truth) < 4 * error
    assert abs(np.mean(twins) - truth) > 4 * error  # counts alone would fall short


def test_a_sample_that_holds_all_cells_changes_nothing(rng):
    kept, cutoff = priority_sample(np.array([3, 1, 2]), 3, rng)
    assert kept.tolist() == [0, 1, 2]
    assert cutoff == 0


def test_a_domain_of_2_to_the_60_cells_is_no_obstacle():
    names = "abcdef"
    schema = Schema(tuple(column(name, "integer", bounds=[0, 1023]) for name in names))
    rows = pa.table({name: np.r_[np.full(500, 7), np.arange(300)] for name in names})
    release = FilterPriority().release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(3)
    )
    assert release.size == 2**60
    assert 1 <= release.cells.size <= 6
    assert release.count("a = 7 and f = 7").value == pytest.approx(500, abs=30)
    assert release.count("a > 900").value < 100


def test_an_empty_table_and_one_row_are_no_error():
    for values in ([], [1]):
        release = publish(values)
        assert release.rows(5, seed=1).num_rows == 5
        assert release.count().low is None
        assert release.receipt.epsilon == Fraction(4, 5)


def test_what_a_release_would_refuse_the_plan_refuses():
    huge = Schema(tuple(column(f"c{i}", "integer", bounds=[0, 999]) for i in range(7)))
    named = Schema((column("weight", "integer", bounds=[0, 9]),))
    for method, schema in (
        (FilterPriority(), huge),
        (FilterPriority(), named),
        (FilterPriority(columns=("c0", "c1", "c2"), threshold=1), huge),
        (FilterPriority(columns=("z",)), huge),
    ):
        with pytest.raises(InvalidParameter):
            method.expected_error(schema, None, Fraction(1))
    for bad in ({"sample": 0}, {"sample": 10**9}, {"threshold": 0}, {"columns": 3}):
        with pytest.raises(InvalidParameter):
            FilterPriority(**bad)

"""StructureFirst: buckets are chosen at the sensitivity that the proof says, then counted."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals import structure_first
from dpublish.methods.marginals.marginals import Marginals
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import choose_ends, release_marginal
from dpublish.methods.marginals.structure_first import (
    CHOICE_RANGE,
    best_costs,
    count_buckets,
    deviations,
    last_cut_costs,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

SCHEMA = Schema((column("x", "integer", bounds=[0, 3]),))
NO_RECORDS = open_table(pa.table({"x": pa.array([], pa.int64())}), SCHEMA)


def bucket_cost(values):
    return min(sum(abs(int(value) - center) for value in values) for center in map(int, values))


def cost_of(counts, ends):
    starts = (0, *ends[:-1])
    return sum(bucket_cost(counts[a:b]) for a, b in zip(starts, ends, strict=True))


def scores_of(counts, buckets, stop):
    costs = deviations(counts)
    return -last_cut_costs(costs, best_costs(costs, buckets), buckets, stop)


def test_the_cost_of_a_bucket_is_the_distance_from_its_median():
    for seed in range(30):
        counts = plain_generator(seed).integers(0, 9, 9)
        costs = deviations(counts)
        for start, stop in combinations(range(10), 2):
            assert costs[start, stop] == bucket_cost(counts[start:stop])


def test_the_cheapest_partitions_are_found():
    for seed in range(10):
        counts = plain_generator(seed).integers(0, 30, 7)
        best = best_costs(deviations(counts), 4)
        for buckets, stop in product(range(1, 5), range(4, 8)):
            ways = combinations(range(1, stop), buckets - 1)
            cheapest = min(cost_of(counts[:stop], (*cuts, stop)) for cuts in ways)
            assert best[buckets - 1][stop] == cheapest


@pytest.mark.parametrize(("size", "most"), [(3, 5), (4, 3), (5, 2)])
def test_no_record_pulls_two_scores_further_apart_than_is_said(size, most):
    widest = 0
    for counts in product(range(most + 1), repeat=size):
        here = np.array(counts, dtype=np.int64)
        for value in range(size):
            there = here.copy()
            there[value] += 1
            for buckets in range(2, size):
                moved = scores_of(there, buckets, size) - scores_of(here, buckets, size)
                assert np.abs(moved).max() <= 1
                widest = max(widest, int(moved.max() - moved.min()))
    assert widest == CHOICE_RANGE  # half the range would be too small


def distribution(scores, rate):
    return dict(enumerate(choice_distribution(scores, rate).tolist()))


def worst_neighbors():
    """A record that makes one partition dearer and another one cheaper."""
    for counts in product(range(6), repeat=3):
        here = np.array(counts, dtype=np.int64)
        for value in range(3):
            there = here.copy()
            there[value] += 1
            moved = scores_of(there, 2, 3) - scores_of(here, 2, 3)
            if moved.max() - moved.min() == CHOICE_RANGE:
                yield scores_of(here, 2, 3), scores_of(there, 2, 3)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_a_cut_keeps_the_guarantee_and_half_the_range_would_not(epsilon):
    losses = {}
    for rate in (epsilon / CHOICE_RANGE, 2 * epsilon / CHOICE_RANGE):
        losses[rate] = max(
            privacy_loss(*(distribution(scores, rate) for scores in pair))
            for pair in worst_neighbors()
        )
    sound, twin = losses.values()
    assert sound <= epsilon + 1e-9
    assert twin > epsilon


def test_cuts_are_drawn_with_the_distribution_of_the_proof():
    counts, rng = np.array([9, 7, 1, 0]), seeded(5)
    drawn = [
        choose_ends(Run(NO_RECORDS, rng=rng), counts, 2, budget=Budget.seeded("0.8"))[0]
        for _ in range(4_000)
    ]
    scores = scores_of(counts, 2, 4)
    for rate, is_right in ((0.4, True), (0.8, False)):
        expected = distribution(scores, rate)
        p_value = frequency_p_value([end - 1 for end in drawn], expected)
        assert p_value > 1e-4 if is_right else p_value < 1e-20


def publish(counts, epsilon="1", seed=1):
    budget = Budget.seeded(epsilon)
    run = Run(NO_RECORDS, rng=seeded(seed))
    return release_marginal(run, counts, method="structure-first", budget=budget), budget


@pytest.mark.parametrize("size", [1, 10, 11, 60])
def test_the_whole_budget_is_spent_on_cuts_and_counts(size):
    marginal, budget = publish(np.arange(size))
    assert budget.cost() == 1
    assert all(share.is_used for share in budget.account())
    buckets = count_buckets(size)
    assert marginal.units.size == len(marginal.ends) == buckets
    assert marginal.rate == (1 if buckets == 1 else Fraction(1, 2))
    cuts = [share.epsilon for share in budget.account() if "/cut-" in share.purpose]
    assert cuts == [Fraction(1, 2 * max(buckets - 1, 1))] * (buckets - 1)


def test_noise_of_buckets_is_what_is_said():
    counts, samples = np.array([3] * 11), []
    for seed in range(600):
        marginal, _ = publish(counts, "2", seed)
        sums = np.add.reduceat(counts, (0, *marginal.ends[:-1]))
        samples.extend((marginal.units - sums).tolist())
    values = np.arange(-40, 41)
    weights = {rate: np.exp(-rate * np.abs(values)) for rate in (1.0, 2.0)}
    right, twin = (dict(zip(values.tolist(), w / w.sum(), strict=True)) for w in weights.values())
    assert frequency_p_value(samples, right) > 1e-4
    assert frequency_p_value(samples, twin) < 1e-20


def test_buckets_of_much_budget_are_where_counts_change(monkeypatch):
    monkeypatch.setattr(structure_first, "VALUES_PER_BUCKET", 10)
    counts = np.repeat([50, 400, 10], [7, 9, 14])
    marginal, _ = publish(counts, "1000")
    assert marginal.ends == (7, 16, 30)
    assert marginal.bins == pytest.approx(counts, abs=0.5)
    assert marginal.total == pytest.approx(counts.sum(), abs=2)


def test_sums_of_whole_buckets_have_an_interval_and_parts_have_none():
    marginal = NoisyMarginal("structure-first", 5, np.array([4, 9]), Fraction(1, 2), ends=(2, 5))
    assert marginal.bins.tolist() == [2, 2, 3, 3, 3]
    inside = np.array([1.0, 1, 0, 0, 0])
    whole = NoisyMarginal("identity", 1, np.array([4]), Fraction(1, 2))
    assert marginal.half_width(inside, 0.95) == whole.half_width(np.ones(1), 0.95)
    assert marginal.half_width(np.array([1.0, 0, 0, 0, 0]), 0.95) is None
    assert marginal.half_width(np.ones(5), 0.95) is not None
    assert NoisyMarginal.from_metadata(marginal.metadata(), marginal.units) == marginal


@pytest.mark.parametrize("ends", [(), (5,), (2, 2, 5), (2, 4), (3, 2, 5), (2.0, 5), (2, 6)])
def test_buckets_that_no_method_would_publish_are_refused(ends):
    with pytest.raises(InvalidParameter):
        NoisyMarginal("structure-first", 5, np.array([4, 9]), Fraction(1, 2), ends=ends)
    with pytest.raises(InvalidParameter, match="buckets"):
        NoisyMarginal("identity", 5, np.arange(5), Fraction(1, 2), ends=(2, 5))


def test_too_many_values_are_refused_by_plan_and_release():
    schema = Schema((column("x", "integer", bounds=[0, 1_024]),))
    with pytest.raises(InvalidParameter, match="1,024 values"):
        Marginals(marginal="structure-first").expected_error(schema, None, Fraction(1))

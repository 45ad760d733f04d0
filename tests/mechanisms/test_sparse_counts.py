"""Thresholded counts of a huge domain: as if every cell got noise, at the price of few."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from dpublish.accuracy.noise_distribution import noise_pmf, noise_survival
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import sparse_counts as module
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.exact.lattice import UNIT_LIMIT
from dpublish.mechanisms.exact.sampler import LARGEST_NOISE
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.sparse_counts import auto_threshold, sparse_counts
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss
from noise_oracle import fit_p_value, geometric_survival

LAST = 9  # larger counts are told apart no further
HIDDEN = 0  # what a cell shows that is not published


def dense_cell(count, rate, threshold):
    """Distribution of one cell when every cell is noised and the small ones are dropped."""
    distribution = {v: float(noise_pmf(rate, v - count)) for v in range(threshold, LAST)}
    distribution[LAST] = float(noise_survival(rate, LAST - count))
    return {HIDDEN: 1 - float(noise_survival(rate, threshold - count))} | distribution


def sparse_cell(count, rate, threshold, empty_cells_appear=True):
    """Distribution of one cell as the algorithm draws it: an empty cell takes another way."""
    if count > 0:
        return dense_cell(count, rate, threshold)
    step = exp(-rate)
    probability = step**threshold / (1 + step) if empty_cells_appear else 0.0
    distribution = {
        v: probability * (1 - step) * step ** (v - threshold) for v in range(threshold, LAST)
    }
    distribution[LAST] = probability * step ** (LAST - threshold)
    return {HIDDEN: 1 - probability} | distribution


def joint(cells):
    outcomes = product(*cells)
    return {o: np.prod([c[v] for c, v in zip(cells, o, strict=True)]) for o in outcomes}


def drawn(keys, counts, threshold, runs, budget="0.8", **changes):
    """Outcomes of many runs on three cells, as triples."""
    rng, outcomes = seeded(1), []
    settings = {"domain_size": 3, "threshold": threshold} | changes
    for _ in range(runs):
        noisy = sparse_counts(
            np.array(keys), np.array(counts), **settings, budget=Budget.seeded(budget), rng=rng
        )
        cells = np.full(3, HIDDEN)
        cells[noisy.keys] = np.minimum(noisy.counts, LAST)
        outcomes.append(tuple(cells.tolist()))
    return outcomes


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("threshold", [1, 2, 5])
def test_the_short_way_has_the_distribution_of_the_long_way(count, threshold):
    short, long = sparse_cell(count, 0.8, threshold), dense_cell(count, 0.8, threshold)
    assert sum(short.values()) == pytest.approx(1)
    assert short == pytest.approx(long)


@pytest.mark.parametrize("true", [(0, 0, 0), (3, 0, 1), (0, 2, 0), (4, 1, 2)])
@pytest.mark.parametrize("threshold", [1, 3])
@pytest.mark.parametrize("word_bits", [5, 64])
def test_outcomes_are_as_frequent_as_noising_every_cell_makes_them(
    true, threshold, word_bits, monkeypatch
):
    monkeypatch.setattr(exact, "WORD_BITS", word_bits)
    runs = 3000 if word_bits == 64 else 1500
    keys = np.flatnonzero(true)
    outcomes = drawn(keys, np.array(true)[keys], threshold, runs)
    distribution = joint([dense_cell(c, 0.8, threshold) for c in true])
    assert frequency_p_value(outcomes, distribution) > 1e-4
    other = joint([dense_cell(c, 0.8 / 1.4, threshold) for c in true])
    assert frequency_p_value(outcomes, other) < 1e-12


def test_dense_noise_gives_the_same_frequencies():
    true = np.array([3, 0, 1])
    stack = np.tile(true, 3000)
    noisy = add_geometric(stack, sensitivity=1, budget=Budget.seeded("0.8"), rng=seeded(2))
    shown = np.where(noisy >= 2, np.minimum(noisy, LAST), HIDDEN).reshape(-1, 3)
    distribution = joint([sparse_cell(c, 0.8, 2) for c in true])
    assert frequency_p_value(map(tuple, shown.tolist()), distribution) > 1e-4


@pytest.mark.parametrize("here", [(0, 1), (0, 0), (2, 5)])
def test_neighbors_learn_the_budget_and_no_more(here):
    there = (here[0] + 1, here[1])

    def loss(cell):
        return privacy_loss(*(joint([cell(c, 0.8, 2) for c in counts]) for counts in (here, there)))

    assert loss(sparse_cell) == pytest.approx(0.8)
    if here[0] == 0:  # the broken twin perturbs only what is not empty
        assert loss(lambda *cell: sparse_cell(*cell, empty_cells_appear=False)) == np.inf


def test_what_is_listed_makes_no_difference():
    distribution = joint([dense_cell(c, 0.8, 1) for c in (2, 0, 0)])
    for keys, counts in [([0], [2]), ([0, 1], [2, 0]), ([0, 0], [1, 1]), ([7, 0, -1], [9, 2, 9])]:
        assert frequency_p_value(drawn(keys, counts, 1, 1000), distribution) > 1e-4


def test_false_cells_of_a_huge_domain_are_as_many_as_expected_and_lie_anywhere():
    size, rate = 10**15, Fraction(1, 2)
    threshold = auto_threshold(size, rate, 5000)
    keys, counts = sparse_counts(
        np.array([5]),
        np.array([10**6]),
        domain_size=size,
        threshold=threshold,
        budget=Budget.seeded(rate),
        rng=seeded(3),
    )
    assert (np.diff(keys) > 0).all()
    assert keys[0] == 5
    assert abs(counts[0] - 10**6) < 100
    probability = exp(-0.5 * threshold) / (1 + exp(-0.5))
    assert 1e-4 < poisson.cdf(len(keys) - 1, size * probability) < 1 - 1e-4
    assert chisquare(np.bincount(keys[1:] // 10**14, minlength=10)).pvalue > 1e-4
    assert fit_p_value(counts[1:] - threshold, lambda k: geometric_survival(rate, k), 20) > 1e-4


@pytest.mark.parametrize("true", [(0, 2, 0), (0, 0, 0)])
def test_sensitivity_widens_the_noise_of_cells_that_are_not_listed(true):
    keys = np.flatnonzero(true)
    outcomes = drawn(keys, np.array(true)[keys], 2, 4000, budget="1.6", sensitivity=2)
    assert frequency_p_value(outcomes, joint([dense_cell(c, 0.8, 2) for c in true])) > 1e-4
    assert frequency_p_value(outcomes, joint([dense_cell(c, 1.6, 2) for c in true])) < 1e-12


INT64 = (1 << 63) - 1


@pytest.mark.parametrize(
    ("counts", "dtype", "total"),
    [
        ([INT64, INT64], np.int64, UNIT_LIMIT),
        ([-INT64 - 1] * 2, np.int64, -UNIT_LIMIT),
        ([INT64, -INT64, 3], np.int64, 3),
        ([-INT64 - 1, INT64, 1, -7], np.int64, -7),
        ([INT64] * 5 + [-INT64] * 4 + [-INT64 + 9], np.int64, 9),
        ([(1 << 64) - 1] * 3, np.uint64, UNIT_LIMIT),
        ([UNIT_LIMIT, UNIT_LIMIT, -UNIT_LIMIT - 1], np.int64, UNIT_LIMIT - 1),
        ([200, 100], np.uint8, 300),
        ([-100, -100, 1], np.int8, -199),
        ([(1 << 32) - 1] * 3, np.uint32, 3 * ((1 << 32) - 1)),
    ],
)
def test_a_repeated_key_stands_for_the_exact_sum_of_its_counts(counts, dtype, total):
    keys = np.array([4, *[7] * len(counts), 1])
    whole = np.array([5, *counts, 6], dtype=dtype)
    merged = module._merge(keys, whole, 10)
    assert merged.keys.tolist() == [1, 4, 7]
    assert merged.counts.tolist() == [6, 5, total]


def test_totals_of_neighbors_are_no_farther_apart_than_their_counts():
    rng = plain_generator(7)
    for _ in range(200):
        counts = rng.integers(-INT64, INT64, 6)
        more = counts.copy()
        more[rng.integers(6)] -= 1
        keys = rng.integers(0, 2, 6)
        here, there = (module._merge(keys, whole, 2).counts.tolist() for whole in (counts, more))
        assert sum(abs(a - b) for a, b in zip(here, there, strict=True)) <= 1


@pytest.mark.parametrize("threshold", [1, UNIT_LIMIT])
def test_noise_too_wide_to_be_told_apart_hides_every_count(threshold, monkeypatch):
    def widest(rate, size, rng):
        return np.full(size, LARGEST_NOISE)

    monkeypatch.setattr(module, "discrete_laplace", widest)
    monkeypatch.setattr(module, "geometric", widest)
    monkeypatch.setattr(module, "skip_positions", lambda *settings: np.arange(3))
    settings = {"domain_size": 3, "threshold": threshold, "rng": seeded(8)}
    for keys, counts in [([], []), ([0, 2], [INT64, -INT64]), ([1], [-5])]:
        whole = np.array(keys, dtype=int), np.array(counts, dtype=int)
        noisy = sparse_counts(*whole, **settings, budget=Budget.seeded(20))
        assert noisy.keys.tolist() == [0, 1, 2]
        assert noisy.counts.tolist() == [UNIT_LIMIT] * 3


def test_numpy_integers_are_settings_like_any_other():
    size = np.int64((1 << 62) - 1)
    assert auto_threshold(size, Fraction(1, 2)) == auto_threshold(int(size), Fraction(1, 2))
    module.require_sparse(size, np.int64(100), Fraction(1, 2))
    keys, counts = np.array([0]), np.array([90])
    narrow = {"domain_size": np.uint8(3), "threshold": np.uint8(4), "sensitivity": np.uint8(1)}
    noisy = sparse_counts(keys, counts, **narrow, budget=Budget.seeded("0.01"), rng=seeded(1))
    plain = {"domain_size": 3, "threshold": 4, "sensitivity": 1}
    same = sparse_counts(keys, counts, **plain, budget=Budget.seeded("0.01"), rng=seeded(1))
    assert noisy.keys.tolist() == same.keys.tolist()
    assert noisy.counts.tolist() == same.counts.tolist() != []


def test_sensitivity_widens_the_noise():
    keys = np.arange(50_000)
    noisy = sparse_counts(
        keys,
        np.full(50_000, 10_000),
        domain_size=50_000,
        threshold=1,
        sensitivity=4,
        budget=Budget.seeded(1),
        rng=seeded(4),
    )
    assert noisy.counts.std() == pytest.approx((2 * exp(-0.25)) ** 0.5 / (1 - exp(-0.25)), rel=0.03)


@pytest.mark.parametrize("size", [1, 1000, 10**12, (1 << 62) - 1])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1), Fraction(7)], ids=str)
def test_the_automatic_threshold_is_the_least_that_keeps_false_cells_few(size, rate):
    threshold = auto_threshold(size, rate, 2)

    def expected(at):
        return size * exp(-float(rate) * at) / (1 + exp(-float(rate)))

    assert expected(threshold) <= 2
    assert threshold == 1 or expected(threshold - 1) > 2


def test_too_low_a_threshold_is_refused_with_one_that_will_do():
    settings = {"domain_size": 10**12, "budget": Budget.seeded(1), "rng": seeded(5)}
    with pytest.raises(InvalidParameter, match="11 is the least that will do, 28 leaves one"):
        sparse_counts(np.array([1]), np.array([1]), threshold=3, **settings)
    assert not settings["budget"].is_used
    assert auto_threshold(10**12, Fraction(1), module.MOST_FALSE_CELLS) == 11


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"threshold": 0}, "threshold"),
        ({"threshold": UNIT_LIMIT + 1}, "threshold"),
        ({"domain_size": 1 << 62}, "domain_size"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": (1 << 40) + 1}, "rate"),
        ({"keys": np.array([0.5])}, "keys must be integers"),
        ({"keys": [1]}, "keys must be integers"),
        ({"counts": np.array([0.5])}, "counts must be integers"),
        ({"counts": [1]}, "counts must be integers"),
        ({"keys": np.array([1, 2])}, "one count for each key"),
    ],
)
def test_a_refused_call_costs_nothing(bad, match):
    one = np.array([1])
    settings = {"keys": one, "counts": one, "domain_size": 10, "threshold": 1} | bad
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match=match):
        sparse_counts(**settings, budget=budget, rng=seeded(6))
    assert not budget.is_used


def test_an_empty_table_publishes_false_cells_like_any_other():
    none = np.empty(0, dtype=np.int64)
    outcomes = drawn(none, none, 1, 2000)
    assert frequency_p_value(outcomes, joint([dense_cell(0, 0.8, 1)] * 3)) > 1e-4

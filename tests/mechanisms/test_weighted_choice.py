"""Weighted choice: every step of it has the odds that the proof multiplies."""

from fractions import Fraction
from math import ceil

import mpmath
import numpy as np
import pytest

from dpublish.mechanisms.selection import FARTHEST
from dpublish.mechanisms.weighted_choice import Shelves, locate, weighted_choice
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value

RATES = [Fraction(1, 2**40), Fraction(1, 1000), Fraction(1, 7), Fraction(3, 2), Fraction(40)]


def power(rate, distance):
    return mpmath.exp(-mpmath.mpf(rate.numerator) * int(distance) / rate.denominator)


@pytest.mark.parametrize("rate", RATES)
def test_at_least_one_pick_in_e_is_kept(rate):
    width = Shelves(rate, np.array([0]), None).edge(1)
    assert rate * (width - 1) <= 1
    assert width == 1 or rate * width > Fraction(1, 2)  # and there are not too many shelves


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("precision", [8, 64, 128, 300])
def test_the_odds_of_shelves_lie_between_their_bounds(rate, precision):
    rng = plain_generator(4)
    distances = np.append(rng.integers(0, ceil(60 / rate), 50), [0, FARTHEST])
    weights = np.append(rng.integers(1, 2**55, 50), [1, 2**50])
    shelves = Shelves(rate, distances, weights)
    edges = distances // shelves.edge(1) * shelves.edge(1)
    odds = shelves.odds(precision)
    with mpmath.workprec(precision + 200):
        true = dict.fromkeys(odds.shelves, mpmath.mpf(0))
        for edge, weight in zip(edges, weights, strict=True):
            shelf = int(edge) // shelves.edge(1)
            true[shelf if shelf in true else None] += int(weight) * power(rate, edge)
        for shelf, low, high in zip(*odds, strict=True):
            assert low <= true[shelf] * 2**precision <= high
        slack = mpmath.mpf(sum(odds.high) - sum(odds.low))
        assert slack <= int(weights.sum())  # one unit for each unit of weight


def test_bits_are_called_decided_only_if_every_continuation_agrees():
    distances, weights = np.array([0, 1, 2, 5, 9, 400]), np.array([1, 2, 3, 1, 70, 1000])
    odds = Shelves(Fraction(1), distances, weights).odds(30)
    bits = 10
    true = [int(w) * power(Fraction(1), d) for d, w in zip(distances, weights, strict=True)]
    upper = [sum(true[: i + 1]) / sum(true) * 2**bits for i in range(6)]
    lower = [0, *upper[:-1]]
    index = {shelf: i for i, shelf in enumerate([0, 1, 2, 5, 9])}
    decided = [locate(numerator, bits, odds) for numerator in range(2**bits)]
    for numerator, shelf in enumerate(decided):
        if shelf is not None:
            assert lower[index[shelf]] <= numerator
            assert numerator + 1 <= upper[index[shelf]]
    assert set(decided) == {*index, None}
    assert decided.count(None) == 5  # those with an edge inside, and the last of all


def test_a_number_beyond_all_near_shelves_is_left_undecided():
    odds = Shelves(Fraction(1), np.array([0, 1000]), None).odds(20)
    assert odds.shelves == [0, None]
    assert odds.low[1] == 0
    assert locate(2**10 - 1, 10, odds) is None
    assert locate(2**10 - 3, 10, odds) == 0


def test_precision_rises_until_far_candidates_can_be_told_apart():
    # All bits of the uniform number are ones for 1000 bits, which only the farthest can mean.
    class Ones:
        def words(self, count):
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    shelves = Shelves(Fraction(1), np.array([0, 300, 500]), None)
    assert shelves.pick_shelf(Ones()) == 500


def test_unequal_weights_and_distances_cancel_as_they_should():
    # exp(-rate * distance) * weight is nearly the same for all: 2^-k * 2^k.
    rate, count = Fraction(7, 10), 30
    distances = np.arange(count)
    weights = np.array([2**k for k in range(count)])
    odds = weights * np.exp(-0.7 * distances)
    rng = seeded(9)
    seen = [weighted_choice(rate, distances, weights, rng) for _ in range(6000)]
    expected = dict(enumerate(odds / odds.sum()))
    assert frequency_p_value(seen, expected) > 1e-4
    unweighted = np.exp(-0.7 * distances)
    assert frequency_p_value(seen, dict(enumerate(unweighted / unweighted.sum()))) < 1e-9


def test_a_wide_range_of_distances_is_drawn_with_exact_odds():
    # Many candidates on each shelf: the coin that makes up for the shortfall matters.
    rate, distances = Fraction(1, 100), np.arange(0, 400, 40)
    odds = np.exp(-distances / 100)
    rng = seeded(10)
    seen = [weighted_choice(rate, distances, None, rng) for _ in range(6000)]
    assert frequency_p_value(seen, dict(enumerate(odds / odds.sum()))) > 1e-4
    on_shelves = np.exp(-(distances // 64 * 64) / 100)  # a twin that forgets the coin
    assert frequency_p_value(seen, dict(enumerate(on_shelves / on_shelves.sum()))) < 1e-9

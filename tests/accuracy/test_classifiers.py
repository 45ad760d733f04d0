"""Bounds of accuracy hold although the classes were chosen by the noise that they bound."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.classifiers import accuracy_bounds, largest_noise, majority_bounds
from dpublish.accuracy.intervals import half_width
from dpublish.randomness import plain_generator

GROUPS, RUNS = 60, 400


def noise(rng, rate, shape):
    decay = 1 - np.exp(-rate)
    return rng.geometric(decay, shape) - rng.geometric(decay, shape)


def draw(rng, rate, classes):
    """Small groups without any structure: the largest count is the one with most noise."""
    true = rng.poisson(3, (GROUPS, classes))
    noisy = true + noise(rng, rate, true.shape)
    return true, noisy, noisy.argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("rate", [0.3, 2.0])
def test_the_bounds_hold_and_the_usual_interval_of_a_sum_does_not(rate, classes):
    rng = plain_generator(7)
    missed = naive = 0
    width = half_width(Fraction(rate), np.ones(GROUPS), 0.95)
    for _ in range(RUNS):
        true, noisy, predicted = draw(rng, rate, classes)
        right = true[np.arange(GROUPS), predicted].sum()
        found = accuracy_bounds(noisy, predicted, [rate] * GROUPS)
        if found is not None:
            missed += not found.low <= right / true.sum() <= found.high
        counted = noisy[np.arange(GROUPS), predicted].sum()
        naive += abs(counted - right) > width
    assert missed <= 0.05 * RUNS
    if rate < 1:
        assert naive > 0.5 * RUNS, "the broken twin: an interval that forgets the choice"


@pytest.mark.parametrize("rate", [1e-5, 0.1, 3.0])
def test_the_largest_noise_is_bounded_and_not_by_far(rate):
    rng = plain_generator(3)
    sums = [noise(rng, rate, (GROUPS, 3)).max(axis=1).sum() for _ in range(2_000)]
    bound = largest_noise([rate] * GROUPS, 3, 0.02)
    exceeded = np.mean(np.array(sums) > bound)
    assert exceeded <= 0.02
    assert bound <= 1.3 * np.quantile(sums, 0.98) + 2


def test_more_noise_in_some_groups_gives_wider_bounds():
    counts = np.array([[90, 10], [20, 80]])
    clear = accuracy_bounds(counts, np.array([0, 1]), [2.0, 2.0])
    mixed = accuracy_bounds(counts, np.array([0, 1]), [2.0, 0.2])
    assert mixed.low < clear.low < clear.estimate < clear.high < mixed.high
    assert clear.estimate == mixed.estimate == 0.85
    surer = accuracy_bounds(counts, np.array([0, 1]), [2.0, 2.0], confidence=0.999)
    assert surer.low < clear.low


def test_where_noise_hides_the_records_nothing_is_said():
    assert accuracy_bounds(np.array([[3, -2]]), np.array([0]), [0.01]) is None


def test_noise_that_is_hardly_there_leaves_the_counts():
    found = accuracy_bounds(np.array([[900, 100]]), np.array([0]), [700.0])
    assert found.estimate == 0.9
    assert found.high - found.low < 0.01


@pytest.mark.parametrize("classes", [2, 5])
def test_the_share_of_the_majority_is_bounded_more_sharply(classes):
    rng = plain_generator(11)
    missed, widths = 0, np.zeros(2)
    for _ in range(RUNS):
        true, noisy, _ = draw(rng, 0.5, classes)
        most = noisy.sum(axis=0).argmax()
        found = majority_bounds(noisy, [0.5] * GROUPS)
        loose = accuracy_bounds(noisy, np.full(GROUPS, most), [0.5] * GROUPS)
        assert found.estimate == loose.estimate
        assert loose.low <= found.low <= found.high <= loose.high
        widths += found.high - found.low, loose.high - loose.low
        missed += not found.low <= true[:, most].sum() / true.sum() <= found.high
    assert missed <= 0.05 * RUNS
    assert widths[0] < 0.8 * widths[1]

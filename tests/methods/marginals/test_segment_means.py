"""NoiseFirst's runs are the cheapest of all ways to cut, and help where counts are alike."""

from itertools import combinations

import numpy as np
import pytest

from dpublish.methods.marginals.segment_means import segment_means
from dpublish.randomness import plain_generator


def cost(noisy, cuts, variance):
    total = 0.0
    for run in np.split(noisy, cuts):
        spread = float(((run - run.mean()) ** 2).sum())
        total += max(0.0, spread - (run.size - 1) * variance) + variance
    return total


def cuts_of(means):
    return np.flatnonzero(np.diff(means)) + 1


@pytest.mark.parametrize("seed", range(12))
def test_no_other_way_to_cut_costs_less(seed):
    rng = plain_generator(seed)
    noisy = np.rint(rng.normal(np.repeat([0.0, 20.0, 5.0], 3), 6.0))
    places = range(1, noisy.size)
    ways = (c for k in range(noisy.size) for c in combinations(places, k))
    best = min(cost(noisy, list(way), 8.0) for way in ways)
    means = segment_means(noisy, 8.0)
    assert cost(noisy, cuts_of(means), 8.0) == pytest.approx(best)
    assert means.sum() == pytest.approx(noisy.sum())


def test_it_brings_flat_counts_nearer_to_the_truth():
    rng = plain_generator(3)
    truth = np.repeat([100.0, 0.0, 50.0], 200)
    noisy = truth + rng.laplace(0, 10, truth.size)
    before = ((noisy - truth) ** 2).sum()
    assert ((segment_means(noisy, 200.0) - truth) ** 2).sum() < before / 4


def test_one_count_is_its_own_mean():
    assert segment_means(np.array([-3.0]), 2.0).tolist() == [-3.0]

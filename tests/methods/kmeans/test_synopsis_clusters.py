"""Clusters of a noisy grid: both ways of searching work on any grid, and one sees through noise."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.core.noisy_size import NoisySize
from dpublish.methods.kmeans.clustering import cluster_grid
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.randomness import plain_generator

RATE = Fraction(1, 10)


def noisy_grid(side, clusters, seed):
    """A grid that is empty but for some dense cells, with the noise of epsilon 0.1."""
    rng = plain_generator(seed)
    counts = rng.geometric(0.0952, (side, side)) - rng.geometric(0.0952, (side, side))
    for row, start in clusters:
        counts[row : row + 2, start : start + 2] += 60
    size = NoisySize(240 * len(clusters), RATE)
    return GridSynopsis((side, side), counts.astype(np.int64).ravel(), RATE, size)


def worst_distance(found, wanted):
    return max(np.abs(found - one).max(axis=1).min() for one in np.array(wanted))


@pytest.mark.parametrize("only_dense", [False, True])
@pytest.mark.parametrize("sizes", [(1,), (1, 1), (4,), (3, 5), (2,) * 8])
def test_any_grid_gives_as_many_centers_as_wanted(sizes, only_dense):
    for counts in (np.zeros, lambda n: np.full(n, -9.0), lambda n: np.arange(n) * 30.0):
        grid = GridSynopsis(sizes, counts(np.prod(sizes)).astype(np.int64), RATE)
        found = cluster_grid(grid, 7, n_init=3, rng=plain_generator(1), only_dense=only_dense)
        assert found.centers.shape == (7, len(sizes))
        assert np.all(np.abs(found.centers) <= 1)
        assert found.score >= 0


def test_only_dense_regions_are_searched_where_the_rest_is_noise():
    clusters = [(4, 5), (30, 8), (12, 33), (34, 34)]
    middles = [((row + 1) / 20 - 1, (start + 1) / 20 - 1) for row, start in clusters]
    apart = {False: [], True: []}
    for seed in range(12):
        grid = noisy_grid(40, clusters, seed)
        for only_dense, distances in apart.items():
            rng = plain_generator(seed)
            found = cluster_grid(grid, 4, n_init=10, rng=rng, only_dense=only_dense)
            distances.append(worst_distance(found.centers, middles))
    assert np.mean(apart[True]) < 0.15
    assert np.mean(apart[False]) > 0.3  # 1,600 cells of noise pull the centers away

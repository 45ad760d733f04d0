"""Find clusters in a noisy grid; free, as often and for as many numbers of clusters as wanted."""

import numpy as np

from dpublish.methods.kmeans.dense_regions import dense_weights, likely_starts
from dpublish.methods.kmeans.grid_sums import grid_steps
from dpublish.methods.kmeans.starting_centers import spread_centers
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.methods.kmeans.weighted_lloyd import Clustering, grid_lloyd, search_effort


def cluster_synopsis(
    grid: GridSynopsis,
    clusters: int,
    *,
    starts: int,
    rng: np.random.Generator,
    only_dense: bool = False,
) -> Clustering:
    """Find centers, between -1 and 1: the best of several searches.

    Args:
        grid: Noisy counts.
        clusters: Number of centers.
        starts: Number of searches; fewer are made for very many clusters (`search_effort`).
        rng: Public randomness.
        only_dense: The papers start from centers spread over the box and use all counts as
            they are.  This starts from cells that stand out from the noise, and uses only
            them, with counts that could be real; it likes a grid seven times as fine.
    """
    effort = search_effort(starts, clusters, grid_steps(grid.sizes, clusters))
    if only_dense:
        weights = dense_weights(grid)
        sets = likely_starts(grid.cell_centers(), weights, clusters, effort.starts, rng)
    else:
        weights = grid.counts.astype(np.float64)
        sizes = len(grid.sizes)
        sets = np.stack([spread_centers(clusters, sizes, rng) for _ in range(effort.starts)])
    return grid_lloyd(
        grid.sizes,
        weights,
        sets,
        min_count=1.0,
        cell_deviation=grid.deviation,
        total=None if only_dense else grid.total,  # dense weights add up as they are
        iterations=effort.rounds,
    )

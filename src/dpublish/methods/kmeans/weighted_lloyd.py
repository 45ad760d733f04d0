"""Find k centers for weighted points: Lloyd's rounds from several starts, and the best of them.

Weights are noisy counts.  The rounds use them as they are: negative ones cancel noise that
would pull centers into empty regions.  The choice among the starts uses weights that could be
real, since with negative ones the worst centers would look best.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.projection import project_nonnegative
from dpublish.methods.kmeans.grid_sums import PointSums, Summer, grid_summer
from dpublish.types import FloatArray

MOST_ROUNDS = 100
"""With negative weights the rounds may go in circles."""


_MANY_CLUSTERS = 50
_MOST_STEPS = 2_000_000_000  # comparisons of a point with a center in a search for many clusters
_FEWEST_ROUNDS = 10


class Effort(NamedTuple):
    """How hard a search tries."""

    starts: int
    rounds: int


def search_effort(starts: int, clusters: int, points: int) -> Effort:
    """Limit the starts, and then the rounds, of a search for very many clusters.

    The limit depends on how many clusters and points there are, never on where they lie.

    >>> search_effort(30, 15, 1_000_000), search_effort(30, 1000, 100_000)
    (Effort(starts=30, rounds=100), Effort(starts=1, rounds=20))
    """
    if clusters <= _MANY_CLUSTERS:
        return Effort(starts, MOST_ROUNDS)
    allowed = _MOST_STEPS // (clusters * points)
    fewer = min(starts, max(allowed // MOST_ROUNDS, 1))
    return Effort(fewer, min(max(allowed // fewer, _FEWEST_ROUNDS), MOST_ROUNDS))


class Clustering(NamedTuple):
    """Centers, a row each, and their mean squared distance from the points as weighed."""

    centers: FloatArray
    score: float


def weighted_lloyd(
    points: FloatArray,
    weights: FloatArray | NDArray[np.int64],
    starts: FloatArray,
    *,
    min_count: float,
    cell_deviation: float = 0.0,
    total: float | None = None,
    iterations: int = MOST_ROUNDS,
) -> Clustering:
    """Cluster weighted points of the box from -1 to 1.

    Args:
        points: Points, a row each.
        weights: Weight of each point, negative ones too.
        starts: Sets of centers to start from (sets, centers, dimensions).
        min_count: Least weight around a center that moves it.
        cell_deviation: Standard deviation of the noise of one weight.  A center moves only
            if the weight around it exceeds that of the noise there.
        total: What the weights should add up to; their sum, unless given.
        iterations: Most rounds.
    """
    exact = np.asarray(weights, dtype=np.float64)
    plausible = plausible_weights(exact, total)
    raw, judge = PointSums(points, exact), PointSums(points, plausible)
    return _best(_rounds(raw, starts, min_count, cell_deviation, iterations), judge, plausible)


def grid_lloyd(
    sizes: tuple[int, ...],
    weights: FloatArray | NDArray[np.int64],
    starts: FloatArray,
    *,
    min_count: float,
    cell_deviation: float = 0.0,
    total: float | None = None,
    iterations: int = MOST_ROUNDS,
) -> Clustering:
    """Cluster the middles of equal cells; the same as `weighted_lloyd`, much faster."""
    exact = np.asarray(weights, dtype=np.float64)
    plausible = plausible_weights(exact, total)
    raw, judge = (grid_summer(sizes, one, starts.shape[1]) for one in (exact, plausible))
    return _best(_rounds(raw, starts, min_count, cell_deviation, iterations), judge, plausible)


def plausible_weights(weights: FloatArray, total: float | None) -> FloatArray:
    """Find the nearest weights that are not negative and add up, to 1 at least."""
    return project_nonnegative(weights, max(float(weights.sum()) if total is None else total, 1.0))


def _rounds(
    summer: Summer, starts: FloatArray, min_count: float, cell_deviation: float, iterations: int
) -> FloatArray:
    """Move every set of centers to the means around them until nothing changes."""
    centers = np.array(starts, dtype=np.float64)
    active = np.arange(len(centers))
    for _ in range(iterations):
        before = centers[active]
        sums = summer.sums(before)
        needed = np.maximum(min_count, cell_deviation * np.sqrt(sums[:, :, 0]))
        counts = sums[:, :, 1]
        moves = (counts >= needed) & (counts > 0)
        safe = np.where(moves, counts, 1.0)[:, :, None]
        means = np.clip(sums[:, :, 2:] / safe, -1, 1)
        after = np.where(moves[:, :, None], means, before)
        centers[active] = after
        active = active[(after != before).any(axis=(1, 2))]
        if not active.size:
            break
    return centers


def _best(centers: FloatArray, judge: Summer, weights: FloatArray) -> Clustering:
    """Choose the set of centers with the least mean squared distance, the first of equals."""
    sums = judge.sums(centers)
    norms = (centers**2).sum(axis=2)
    inner = (centers * sums[:, :, 2:]).sum(axis=2)
    scores = (judge.square + (norms * sums[:, :, 1] - 2 * inner).sum(axis=1)) / weights.sum()
    best = int(np.argmin(scores))
    return Clustering(centers[best], max(float(scores[best]), 0.0))

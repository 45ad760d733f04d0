"""Tell where records are from where only noise is, and start the search for clusters there.

A noisy grid is mostly noise where the box is mostly empty: every empty cell pulls at the
centers.  A weighted mean over a cell's neighbors has much less noise than the cell itself, so
it shows whether there are records around.  Cells where it does not stand out count as empty.
Of many cells of noise the largest mean is about sqrt(2 ln cells) standard deviations, so that is
what a cell has to exceed.  Where records are few beside the noise, clusters hide below that: as
long as it is not certain that nearly all records were found, cells that stand out less are kept,
too.  All of this is computed from noisy counts alone.
"""

from math import log, prod, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, label

from dpublish.accuracy.projection import project_nonnegative
from dpublish.errors import require_count
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.types import FloatArray

REACH = 1.0
"""Standard deviation of the mean over neighbors, in cells."""
_CANDIDATES = 4
_MOST = 0.95  # part of the records; fewer in dense cells means that many are elsewhere
_CERTAIN = 4.0  # standard deviations of the estimated total that leave no doubt of that
_LIKELY = 2.5  # standard deviations by which a mean stands out where records may be missing


def standing_out(cells: int) -> float:
    """Return how many standard deviations of its noise a mean must exceed, among so many cells.

    >>> [round(standing_out(cells), 2) for cells in (1, 16, 1_000, 100_000)]
    [1.18, 2.35, 3.72, 4.8]
    """
    return sqrt(2 * log(max(cells, 2)))


def dense_cells(sizes: tuple[int, ...], weights: FloatArray, deviation: float) -> NDArray[np.bool_]:
    """Mark the cells that stand out from the noise together with their neighbors.

    Of these, connected regions whose counts add up to what noise may add up to are left out.

    Args:
        sizes: Number of cells along each side.
        weights: Noisy counts, row by row.
        deviation: Standard deviation of the noise of one of them.
    """
    means = _neighbor_means(sizes, weights, deviation)
    stand_out = means > standing_out(prod(sizes))
    regions, number = label(stand_out.reshape(sizes), structure=np.ones((3,) * len(sizes)))
    sums = np.bincount(regions.ravel(), weights, minlength=number + 1)
    cells = np.bincount(regions.ravel(), minlength=number + 1)
    kept = sums > deviation * _noise_sum(cells, prod(sizes))
    kept[0] = False  # what does not stand out
    return np.asarray(kept[regions.ravel()])


def _neighbor_means(sizes: tuple[int, ...], weights: FloatArray, deviation: float) -> FloatArray:
    """Average each cell with its neighbors, in standard deviations of such a mean of noise."""
    means = gaussian_filter(weights.reshape(sizes), REACH, mode="constant")
    return np.asarray(means.ravel() / (deviation * _noise_left() ** len(sizes)))


def _noise_sum(summed: NDArray[np.intp], cells: int) -> FloatArray:
    """Bound the sum of noise over so many cells, in standard deviations of one.

    Noise has heavier tails than a normal distribution: one count of noise may lift the mean of
    a few cells.  A sum of m two-sided exponential variables of deviation s exceeds
    s sqrt(2 m x) + s x / sqrt(2) with probability exp(-x) at most (Bernstein); x = ln(cells).
    """
    x = log(max(cells, 2))
    return np.asarray(np.sqrt(2 * summed * x) + x / sqrt(2), dtype=np.float64)


class LikelyCells(NamedTuple):
    """Cells where records are likely.

    Attributes:
        marked: Whether records are likely in each cell.
        nearly_all: Whether these cells hold nearly all records beyond doubt.
    """

    marked: NDArray[np.bool_]
    nearly_all: bool


def likely_cells(grid: GridSynopsis) -> LikelyCells:
    """Mark the cells of `dense_cells` and, where many records may be missing there, more.

    If the dense cells hold 95 % of the records even when the estimated total is too small by
    four standard deviations, nothing worth a center is left in the other cells but noise.  If
    not, a small cluster may be hidden in the noise; then cells count that stand out by 2.5
    deviations.
    """
    weights = grid.counts.astype(np.float64)
    dense = dense_cells(grid.sizes, weights, grid.deviation)
    missing = grid.total - float(weights[dense].sum())
    if missing + _CERTAIN * grid.total_deviation <= (1 - _MOST) * grid.total:
        return LikelyCells(dense, nearly_all=True)
    means = _neighbor_means(grid.sizes, weights, grid.deviation)
    return LikelyCells(dense | (means > _LIKELY), nearly_all=False)


def dense_weights(grid: GridSynopsis) -> FloatArray:
    """Return weights that could be real: 0 where only noise is, and none negative.

    Where the likely cells may not hold nearly all of the records, the others are somewhere
    else and cannot be located: they are distributed evenly over all cells.  A map's void would
    else draw centers, for a few records there are far from all others.
    """
    likely, nearly_all = likely_cells(grid)
    weights = np.where(likely, grid.counts, 0.0)
    if not nearly_all:
        return project_nonnegative(weights, grid.total)
    found = np.zeros_like(weights)
    found[likely] = project_nonnegative(weights[likely], max(float(weights.sum()), 1.0))
    return found


def _noise_left() -> float:
    """Say how much of the noise's deviation is left by the mean along one side."""
    impulse = np.zeros(41)
    impulse[20] = 1.0
    return float(np.sqrt(np.square(gaussian_filter(impulse, REACH)).sum()))


def likely_starts(
    points: FloatArray, weights: FloatArray, clusters: int, sets: int, rng: np.random.Generator
) -> FloatArray:
    """Draw sets of centers from weighted points, each far from those before (k-means++).

    Points are drawn in proportion to weight times squared distance from the nearest center so
    far; of a few that are drawn, the one that leaves the least is taken.  Where fewer points
    than centers have weight, they are drawn again; where none has, so is the whole box.

    Args:
        points: Points, a row each.
        weights: Weights, none of them negative.
        clusters: Number of centers in a set.
        sets: Number of sets.
        rng: Public randomness.
    """
    require_count(clusters=clusters, sets=sets)
    kept = weights > 0
    return np.stack([_draw(points[kept], weights[kept], clusters, rng) for _ in range(sets)])


def _draw(
    points: FloatArray, weights: FloatArray, clusters: int, rng: np.random.Generator
) -> FloatArray:
    found = rng.uniform(-1.0, 1.0, (clusters, points.shape[1]))
    if len(points):
        found = points[rng.integers(0, len(points), clusters)]
    probabilities = weights
    apart = np.full(len(points), np.inf)
    for number in range(clusters):
        bounds = np.cumsum(probabilities)
        if not len(bounds) or bounds[-1] <= 0:
            break
        tries = 1 if number == 0 else _CANDIDATES
        drawn = np.searchsorted(bounds, rng.random(tries) * bounds[-1], side="right")
        drawn = np.minimum(drawn, len(points) - 1)
        left = [np.minimum(apart, _squares(points, points[place])) for place in drawn]
        best = int(np.argmin([distances @ weights for distances in left]))
        found[number], apart = points[drawn[best]], left[best]
        probabilities = weights * apart
    return found


def _squares(points: FloatArray, center: FloatArray) -> FloatArray:
    found = np.zeros(len(points))
    for column, value in zip(points.T, center, strict=True):
        found += np.square(column - value)
    return found

"""Where a search for clusters starts: anywhere in the box, or where a noisy grid has records.

Centers that know the box alone are drawn far from each other.  Those that follow a noisy grid
are drawn from its dense regions: a noisy grid is mostly noise where the box is mostly empty,
and every empty cell pulls at the centers.  A weighted mean over a cell's neighbors has much
less noise than the cell itself, so it shows whether there are records around.  Cells where it
does not stand out count as empty.  Of many cells of noise the largest mean is about
sqrt(2 ln cells) standard deviations, so that is what a cell has to exceed.  Where records are
few beside the noise, clusters hide below that: as long as it is not certain that nearly all
records were found, cells that stand out less are kept, too.  All of this is computed from
noisy counts alone.
"""

from math import log, prod, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, label
from scipy.spatial.distance import cdist

from dpublish.accuracy.projection import project_nonnegative
from dpublish.errors import require_count
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.types import FloatArray

SMOOTHING = 1.0
"""Standard deviation of the mean over neighbors, in cells."""
_STEPS = 20
_TRIES_EACH = 100
_BLOCK = 256  # points that are drawn at once
_CANDIDATES = 4
_MOST = 0.95  # part of the records; fewer in dense cells means that many are elsewhere
_CERTAIN = 4.0  # standard deviations of the estimated total that leave no doubt of that
_LIKELY = 2.5  # standard deviations by which a mean stands out where records may be missing
_LEAST_DEVIATION = 1e-9  # of a count, where no noise can be seen any more


# --- Anywhere in the box ------------------------------------------------------------------


def uniform_centers(clusters: int, dimensions: int, rng: np.random.Generator) -> FloatArray:
    """Draw centers uniformly from the box, a row for each.

    `rng` is public randomness: the draws depend on no record.
    """
    require_count(clusters=clusters, dimensions=dimensions)
    return rng.uniform(-1.0, 1.0, (clusters, dimensions))


def separated_centers(clusters: int, dimensions: int, rng: np.random.Generator) -> FloatArray:
    """Draw centers that keep far from each other and from the corners (sphere packing).

    For a radius, points are drawn one at a time and kept if they are two radii from all kept
    before and one from every corner.  The radius is bisected; the last success counts.

    >>> separated_centers(3, 2, np.random.Generator(np.random.Philox(key=1))).shape
    (3, 2)
    """
    found = uniform_centers(clusters, dimensions, rng)  # the radius 0 always succeeds
    low, high = 0.0, sqrt(dimensions)
    for _ in range(_STEPS):
        radius = (low + high) / 2
        packed = _pack(radius, clusters, dimensions, rng)
        if packed is None:
            high = radius
        else:
            low, found = radius, packed
    return found


def _pack(
    radius: float, clusters: int, dimensions: int, rng: np.random.Generator
) -> FloatArray | None:
    """Draw all centers within 100 tries for each, or give up."""
    kept = np.empty((clusters, dimensions))
    count, tries = 0, _TRIES_EACH * clusters
    for start in range(0, tries, _BLOCK):
        points = uniform_centers(min(_BLOCK, tries - start), dimensions, rng)
        to_corner = _square(1 - np.abs(points))
        left = points[to_corner >= radius * radius]
        if count:
            nearest = cdist(left, kept[:count], "sqeuclidean").min(axis=1)
            left = left[nearest >= 4 * radius * radius]
        # Each point in turn is kept if it is far enough from all kept before, so the first
        # that is left is always kept, and strikes out the later ones that are too near to it.
        while len(left):
            kept[count] = left[0]
            count += 1
            if count == clusters:
                return kept
            apart = _square(left[1:] - left[0])
            left = left[1:][apart >= 4 * radius * radius]
    return None


def _square(vectors: FloatArray) -> FloatArray:
    """Compute the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors))


# --- Where records are --------------------------------------------------------------------


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
    means = gaussian_filter(weights.reshape(sizes), SMOOTHING, mode="constant")
    # At a very large epsilon the deviation is 0 in floating point; any record then stands out.
    scale = max(deviation, _LEAST_DEVIATION) * _noise_left() ** len(sizes)
    return np.asarray(means.ravel() / scale)


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
    else and cannot be located: they are distributed evenly over all cells.  Else
    a few records in the empty part of a map, far from all others, would draw centers.
    """
    likely, nearly_all = likely_cells(grid)
    weights = np.where(likely, grid.counts, 0.0)
    if not nearly_all:
        return project_nonnegative(weights, grid.total)
    found = np.zeros_like(weights)
    found[likely] = project_nonnegative(weights[likely], max(float(weights.sum()), 1.0))
    return found


def _noise_left() -> float:
    """Compute how much of the noise's deviation the mean along one side leaves."""
    impulse = np.zeros(41)
    impulse[20] = 1.0
    return float(np.sqrt(np.square(gaussian_filter(impulse, SMOOTHING)).sum()))


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
        left = [np.minimum(apart, _squares(points, points[index])) for index in drawn]
        best = int(np.argmin([distances @ weights for distances in left]))
        found[number], apart = points[drawn[best]], left[best]
        probabilities = weights * apart
    return found


def _squares(points: FloatArray, center: FloatArray) -> FloatArray:
    found = np.zeros(len(points))
    for column, value in zip(points.T, center, strict=True):
        found += np.square(column - value)
    return found

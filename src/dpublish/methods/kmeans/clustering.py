"""Find centers in weighted points, in a noisy grid or in a tree of marginals; free.

Lloyd's rounds go from several starts, and the best result is kept.  Weights are noisy counts.
The rounds use them as they are: negative ones cancel noise that would pull centers into empty
regions.  The choice among the results uses weights that could be real, since with negative ones
the worst centers would look best.

On a grid, whole lines are added up at once.  On a line along the last side, each center is
nearest on one stretch.  Sort the centers by their last coordinate: a later one can only win
further up.  So the stretches follow from where two centers are equally near, and their sums
from running totals: the cost grows with the number of lines, not of cells.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dpublish.accuracy.intervals import half_width
from dpublish.accuracy.projection import project_nonnegative
from dpublish.methods.kmeans.starting_centers import (
    dense_weights,
    likely_cells,
    likely_starts,
    separated_centers,
    standing_out,
)
from dpublish.methods.kmeans.synopsis import GridSynopsis, MarginalTree
from dpublish.types import FloatArray, IntArray

MOST_ROUNDS = 100
"""With negative weights the rounds may go in circles."""
SAMPLE = 10_000
"""How many points are drawn from a tree of marginals to be clustered."""

_MOST_NUMBERS = 1 << 18  # that are held at once, so that they stay in the processor's cache
_FEW_POINTS = 1 << 12
_CENTERS_A_CELL = 4  # along the last side, beyond which lines are no faster than cells
_MANY_CLUSTERS = 50
_MOST_STEPS = 2_000_000_000  # comparisons of a point with a center in a search for many clusters
_FEWEST_ROUNDS = 10
_LEAST_WEIGHT = 1.0  # around a center that moves


# --- Sums around centers ------------------------------------------------------------------


class Summer(Protocol):
    """Weighted points that can be added up by nearest center."""

    def sums(self, centers: FloatArray) -> FloatArray:
        """Add up around several sets of centers (sets, centers, dimensions).

        Returns, for every center, the number of points nearest to it (the first of equals),
        their weight, and the weighted sum of each coordinate.
        """
        ...

    @property
    def square(self) -> float:
        """The weighted sum of all squared distances from the origin."""
        ...


@dataclass(frozen=True, eq=False)
class PointSums:
    """Weighted points, a row each."""

    points: FloatArray
    weights: FloatArray

    @cached_property
    def _columns(self) -> FloatArray:
        """What is added up of each point: one, its weight, its weighted coordinates."""
        weighted = self.points.T * self.weights
        return np.vstack([np.ones_like(self.weights), self.weights, weighted])

    @cached_property
    def square(self) -> float:
        """The weighted sum of all squared distances from the origin."""
        return float(((self.points**2).sum(axis=1) * self.weights).sum())

    def sums(self, centers: FloatArray) -> FloatArray:
        """Add up around several sets of centers, one set after the other."""
        return np.stack([self._sums(one) for one in centers])

    def _sums(self, centers: FloatArray) -> FloatArray:
        # Half the squared distance, but for what is the same for all centers.
        distances = (centers**2).sum(axis=1)[:, None] / 2 - centers @ self.points.T
        bins = len(centers)
        if len(self.points) <= _FEW_POINTS:
            nearest = distances.argmin(axis=0)  # the same, and faster for few points
            return np.stack([np.bincount(nearest, one, bins) for one in self._columns], axis=1)
        nearest = np.zeros(len(self.points), dtype=np.intp)
        least = distances[0]
        for number in range(1, len(centers)):
            nearer = distances[number] < least
            nearest[nearer] = number
            np.minimum(least, distances[number], out=least)
        return np.stack([np.bincount(nearest, one, bins) for one in self._columns], axis=1)


@dataclass(frozen=True, eq=False)
class GridSums:
    """Weights of equal cells of the box from -1 to 1, row by row; a cell counts at its middle.

    >>> grid = GridSums((2, 2), np.array([1.0, 2.0, 3.0, 4.0]))
    >>> grid.sums(np.array([[[-0.5, 0.0], [0.5, 0.0]]])).tolist()
    [[[2.0, 3.0, -1.5, 0.5], [2.0, 7.0, 3.5, 0.5]]]
    """

    sizes: tuple[int, ...]
    weights: FloatArray

    @property
    def lines(self) -> int:
        """Number of lines along the last side."""
        return prod(self.sizes[:-1])

    @cached_property
    def sides(self) -> tuple[FloatArray, ...]:
        """The middles of the cells along each side."""
        return tuple(middles(size) for size in self.sizes)

    @cached_property
    def _feet(self) -> FloatArray:
        """All coordinates of each line but the last, a row per line."""
        grids = np.meshgrid(*self.sides[:-1], indexing="ij")
        return np.stack([one.ravel() for one in grids], axis=1) if grids else np.zeros((1, 0))

    @cached_property
    def _running(self) -> tuple[FloatArray, FloatArray]:
        """Running totals along each line, from 0 on: of weights and of weighted coordinates."""
        lines = self.weights.reshape(self.lines, -1)
        totals = np.zeros((2, self.lines, self.sizes[-1] + 1))
        np.cumsum(lines, axis=1, out=totals[0, :, 1:])
        np.cumsum(lines * self.sides[-1], axis=1, out=totals[1, :, 1:])
        return totals[0].ravel(), totals[1].ravel()

    @cached_property
    def square(self) -> float:
        """The weighted sum of all squared distances from the origin."""
        lines = self.weights.reshape(self.lines, -1)
        apart = (self._feet**2).sum(axis=1)
        return float(lines.sum(axis=1) @ apart + lines.sum(axis=0) @ self.sides[-1] ** 2)

    def sums(self, centers: FloatArray) -> FloatArray:
        """Add up around several sets of centers, as many at once as fit."""
        several = max(_MOST_NUMBERS // (centers.shape[1] * self.lines), 1)
        parts = [
            self._sums(centers[start : start + several])
            for start in range(0, len(centers), several)
        ]
        return np.concatenate(parts)

    def _sums(self, centers: FloatArray) -> FloatArray:
        order = np.argsort(centers[:, :, -1], axis=1, kind="stable")[:, :, None]
        ordered = np.take_along_axis(centers, order, axis=1)
        ends = self._ends(np.moveaxis(ordered, 1, 0))
        at = ends + np.arange(self.lines) * (self.sizes[-1] + 1)
        weights, heights = (totals[at] for totals in self._running)
        # Up to the end of each stretch; the difference from the stretch before is its own.
        columns = [ends.sum(axis=2), weights.sum(axis=2)]
        columns += list(np.moveaxis(weights @ self._feet, -1, 0))
        running = np.stack([*columns, heights.sum(axis=2)], axis=-1)
        found = np.diff(running, axis=0, prepend=0.0)
        answer = np.empty_like(found)
        np.put_along_axis(answer, np.moveaxis(order, 1, 0), found, axis=0)
        return np.moveaxis(answer, 0, 1)

    def _ends(self, centers: FloatArray) -> NDArray[np.intp]:
        """Find the cell of each line before which each stretch ends: [center, set, line].

        A center beats a later one up to the height at which both are equally near, and no
        stretch ends before an earlier one does.
        """
        count, sets = centers.shape[:2]
        heights = centers[:, :, -1]
        # Squared distance from the foot of each line, side by side.
        apart = (heights**2)[:, :, None]
        for side, middle in enumerate(self.sides[:-1]):
            squares = np.square(centers[:, :, side, None] - middle)
            apart = (apart[:, :, :, None] + squares[:, :, None, :]).reshape(count, sets, -1)
        last = self.sizes[-1]
        ends = np.full((count, sets, self.lines), last, dtype=np.intp)
        for number in range(count - 1):
            gaps = 2 * (heights[number + 1 :] - heights[number])[:, :, None]
            ahead = apart[number + 1 :] - apart[number]
            with np.errstate(all="ignore"):
                ahead /= gaps
            if not gaps.all():
                # Centers at one height: the nearer has all of the line, the first of equals.
                ahead[np.isnan(ahead)] = np.inf
            end = (ahead.min(axis=0) + 1) * (last / 2) + 0.5
            ends[number] = np.clip(end, 0, last).astype(np.intp)
        return np.maximum.accumulate(ends, axis=0)


def grid_summer(sizes: tuple[int, ...], weights: FloatArray, clusters: int) -> Summer:
    """Choose how to add up over a grid: cell by cell, if there are many centers for few cells."""
    grid = GridSums(sizes, weights)
    if clusters <= _CENTERS_A_CELL * sizes[-1]:
        return grid
    points = np.stack([one.ravel() for one in np.meshgrid(*grid.sides, indexing="ij")], axis=1)
    return PointSums(points, weights)


def grid_steps(sizes: tuple[int, ...], clusters: int) -> int:
    """Count what one center costs on a grid, in comparisons."""
    return prod(sizes[:-1]) * min(sizes[-1], clusters)


def middles(size: int) -> FloatArray:
    """Return the middles of `size` equal parts of the line from -1 to 1."""
    return (2 * np.arange(size) + 1) / size - 1


# --- Lloyd's rounds -----------------------------------------------------------------------


class Effort(NamedTuple):
    """How hard a search tries: from how many starts, and for how many rounds each."""

    n_init: int
    max_iter: int


def search_effort(n_init: int, clusters: int, points: int) -> Effort:
    """Limit the starts, and then the rounds, of a search for very many clusters.

    The limit depends on how many clusters and points there are, never on where they lie.

    >>> search_effort(30, 15, 1_000_000), search_effort(30, 1000, 100_000)
    (Effort(n_init=30, max_iter=100), Effort(n_init=1, max_iter=20))
    """
    if clusters <= _MANY_CLUSTERS:
        return Effort(n_init, MOST_ROUNDS)
    allowed = _MOST_STEPS // (clusters * points)
    fewer = min(n_init, max(allowed // MOST_ROUNDS, 1))
    return Effort(fewer, min(max(allowed // fewer, _FEWEST_ROUNDS), MOST_ROUNDS))


class Clustering(NamedTuple):
    """Centers, a row each, and their mean squared distance from the points as weighed."""

    centers: FloatArray
    score: float


def weighted_lloyd(
    points: FloatArray | tuple[int, ...],
    weights: FloatArray | IntArray,
    starts: FloatArray,
    *,
    cell_deviation: float = 0.0,
    total: float | None = None,
    max_iter: int = MOST_ROUNDS,
) -> Clustering:
    """Cluster weighted points of the box from -1 to 1.

    Args:
        points: Points, a row each; or the sizes of a grid, for the middles of its equal cells,
            which is much faster.
        weights: Weight of each point, negative ones too.
        starts: Sets of centers to start from (sets, centers, dimensions).
        cell_deviation: Standard deviation of the noise of one weight.  A center moves only
            if the weight around it exceeds that of the noise there, and 1.
        total: What the weights should add up to; their sum, unless given.
        max_iter: Most rounds.
    """

    def summer(weights: FloatArray) -> Summer:
        if isinstance(points, tuple):
            return grid_summer(points, weights, starts.shape[1])
        return PointSums(points, weights)

    exact = np.asarray(weights, dtype=np.float64)
    plausible = plausible_weights(exact, total)
    centers = _rounds(summer(exact), starts, cell_deviation, max_iter)
    return _best(centers, summer(plausible), plausible)


def plausible_weights(weights: FloatArray, total: float | None) -> FloatArray:
    """Find the nearest weights that are not negative and add up, to 1 at least."""
    return project_nonnegative(weights, max(float(weights.sum()) if total is None else total, 1.0))


def _rounds(summer: Summer, starts: FloatArray, cell_deviation: float, max_iter: int) -> FloatArray:
    """Move every set of centers to the means around them until nothing changes."""
    centers = np.array(starts, dtype=np.float64)
    active = np.arange(len(centers))
    for _ in range(max_iter):
        before = centers[active]
        sums = summer.sums(before)
        needed = np.maximum(_LEAST_WEIGHT, cell_deviation * np.sqrt(sums[:, :, 0]))
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


# --- Clusters of a synopsis ---------------------------------------------------------------


def cluster_grid(
    grid: GridSynopsis,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.Generator,
    only_dense: bool = False,
) -> Clustering:
    """Find centers, between -1 and 1, in a noisy grid: the best of several searches.

    Args:
        grid: Noisy counts.
        n_clusters: Number of centers.
        n_init: Number of searches; fewer are made for very many clusters (`search_effort`).
        rng: Public randomness.
        only_dense: The papers start from centers that are far apart in the box and use all
            counts as they are.  This starts from cells that stand out from the noise, and
            uses only them, with counts that could be real; it likes a grid seven times as fine.
    """
    effort = search_effort(n_init, n_clusters, grid_steps(grid.sizes, n_clusters))
    if only_dense:
        weights = dense_weights(grid)
        sets = likely_starts(grid.cell_centers(), weights, n_clusters, effort.n_init, rng)
    else:
        weights = grid.counts.astype(np.float64)
        sides = len(grid.sizes)
        sets = np.stack([separated_centers(n_clusters, sides, rng) for _ in range(effort.n_init)])
    return weighted_lloyd(
        grid.sizes,
        weights,
        sets,
        cell_deviation=grid.deviation,
        total=None if only_dense else grid.total,  # dense weights add up as they are
        max_iter=effort.max_iter,
    )


def cluster_tree(
    tree: MarginalTree, n_clusters: int, *, n_init: int, rng: np.random.Generator
) -> Clustering:
    """Draw points from a tree of marginals and find their centers, in the box from -1 to 1."""
    points = tree.draw(SAMPLE, rng)
    alike = np.ones(SAMPLE)
    effort = search_effort(n_init, n_clusters, SAMPLE)
    sets = likely_starts(points, alike, n_clusters, effort.n_init, rng)
    return weighted_lloyd(points, alike, sets, max_iter=effort.max_iter)


class ClusterSize(NamedTuple):
    """An estimated number of records.

    Attributes:
        records: Noisy counts of the cluster's cells that stand out, added up.
        half_width: How far the noise of these cells moves the sum, at most, with probability
            95 %; that a cell was taken because its noise was large is not allowed for.
        may_be_noise: Whether noise alone might look like this.
    """

    records: float
    half_width: float
    may_be_noise: bool


def estimate_sizes(grid: GridSynopsis, centers: NDArray[np.float64]) -> tuple[ClusterSize, ...]:
    """Add up the cells that stand out from the noise around each center (between -1 and 1)."""
    counts = grid.counts.astype(np.float64)
    dense = np.flatnonzero(likely_cells(grid).marked)
    _, nearest = cKDTree(centers).query(grid.cell_centers()[dense])
    cells = np.bincount(nearest, minlength=len(centers))
    sums = np.bincount(nearest, counts[dense], minlength=len(centers))
    least = standing_out(grid.size) * grid.deviation
    return tuple(
        ClusterSize(
            records=max(float(total), 0.0),
            half_width=half_width(grid.rate, np.ones(number), 0.95) if number else 0.0,
            may_be_noise=bool(total <= least * np.sqrt(max(number, 1))),
        )
        for number, total in zip(cells.tolist(), sums.tolist(), strict=True)
    )

"""Add up weights around centers: over points, or over a grid, where whole lines are added at once.

On a line of grid points along the last side, each center is nearest on one stretch.  Sort the
centers by their last coordinate: a later one can only win further up.  So the stretches follow
from where two centers are equally near, and their sums from running totals: the cost grows
with the number of lines, not of cells.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.types import FloatArray

_MOST_NUMBERS = 1 << 18  # that are held at once, so that they stay in the processor's cache


_FEW_POINTS = 1 << 12
_CENTERS_A_CELL = 4  # along the last side, beyond which lines are no faster than cells


class Summer(Protocol):
    """Weighted points that can be added up by nearest center."""

    def sums(self, centers: FloatArray) -> FloatArray:
        """Add up around several sets of centers (sets, centers, dimensions).

        Gives, for every center, the number of points nearest to it (the first of equals),
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
    def _places(self) -> FloatArray:
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
        apart = (self._places**2).sum(axis=1)
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
        columns += list(np.moveaxis(weights @ self._places, -1, 0))
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
        for side, places in enumerate(self.sides[:-1]):
            squares = np.square(centers[:, :, side, None] - places)
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
            reach = (ahead.min(axis=0) + 1) * (last / 2) + 0.5
            ends[number] = np.clip(reach, 0, last).astype(np.intp)
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
    """Give the middles of `size` equal parts of the line from -1 to 1."""
    return (2 * np.arange(size) + 1) / size - 1

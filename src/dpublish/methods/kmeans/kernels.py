"""What is added up over records: sums around centers, losses of centers, counts of pairs."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.kernel import unbounded
from dpublish.data.box import UNIT, Box
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

MOST_COLUMNS = 1024
"""Up to so many columns, scores of centers are integers that a float holds exactly."""
MOST_PAIR_CELLS = 1 << 24
STEP = 1 << 24
"""Squared lattice units in one step of a loss; a squared distance of 1 in the box is 2^16."""

_PART = 1 << 13  # records that are compared at once, so that they stay in the processor's cache
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class _BoxKernel:
    """A kernel that reads the columns of a box, and whose answer is an array of integers."""

    box: Box

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes: none."""
        return ()

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return self.box.names

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other


# --- How many records are nearest to each center, and where they lie -----------------------


class ClusterSensitivity(NamedTuple):
    """Most that one record changes all counts, and all sums, in sum (L1)."""

    counts: int
    sums: int


@dataclass(frozen=True, eq=False)
class ClusterSums(_BoxKernel):
    """Kernel: count the records nearest to each center, and add up their coordinates.

    Attributes:
        box: Columns and bounds.
        centers: A row for each center, between -1 and 1; they are moved to the lattice.

    The answer has a row for each center: the count, then the sum of each lattice coordinate
    (whole multiples of 1 / UNIT).  A record goes to its nearest center, the first of equals.
    Scores of centers are exact integers, so where a record goes depends on it alone.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("x", "numeric", bounds=[0, 4]),)))
    >>> kernel = ClusterSums(box, np.array([[-0.5], [0.5]]))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, values={"x": np.array([0.0, 2.0, 4.0])}), answer)
    >>> (answer / [1, UNIT]).tolist()
    [[2.0, -1.0], [1.0, 1.0]]
    """

    centers: FloatArray

    def __post_init__(self) -> None:
        shape = self.centers.shape
        if len(shape) != 2 or not shape[0] or shape[1] != self.box.dimensions:
            raise InvalidParameter("there must be centers, with a number for each column")
        if not np.all(np.abs(self.centers) <= 1):
            raise InvalidParameter("centers must lie in the box, between -1 and 1")
        require_columns(self.box)

    @cached_property
    def _lattice(self) -> FloatArray:
        """The centers as whole multiples of 1 / UNIT."""
        return np.rint(self.centers * UNIT)

    def zero(self) -> IntArray:
        """Build the answer for no records."""
        return np.zeros((len(self.centers), self.box.dimensions + 1), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        for part in batch.cut(_PART):
            self._add(self.box.lattice(part).astype(np.float64), out)

    def _add(self, points: FloatArray, out: IntArray) -> None:
        nearest = self.assign(points)
        clusters = len(out)
        out[:, 0] += np.bincount(nearest, minlength=clusters)
        for column, numbers in enumerate(points, start=1):
            # A part adds up to at most 2^33, so these floats are exact integers.
            sums = np.bincount(nearest, weights=numbers, minlength=clusters)
            out[:, column] += sums.astype(np.int64)

    def assign(self, points: FloatArray) -> IntArray:
        """Find the nearest center of each point (a column of lattice coordinates)."""
        # |x - c|^2 = |x|^2 + c (c - 2x): the first term is the same for all centers.
        nearest = np.zeros(points.shape[1], dtype=np.int64)
        best = np.full(points.shape[1], np.inf)
        score, term = np.empty_like(best), np.empty_like(best)
        doubled = 2 * points
        for number, center in enumerate(self._lattice):
            score.fill(0.0)
            for numbers, coordinate in zip(doubled, center, strict=True):
                np.subtract(coordinate, numbers, out=term)
                term *= coordinate
                score += term
            closer = score < best
            np.copyto(nearest, number, where=closer)
            np.copyto(best, score, where=closer)
        return nearest

    def sensitivity(self, neighbors: Neighbors) -> ClusterSensitivity:
        """Return how much counts and sums change at most, each in sum (L1).

        A record is in one cluster: one count changes by 1, and each of that cluster's sums by
        at most UNIT, since lattice coordinates lie between -UNIT and UNIT.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise InvalidParameter("clusters are summed for single records added or removed")
        return ClusterSensitivity(1, self.box.dimensions * UNIT)


def require_columns(box: Box) -> None:
    """Refuse more columns than scores are exact for; call it before budget is spent."""
    if box.dimensions > MOST_COLUMNS:
        raise InvalidParameter(
            f"{box.dimensions:,} columns are too many to cluster (at most {MOST_COLUMNS:,})"
        )


# --- How far records lie from the nearest center, for many sets of centers ------------------


class _Distinct(NamedTuple):
    """What has to be computed once only: distances from `centers`, losses of `members`.

    Attributes:
        centers: Centers that are not equal, a row each.
        members: Numbers of the centers of each set, for sets that are not equal.
        which: Number of the distinct set that each given set is equal to.
    """

    centers: FloatArray
    members: NDArray[np.intp]
    which: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CenterLosses(_BoxKernel):
    """Kernel: add up each record's squared distance from the nearest center, for every set.

    Centers are lattice points of the box, as records are.  A squared distance is an
    integer, rounded down to steps of 2^24 for each record and each set.  Only operations on
    one number at a time are used, all of them exact.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("x", "numeric", bounds=[-1, 1]),)))
    >>> kernel = CenterLosses(box, np.array([[[0], [UNIT]], [[UNIT // 2], [UNIT]]]))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(2, values={"x": np.array([-0.5, 1.0])}), answer)
    >>> (answer / 2**16).tolist()
    [0.25, 1.0]
    """

    sets: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        if self.sets.dtype != np.int64 or self.sets.ndim != 3 or not self.sets.size:
            raise InvalidParameter("sets of centers are integers: sets, centers, coordinates")
        if self.sets.shape[2] != self.box.dimensions:
            raise InvalidParameter("each center has a number for each column")
        require_columns(self.box)  # so squared distances are below 2^53, and floats hold them
        if np.abs(self.sets).max() > UNIT:
            raise InvalidParameter("centers must lie in the box")

    def zero(self) -> IntArray:
        """Build the answer for no records."""
        return np.zeros(len(self.sets), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the losses of the records of `batch` to `out`, some records at a time."""
        centers, members, which = self._distinct
        points = self.box.lattice(batch).astype(np.float64)
        rows = max(_BLOCK // max(len(centers), len(members)), 16)
        losses = np.zeros(len(members), dtype=np.int64)
        for start in range(0, len(batch), rows):
            apart = _squared_distances(points[:, start : start + rows], centers)
            nearest = apart[members[:, 0]]
            for column in members.T[1:]:
                np.minimum(nearest, apart[column], out=nearest)
            steps = np.floor(nearest / STEP)
            losses += steps.sum(axis=1).astype(np.int64)  # integers, far below 2^53
        out += losses[which]

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return by how much the changes of two losses differ at most (R), in steps.

        An added record at t adds its own losses q(t, set), which are not negative.  So R is
        at most the largest, and at most the largest difference between two sets at any t of
        the box; the records do not enter.  Rounding down may widen a difference to the next
        integer, and no further.
        """
        _require_single_records(neighbors)
        exact = min(largest_loss(self._lattice_sets), largest_gap(self._lattice_sets))
        return max(-(-exact // STEP), 1)

    def largest_change(self, neighbors: Neighbors) -> int:
        """Return by how much one record changes a loss at most, in steps: R1 alone.

        Losses of a record are not negative, so this bounds their differences as well.
        """
        _require_single_records(neighbors)
        return max(-(-largest_loss(self._lattice_sets) // STEP), 1)

    @cached_property
    def _lattice_sets(self) -> IntArray:
        """The sets that are not equal, as integers."""
        return self._distinct.centers.astype(np.int64)[self._distinct.members]

    @cached_property
    def _distinct(self) -> _Distinct:
        count, clusters, dimensions = self.sets.shape
        flat, which = np.unique(self.sets.reshape(count, -1), axis=0, return_inverse=True)
        centers, members = np.unique(flat.reshape(-1, dimensions), axis=0, return_inverse=True)
        return _Distinct(
            centers.astype(np.float64), members.reshape(-1, clusters), which.reshape(-1)
        )


def _require_single_records(neighbors: Neighbors) -> None:
    if not isinstance(neighbors, AddRemoveRecord):
        raise unbounded(neighbors, "add up losses of single records")


def largest_loss(sets: IntArray, bound: int = UNIT) -> int:
    """Bound the squared distance of any point of the box from the nearest center (R1).

    The farthest corner from a center is its distance away from the opposite faces; no point
    is farther from the nearest center than from the one with the nearest farthest corner.
    Coordinates run from -`bound` to `bound`.

    >>> largest_loss(np.array([[[0, 0]], [[1, 0]]]), bound=10)
    221
    """
    corners = np.square(bound + np.abs(sets)).sum(axis=2)
    return int(corners.min(axis=1).max())


def largest_gap(sets: IntArray, bound: int = UNIT) -> int:
    """Bound how much farther a point can be from one set of centers than from another (R2).

    Centers are compared by their number.  |t-c|^2 - |t-c'|^2 = -(c-c').(2t-c-c') is linear in
    t, so it is largest in a corner: 2 * bound * |c-c'|_1 + |c|^2 - |c'|^2, for either order.

    >>> largest_gap(np.array([[[0, 0]], [[1, 0]]]), bound=10)
    21
    """
    found = 0
    squares = np.square(sets).sum(axis=2)
    for number in range(len(sets) - 1):
        others = slice(number + 1, None)
        moved = np.abs(sets[others] - sets[number]).sum(axis=2)
        gaps = 2 * bound * moved + np.abs(squares[others] - squares[number])
        found = max(found, int(gaps.max()))
    return found


def _squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Measure all points (columns) from all centers (rows): a row for each center."""
    found = np.zeros((len(centers), points.shape[1]))
    for coordinates, column in zip(points, centers.T, strict=True):
        apart = coordinates - column[:, None]
        np.square(apart, out=apart)
        found += apart
    return found


# --- How records lie in the plane of every two columns --------------------------------------


@dataclass(frozen=True)
class PairCounts(_BoxKernel):
    """Kernel: count records by equal bins of every two columns of a box.

    The answer is [pair, bin of the earlier column, bin of the later one].
    """

    bins: int

    def __post_init__(self) -> None:
        if len(self.pairs) * self.bins**2 > MOST_PAIR_CELLS:
            raise InvalidParameter("there are too many columns to look at every two of them")

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of the columns of each pair, the earlier first."""
        return tuple(combinations(range(self.box.dimensions), 2))

    def zero(self) -> IntArray:
        """Build the answer for no records."""
        return np.zeros((len(self.pairs), self.bins, self.bins), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        # Integers: the bin of a record is the same in whatever batch it comes.
        found = np.minimum(
            (self.box.lattice(batch) + UNIT) * self.bins // (2 * UNIT), self.bins - 1
        )
        for number, (first, second) in enumerate(self.pairs):
            keys = found[first] * self.bins + found[second]
            counted = np.bincount(keys, minlength=self.bins**2)
            out[number] += counted.reshape(self.bins, self.bins)

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return how much the counts of one pair change at most, in sum (L1).

        A record lies in one cell of the pair.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise InvalidParameter("pairs are counted for single records added or removed")
        return 1

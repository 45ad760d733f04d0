"""How far the records lie from the nearest of some centers, for many sets of centers at once."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import unbounded
from dpublish.data.box import UNIT, Box
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.kernel_cluster_sums import require_columns
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

STEP = 1 << 24
"""Squared lattice units in one step of a loss; a squared distance of 1 in the box is 2^16."""

_BLOCK = 1 << 17


class _Distinct(NamedTuple):
    """What has to be computed once only: distances from `centers`, losses of `members`.

    Attributes:
        centers: Centers that are not equal, a row each.
        members: Numbers of the centers of each set, for sets that are not equal.
        places: Number of the distinct set that each given set is equal to.
    """

    centers: FloatArray
    members: NDArray[np.intp]
    places: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CenterLosses:
    """Kernel: add up each record's squared distance from the nearest center, for every set.

    Centers are lattice points of the box, as records are.  A squared distance is a whole
    number, rounded down to steps of 2^24 for each record and each set.  Only operations on
    one number at a time are used, all of them exact.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("x", "numeric", bounds=[-1, 1]),)))
    >>> kernel = CenterLosses(box, np.array([[[0], [UNIT]], [[UNIT // 2], [UNIT]]]))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(2, values={"x": np.array([-0.5, 1.0])}), answer)
    >>> (answer / 2**16).tolist()
    [0.25, 1.0]
    """

    box: Box
    sets: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        if self.sets.dtype != np.int64 or self.sets.ndim != 3 or not self.sets.size:
            raise InvalidParameter("sets of centers are integers: sets, centers, coordinates")
        if self.sets.shape[2] != self.box.dimensions:
            raise InvalidParameter("each center has a number for each column")
        require_columns(self.box)  # so squared distances are below 2^53, and floats hold them
        if np.abs(self.sets).max() > UNIT:
            raise InvalidParameter("centers must lie in the box")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes: none."""
        return ()

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return self.box.names

    def zero(self) -> IntArray:
        """Make the answer for no records."""
        return np.zeros(len(self.sets), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the losses of the records of `batch` to `out`, some records at a time."""
        centers, members, places = self._distinct
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
        out += losses[places]

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Say by how much the changes of two losses differ at most (R), in steps.

        An added record at t adds its own losses q(t, set), which are not negative.  So R is
        at most the largest, and at most the largest difference between two sets at any t of
        the box; the records do not enter.  Rounding down may widen a difference to the next
        integer, and no further.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "add up losses of single records")
        sets = self._distinct.centers.astype(np.int64)[self._distinct.members]
        exact = min(largest_loss(sets), largest_gap(sets))
        return max(-(-exact // STEP), 1)

    @cached_property
    def _distinct(self) -> _Distinct:
        count, clusters, dimensions = self.sets.shape
        flat, places = np.unique(self.sets.reshape(count, -1), axis=0, return_inverse=True)
        centers, members = np.unique(flat.reshape(-1, dimensions), axis=0, return_inverse=True)
        return _Distinct(
            centers.astype(np.float64), members.reshape(-1, clusters), places.reshape(-1)
        )


def largest_loss(sets: IntArray, reach: int = UNIT) -> int:
    """Bound the squared distance of any point of the box from the nearest center (R1).

    The farthest corner from a center is its distance away from the opposite faces; no point
    is farther from the nearest center than from the one with the nearest farthest corner.
    Coordinates run from -`reach` to `reach`.

    >>> largest_loss(np.array([[[0, 0]], [[1, 0]]]), reach=10)
    221
    """
    corners = np.square(reach + np.abs(sets)).sum(axis=2)
    return int(corners.min(axis=1).max())


def largest_gap(sets: IntArray, reach: int = UNIT) -> int:
    """Bound how much farther a point can be from one set of centers than from another (R2).

    Centers are compared by their number.  |t-c|^2 - |t-c'|^2 = -(c-c').(2t-c-c') is linear in
    t, so it is largest in a corner: 2 * reach * |c-c'|_1 + |c|^2 - |c'|^2, for either order.

    >>> largest_gap(np.array([[[0, 0]], [[1, 0]]]), reach=10)
    21
    """
    found = 0
    squares = np.square(sets).sum(axis=2)
    for place in range(len(sets) - 1):
        others = slice(place + 1, None)
        moved = np.abs(sets[others] - sets[place]).sum(axis=2)
        gaps = 2 * reach * moved + np.abs(squares[others] - squares[place])
        found = max(found, int(gaps.max()))
    return found


def _squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Measure all points (columns) from all centers (rows): a row for each center."""
    found = np.zeros((len(centers), points.shape[1]))
    for coordinates, place in zip(points, centers.T, strict=True):
        apart = coordinates - place[:, None]
        np.square(apart, out=apart)
        found += apart
    return found

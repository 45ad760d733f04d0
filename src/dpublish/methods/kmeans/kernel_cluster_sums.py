"""How many records are nearest to each center, and where they lie: one round of k-means."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpublish.data.box import UNIT, Box
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

MOST_COLUMNS = 1024
"""Up to so many columns, scores of centers are integers that a float holds exactly."""

_PART = 1 << 13  # records that are compared at once, so that they stay in the processor's cache


class ClusterSensitivity(NamedTuple):
    """Most that one record changes all counts, and all sums, in sum (L1)."""

    counts: int
    sums: int


@dataclass(frozen=True, eq=False)
class ClusterSums:
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

    box: Box
    centers: FloatArray

    def __post_init__(self) -> None:
        shape = self.centers.shape
        if len(shape) != 2 or not shape[0] or shape[1] != self.box.dimensions:
            raise InvalidParameter("there must be centers, with a number for each column")
        if not np.all(np.abs(self.centers) <= 1):
            raise InvalidParameter("centers must lie in the box, between -1 and 1")
        require_columns(self.box)

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes: none."""
        return ()

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return self.box.names

    @cached_property
    def _lattice(self) -> FloatArray:
        """The centers as whole multiples of 1 / UNIT."""
        return np.rint(self.centers * UNIT)

    def zero(self) -> IntArray:
        """Make the answer for no records."""
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

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def sensitivity(self, neighbors: Neighbors) -> ClusterSensitivity:
        """Say how much counts and sums change at most, each in sum (L1).

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

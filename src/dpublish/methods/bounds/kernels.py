"""How many records have a value at each of some public points, and between them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpublish.aggregates.kernel import ArrayKernel
from dpublish.data.table import Batch
from dpublish.types import FloatArray, IntArray


@dataclass(frozen=True)
class PointCounts(ArrayKernel):
    """Kernel: count the records at every point and in every gap, from the lowest upward.

    Attributes:
        column: Column whose clipped values are counted.
        points: Public numbers in ascending order; the first and the last are the column's bounds.

    >>> kernel = PointCounts("cost", (0.0, 10.0, 100.0))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(4, values={"cost": np.array([0.0, 3.0, 10.0, 3.5])}), answer)
    >>> answer
    array([1, 2, 1, 0, 0])
    """

    column: str
    points: tuple[float, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The column, as clipped numbers."""
        return (self.column,)

    @property
    def size(self) -> int:
        """Number of points and gaps."""
        return 2 * len(self.points) - 1

    def add(self, batch: Batch, out: IntArray) -> None:
        """Count the records of `batch`."""
        numbers = batch.values(self.column)
        below = np.searchsorted(self._edges, numbers, side="left")
        up_to = np.searchsorted(self._edges, numbers, side="right")
        out += np.bincount(below + up_to - 1, minlength=self.size)

    @cached_property
    def _edges(self) -> FloatArray:
        return np.array(self.points)

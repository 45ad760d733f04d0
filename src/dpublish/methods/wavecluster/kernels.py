"""How many records lie in each cell of a grid whose cells are cut again, each into its own parts.

The box is cut into equal cells first, and each of those into equal parts, as many along every
side as are given for it.  A cell is found in two steps, from one record alone.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from dpublish.aggregates.box_grid import MOST_CELLS
from dpublish.aggregates.kernel import ArrayKernel
from dpublish.data.box import UNIT, Box
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_count
from dpublish.types import IntArray

_SHIFT = (2 * UNIT).bit_length() - 1  # dividing by 2 * UNIT, the width of the box
_MOST_ALONG = 1 << 20  # times a lattice coordinate stays within 64 bits


@dataclass(frozen=True, eq=False)
class SplitGrid(ArrayKernel):
    """Kernel: count the records in every part of every cell, cell by cell, row by row.

    Attributes:
        box: The columns and their bounds.
        along: Number of first cells along each column.
        splits: For each first cell, row by row, the number of its parts along each column.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("x", "numeric", bounds=[0, 8]),)))
    >>> kernel = SplitGrid(box, 2, np.array([1, 4]))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, values={"x": np.array([3.0, 4.0, 8.0])}), answer)
    >>> answer.tolist()
    [1, 1, 0, 0, 1]
    """

    box: Box
    along: int
    splits: IntArray

    def __post_init__(self) -> None:
        require_count(along=self.along)
        if self.splits.dtype != np.int64 or self.splits.shape != (prod(self._sizes),):
            raise InvalidParameter("there must be an integer of parts for every cell")
        if self.splits.min() < 1 or max(self.splits.max(), self.along) > _MOST_ALONG:
            raise InvalidParameter(f"a side has from 1 to {_MOST_ALONG:,} parts")
        if self.cells > MOST_CELLS:
            raise InvalidParameter(
                f"{self.cells:,} cells are too many to count one by one (at most {MOST_CELLS:,})"
            )

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (self.along,) * self.box.dimensions

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return self.box.names

    @cached_property
    def starts(self) -> IntArray:
        """Number of the first part of each cell, and the number of all parts."""
        return np.concatenate(([0], np.cumsum(self.splits**self.box.dimensions)))

    @property
    def cells(self) -> int:
        """Number of parts of all cells."""
        return int(self.starts[-1])

    @property
    def size(self) -> int:
        """Number of parts of all cells."""
        return self.cells

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        scaled = (self.box.lattice(batch) + UNIT) * self.along
        first = np.minimum(scaled >> _SHIFT, self.along - 1)
        cells = np.ravel_multi_index(tuple(first), self._sizes)
        splits = self.splits[cells]
        inside = np.zeros(len(batch), dtype=np.int64)
        for within in scaled - (first << _SHIFT):
            inside = inside * splits + np.minimum((within * splits) >> _SHIFT, splits - 1)
        np.add.at(out, self.starts[cells] + inside, 1)

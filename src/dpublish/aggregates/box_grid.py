"""How many records lie in each cell of a box that is cut into equal parts along every side."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from dpublish.aggregates.kernel import ArrayKernel
from dpublish.data.box import UNIT, Box
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_count
from dpublish.types import IntArray

MOST_CELLS = 4_000_000

_SHIFT = (2 * UNIT).bit_length() - 1  # dividing by 2 * UNIT, the width of the box


@dataclass(frozen=True)
class BoxGrid(ArrayKernel):
    """Kernel: count the records in every cell, row by row (the last column varies fastest).

    Cell j of m along a side holds the coordinates from -1 + 2j/m on, without the upper end;
    the last cell holds its upper end too.  So a record lies in one cell, or in none if a number
    is missing, and a grid of size 1 along every side counts the records without missing numbers.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("x", "numeric", bounds=[0, 10]),)))
    >>> kernel = BoxGrid(box, (4,))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, values={"x": np.array([0.0, 2.5, 10.0])}), answer)
    >>> answer.tolist()
    [1, 1, 0, 1]
    """

    box: Box
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.sizes) != self.box.dimensions:
            raise InvalidParameter("a grid needs one number of cells for every column")
        for size in self.sizes:
            require_count(size=size)
        if self.cells > MOST_CELLS:
            raise InvalidParameter(
                f"{self.cells:,} cells are too many to count one by one (at most "
                f"{MOST_CELLS:,}); take fewer columns or a coarser grid"
            )

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return self.box.names

    @cached_property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.sizes)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.cells

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        np.add.at(out, self.locate(self.box.lattice(batch)), 1)

    def locate(self, lattice: IntArray) -> IntArray:
        """Find the cell of each point, given by lattice coordinates (a row per column)."""
        found = np.zeros(lattice.shape[1], dtype=np.int64)
        for size, coordinates in zip(self.sizes, lattice, strict=True):
            index = ((coordinates + UNIT) * size) >> _SHIFT
            found = found * size + np.minimum(index, size - 1)
        return found

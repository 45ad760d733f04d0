"""How many records lie in the parts of boxes: records find their box by a public route."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.kernel import CodeSums, unbounded
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray

MAX_CELLS = 2**23
"""Most counts that are held at once: 64 MB."""


class Route(Protocol):
    """A rule that puts a record into one box, by its codes and by public facts alone."""

    def follow(self, codes: IntArray) -> IntArray:
        """Find the box of each record; `codes` has a row for each column."""
        ...


@dataclass(frozen=True, eq=False)
class GridRoute:
    """Into the cells of a grid: each column cut into ranges of nearly equal size.

    >>> GridRoute((5, 2), (2, 2)).follow(np.array([[0, 2, 3, 4], [0, 1, 0, 1]])).tolist()
    [0, 1, 2, 3]
    """

    sizes: tuple[int, ...]
    sides: tuple[int, ...]

    def follow(self, codes: IntArray) -> IntArray:
        """Find the cell of each record, the last column counting fastest."""
        cells = np.zeros(codes.shape[1], dtype=np.int64)
        for along, size, side in zip(codes, self.sizes, self.sides, strict=True):
            cells = cells * side + along * side // size
        return cells


@dataclass(frozen=True, eq=False)
class TreeRoute:
    """Down a tree in which every box is cut in two along one column.

    Attributes:
        axes: The column that each box is cut along; -1 for the boxes at the end.
        cuts: First code of the upper part.
        children: Number of the lower part; the upper one has the next.
        first: The number of the first box at the end, which counts as box 0.

    >>> tree = TreeRoute(np.array([0, -1, -1]), np.array([3, 0, 0]), np.array([1, 0, 0]), 1)
    >>> tree.follow(np.array([[0, 2, 3, 9]])).tolist()
    [0, 0, 1, 1]
    """

    axes: IntArray
    cuts: IntArray
    children: IntArray
    first: int

    def follow(self, codes: IntArray) -> IntArray:
        """Find the box at the end in which each record lies; all ends are equally deep."""
        records = np.arange(codes.shape[1])
        node = np.zeros(records.size, dtype=np.int64)
        step = 0
        while self.axes[step] >= 0:  # the first box of each depth shows whether it is the last
            node = self.children[node] + (codes[self.axes[node], records] >= self.cuts[node])
            step = int(self.children[step])
        return node - self.first


@dataclass(frozen=True, eq=False)
class BoxCells(CodeSums):
    """Kernel: count the records in every part of every box.

    Attributes:
        columns: The columns, each read as codes; a record that the missing rule of one
            of them leaves out is not counted.
        route: How a record finds its box.
        lows: First code of each box along each column.
        highs: The code after the last.
        parts: Into how many ranges of nearly equal size each box is cut along each column.

    >>> kernel = BoxCells(("age",), GridRoute((5,), (1,)), *np.array([[[0]], [[5]], [[2]]]))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, codes={"age": np.array([0, 2, 3])}), answer)
    >>> answer.tolist()
    [2, 1]
    """

    columns: tuple[str, ...]
    route: Route
    lows: IntArray
    highs: IntArray
    parts: IntArray

    def __post_init__(self) -> None:
        if int(self.starts[-1]) > MAX_CELLS:
            raise InvalidParameter(f"more than {MAX_CELLS:,} parts are too many to count at once")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return self.columns

    @cached_property
    def starts(self) -> IntArray:
        """The first part of each box, closed off by the number of parts of all boxes."""
        return np.concatenate(([0], np.cumsum(np.prod(self.parts, axis=1))))

    def zero(self) -> IntArray:
        """Return the answer for no records: the parts of one box after those of another."""
        return np.zeros(int(self.starts[-1]), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        codes = np.stack([batch.codes(name).astype(np.int64) for name in self.columns])
        boxes = self.route.follow(codes)
        parts_of = np.zeros(boxes.size, dtype=np.int64)
        for column, along in enumerate(codes):
            if self._is_cut[column]:
                low, extent, parts = (table[boxes] for table in self._tables[column])
                parts_of = parts_of * parts + (along - low) * parts // extent
        np.add.at(out, self.starts[boxes] + parts_of, 1)

    @cached_property
    def _is_cut(self) -> list[bool]:
        return [bool(cut) for cut in np.any(self.parts > 1, axis=0)]

    @cached_property
    def _tables(self) -> Mapping[int, tuple[NDArray[Any], ...]]:
        extents = self.highs - self.lows
        return {
            column: tuple(
                np.ascontiguousarray(table[:, column]) for table in (self.lows, extents, self.parts)
            )
            for column, is_cut in enumerate(self._is_cut)
            if is_cut
        }

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return how much all counts together change at most, in sum (L1).

        The route puts a record into one box, and its codes into one part of it.
        """
        if isinstance(neighbors, AddRemoveRecord):
            return 1
        raise unbounded(neighbors, "use a table with one row per unit")


def cut_boxes(lows: IntArray, highs: IntArray, parts: IntArray) -> tuple[IntArray, IntArray]:
    """Cut boxes into the parts that `BoxCells` counts, in the same order.

    >>> lows, highs = cut_boxes(np.array([[0, 0]]), np.array([[5, 1]]), np.array([[2, 1]]))
    >>> lows.tolist(), highs.tolist()
    ([[0, 0], [3, 0]], [[3, 1], [5, 1]])
    """
    each = np.prod(parts, axis=1)
    box = np.repeat(np.arange(len(lows)), each)
    part = np.arange(box.size) - np.repeat(np.cumsum(each) - each, each)
    ends = np.empty((2, box.size, lows.shape[1]), dtype=np.int64)
    for column in reversed(range(lows.shape[1])):
        count = parts[box, column]
        part, index = np.divmod(part, count)
        extent = highs[box, column] - lows[box, column]
        # Code x of a box lies in range x * count // extent, so a range starts at a rounded-up code.
        for which in (0, 1):
            ends[which, :, column] = lows[box, column] - (-(index + which) * extent // count)
    return ends[0], ends[1]

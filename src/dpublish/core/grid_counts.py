"""Counts over a box that is cut into equal parts, made ready for queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.axis_rows import whole_array
from dpublish.core.beside_labels import Ends, insert_ends
from dpublish.core.query.cells import CellCounts
from dpublish.data.axis import Axis
from dpublish.data.batch import Batch
from dpublish.data.box import UNIT, Box
from dpublish.data.column import NumberColumn
from dpublish.data.taxonomy import Taxonomy
from dpublish.types import FloatArray, IntArray


class _Side(NamedTuple):
    """The cells along a column that can hold a record, as an axis, and their numbers."""

    axis: Axis
    cells: IntArray


@dataclass(frozen=True, eq=False)
class GridCounts:
    """Noisy counts of all cells of an equal grid over a box.

    Records in which a number is missing were not counted.  A cell between two integers
    holds no record of a column of integers, so its noise is left out.

    Attributes:
        box: The columns and their bounds.
        sizes: Number of cells along each column.
        counts: Counts of all cells, row by row.
        rate: Rate of their noise; None if they are estimates.
    """

    box: Box
    sizes: tuple[int, ...]
    counts: NDArray[np.int64] | NDArray[np.float64]
    rate: Fraction | None

    @cached_property
    def cells(self) -> CellCounts:
        """The counts of the cells that can hold a record."""
        sides = [_side(c, size) for c, size in zip(self.box.columns, self.sizes, strict=True)]
        kept = self.counts.reshape(self.sizes)[np.ix_(*(side.cells for side in sides))]
        roundings = tuple(_rounding(column) for column in self.box.columns)
        axes = tuple(side.axis for side in sides)
        return CellCounts(axes, kept.ravel(), self.rate, roundings=roundings)

    def boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate the number of records in each of many boxes of the columns' codes."""
        return self.cells.boxes(columns, lows, highs, self._shares)

    def _shares(self, axis: Axis, lows: IntArray, highs: IntArray) -> FloatArray:
        column = self.box.columns[self.box.names.index(axis.column)]
        starts = np.asarray(column.partition.edges)
        low, high = (starts[np.clip(ends, 0, starts.size - 1)] for ends in (lows, highs))
        edges = np.asarray(axis.edges)
        overlap = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
        return np.asarray(np.maximum(overlap, 0) / np.diff(edges))


def _side(column: NumberColumn, size: int) -> _Side:
    is_whole = column.partition.whole
    edges = first_integers(column, size) if is_whole else _equal_edges(column, size)
    cells = np.flatnonzero(np.diff(edges) > 0)
    kept = (*edges[cells].tolist(), float(edges[-1]))
    labels = column.partition.cut_anew(kept).labels
    axis = Axis(column.name, column.kind, 1, Taxonomy.flat(labels), kept)
    return _Side(axis, cells)


def with_grid_bins(
    table: pa.Table, box: Box, sizes: Sequence[int], names: Sequence[str]
) -> pa.Table:
    """Put the ends of all cells of a grid beside their middles, which are in columns of `names`."""
    cells = np.unravel_index(np.arange(prod(sizes)), tuple(sizes))
    for column, size, along, name in zip(box.columns, sizes, cells, names, strict=True):
        ends = Ends(*(end.take(pa.array(along)) for end in grid_ends(column, size)))
        table = insert_ends(table, name, replace(column.axis(), closed="left"), ends, name)
    return table


def grid_ends(column: NumberColumn, size: int) -> Ends:
    """Return the ends of the equal cells along a column.

    Integers and dates are the first and the last in the cell; a cell between two has none.

    >>> from dpublish.data.schema import column
    >>> [end.to_pylist() for end in grid_ends(column("kids", "integer", bounds=[0, 2]), 4)]
    [[0, None, 1, 2], [0, None, 1, 2]]
    """
    if not column.partition.whole:
        edges = _equal_edges(column, size)
        return Ends(pa.array(edges[:-1]), pa.array(edges[1:]))
    first = first_integers(column, size).astype(np.int64)
    empty = np.diff(first) == 0
    return Ends(
        whole_array(column.kind, first[:-1], empty), whole_array(column.kind, first[1:] - 1, empty)
    )


def _equal_edges(column: NumberColumn, size: int) -> FloatArray:
    low, high = column.bounds
    edges = low + (high - low) * np.arange(size + 1) / size
    edges[-1] = high
    return np.asarray(edges)


def _rounding(column: NumberColumn) -> float:
    """Return how far the lattice moves a number, at most; integers are found exactly."""
    low, high = column.bounds
    return 0.0 if column.partition.whole else (high - low) / (2 * UNIT)


def first_integers(column: NumberColumn, size: int) -> FloatArray:
    """Find the first integer of each cell, closed off by the first beyond the bounds.

    The cell of a number is found as it was when records were counted, and never falls with
    the number.
    """
    grid = BoxGrid(Box((column,)), (size,))
    low, high = (int(bound) for bound in column.bounds)
    first = np.full(size, low, dtype=np.int64)
    last = np.full(size, high + 1, dtype=np.int64)  # at most: the cell may have no number
    while np.any(first < last):
        middle = (first + last) // 2
        values = {column.name: np.minimum(middle, high).astype(np.float64)}
        found = grid.locate(grid.box.lattice(Batch(size, values=values)))
        is_at_least = (found >= np.arange(size)) | (middle > high)
        last = np.where(is_at_least, middle, last)
        first = np.where(is_at_least, first, middle + 1)
    return np.append(first, high + 1).astype(np.float64)

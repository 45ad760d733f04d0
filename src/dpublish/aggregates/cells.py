"""Cells of a set of columns: which they are, and in which of them a record lies."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.kernel import unbounded
from dpublish.data.axis import Axis
from dpublish.data.encoding import code_type
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter

__all__ = [
    "ColumnSet",
    "Lookups",
    "cell_keys",
    "find_axes",
    "look_up",
    "tabulate",
    "unbounded",
]

ColumnSet = tuple[tuple[str, int | None], ...]
Lookups = Mapping[tuple[str, int], NDArray[Any] | None]


def find_axes(schema: Schema, columns: ColumnSet) -> tuple[Axis, ...]:
    """Find the axes of a set of columns, each on its level (None: its finest)."""
    names = [name for name, _ in columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is listed twice in a set; list it once")
    return tuple(schema[name].axis(level) for name, level in columns)


def tabulate(axes: Iterable[Axis]) -> Lookups:
    """Tabulate the cell of each code, for each column and level; None where cells are codes."""
    return {
        (axis.column, axis.level): None
        if axis.level == axis.taxonomy.height
        else axis.leaf_to_cell.astype(code_type(axis.size))
        for axis in axes
    }


def look_up(batch: Batch, lookups: Lookups) -> dict[tuple[str, int], NDArray[Any]]:
    """Find the cell of each record, for each column and level."""
    return {
        (name, level): batch.codes(name) if table is None else table.take(batch.codes(name))
        for (name, level), table in lookups.items()
    }


def cell_keys(cells: Sequence[NDArray[Any]], shape: Sequence[int], rows: int) -> NDArray[Any]:
    """Number the cells of several axes: the last axis counts fastest, as in C order.

    >>> cell_keys([np.array([0, 1]), np.array([2, 0])], (2, 3), 2)
    array([2, 3], dtype=int32)
    """
    kind = np.int32 if prod(shape) < 2**31 else np.int64
    if not cells:
        return np.zeros(rows, dtype=kind)
    keys: NDArray[Any] = cells[0].astype(kind)
    for cell, size in zip(cells[1:], shape[1:], strict=True):
        np.multiply(keys, size, out=keys)
        np.add(keys, cell, out=keys, casting="unsafe")  # the sum fits, whatever type codes have
    return keys

"""From cells back to values: name cells, and draw evenly from within each."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.released import describe_field
from dpublish.data.axis import Axis, Kind
from dpublish.data.column import MISSING_LABEL, Column
from dpublish.data.stamps import write_stamps


def label_columns(
    axes: Sequence[Axis], cells: Sequence[NDArray[np.integer[Any]]]
) -> dict[str, pa.DictionaryArray]:
    """Name the cells along each axis, as columns of a published table."""
    return {
        axis.column: pa.DictionaryArray.from_arrays(
            pa.array(along.astype(np.int32)), pa.array(axis.labels)
        )
        for axis, along in zip(axes, cells, strict=True)
    }


def draw_rows(
    axes: Sequence[Axis], cells: Sequence[NDArray[np.integer[Any]]], rng: np.random.Generator
) -> pa.Table:
    """Draw a row for each combination of cells, one axis after the other."""
    drawn = [draw_column(axis, along, rng) for axis, along in zip(axes, cells, strict=True)]
    return pa.table(drawn, names=[axis.column for axis in axes])


def draw_column(axis: Axis, cells: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
    """Draw a value for each of the `cells`: evenly over an interval, or over a group's values.

    Cells that stand for missing values give nulls.
    """
    return _draw_labels(axis, cells, rng) if axis.edges is None else _draw_numbers(axis, cells, rng)


def _draw_numbers(
    axis: Axis, cells: NDArray[np.integer[Any]], rng: np.random.Generator
) -> pa.Array:
    edges = np.asarray(axis.edges)
    intervals = len(edges) - 1
    missing = cells >= intervals
    inside = np.minimum(cells, intervals - 1)
    low, high = edges[inside], edges[inside + 1]
    if axis.holds_integers:
        whole = rng.integers(low.astype(np.int64), high.astype(np.int64))
        return whole_array(axis.kind, whole, missing)
    part = rng.random(cells.size)  # in [0, 1): measured from the end that belongs to the cell
    drawn = low + part * (high - low) if axis.closed == "left" else high - part * (high - low)
    return pa.array(drawn, mask=missing)


def whole_array(
    kind: Kind, numbers: NDArray[np.int64], missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Write integers as values of a column: dates and times of the wall clock as such.

    >>> whole_array("date", np.array([19_754]))[0].as_py()
    datetime.date(2024, 2, 1)
    """
    if kind == "date" or kind == "datetime":
        return write_stamps(kind, numbers, missing)
    return pa.array(numbers, mask=missing)


def describe_stamps(table: pa.Table, columns: Mapping[str, Column]) -> pa.Table:
    """Describe the columns of a published table that hold dates as numbers, such as centers."""
    units = {"date": "days since 1970-01-01", "datetime": "seconds since 1970-01-01 00:00:00"}
    for index, field in enumerate(table.schema):
        column = columns.get(field.name)
        if column is not None and column.kind in units:
            told = describe_field(field, units[column.kind])
            table = table.set_column(index, told, table.column(index))
    return table


def _draw_labels(axis: Axis, cells: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
    starts = axis.leaf_starts
    codes = rng.integers(starts[cells], starts[cells + 1])
    labels = pa.array(
        [None if label == MISSING_LABEL else label for label in axis.leaf_labels], pa.string()
    )
    return labels.take(pa.array(codes))

"""Conditions on a column that follows from another one, as a choice of that one's values.

A record has a value of the function if and only if it has one of the values of the source that lead
to it.  Where every value of the source is one cell, or all integers of a bin can be tried, the
marginal of the source bounds the count.
"""

import numpy as np
import pyarrow as pa

from dpublish.core.axis_rows import whole_array
from dpublish.core.query.rows import ClearRows
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.column_function import ColumnFunction, fill_functions
from dpublish.data.query.language import Query
from dpublish.data.query.weights import Extent
from dpublish.data.schema import Schema
from dpublish.types import IntArray

_MOST_TRIED = 1 << 17


def source_extent(schema: Schema, query: Query) -> tuple[str, Extent] | None:
    """Find the source of a function that a query is about, and which of its values satisfy it.

    Args:
        schema: The columns and functions.
        query: Conditions on one column.

    Returns:
        The name of the source, and which of its cells lead to such values as a whole and in part;
        None if the column is no function of one other column, or its values cannot be tried.
    """
    (name,) = query.columns
    function = next((one for one in schema.functions if one.column == name), None)
    if function is None or len(function.of) != 1:
        return None
    (source,) = function.of
    if any(one.column == source for one in schema.functions):
        return None
    axis = schema[source].axis()
    tried = _tried(schema, axis)
    if tried is None:
        return None
    rows, cells = tried
    return source, _extent(schema, function, query, rows, cells, axis)


def _tried(schema: Schema, axis: Axis) -> tuple[pa.Table, IntArray] | None:
    """List all values of a column that can be tried, and the cell of each."""
    column = schema[axis.column]
    if not isinstance(column, NumberColumn):
        values = pa.array(axis.leaf_labels[: axis.ordinary_leaves], pa.string())
        return pa.table({axis.column: values}), np.arange(axis.ordinary_leaves)
    if not axis.holds_integers or axis.leaf_edges is None:
        return None
    low, stop = int(np.ceil(axis.leaf_edges[0])), int(np.ceil(axis.leaf_edges[-1]))
    if stop - low > _MOST_TRIED:
        return None
    numbers = np.arange(low, stop, dtype=np.int64)
    cells = np.searchsorted(axis.leaf_edges, numbers, side="right") - 1
    return pa.table({axis.column: whole_array(column.kind, numbers)}), cells


def _extent(
    schema: Schema,
    function: ColumnFunction,
    query: Query,
    rows: pa.Table,
    cells: IntArray,
    axis: Axis,
) -> Extent:
    filled = fill_functions(rows, (function,))
    found = ClearRows(filled, schema).matches(query)
    # Missing and unlisted values were not tried: they may lead to any value.
    inner, outer = np.ones(axis.size, dtype=np.bool_), np.ones(axis.size, dtype=np.bool_)
    inner[axis.ordinary_leaves :] = False
    inner[cells[~found]] = False
    outer[: axis.ordinary_leaves] = False
    outer[cells[found]] = True
    return Extent(inner, outer)

"""Names of the classes into which a column's values are joined, for tables that people read."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dpublish.core.beside_labels import Along, Ends, Piece, bin_ends, with_listed_bins
from dpublish.core.released import DERIVED, describe_field, whole_column
from dpublish.data.axis import Axis
from dpublish.data.column import Column, NumberColumn
from dpublish.types import IntArray

_NAMED = 2  # of the values of a class that is no interval


def class_names(column: Column, classes: IntArray) -> Along:
    """Name each class by its values, and by its ends if it is an interval.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 49], bins=5)
    >>> found = class_names(age, np.array([0, 0, 1, 1, 1]))
    >>> found.labels.to_pylist(), found.ends.high.to_pylist()
    (['0..19', '20..49'], [19, 49])
    >>> town = column("town", "category", values=["Ost", "West", "Nord", "Sued"])
    >>> class_names(town, np.array([0, 1, 0, 0])).labels.to_pylist()
    ['Ost, Nord and 1 other value', 'West']
    """
    axis = column.axis()
    codes = [np.flatnonzero(classes == one) for one in range(int(classes.max()) + 1)]
    labels = pa.array([_name(column, axis, own) for own in codes], pa.string())
    return Along(axis.column, labels, _ends(axis, codes))


def with_class_values(table: pa.Table, axes: Sequence[Axis]) -> pa.Table:
    """Put the first value of each run of values of a class beside its code, and its ends."""
    codes = whole_column(table, "first_code")
    names = table["column"].to_pylist()
    labels, pieces, at = [], [], 0
    for axis in axes:
        own = codes[at : at + names.count(axis.column)]
        at += own.size
        labels += [axis.labels[code] for code in own]
        pieces.append(Piece(axis, own, own))
    field = describe_field(
        pa.field("first_value", pa.string()), "First value of the run.", **{DERIVED: "yes"}
    )
    where = table.schema.get_field_index("first_code") + 1
    table = table.add_column(where, field, pa.array(labels, pa.string()))
    return with_listed_bins(table, "first_value", pieces)


def _is_run(codes: IntArray) -> bool:
    return bool(codes[-1] - codes[0] == codes.size - 1)


def _name(column: Column, axis: Axis, codes: IntArray) -> str:
    labels = [axis.labels[code] for code in codes]
    if len(labels) > 1 and axis.is_ordered and _is_run(codes):
        if isinstance(column, NumberColumn) and codes[-1] < axis.ordinary_leaves:
            return column.partition.label(int(codes[0]), int(codes[-1]) + 1)
        return f"{labels[0]} to {labels[-1]}"
    more = len(labels) - _NAMED
    if more <= 0:
        return ", ".join(labels)
    return f"{', '.join(labels[:_NAMED])} and {more:,} other value{'s' if more > 1 else ''}"


def _ends(axis: Axis, codes: Sequence[IntArray]) -> Ends | None:
    """Return the ends of the classes; null for one with gaps."""
    first = np.array([own[0] if _is_run(own) else axis.size for own in codes])
    return bin_ends(axis, first, np.array([own[-1] for own in codes]))

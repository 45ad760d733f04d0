"""Classifying records with a release: from rows to codes, and from codes to class labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.column import MISSING_LABEL, Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidQuery

UNKNOWN = -1
"""Code of a value that is missing or not listed, where the schema has no cell for such."""


def encode_rows(rows: Any, schema: Schema, names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Find the code of each value of the named columns; `UNKNOWN` where there is none.

    `rows` is any Arrow-compatible object: a PyArrow table, a pandas or Polars frame...

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> encode_rows(pa.table({"sex": ["M", "?", "F"]}), schema, ["sex"])["sex"]
    array([ 1, -1,  0])
    """
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    for name in names:
        if table.column_names.count(find_column(table, schema[name])) != 1:
            raise InvalidQuery(f"the rows must have a column {name!r}, once")
    found = {}
    for name in names:
        column, read = schema[name], find_column(table, schema[name])
        encode = column.encode if read == name else column.encode_source
        codes, keep = encode(table[read])
        wide = codes.astype(np.int64)
        found[name] = wide if keep is None else np.where(keep, wide, UNKNOWN)
    return found


def find_column(table: pa.Table, column: Column) -> str:
    """Name the column of the rows to read: its own or, of a part of a date, that of the dates."""
    is_there = column.name in table.column_names or column.source_name not in table.column_names
    return column.name if is_there else column.source_name


def label_rows(classes: Axis, codes: NDArray[np.int64]) -> pa.Array:
    """Name the class of each code; a class of missing values gives nulls."""
    labels = [None if label == MISSING_LABEL else label for label in classes.labels]
    return pa.array(labels, pa.string()).take(pa.array(codes))

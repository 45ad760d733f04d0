"""Rows in the clear that their owner hands to a release, to find out what it says of them.

Nothing here is private, and no method imports it: what is found is for the owner of the rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dpublish.data.engines.source import read_columns
from dpublish.errors import InvalidQuery, InvalidType


def own_rows(rows: Any, columns: Sequence[str]) -> pa.Table:
    """Return some columns of rows, given as `open_table` takes them or as lists by column.

    Fields of CSV files stay text: the schema says how they are read.

    >>> own_rows({"age": [31, 64], "name": ["Ann", "Bob"]}, ["age"]).to_pydict()
    {'age': [31, 64]}
    """
    if isinstance(rows, (Mapping, pa.RecordBatch)):
        rows = _table_of(rows)
    if isinstance(rows, pa.Table):
        _require(columns, rows.column_names)
        return rows.select(list(columns))
    from dpublish.data.sources import find_source  # its readers are heavy: loaded when used

    parts = []
    for source in find_source(rows, columns):
        _require(columns, source.header.names)
        parts.append(read_columns(source, columns))
    return pa.concat_tables(parts, promote_options="permissive")


def _table_of(rows: Any) -> pa.Table:
    try:
        return pa.table(rows)
    except (TypeError, ValueError, pa.ArrowException):  # its message may quote a value
        pass
    raise InvalidType("rows by column are lists of equal length, such as {'x': [1, 2]}")


def _require(columns: Sequence[str], there: Sequence[str]) -> None:
    for name in columns:
        if there.count(name) != 1:
            raise InvalidQuery(f"the rows must have a column {name!r}, once")

"""Texts that a spreadsheet would run as formulas, made harmless."""

import re
from typing import Any

import pyarrow as pa

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # wide ones count, too
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def without_formulas(table: Any) -> Any:
    """Put an apostrophe before names and texts that a spreadsheet would run as formulas.

    Numbers stay as they are, also texts that are numbers, such as `-5`.  Takes a table or a
    batch, and returns the same.

    >>> table = pa.table({"note": ["=1+1", "-5", "plain"], "n": [-1, 2, 3]})
    >>> without_formulas(table).to_pydict()
    {'note': ["'=1+1", '-5', 'plain'], 'n': [-1, 2, 3]}
    """
    names = [_harmless(name) for name in table.schema.names]
    columns = [_harmless_column(column) for column in table.columns]
    return type(table).from_arrays(columns, names=names)


def _harmless_column(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    kind = plain_type(column.type)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_harmless_column(chunk) for chunk in column.chunks], kind)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [None if text is None else _harmless(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, kind).take(encoded.indices)  # each text is looked at once


def _harmless(text: str) -> str:
    if not text.startswith(_FORMULA) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, also of a dictionary-encoded column."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind

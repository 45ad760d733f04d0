"""From rows to the numbers that ordinary classifiers read, by the public schema alone.

A category becomes one column of zeros and ones per value; a number is scaled so that its
public bounds lie at 0 and 1, and for classifiers that only add up what they read it is also
told by its bin.  Nothing is learned from the rows, so that rows to train on and
rows to classify are encoded alike whatever they hold.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.data.column import Column, NumberColumn
from dpublish.data.schema import Schema

Features = NDArray[np.float32]
MAX_BINS = 64
"""Numbers with more bins than this are told by their size alone."""


def encode_features(
    rows: pa.Table, columns: Sequence[Column], *, with_bins: bool = False
) -> Features:
    """Encode the given columns of `rows`; a value that is not listed has zeros throughout.

    With `with_bins` numbers get a column of zeros and ones per bin of the schema, too.

    >>> from dpublish.data.schema import column
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> age = column("age", "integer", bounds=[0, 100])
    >>> encode_features(pa.table({"age": [25, 200], "sex": ["M", "?"]}), [age, sex])
    array([[0.25, 0.  , 1.  ],
           [1.  , 0.  , 0.  ]], dtype=float32)
    """
    blocks = [np.empty((rows.num_rows, 0), dtype=np.float32)]
    for column in columns:
        if isinstance(column, NumberColumn):
            blocks.append(_encode_numbers(rows, column))
            if not with_bins or column.size > MAX_BINS:
                continue
        blocks.append(_encode_cells(rows, column))
    return np.concatenate(blocks, axis=1)


def encode_classes(rows: pa.Table, schema: Schema, target: str) -> NDArray[np.int64]:
    """Find the class of each row; `UNKNOWN` where it is missing or not listed."""
    return encode_rows(rows, schema, [target])[target]


def _encode_cells(rows: pa.Table, column: Column) -> Features:
    codes = encode_rows(rows, Schema((column,)), [column.name])[column.name]
    flags = np.zeros((len(codes), column.size), dtype=np.float32)
    known = np.flatnonzero(codes != UNKNOWN)
    flags[known, codes[known]] = 1
    return flags


def _encode_numbers(rows: pa.Table, column: NumberColumn) -> Features:
    low, high = column.bounds
    values, keep = column.values(rows[column.name])
    scaled = (values - low) / (high - low) if high > low else np.zeros_like(values)
    present = np.ones(len(values), dtype=np.bool_) if keep is None else keep
    # A missing number is put in the middle, and a column of its own tells it from a real one.
    parts = [np.where(present, scaled, 0.5)]
    if column.missing == "category":
        parts.append(~present)
    return np.stack(parts, axis=1).astype(np.float32)

"""Boxes as columns of a published table: the ends of each, by number and by name."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dpublish.core.released import whole_column
from dpublish.data.axis import Axis
from dpublish.types import IntArray


def end_columns(axes: Sequence[Axis], lows: IntArray, highs: IntArray) -> dict[str, pa.Array]:
    """Name the first and the last leaf of every box along every column."""
    columns: dict[str, pa.Array] = {}
    for axis, low, high in zip(axes, lows.T, highs.T, strict=True):
        labels = pa.array(axis.labels)
        for word, leaf in (("first", low), ("last", high - 1)):
            named = pa.DictionaryArray.from_arrays(pa.array(leaf.astype(np.int32)), labels)
            columns[f"{word} leaf of {axis.column}"] = pa.array(leaf)
            columns[f"{word} value of {axis.column}"] = named
    return columns


def read_ends(table: pa.Table, names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Read back the first leaf of every box along every column, and the one after the last."""
    lows = [whole_column(table, f"first leaf of {name}") for name in names]
    lasts = [whole_column(table, f"last leaf of {name}") for name in names]
    return np.stack(lows, axis=1), np.stack(lasts, axis=1) + 1

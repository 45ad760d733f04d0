"""What one step may read of its snapshot: counts, or a row for every counted record.

Nothing is read before it is asked for, so a step that repeats the last estimate touches no
row at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.column import Column
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.snapshot import bounded, exact_counts

OTHER = "other"


@dataclass(frozen=True)
class Reading:
    """A snapshot in which every user has at most as many rows as she may have."""

    bins: Bins
    _count: Callable[[], NDArray[np.int64]]

    @classmethod
    def of(cls, table: Table, bins: Bins, contribution: int, key: bytes) -> "Reading":
        """Read a table of rows; users are told apart by the schema's unit, if it has one."""
        if table.schema.unit is None:  # the owner vouches for the bound: nothing to enforce
            return cls(bins, lambda: exact_counts(table, bins))
        return cls(bins, lambda: exact_counts(bounded(table, contribution, key, bins.names), bins))

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64], bins: Bins) -> "Reading":
        """Take counts that were made elsewhere, one for each bin."""
        if counts.dtype != np.int64 or counts.shape != (bins.size,):
            raise InvalidParameter(f"counts must be {bins.size:,} integers (int64), one a bin")
        return cls(bins, lambda: counts)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The exact count of every bin; private."""
        return self._count()

    @cached_property
    def rows(self) -> Table:
        """A row for every counted record that tells its bin and nothing else; private."""
        return rows_of(self.counts, self.bins)


def rows_of(counts: NDArray[np.int64], bins: Bins) -> Table:
    """Write counts out as rows of a table whose leaves are the bins.

    A record more in the counts is a row more in the table, whatever the other counts are, so
    tables are neighbors if the counts are.  Negative counts give no rows.

    >>> bins = Bins.of(Schema((column("age", "integer", bounds=[0, 99], bins=2),)), "age")
    >>> rows_of(np.array([3, 1]), bins).schema == schema_of(bins)
    True
    """
    positions = np.unravel_index(np.repeat(np.arange(bins.size), np.maximum(counts, 0)), bins.shape)
    schema = schema_of(bins)
    columns = zip(schema.columns, positions, strict=True)
    return open_table(
        pa.table([_write(each, at) for each, at in columns], names=list(bins.names)), schema
    )


def schema_of(bins: Bins) -> Schema:
    """Describe a table in which every bin is a leaf of each of its columns, in the same order."""
    return Schema(tuple(_column_of(axis) for axis in bins.axes))


def _column_of(axis: Axis) -> Column:
    """Number the cells of an axis; those of unlisted and missing values stay special."""
    special = int(np.count_nonzero(axis.leaf_starts[:-1] >= axis.ordinary_leaves))
    return column(
        axis.column,
        "category" if axis.kind == "category" else "ordinal",
        values=[str(number) for number in range(axis.size - special)],
        other=OTHER if special > 1 else None,
        missing="category" if special else "refuse",
    )


def _write(described: Column, positions: NDArray[np.intp]) -> pa.Array:
    """Write leaf codes as the values that lead to them: the last one is null if it is special."""
    labels = described.axis().leaf_labels
    is_missing = None
    if described.missing == "category":
        is_missing = positions == len(labels) - 1
    codes = pa.array(positions.astype(np.int32), mask=is_missing)
    return pa.DictionaryArray.from_arrays(codes, pa.array(labels))

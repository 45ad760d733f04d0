"""One snapshot of a stream: its bins, its bounded rows, and all that a step draws from it.

The bins are public and the same for all steps.  Nothing is read before it is needed, so a step
that repeats the last estimate touches no row at all.  A stream draws noise through `StepRun`
and nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.aggregates.counts import Counts
from dpublish.core.axis_rows import label_columns
from dpublish.core.beside_labels import with_bins
from dpublish.core.method import Method
from dpublish.core.noisy_size import RESERVED as RESERVED_BY_HISTOGRAMS
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.column import Column
from dpublish.data.schema import Schema, column, parse_columns
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

MAX_BINS = 2_000_000
RESERVED = RESERVED_BY_HISTOGRAMS | {"estimate", "time"}
"""Column names that the published tables use themselves."""
OTHER = "other"


@dataclass(frozen=True)
class Bins:
    """The cells of `axes`, numbered in row-major order: the last axis counts fastest.

    >>> age = column("age", "integer", bounds=[0, 99], bins=10)
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> bins = Bins.of(Schema((age, sex), unit="person"), ("age", "sex"))
    >>> bins.shape, bins.size, bins.names
    ((10, 2), 20, ('age', 'sex'))
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise InvalidParameter("columns must name at least one column")
        taken = sorted(RESERVED.intersection(self.names))
        if taken:
            raise InvalidParameter(
                f"column {taken[0]!r} is called as one that a stream publishes itself; rename it"
            )
        if self.size > MAX_BINS:
            raise InvalidParameter(
                f"{self.size:,} bins are too many to publish at every step (at most "
                f"{MAX_BINS:,}); take fewer columns, or coarsen them with name@level"
            )

    @classmethod
    def of(cls, schema: Schema, columns: str | Iterable[str]) -> Self:
        """Find the bins of some columns, each with an optional level (`age@2`)."""
        chosen = parse_columns(columns, schema)
        if schema.unit in {name for name, _ in chosen}:
            raise InvalidParameter(
                f"column {schema.unit!r} identifies units, and is nothing to count by"
            )
        return cls(tuple(schema[name].axis(level) for name, level in chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(axis.column for axis in self.axes)

    @property
    def columns(self) -> tuple[tuple[str, int], ...]:
        """The columns and their levels, as kernels want them."""
        return tuple((axis.column, axis.level) for axis in self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of bins along each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def size(self) -> int:
        """Number of bins."""
        return prod(self.shape)

    def cells(self) -> pa.Table:
        """List the bins in order: the label of each along each axis, and its ends."""
        positions = np.unravel_index(np.arange(self.size), self.shape)
        return with_bins(pa.table(label_columns(self.axes, positions)), self.axes, positions)


@dataclass(frozen=True)
class Snapshot:
    """A snapshot in which every person has at most as many rows as the stream allows."""

    bins: Bins
    _count: Callable[[], IntArray]

    @classmethod
    def of(cls, table: Table, bins: Bins, contribution: int, key: bytes) -> "Snapshot":
        """Take a table of rows; the schema's unit, if it has one, says who owns a row."""
        if table.schema.unit is None:  # the owner vouches for the bound: nothing to enforce
            return cls(bins, lambda: exact_counts(table, bins))
        return cls(bins, lambda: exact_counts(bounded(table, contribution, key, bins.names), bins))

    @classmethod
    def of_counts(cls, counts: IntArray, bins: Bins) -> "Snapshot":
        """Take counts that were made elsewhere, one for each bin."""
        if counts.dtype != np.int64 or counts.shape != (bins.size,):
            raise InvalidParameter(f"counts must be {bins.size:,} integers (int64), one a bin")
        return cls(bins, lambda: counts)

    @cached_property
    def counts(self) -> IntArray:
        """The exact count of every bin; private."""
        return self._count()

    @cached_property
    def rows(self) -> Table:
        """A row for every counted record, with its bin and nothing else; private."""
        return rows_of(self.counts, self.bins)


@dataclass(frozen=True)
class StepRun:
    """One step at work: its snapshot, the contribution bound and the randomness behind verbs.

    Adding or removing a person adds or removes at most `contribution` rows, each in one bin.  So
    the counts, any sums of counts over disjoint groups of bins, and the distance of the counts
    from a public estimate move by at most `contribution` in all.
    """

    snapshot: Snapshot
    contribution: int
    rng: RandomSource

    @property
    def bins(self) -> Bins:
        """The bins of the stream."""
        return self.snapshot.bins

    @property
    def counts(self) -> IntArray:
        """The exact count of every bin; private."""
        return self.snapshot.counts

    def add_noise(self, sums: IntArray, *, budget: Budget) -> IntArray:
        """Add geometric noise to counts, or to their sums over disjoint groups of bins.

        Privacy:
            `budget.epsilon`-differentially private when up to `contribution` rows are added or
            removed: they move the sums by at most that in all (`add_geometric`).
        """
        return add_geometric(sums, sensitivity=self.contribution, budget=budget, rng=self.rng)

    def is_far(self, distance: int, threshold: int, *, budget: Budget) -> bool:
        """Compare a distance, with noise of its own, with a public threshold.

        Privacy:
            `budget.epsilon`-differentially private when up to `contribution` rows are added or
            removed: the distance moves by at most that (`add_geometric`).
        """
        noisy = self.add_noise(np.array(distance, dtype=np.int64), budget=budget)
        return int(noisy) >= threshold

    def draw_vector(self, positives: int, *, budget: Budget) -> StoredVector:
        """Draw the noisy threshold of a run of comparisons that ends after `positives`.

        Privacy:
            All outcomes of the run are `budget.epsilon`-differentially private, for distances
            that move by at most `contribution` (`StoredVector.draw`).
        """
        return StoredVector.draw(
            sensitivity=self.contribution, max_positives=positives, budget=budget, rng=self.rng
        )

    def compare(
        self, vector: StoredVector, distance: int, threshold: int
    ) -> tuple[bool, StoredVector]:
        """Compare a distance within a run; return the outcome and the vector to go on with."""
        return vector.above(distance, threshold, self.rng)

    def release(self, method: Method[Any], *, budget: Budget) -> Release:
        """Publish by a method that hides one row of the snapshot.

        Privacy:
            That of the method: `budget.epsilon` for one row.
        """
        released: Release = method.release_part(self.snapshot.rows, budget=budget, rng=self.rng)
        return released


def bounded(
    table: Table, contribution: int, key: bytes, columns: Sequence[str] | None = None
) -> Table:
    """Keep at most `contribution` rows of each unit, with the given columns only.

    Rows that a missing rule of one of the columns leaves out go first.  Which of a unit's
    other rows stay is settled by the key and by that unit's rows alone: adding or removing
    a unit adds or removes at most `contribution` rows, all of them its own, whatever the key
    is (proof: docs/proofs/contribution_bound.md).  So hiding single rows of the result at
    epsilon / contribution hides a unit at epsilon.  With one key for the whole stream, a
    unit whose rows do not change keeps the same ones at every step.
    """
    return table.bound(contribution, key, columns)


def exact_counts(table: Table, bins: Bins) -> IntArray:
    """Count the rows in each bin: exact, and therefore private."""
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter("a unit may have any number of rows here; bound them first")
    return table.sum(Counts(table.schema, (bins.columns,)))


def rows_of(counts: IntArray, bins: Bins) -> Table:
    """Write counts out as rows of a table whose values are the bins.

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
    """Describe a table in which every bin is a value of each of its columns, in the same order."""
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
    """Write codes as the values that they stand for: the last one is null if it is special."""
    labels = described.axis().leaf_labels
    is_missing = None
    if described.missing == "category":
        is_missing = positions == len(labels) - 1
    codes = pa.array(positions.astype(np.int32), mask=is_missing)
    return pa.DictionaryArray.from_arrays(codes, pa.array(labels))

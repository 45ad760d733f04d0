"""What correlations add up over records: products of scores, counts of groups and pairs."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from dpublish.aggregates.cells import cell_keys
from dpublish.aggregates.counts import MAX_CELLS
from dpublish.aggregates.kernel import Kernel, unbounded
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

LARGEST_SCORE = 1 << 18
MOST_CELLS = 1 << 24
"""Most numbers that the answer of one kernel holds."""
_PART = 1 << 13  # records multiplied at once: they stay in the cache, and sums below 2**53


class SumKernel(Kernel[IntArray]):
    """A kernel over single records, whose answer is an array of integers that add up."""

    remedy: ClassVar[str] = "multiply scores of single records"

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer."""

    def zero(self) -> IntArray:
        """Return the answer for no records."""
        return np.zeros(self.shape, dtype=np.int64)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return the most by which all numbers together can change, in sum (L1)."""
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, self.remedy)
        return self.record_change


# --- Products of scores ---------------------------------------------------------------------------


class ProductKernel(SumKernel):
    """A kernel that adds up the products of the scores of every two columns."""

    columns: tuple[str, ...]
    scores: tuple[IntArray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """A row and a column for each column."""
        return len(self.columns), len(self.columns)

    @abstractmethod
    def look_up(self, batch: Batch, tables: Sequence[FloatArray]) -> FloatArray:
        """Look up the scores of the records: a row for each column."""

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [table.astype(np.float64) for table in self.scores]
        for part in batch.cut(_PART):
            rows = self.look_up(part, tables)
            out += (rows @ rows.T).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ScoreProducts(ProductKernel):
    """Kernel: give every value an integer score and add up the products of every two columns.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns that have scores.
        scores: For each of them, a score for every code, the special ones included.
        complete: Further columns that a record must have, or it is not counted.

    The answer is the symmetric matrix of all sums of products.  They are exact: products of
    floats stand for integers below 2**53.

    >>> from dpublish.data.schema import column
    >>> schema = Schema(tuple(column(name, "category", values=["a", "b"]) for name in "xy"))
    >>> kernel = ScoreProducts(schema, ("x", "y"), (np.array([-1, 1]), np.array([-2, 2])))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, codes={"x": np.array([0, 1, 1]), "y": np.array([0, 1, 0])}), answer)
    >>> answer.tolist()
    [[3, 2], [2, 12]]
    """

    schema: Schema
    columns: tuple[str, ...]
    scores: tuple[IntArray, ...]
    complete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_scores(self.schema, self.columns, self.scores, LARGEST_SCORE)

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.columns, *self.complete)))

    def look_up(self, batch: Batch, tables: Sequence[FloatArray]) -> FloatArray:
        """Look up the scores of the records: a row for each column."""
        return look_up_scores(batch, self.columns, tables)

    @property
    def record_change(self) -> int:
        """The most by which one record changes the products of all pairs, in sum.

        A record adds the product of its two scores to each pair.  Its values are free in
        every column, so the sum is largest where every score is the farthest from 0.
        """
        farthest = [int(np.abs(table).max(initial=0)) for table in self.scores]
        return sum(one * other for one, other in combinations(farthest, 2))


def require_scores(
    schema: Schema, columns: Sequence[str], scores: Sequence[IntArray], largest: int
) -> None:
    """Refuse scores that are not integers, too large, or not one for every value of a column."""
    if len(scores) != len(columns):
        raise InvalidParameter("there must be a list of scores for each column")
    for name, table in zip(columns, scores, strict=True):
        if table.dtype.kind not in "iu" or table.shape != (schema[name].size,):
            raise InvalidParameter(f"column {name!r} needs an integer score for each of its values")
        if int(np.abs(table).max(initial=0)) > largest:
            raise InvalidParameter(f"scores of column {name!r} must be at most {largest:,}")


def look_up_scores(
    batch: Batch, columns: Sequence[str], tables: Sequence[FloatArray]
) -> FloatArray:
    """Look up the score of each record: a row for each column."""
    rows = np.empty((len(columns), len(batch)))
    for row, name, table in zip(rows, columns, tables, strict=True):
        np.take(table, batch.codes(name), out=row)
    return rows


# --- Groups of cells ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grouping:
    """A group for every cell of some columns; fixed before any record is read.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns whose values make the cells, the last counting fastest.
        groups_of_cells: The group of each cell: 0, 1, ..., all of them used.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> grouping = Grouping(schema, ("sex",), np.array([1, 0]))
    >>> grouping.of(Batch(3, codes={"sex": np.array([0, 0, 1])}))
    array([1, 1, 0])
    """

    schema: Schema
    columns: tuple[str, ...]
    groups_of_cells: IntArray

    def __post_init__(self) -> None:
        cells = int(np.prod(self.shape, dtype=np.int64))
        if self.groups_of_cells.shape != (cells,) or self.groups_of_cells.min(initial=0) < 0:
            raise InvalidParameter(f"a grouping needs a group for each of its {cells:,} cells")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each column."""
        return tuple(self.schema[name].size for name in self.columns)

    @cached_property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.groups_of_cells.max()) + 1

    def of(self, batch: Batch) -> IntArray:
        """Find the group of each record from its own codes and nothing else."""
        codes = [batch.codes(name) for name in self.columns]
        return self.groups_of_cells.take(cell_keys(codes, self.shape, len(batch)))


@dataclass(frozen=True, eq=False)
class GroupMarginals(SumKernel):
    """Kernel: count the records of every group by every value of each of `columns`.

    Only records that have all columns, also those of the grouping, are counted.
    """

    remedy: ClassVar[str] = "count single records"

    grouping: Grouping
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or self.shape[0] > MAX_CELLS:
            raise InvalidParameter(
                f"marginals of groups need at least one column and at most {MAX_CELLS:,} counts; "
                "take fewer columns or coarser bins"
            )

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.grouping.columns, *self.columns)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each column."""
        return tuple(self.grouping.schema[name].size for name in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of all counts."""
        return (self.grouping.groups * sum(self.sizes),)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        groups = self.grouping.of(batch)
        for name, counts in zip(self.columns, self.split(out), strict=True):
            np.add.at(counts, (groups, batch.codes(name)), 1)

    def split(self, answer: IntArray) -> list[IntArray]:
        """Return an answer as one array per column: a row for each group, a count per value."""
        groups = self.grouping.groups
        cuts = np.cumsum(self.sizes)[:-1] * groups
        parts = zip(np.split(answer, cuts), self.sizes, strict=True)
        return [part.reshape(groups, size) for part, size in parts]

    @property
    def record_change(self) -> int:
        """A record lies in one group, and there in one value of each column."""
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class GroupScoreProducts(ProductKernel):
    """Kernel: score each record's values as its own group does, and add up the products.

    Attributes:
        grouping: The group of each record, by its own codes.
        columns: Columns that have scores.
        scores: For each of them a row of integer scores for each group, one for every code,
            the special ones included.

    The answer is the symmetric matrix of all sums of products, over the records of all groups
    together.  They are exact: products of floats stand for integers below 2**53.
    """

    grouping: Grouping
    columns: tuple[str, ...]
    scores: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.columns):
            raise InvalidParameter("there must be scores for each column")
        for name, table in zip(self.columns, self.scores, strict=True):
            shape = (self.grouping.groups, self.grouping.schema[name].size)
            if table.dtype.kind not in "iu" or table.shape != shape:
                raise InvalidParameter(
                    f"column {name!r} needs an integer score for each value of each group"
                )
            if int(np.abs(table).max(initial=0)) > LARGEST_SCORE:
                raise InvalidParameter(f"scores of {name!r} must be at most {LARGEST_SCORE:,}")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.grouping.columns, *self.columns)))

    def look_up(self, batch: Batch, tables: Sequence[FloatArray]) -> FloatArray:
        """Look up the scores of the records, each by its own group: a row for each column."""
        groups = self.grouping.of(batch)
        rows = np.empty((len(self.columns), len(batch)))
        for row, name, table in zip(rows, self.columns, tables, strict=True):
            row[:] = table[groups, batch.codes(name)]
        return rows

    @property
    def record_change(self) -> int:
        """The most by which one record changes the products of all pairs, in sum.

        A record adds to each pair the product of two scores of its own group.  Within a group
        its values are free, so the sum is largest where every score is the farthest from 0;
        and the record may be in any group.
        """
        return max(self.change_in(group) for group in range(self.grouping.groups))

    def change_in(self, group: int) -> int:
        """The most by which one record of a group changes the products of all pairs, in sum."""
        farthest = [int(np.abs(table[group]).max(initial=0)) for table in self.scores]
        # Twice the sum over pairs is the square of the sum without the squares.
        return (sum(farthest) ** 2 - sum(score**2 for score in farthest)) // 2


@dataclass(frozen=True, eq=False)
class EachGroupProducts(GroupScoreProducts):
    """Kernel: add up the products of scores in each group by itself.

    The answer is a symmetric matrix for each group.  A record changes that of its own group
    alone, by at most `change_in` that group.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """A matrix for each group."""
        return self.grouping.groups, len(self.columns), len(self.columns)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [table.astype(np.float64) for table in self.scores]
        for part in batch.cut(_PART):
            groups, rows = self.grouping.of(part), self.look_up(part, tables)
            for group in np.unique(groups):
                own = rows[:, groups == group]
                out[group] += (own @ own.T).astype(np.int64)


# --- Pairs of columns, for Kendall's tau ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairTables(SumKernel):
    """Kernel: count records by the classes of every two columns.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns, at least two.
        classes: For each of them, the class of every code; -1 where a code is not part of the
            order (a missing value, for example).
        complete: Further columns that a record must have, or it is not counted.

    The answer is [pair, class of the earlier column, class of the later one].  The last class
    holds the records outside the order, so every table counts all records.
    """

    remedy: ClassVar[str] = "compare single records"

    schema: Schema
    columns: tuple[str, ...]
    classes: tuple[IntArray, ...]
    complete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.columns) < 2 or len(self.classes) != len(self.columns):
            raise InvalidParameter("there must be two columns or more, each with its classes")
        for name, table in zip(self.columns, self.classes, strict=True):
            if table.dtype.kind not in "iu" or table.shape != (self.schema[name].size,):
                raise InvalidParameter(f"column {name!r} needs a class for each of its values")
        if comb(len(self.columns), 2) * self.size**2 > MOST_CELLS:
            raise InvalidParameter("there are too many columns to compare every two of them")

    @cached_property
    def size(self) -> int:
        """Number of classes along each side of a table, the one outside the order included."""
        return 2 + max(int(table.max(initial=-1)) for table in self.classes)

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.columns, *self.complete)))

    @property
    def shape(self) -> tuple[int, ...]:
        """A square table for each pair of columns."""
        return comb(len(self.columns), 2), self.size, self.size

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [np.where(x < 0, self.size - 1, x).astype(np.int32) for x in self.classes]
        for part in batch.cut():
            classes = [
                table.take(part.codes(name))
                for name, table in zip(self.columns, tables, strict=True)
            ]
            for number, (first, second) in enumerate(combinations(classes, 2)):
                counted = np.bincount(first * self.size + second, minlength=self.size**2)
                out[number] += counted.reshape(self.size, self.size)

    @property
    def record_change(self) -> int:
        """A record lies in one cell of the table of every pair."""
        return comb(len(self.columns), 2)

"""How scores of columns go together: their products, added up over records, in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpublish.aggregates.cells import unbounded
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

LARGEST_SCORE = 1 << 18
_PART = 1 << 13  # records multiplied at once: they stay in the cache, and sums below 2**53


@dataclass(frozen=True, eq=False)
class ScoreProducts:
    """Kernel: give every leaf a whole score and add up the products of every two columns.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns that have scores.
        scores: For each of them, a score for every leaf code, the special ones included.
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

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    def zero(self) -> IntArray:
        """Make the answer for no records."""
        return np.zeros((len(self.columns), len(self.columns)), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [table.astype(np.float64) for table in self.scores]
        for part in batch.cut(_PART):
            rows = look_up_scores(part, self.columns, tables)
            out += (rows @ rows.T).astype(np.int64)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Say how much the products of all pairs change at most, in sum (L1).

        A record adds the product of its two scores to each pair.  Its leaves are free in
        every column, so the sum is largest where every score is the farthest from 0.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "multiply scores of single records")
        farthest = [int(np.abs(table).max(initial=0)) for table in self.scores]
        return sum(one * other for one, other in combinations(farthest, 2))


def require_scores(
    schema: Schema, columns: Sequence[str], scores: Sequence[IntArray], largest: int
) -> None:
    """Refuse scores that are not whole, too large, or not one for every leaf of a column."""
    if len(scores) != len(columns):
        raise InvalidParameter("there must be a list of scores for each column")
    for name, table in zip(columns, scores, strict=True):
        if table.dtype.kind not in "iu" or table.shape != (schema[name].size,):
            raise InvalidParameter(f"column {name!r} needs a whole score for each of its leaves")
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

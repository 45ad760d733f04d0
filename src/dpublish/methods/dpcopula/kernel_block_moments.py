"""Correlations within random blocks of records: moments of all blocks in one pass.

A table could be split into blocks, but thousands of small tables take a thousand times
longer to sum up one by one than one table does.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from dpublish.data.draws import draw_blocks
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.dpcopula.kernel_score_products import look_up_scores, require_scores
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

MOST_CELLS = 1 << 24
LARGEST_SCORE = 1 << 13
LARGEST_BLOCK = 1 << 16
"""Records up to which a block's moments multiply without leaving 64 bits."""
CORRELATION_EXPONENT = -20
"""Correlations of blocks are whole multiples of two to this power."""


@dataclass(frozen=True, eq=False)
class BlockMoments:
    """Kernel: deal the records into blocks at random and add up the scores' moments in each.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns that have scores.
        scores: For each of them, a score for every leaf code, the special ones included.
        blocks: Number of blocks.
        rng: Source of the block numbers.
        complete: Further columns that a record must have, or it is not counted.

    Every record draws its block when it is added, independently of all else.  The source hands
    out one stream of words, so the cut of the records into batches does not matter.  The
    answer has a column for each block: the number of records, the sum of each score, and the
    sums of products of the pairs (0, 0), (0, 1), ....
    """

    schema: Schema
    columns: tuple[str, ...]
    scores: tuple[IntArray, ...]
    blocks: int
    rng: RandomSource
    complete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_count(blocks=self.blocks)
        require_scores(self.schema, self.columns, self.scores, LARGEST_SCORE)
        if self.blocks > most_blocks(len(self.columns)):
            raise InvalidParameter(f"{self.blocks:,} blocks of so many columns are too many")

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
        return np.zeros((_moments(len(self.columns)), self.blocks), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [table.astype(np.float64) for table in self.scores]
        first, second = np.triu_indices(len(tables))
        for part in batch.cut():
            blocks = draw_blocks(self.blocks, len(part), self.rng)
            rows = look_up_scores(part, self.columns, tables)
            out[0] += np.bincount(blocks, minlength=self.blocks)
            terms = [*rows, *(rows[i] * rows[j] for i, j in zip(first, second, strict=True))]
            for moment, term in zip(out[1:], terms, strict=True):
                # Integers below 2**53: floats add them up exactly.
                moment += np.bincount(blocks, term, self.blocks).astype(np.int64)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other


def most_blocks(columns: int) -> int:
    """Say into how many blocks records may be dealt; memory sets the limit."""
    return MOST_CELLS // _moments(columns)


def sum_of_correlations(moments: IntArray, columns: int, fewest: int) -> IntArray:
    """Add up, over blocks, the correlation of every two columns, in whole units.

    A block with fewer than `fewest` records or with more than `LARGEST_BLOCK` counts as
    uncorrelated, and so does a column that does not vary in a block with all others there.
    So every block adds a correlation matrix, rounded to multiples of two to the power
    `CORRELATION_EXPONENT`.
    """
    diagonal, first, second = _places(columns)
    usable = (moments[0] >= fewest) & (moments[0] <= LARGEST_BLOCK)
    counts, sums, products = (
        moments[0, usable],
        moments[1 : columns + 1, usable],
        moments[:, usable],
    )
    products = products[columns + 1 :]
    # Integers below 2**62, so exact.
    variances = counts * products[diagonal] - sums**2
    deviations = np.sqrt(variances.astype(np.float64))
    total = np.zeros(comb(columns, 2), dtype=np.int64)
    pairs = [place for place in range(len(first)) if first[place] != second[place]]
    for number, place in enumerate(pairs):
        one, other = first[place], second[place]
        covariance = (counts * products[place] - sums[one] * sums[other]).astype(np.float64)
        scale = deviations[one] * deviations[other]
        correlation = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
        total[number] = np.rint(np.ldexp(correlation, -CORRELATION_EXPONENT)).sum()
    return total


def correlation_sensitivity(columns: int) -> int:
    """Bound how much `sum_of_correlations` changes (L1) if one block changes in any way.

    Correlation matrices are at most columns^2 / 2 apart, summed over pairs; rounding adds
    less than two units to each pair (docs/proofs/correlation.md).
    """
    unit = 1 << -CORRELATION_EXPONENT
    return columns**2 * unit // 2 + 2 * comb(columns, 2)


def _moments(columns: int) -> int:
    return 1 + columns + comb(columns + 1, 2)


def _places(columns: int) -> tuple[IntArray, IntArray, IntArray]:
    """Say where squares lie among the products, and which two columns each product is of."""
    first, second = np.triu_indices(columns)
    return np.flatnonzero(first == second), first, second

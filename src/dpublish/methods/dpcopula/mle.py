"""DPCopula-MLE: noisy sums of the correlations within random blocks (sample and aggregate)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from dpublish.core.method import Run
from dpublish.core.noisy_size import NoisySize
from dpublish.data.draws import draw_blocks
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.dpcopula.column_marginals import (
    complete_columns,
    fewest_records,
    require_correlated,
    value_distributions,
)
from dpublish.methods.dpcopula.correlation import NoisyCorrelation, normal_scores
from dpublish.methods.dpcopula.kernels import MOST_CELLS, SumKernel, look_up_scores, require_scores
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

LARGEST_SCORE = 1 << 13
LARGEST_BLOCK = 1 << 16
"""Records up to which a block's moments multiply without leaving 64 bits."""
CORRELATION_EXPONENT = -20
"""Correlations of blocks are integer multiples of two to this power."""


def release_mle(
    run: Run,
    columns: Sequence[str],
    marginals: Mapping[str, NoisyMarginal],
    size: NoisySize,
    *,
    budget: Budget,
    blocks: int | None = None,
) -> NoisyCorrelation:
    """Publish the sum over blocks of the correlations of every two columns' normal scores.

    `columns`, `marginals` and `size` are those of `release_spearman`.  The number of `blocks`
    is chosen from the noisy size unless given.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Scores
        are functions of what was released before.  Every record draws its block
        independently, so fix the draws of the others: the one record changes one block.
        Whatever is in a block, it adds a correlation matrix, and two such matrices of m
        columns are at most m^2 / 2 apart in L1 over pairs; rounding to integer units is added
        to the sensitivity.  The sum gets noise for that.  Proof: docs/proofs/correlation.md.
    """
    require_correlated(run, columns)
    share = budget.split(blocks=1)["blocks"]  # opened before any row is read
    found = value_distributions(run.schema, columns, marginals)
    fewest = fewest_records(size, len(columns))
    if blocks is None:
        blocks = count_blocks(len(columns), size.value, fewest)
    kernel = BlockMoments(
        run.schema,
        tuple(columns),
        tuple(x.pad(normal_scores(x.listed_probabilities, fewest), 0) for x in found),
        blocks,
        run.rng,
        complete_columns(columns, marginals),
    )
    total = sum_of_correlations(run.sum(kernel), len(columns), len(columns) + 1)
    run.step(1, 1, "correlations")
    sensitivity = correlation_sensitivity(len(columns))
    return NoisyCorrelation(
        method="mle",
        columns=tuple(columns),
        units=run.add_noise(total, sensitivity=sensitivity, budget=share),
        exponent=CORRELATION_EXPONENT,
        rate=share.epsilon / sensitivity,
        settings={"blocks": blocks, "fewest_records": fewest, "kept": [x.kept for x in found]},
    )


def count_blocks(columns: int, records: int, fewest: int) -> int:
    """Choose how many blocks there are, from noisy numbers of records.

    Many blocks mean little noise.  Two records per column and a few more in each are enough
    to find correlations, and no block should be too large to be used.

    >>> count_blocks(8, 50_000, 49_000), count_blocks(2, -3, 2)
    (2041, 1)
    """
    wanted = max(fewest // (2 * columns + 8), records * 4 // LARGEST_BLOCK)
    return max(1, min(wanted, most_blocks(columns)))


def sum_of_correlations(moments: IntArray, columns: int, fewest: int) -> IntArray:
    """Add up, over blocks, the correlation of every two columns, in integer units.

    `moments` is an answer of `BlockMoments`.  A block with fewer than `fewest` records or with
    more than `LARGEST_BLOCK` counts as uncorrelated, and so does a column that does not vary in
    a block with all others there.  So every block adds a correlation matrix, rounded to
    multiples of two to the power `CORRELATION_EXPONENT`.
    """
    first, second = np.triu_indices(columns)
    usable = (moments[0] >= fewest) & (moments[0] <= LARGEST_BLOCK)
    counts, sums = moments[0, usable], moments[1 : columns + 1, usable]
    products = moments[columns + 1 :, usable]
    # Integers below 2**62, so exact.
    variances = counts * products[first == second] - sums**2
    deviations = np.sqrt(variances.astype(np.float64))
    total = np.zeros(comb(columns, 2), dtype=np.int64)
    for pair, index in enumerate(np.flatnonzero(first != second)):
        one, other = first[index], second[index]
        covariance = (counts * products[index] - sums[one] * sums[other]).astype(np.float64)
        scale = deviations[one] * deviations[other]
        correlation = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
        total[pair] = np.rint(np.ldexp(correlation, -CORRELATION_EXPONENT)).sum()
    return total


def correlation_sensitivity(columns: int) -> int:
    """Bound how much `sum_of_correlations` changes (L1) if one block changes in any way.

    Correlation matrices are at most columns^2 / 2 apart, summed over pairs; rounding adds
    less than two units to each pair (docs/proofs/correlation.md).
    """
    unit = 1 << -CORRELATION_EXPONENT
    return columns**2 * unit // 2 + 2 * comb(columns, 2)


# --- Blocks ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockMoments(SumKernel):
    """Kernel: deal the records into blocks at random and add up the scores' moments in each.

    One pass over one table: thousands of small tables would take a thousand times longer.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns that have scores.
        scores: For each of them, a score for every code, the special ones included.
        blocks: Number of blocks.
        rng: Source of the block numbers.
        complete: Further columns that a record must have, or it is not counted.

    Every record draws its block when it is added, independently of all else.  The source
    yields one stream of words, so the cut of the records into batches does not matter.  The
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
    def shape(self) -> tuple[int, ...]:
        """A row for each moment, a column for each block."""
        return _moments(len(self.columns)), self.blocks

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

    @property
    def record_change(self) -> int:
        """The most by which one record changes the moments of its block, in sum."""
        farthest = [int(np.abs(table).max(initial=0)) for table in self.scores]
        products = combinations_with_replacement(farthest, 2)
        return 1 + sum(farthest) + sum(one * other for one, other in products)


def most_blocks(columns: int) -> int:
    """Return the most blocks into which records may be dealt; memory sets the limit."""
    return MOST_CELLS // _moments(columns)


def _moments(columns: int) -> int:
    return 1 + columns + comb(columns + 1, 2)

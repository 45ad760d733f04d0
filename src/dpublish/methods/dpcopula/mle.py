"""DPCopula-MLE: noisy sums of the correlations within random blocks (sample and aggregate)."""

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from dpublish.core.method import Run
from dpublish.core.noisy_size import NoisySize
from dpublish.methods.dpcopula.column_marginals import (
    complete_columns,
    fewest_records,
    require_correlated,
    value_distributions,
)
from dpublish.methods.dpcopula.correlation import NoisyCorrelation, normal_scores
from dpublish.methods.dpcopula.kernels import BlockMoments, most_blocks
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

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

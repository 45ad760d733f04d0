"""Publish the mean of correlations that were found in random blocks of records.

Known as: DPCopula-MLE, by sample and aggregate.
Reference: H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of
Multi-Dimensional Data using Copula Functions", EDBT 2014, repaired.
"""

from collections.abc import Mapping, Sequence

from dpublish.core.method import Progress
from dpublish.core.noisy_size import NoisySize
from dpublish.data.table import Table
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.dpcopula.kernel_block_moments import (
    CORRELATION_EXPONENT,
    LARGEST_BLOCK,
    BlockMoments,
    correlation_sensitivity,
    most_blocks,
    sum_of_correlations,
)
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation, normal_scores
from dpublish.methods.dpcopula.ordinary_leaves import (
    complete_columns,
    fewest_records,
    ordinary_leaves,
    require_correlated,
)
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource


def release_mle(
    table: Table,
    columns: Sequence[str],
    marginals: Mapping[str, NoisyMarginal],
    size: NoisySize,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
    blocks: int | None = None,
) -> NoisyCorrelation:
    """Publish the sum over blocks of the correlations of every two columns' normal scores.

    Args:
        table: Private rows.
        columns: Columns with an order, at least two.
        marginals: Released marginals; a record without a value in one of them is left out.
        size: Noisy number of records.
        budget: Budget to empty.
        rng: Source of the noise and of the blocks.
        progress: Told when the blocks are done.
        blocks: Number of blocks; chosen from the noisy size unless given.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Scores
        are functions of what was released before.  Every record draws its block
        independently, so fix the draws of the others: the one record changes one block.
        Whatever is in a block, it adds a correlation matrix, and two such matrices of m
        columns are at most m^2 / 2 apart in L1 over pairs; rounding to whole units is added
        to the sensitivity.  The sum gets noise for that.  Proof: docs/proofs/correlation.md.
    """
    require_correlated(table, columns)
    share = budget.split(blocks=1)["blocks"]  # opened before any row is read
    leaves = ordinary_leaves(table.schema, columns, marginals)
    fewest = fewest_records(size, len(columns))
    if blocks is None:
        blocks = count_blocks(len(columns), size.value, fewest)
    kernel = BlockMoments(
        table.schema,
        tuple(columns),
        tuple(x.pad(normal_scores(x.probabilities, fewest), 0) for x in leaves),
        blocks,
        rng,
        complete_columns(columns, marginals),
    )
    total = sum_of_correlations(table.sum(kernel), len(columns), len(columns) + 1)
    if progress is not None:
        progress(1, 1, "correlations")
    sensitivity = correlation_sensitivity(len(columns))
    return NoisyCorrelation(
        method="mle",
        columns=tuple(columns),
        units=add_geometric(total, sensitivity=sensitivity, budget=share, rng=rng),
        exponent=CORRELATION_EXPONENT,
        rate=share.epsilon / sensitivity,
        settings={
            "blocks": blocks,
            "fewest_records": fewest,
            "kept": [x.kept for x in leaves],
        },
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

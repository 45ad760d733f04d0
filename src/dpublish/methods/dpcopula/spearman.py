"""Publish how ranks of columns go together: sums of products of scores of released ranks.

Known as: DPCopula-Spearman.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpublish.core.method import Progress
from dpublish.core.noisy_size import NoisySize
from dpublish.data.table import Table
from dpublish.mechanisms.exact.lattice import lattice_sensitivity
from dpublish.mechanisms.noise import add_laplace
from dpublish.methods.dpcopula.kernel_score_products import ScoreProducts
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.dpcopula.ordinary_leaves import (
    complete_columns,
    ordinary_leaves,
    require_correlated,
)
from dpublish.methods.dpcopula.score_bridge import best_steepness, score_table
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource


def release_spearman(
    table: Table,
    columns: Sequence[str],
    marginals: Mapping[str, NoisyMarginal],
    size: NoisySize,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
    steepness: float | None = None,
    complete: Sequence[str] = (),
) -> NoisyCorrelation:
    """Publish the sum over records of the product of every two columns' scores.

    Args:
        table: Private rows.
        columns: Columns with an order, at least two.
        marginals: Released marginals; a record without a value in one of them is left out.
        size: Noisy number of records.
        budget: Budget to empty.
        rng: Source of the noise.
        progress: Told when the sums are done.
        steepness: Steepness of the scores; chosen from the noisy size unless given.
        complete: Further columns that a record must have to be counted.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        scores are functions of what was released before, so a record adds a vector of
        products that depends on it alone, of L1 norm at most the sum over pairs of the
        largest scores' products, which is computed from the very scores in use.  The number
        of records does not enter.  All else is post-processing.
    """
    require_correlated(table, columns)
    share = budget.split(products=1)["products"]  # opened before any row is read
    leaves = ordinary_leaves(table.schema, columns, marginals)
    if steepness is None:
        steepness = best_steepness(float(size.value), float(budget.epsilon), len(columns))
    scores = tuple(x.pad(score_table(x.probabilities, steepness), 0) for x in leaves)
    needed = tuple(dict.fromkeys((*complete_columns(columns, marginals), *complete)))
    kernel = ScoreProducts(table.schema, tuple(columns), scores, needed)
    # All scores may be 0, if marginals are concentrated on one leaf.
    sensitivity = Fraction(max(kernel.sensitivity(table.neighbors), 1))
    exact = table.sum(kernel)[np.triu_indices(len(columns), 1)]
    noisy = add_laplace(exact, sensitivity=sensitivity, budget=share, rng=rng)
    if progress is not None:
        progress(1, 1, "correlations")
    units = lattice_sensitivity(sensitivity, noisy.exponent, exact.size)
    return NoisyCorrelation(
        method="spearman",
        columns=tuple(columns),
        units=noisy.units,
        exponent=noisy.exponent,
        rate=share.epsilon / units,
        settings={"steepness": str(steepness), "kept": [x.kept for x in leaves]},
    )

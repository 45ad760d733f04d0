"""DPCopula-Spearman: noisy sums of products of rank scores, one for every two columns."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpublish.core.method import Run
from dpublish.core.noisy_size import NoisySize
from dpublish.mechanisms.exact.lattice import lattice_sensitivity
from dpublish.methods.dpcopula.column_marginals import (
    complete_columns,
    require_correlated,
    value_distributions,
)
from dpublish.methods.dpcopula.correlation import NoisyCorrelation
from dpublish.methods.dpcopula.kernels import GroupScoreProducts, ScoreProducts
from dpublish.methods.dpcopula.latent_correlation import best_steepness, score_table
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray


def release_spearman(
    run: Run,
    columns: Sequence[str],
    marginals: Mapping[str, NoisyMarginal],
    size: NoisySize,
    *,
    budget: Budget,
    steepness: float | None = None,
    complete: Sequence[str] = (),
) -> NoisyCorrelation:
    """Publish the sum over records of the product of every two columns' scores.

    `columns` have an order and are at least two.  `marginals` and `size` were released before;
    a record without a value in one of the marginals is left out, and so is one without a value
    in `complete`.  The `steepness` of the scores is chosen from the noisy size unless given.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        scores are functions of what was released before, so a record adds a vector of
        products that depends on it alone, of L1 norm at most the sum over pairs of the
        largest scores' products, which is computed from the very scores in use.  The number
        of records does not enter.  All else is post-processing.
    """
    require_correlated(run, columns)
    share = budget.split(products=1)["products"]  # opened before any row is read
    found = value_distributions(run.schema, columns, marginals)
    if steepness is None:
        steepness = best_steepness(float(size.value), float(budget.epsilon), len(columns))
    scores = tuple(x.pad(score_table(x.listed_probabilities, steepness), 0) for x in found)
    needed = tuple(dict.fromkeys((*complete_columns(columns, marginals), *complete)))
    kernel = ScoreProducts(run.schema, tuple(columns), scores, needed)
    noisy = release_products(run, kernel, steepness, [x.kept for x in found], budget=share)
    run.step(1, 1, "correlations")
    return noisy


def release_products(
    run: Run,
    kernel: ScoreProducts | GroupScoreProducts,
    steepness: float,
    kept: Sequence[float],
    *,
    budget: Budget,
) -> NoisyCorrelation:
    """Publish the products of scores that a kernel adds up.

    `kept` is the part of each column's records that are in its order.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: the
        scores of the kernel were fixed before, so one record changes its sums by at most
        `kernel.sensitivity` in L1.
    """
    # All scores may be 0, if marginals are concentrated on one value.
    sensitivity = Fraction(max(kernel.sensitivity(run.neighbors), 1))
    return noisy_products(
        run,
        kernel.columns,
        run.sum(kernel),
        steepness,
        kept,
        sensitivity=sensitivity,
        budget=budget,
    )


def noisy_products(
    run: Run,
    columns: tuple[str, ...],
    sums: IntArray,
    steepness: float,
    kept: Sequence[float],
    *,
    sensitivity: Fraction,
    budget: Budget,
) -> NoisyCorrelation:
    """Publish a matrix of sums of products of scores.

    Privacy:
        `budget.epsilon`-differentially private if one record moves the sums of all pairs
        together by at most `sensitivity`, which callers argue.
    """
    exact = sums[np.triu_indices(len(columns), 1)]
    noisy = run.add_laplace(exact, sensitivity=sensitivity, budget=budget)
    return NoisyCorrelation(
        method="spearman",
        columns=columns,
        units=noisy.units,
        exponent=noisy.exponent,
        rate=budget.epsilon / lattice_sensitivity(sensitivity, noisy.exponent, exact.size),
        settings={"steepness": str(steepness), "kept": list(kept)},
    )

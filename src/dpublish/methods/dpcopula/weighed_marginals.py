"""Publish the marginals of several columns, with more of the budget for those that need it."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.noisy_size import NoisySize
from dpublish.core.run import Run
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.noise import noisy_size
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import (
    MarginalMethod,
    marginal_half_width,
    release_marginal,
    require_marginal,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import rational_weight
from dpublish.randomness import RandomSource


def marginal_shares(columns: Sequence[Column], method: MarginalMethod) -> dict[str, Fraction]:
    """Say which part of the budget each column's marginal gets; the parts add up to 1.

    A range count's error is its half-width at epsilon 1 over the share.  The sum of squared
    errors is least where shares grow with the half-width to the power 2/3.
    """
    widths = {c.name: marginal_half_width(method, c.size, Fraction(1)) for c in columns}
    weights = {name: rational_weight(width ** (2 / 3)) for name, width in widths.items()}
    total = sum(weights.values(), Fraction(0))
    return {name: weight / total for name, weight in weights.items()}


def require_marginals(
    columns: Sequence[Column], method: MarginalMethod, epsilon: Fraction
) -> float:
    """Refuse marginals that cannot be published; otherwise predict the worst range count (95 %)."""
    worst = 0.0
    shares = marginal_shares(columns, method)
    for column in columns:
        share = epsilon * shares[column.name]
        require_marginal(method, column.size, share)
        worst = max(worst, marginal_half_width(method, column.size, share))
    return worst


def marginal_kernel(
    schema: Schema, columns: Sequence[Column], counted: Sequence[Column]
) -> CompleteCounts:
    """Count the records that have all `columns`, and these by each column of `counted`."""
    sets = ((), *(((column.name, None),) for column in counted))
    return CompleteCounts(schema, sets, tuple(column.name for column in columns))


def count_records(
    table: Table,
    columns: Sequence[Column],
    counted: Sequence[Column],
    *,
    budget: Budget,
    rng: RandomSource,
) -> tuple[NoisySize, dict[str, NDArray[np.int64]]]:
    """Perturb the number of records that have all `columns`; give the exact marginals of some, too.

    Privacy:
        The noisy size is `budget.epsilon`-differentially private when one record is added or
        removed.  The exact marginals are private: callers hand them to mechanisms and keep none.
    """
    kernel = marginal_kernel(table.schema, columns, counted)
    total, *marginals = kernel.split(table.sum(kernel))
    rate = budget.epsilon
    size = NoisySize(noisy_size(int(total), budget=budget, rng=rng), rate)
    return size, {column.name: counts for column, counts in zip(counted, marginals, strict=True)}


def release_marginals(
    counts: Mapping[str, NDArray[np.int64]],
    columns: Sequence[Column],
    *,
    method: MarginalMethod,
    budget: Budget,
    run: Run,
) -> dict[str, NoisyMarginal]:
    """Publish the marginal of every one of `columns` from its exact counts.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a record
        lies in one leaf of every column, each marginal costs its share (`release_marginal`), and
        shares follow from numbers of leaves and add up to the whole.
    """
    shares = marginal_shares(columns, method)
    budgets = budget.split(**{f"marginal of {name}": share for name, share in shares.items()})
    marginals = {}
    for done, (name, portion) in enumerate(zip(shares, budgets.values(), strict=True), start=1):
        marginals[name] = release_marginal(run, counts[name], method=method, budget=portion)
        run.step(done, len(shares), "marginals")
    return marginals

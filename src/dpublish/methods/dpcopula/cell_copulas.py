"""Publish the cells of small columns, and inside groups of cells marginals joined by a copula.

Known as: DPCopula Hybrid, with one correlation matrix for all cells.
Reference: H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of
Multi-Dimensional Data using Copula Functions", EDBT 2014, repaired.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import log
from typing import Any

import numpy as np

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.method import ExpectedError, Progress
from dpublish.core.run import Run
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import require_count
from dpublish.mechanisms.exact.lattice import lattice_sensitivity
from dpublish.mechanisms.noise import add_geometric, add_laplace
from dpublish.methods.dpcopula.cell_groups import CellGroups, groups_of_cells
from dpublish.methods.dpcopula.cell_plan import MOST_GROUPS, USUAL_RECORDS, make_cell_plan
from dpublish.methods.dpcopula.group_correlation import group_scores
from dpublish.methods.dpcopula.kernel_group_marginals import Grouping, GroupMarginals
from dpublish.methods.dpcopula.kernel_group_scores import GroupScoreProducts
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.dpcopula.released_cells import CellCopulasRelease
from dpublish.methods.dpcopula.score_bridge import best_steepness
from dpublish.methods.dpcopula.weighed_marginals import marginal_shares
from dpublish.methods.histogram.domain import require_single_records
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import MarginalMethod, release_marginal
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt, refuse_seeded_grant
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

_REACHES = 10
"""Marginals of fewer records than so many reaches of their noise would be mostly noise."""


def release_cells(
    table: Table,
    *,
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    marginal: MarginalMethod,
    least_records: int,
    method: str,
    settings: Mapping[str, Any],
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> CellCopulasRelease:
    """Publish noisy counts of all cells of `categories` and copulas of `numbers` inside.

    Args:
        table: Private rows.
        numbers: Columns with an order and many values; there may be none.
        categories: Columns whose combinations are the cells, at least one.
        marginal: How marginals are counted.
        least_records: Least noisy count at which a cell gets marginals of its own.
        method: Name of the method, for the receipt.
        settings: Its settings, for the receipt.
        budget: Budget to empty.
        rng: Source of the noise.
        progress: Told what is done.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  All cells
        get two-sided geometric noise, empty ones too: a record lies in one.  Noisy counts
        alone decide which cells are groups.  A record's group follows from its own cell, so
        groups are disjoint, and the marginals of a column cost their share once for all groups;
        columns share by sequential composition.  Scores follow from released marginals and a
        record's own group, so products of scores are sums over records of bounded terms
        (`GroupScoreProducts.sensitivity`, the largest over groups).  Proof:
        docs/proofs/cell_copulas.md.
    """
    refuse_seeded_grant(budget, rng)
    require_single_records(table, method)
    require_count(least_records=least_records)
    plan = make_cell_plan(table.schema, numbers, categories)
    figures = plan.predict(marginal, USUAL_RECORDS, budget.epsilon)
    budgets = budget.split(**plan.shares)
    cells = tuple((column.name, None) for column in plan.categories)
    exact = table.sum(CompleteCounts(table.schema, (cells,), plan.schema.names))
    counts = add_geometric(exact, sensitivity=1, budget=budgets["cells"], rng=rng)
    rate = budgets["cells"].epsilon
    kept = np.empty(0, dtype=np.int64)
    if plan.numbers:
        reach = figures["group_range_count_95"]
        kept = _keep(counts, max(least_records, log(10 * counts.size) / rate, _REACHES * reach))
    _tell(progress, 1, "cells")
    grouping = Grouping(
        table.schema, tuple(name for name, _ in cells), groups_of_cells(kept, plan.cells)
    )
    marginals: tuple[tuple[NoisyMarginal, ...], ...] = ((),)
    if plan.numbers:
        marginals = _release_marginals(
            table, grouping, plan.numbers, method=marginal, budget=budgets["marginals"], rng=rng
        )
    _tell(progress, 2, "marginals")
    groups = CellGroups(
        categories=tuple(column.axis() for column in plan.categories),
        numbers=tuple(column.axis() for column in plan.numbers),
        counts=counts,
        rate=rate,
        kept=kept,
        marginals=marginals,
    )
    correlation = None
    if "correlations" in budgets:
        correlation = _release_correlation(
            table, grouping, groups, budget=budgets["correlations"], rng=rng
        )
    _tell(progress, 3, "correlations")
    return CellCopulasRelease(
        receipt=Receipt.issue(
            method=method, settings=settings, budget=budget, neighbors=table.neighbors, rng=rng
        ),
        schema=plan.schema,
        groups=groups,
        correlation=correlation,
    )


def cells_error(
    schema: Schema,
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    n_records: int | None,
    epsilon: Fraction,
    *,
    marginal: MarginalMethod = "auto",
) -> ExpectedError:
    """Predict the errors of a cell's count, and of a range count inside a group.

    It refuses all that `release_cells` would refuse.
    """
    plan = make_cell_plan(schema, numbers, categories)
    figures = plan.predict(marginal, n_records or USUAL_RECORDS, epsilon)
    if not n_records:
        figures.pop("correlation_95", None)
    summary = f"{plan.cells:,} cells; each count within {figures['one_cell_95']:,.0f} of the truth"
    if "group_range_count_95" in figures:
        reach = figures["group_range_count_95"]
        summary += f", half of a column in a group of cells within {reach:,.0f}"
    if n_records:
        figures["one_cell_95_per_record"] = figures["one_cell_95"] / n_records
    return ExpectedError(f"{summary} (95 %)", figures, target="one_cell_95")


def _keep(counts: IntArray, least: float) -> IntArray:
    """Pick the cells that get marginals of their own, from noisy counts alone."""
    found = np.flatnonzero(counts >= least)
    fullest = np.lexsort((found, -counts[found]))[:MOST_GROUPS]
    return np.sort(found[fullest]).astype(np.int64)


def _release_marginals(
    table: Table,
    grouping: Grouping,
    columns: tuple[Column, ...],
    *,
    method: MarginalMethod,
    budget: Budget,
    rng: RandomSource,
) -> tuple[tuple[NoisyMarginal, ...], ...]:
    """Publish the marginals of `columns` in each group.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        fixed grouping.  Columns share the portion.  Within a column's share every group's
        marginal costs all of it (`release_marginal`), and a record is in one group only.
    """
    shares = marginal_shares(columns, method)
    budgets = budget.split(**{f"marginal of {name}": share for name, share in shares.items()})
    names = [f"group {group + 1}" for group in range(grouping.groups)]
    kernel = GroupMarginals(grouping, tuple(column.name for column in columns))
    run = Run(table, rng=rng)
    by_column = []
    for portion, counts in zip(budgets.values(), kernel.split(table.sum(kernel)), strict=True):
        parts = zip(portion.share_disjoint(names).values(), counts, strict=True)
        by_column.append(
            [release_marginal(run, own, method=method, budget=part) for part, own in parts]
        )
    return tuple(zip(*by_column, strict=True))


def _release_correlation(
    table: Table, grouping: Grouping, groups: CellGroups, *, budget: Budget, rng: RandomSource
) -> NoisyCorrelation:
    """Publish the sums of products of scores, each record scored as its own group does.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Scores
        and groups were released before, so a record adds a vector that depends on it alone,
        of L1 norm at most `GroupScoreProducts.sensitivity`.
    """
    columns = tuple(axis.column for axis in groups.numbers)
    steepness = best_steepness(groups.records, float(budget.epsilon), len(columns))
    kernel = GroupScoreProducts(grouping, columns, group_scores(groups.distributions, steepness))
    # All scores may be 0, if marginals are concentrated on one leaf.
    sensitivity = Fraction(max(kernel.sensitivity(table.neighbors), 1))
    exact = table.sum(kernel)[np.triu_indices(len(columns), 1)]
    rate = budget.epsilon
    noisy = add_laplace(exact, sensitivity=sensitivity, budget=budget, rng=rng)
    return NoisyCorrelation(
        method="spearman",
        columns=columns,
        units=noisy.units,
        exponent=noisy.exponent,
        rate=rate / lattice_sensitivity(sensitivity, noisy.exponent, exact.size),
        settings={"steepness": str(steepness), "kept": [1.0] * len(columns)},
    )


def _tell(progress: Progress | None, done: int, label: str) -> None:
    if progress is not None:
        progress(done, 3, label)

"""DPCopula-Hybrid by cells: noisy counts of the cells of categories, and copulas inside groups.

Each cell with many records is a group of its own, with marginals of the numbers; all other cells
are one group.  One correlation matrix is shared by all groups, or each has its own.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, prod
from typing import Literal

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.method import ExpectedError, Run
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.cell_groups import CellGroups, group_scores, groups_of_cells
from dpublish.methods.dpcopula.column_marginals import require_marginals, split_marginals
from dpublish.methods.dpcopula.correlation import NoisyCorrelation
from dpublish.methods.dpcopula.dpcopula import USUAL_RECORDS, expected_deviation
from dpublish.methods.dpcopula.kernels import (
    EachGroupProducts,
    Grouping,
    GroupMarginals,
    GroupScoreProducts,
)
from dpublish.methods.dpcopula.latent_correlation import best_steepness
from dpublish.methods.dpcopula.released_cells import RESERVED, CellCopulasRelease
from dpublish.methods.dpcopula.spearman import noisy_products, release_products
from dpublish.methods.histogram.domain import counted_columns, require_few
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import MarginalMethod, release_marginal
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

Copulas = Literal["shared", "per-cell"]
"""Whether all groups share their correlations, or each has its own."""
MOST_CELLS = 1_000_000
MOST_GROUPS = 64
"""Most cells that have marginals of their own."""
MOST_COUNTS = 1 << 24
"""Most counts of values that all groups together may have."""

FEW_CELLS = 100
_FEW_CELLS_SHARE, _MANY_CELLS_SHARE = Fraction(1, 10), Fraction(2, 5)
_LEAST_HALF_WIDTHS = 10
"""Marginals of fewer records than so many half-widths of their noise would be mostly noise."""


# --- What follows from public facts ---------------------------------------------------------------


@dataclass(frozen=True)
class CellPlan:
    """Columns by their role in the release, and shares of the budget.

    Attributes:
        schema: All columns; a record that lacks one of them is not counted.
        numbers: Columns with an order, whose marginals are counted in groups of cells.
        categories: Columns whose combinations are the cells.
    """

    schema: Schema
    numbers: tuple[Column, ...]
    categories: tuple[Column, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(column.size for column in self.categories)

    @property
    def shares(self) -> dict[str, Fraction]:
        """Part of epsilon that goes to each purpose.

        Many cells need more than few: a count over one column adds up the noise of all the
        others' combinations.  Marginals get eight times as much as correlations.
        """
        if not self.numbers:
            return {"cells": Fraction(1)}
        cells = _FEW_CELLS_SHARE if self.cells <= FEW_CELLS else _MANY_CELLS_SHARE
        if len(self.numbers) == 1:
            return {"cells": cells, "marginals": 1 - cells}
        ninth = (1 - cells) / 9
        return {"cells": cells, "marginals": 8 * ninth, "correlations": ninth}

    def predict(
        self, marginal: MarginalMethod, records: int, epsilon: Fraction
    ) -> dict[str, float]:
        """Refuse an epsilon whose shares allow no exact noise; otherwise predict the errors."""
        shares = {name: epsilon * share for name, share in self.shares.items()}
        require_rate(shares["cells"])
        one_cell = float(sum_quantile(shares["cells"], 1, 0.95))
        figures = {"one_cell_95": one_cell, "cells": float(self.cells)}
        if "marginals" in shares:
            width = require_marginals(self.numbers, marginal, shares["marginals"])
            figures["group_range_count_95"] = width
        if "correlations" in shares:
            share = shares["correlations"]
            deviation = expected_deviation("spearman", len(self.numbers), records, share)
            figures["correlation_95"] = 1.96 * deviation
        return figures


def make_cell_plan(
    schema: Schema, numbers: tuple[str, ...], categories: tuple[str, ...]
) -> CellPlan:
    """Find the columns, and refuse what cannot be counted."""
    if not categories:
        raise InvalidParameter("cells need at least one column of few values")
    used = counted_columns(schema, (*numbers, *categories))
    plan = CellPlan(
        replace(schema, columns=used),
        tuple(column for column in used if column.name in numbers),
        tuple(column for column in used if column.name in categories),
    )
    require_few(plan.categories)
    for column in plan.numbers:
        if column.kind == "category":
            raise InvalidParameter(f"column {column.name!r} has no order, so it has no copula")
    for column in plan.categories:
        if column.name in RESERVED:
            raise InvalidParameter(f"cells are not made of a column called {column.name!r}")
    if plan.cells > MOST_CELLS:
        raise InvalidParameter(
            f"{plan.cells:,} cells are too many (at most {MOST_CELLS:,}); take fewer columns, "
            "or another design"
        )
    if (MOST_GROUPS + 1) * sum(column.size for column in plan.numbers) > MOST_COUNTS:
        raise InvalidParameter("marginals of all groups have too many values; take coarser bins")
    return plan


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
        width = figures["group_range_count_95"]
        summary += f", half of a column in a group of cells within {width:,.0f}"
    if n_records:
        figures["one_cell_95_per_record"] = figures["one_cell_95"] / n_records
    return ExpectedError(f"{summary} (95 %)", figures, target="one_cell_95")


# --- What reads rows ------------------------------------------------------------------------------


def release_cells(
    run: Run,
    *,
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    marginal: MarginalMethod,
    least_records: int,
    copulas: Copulas = "shared",
) -> CellCopulasRelease:
    """Publish noisy counts of all cells of `categories` and copulas of `numbers` inside.

    Args:
        run: The release at work; all of its budget is spent.
        numbers: Columns with an order and many values; there may be none.
        categories: Columns whose combinations are the cells, at least one.
        marginal: How marginals are counted.
        least_records: Least noisy count at which a cell gets marginals of its own.
        copulas: Whether all groups share their correlations, or each has its own.

    Privacy:
        `run.epsilon`-differentially private when one record is added or removed.  All cells
        get two-sided geometric noise, empty ones too: a record lies in one.  Noisy counts
        alone decide which cells are groups.  A record's group follows from its own cell, so
        groups are disjoint, and the marginals of a column cost their share once for all groups;
        columns share by sequential composition.  Scores follow from released marginals and a
        record's own group, so products of scores are sums over records of bounded terms
        (`GroupScoreProducts.sensitivity`, the largest over groups); products of each group by
        itself cost their share once for all groups.  Proof: docs/proofs/cell_copulas.md.
    """
    plan = make_cell_plan(run.schema, numbers, categories)
    figures = plan.predict(marginal, USUAL_RECORDS, run.epsilon)
    budgets = run.split(**plan.shares)
    cells = tuple((column.name, None) for column in plan.categories)
    exact = run.sum(CompleteCounts(run.schema, (cells,), plan.schema.names))
    counts = run.add_noise(exact, sensitivity=1, budget=budgets["cells"])
    rate = budgets["cells"].epsilon
    kept = np.empty(0, dtype=np.int64)
    if plan.numbers:
        widths = _LEAST_HALF_WIDTHS * figures["group_range_count_95"]
        kept = _keep(counts, max(least_records, log(10 * counts.size) / rate, widths))
    run.step(1, 3, "cells")
    grouping = Grouping(
        run.schema, tuple(name for name, _ in cells), groups_of_cells(kept, plan.cells)
    )
    marginals: tuple[tuple[NoisyMarginal, ...], ...] = ((),)
    if plan.numbers:
        marginals = _release_marginals(
            run, grouping, plan.numbers, method=marginal, budget=budgets["marginals"]
        )
    run.step(2, 3, "marginals")
    groups = CellGroups(
        categories=tuple(column.axis() for column in plan.categories),
        numbers=tuple(column.axis() for column in plan.numbers),
        counts=counts,
        rate=rate,
        kept=kept,
        marginals=marginals,
    )
    correlation = None
    each: tuple[NoisyCorrelation, ...] = ()
    if "correlations" in budgets:
        share = budgets["correlations"]
        if copulas == "per-cell":
            each = _release_each_correlation(run, grouping, groups, budget=share)
        else:
            correlation = _release_correlation(run, grouping, groups, budget=share)
    run.step(3, 3, "correlations")
    return CellCopulasRelease(
        receipt=run.receipt(),
        schema=plan.schema,
        groups=groups,
        correlation=correlation,
        correlations=each,
    )


def _keep(counts: IntArray, least: float) -> IntArray:
    """Choose the cells that get marginals of their own, from noisy counts alone."""
    found = np.flatnonzero(counts >= least)
    fullest = np.lexsort((found, -counts[found]))[:MOST_GROUPS]
    return np.sort(found[fullest]).astype(np.int64)


def _release_marginals(
    run: Run,
    grouping: Grouping,
    columns: tuple[Column, ...],
    *,
    method: MarginalMethod,
    budget: Budget,
) -> tuple[tuple[NoisyMarginal, ...], ...]:
    """Publish the marginals of `columns` in each group.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        fixed grouping.  Columns share the budget.  Within a column's share every group's
        marginal costs all of it (`release_marginal`), and a record is in one group only.
    """
    budgets = split_marginals(columns, method, budget)
    names = [f"group {group + 1}" for group in range(grouping.groups)]
    kernel = GroupMarginals(grouping, tuple(column.name for column in columns))
    by_column = []
    for share, counts in zip(budgets.values(), kernel.split(run.sum(kernel)), strict=True):
        parts = zip(share.share_disjoint(names).values(), counts, strict=True)
        by_column.append(
            [release_marginal(run, own, method=method, budget=part) for part, own in parts]
        )
    return tuple(zip(*by_column, strict=True))


def _release_correlation(
    run: Run, grouping: Grouping, groups: CellGroups, *, budget: Budget
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
    return release_products(run, kernel, steepness, [1.0] * len(columns), budget=budget)


def _release_each_correlation(
    run: Run, grouping: Grouping, groups: CellGroups, *, budget: Budget
) -> tuple[NoisyCorrelation, ...]:
    """Publish the sums of products of scores of each group by itself.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Scores
        and groups were released before.  A record is in one group, so the groups compose in
        parallel, and it moves the sums of that group by at most `change_in` it, in L1.
    """
    columns = tuple(axis.column for axis in groups.numbers)
    parts = budget.share_disjoint([f"group {group + 1}" for group in range(groups.groups)])
    steep = [
        best_steepness(max(float(size), 0.0), float(budget.epsilon), len(columns))
        for size in groups.sizes
    ]
    made = [group_scores([row], s) for row, s in zip(groups.distributions, steep, strict=True)]
    scores = tuple(np.concatenate(tables) for tables in zip(*made, strict=True))
    kernel = EachGroupProducts(grouping, columns, scores)
    sums = run.sum(kernel)
    return tuple(
        noisy_products(
            run,
            columns,
            sums[group],
            steep[group],
            [1.0] * len(columns),
            sensitivity=Fraction(max(kernel.change_in(group), 1)),
            budget=part,
        )
        for group, part in enumerate(parts.values())
    )

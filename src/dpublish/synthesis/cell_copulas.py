"""Publish the cells of small columns, and inside groups of cells margins joined by a copula.

Known as: DPCopula Hybrid, with one correlation matrix for all cells.
Reference: H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of
Multi-Dimensional Data using Copula Functions", EDBT 2014, repaired.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.group_margins import Grouping, GroupMargins
from dpublish.aggregates.group_scores import GroupScoreProducts
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import require_count
from dpublish.mechanisms.lattice import lattice_sensitivity
from dpublish.mechanisms.noise import add_geometric, add_laplace
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt, refuse_seeded_grant
from dpublish.randomness import RandomSource
from dpublish.release.cell_copulas import CellCopulas
from dpublish.release.cell_groups import CellGroups, groups_of_cells
from dpublish.release.group_correlation import group_scores
from dpublish.release.noisy_correlation import NoisyCorrelation
from dpublish.release.noisy_margin import NoisyMargin
from dpublish.release.recipe import ExpectedError, Progress
from dpublish.release.score_bridge import best_steepness
from dpublish.synthesis.cell_plan import MOST_GROUPS, USUAL_RECORDS, make_cell_plan
from dpublish.synthesis.histograms.domain import require_single_records
from dpublish.synthesis.histograms.margins import MarginMethod, release_margin
from dpublish.synthesis.weighed_margins import margin_shares

_REACHES = 10
"""Margins of fewer records than so many reaches of their noise would be mostly noise."""

IntArray = NDArray[np.int64]


def release_cells(
    table: Table,
    *,
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    margin: MarginMethod,
    least_records: int,
    method: str,
    settings: Mapping[str, Any],
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> CellCopulas:
    """Publish noisy counts of all cells of `categories` and copulas of `numbers` inside.

    Args:
        table: Private rows.
        numbers: Columns with an order and many values; there may be none.
        categories: Columns whose combinations are the cells, at least one.
        margin: How margins are counted.
        least_records: Least noisy count at which a cell gets margins of its own.
        method: Name of the recipe, for the receipt.
        settings: Its settings, for the receipt.
        budget: Purse to empty.
        rng: Source of the noise.
        progress: Told what is done.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  All cells
        get two-sided geometric noise, empty ones too: a record lies in one.  Noisy counts
        alone decide which cells are groups.  A record's group follows from its own cell, so
        groups are disjoint, and the margins of a column cost their share once for all groups;
        columns share by sequential composition.  Scores follow from released margins and a
        record's own group, so products of scores are sums over records of bounded terms
        (`GroupScoreProducts.sensitivity`, the largest over groups).  Proof:
        docs/proofs/cell_copulas.md.
    """
    refuse_seeded_grant(budget, rng)
    require_single_records(table, method)
    require_count(least_records=least_records)
    plan = make_cell_plan(table.schema, numbers, categories)
    figures = plan.foretell(margin, USUAL_RECORDS, budget.epsilon)
    purses = budget.split(**plan.shares)
    cells = tuple((column.name, None) for column in plan.categories)
    exact = table.sum(CompleteCounts(table.schema, (cells,), plan.schema.names))
    counts = add_geometric(exact, sensitivity=1, budget=purses["cells"], rng=rng)
    rate = purses["cells"].epsilon
    kept = np.empty(0, dtype=np.int64)
    if plan.numbers:
        reach = figures["group_range_count_95"]
        kept = _keep(counts, max(least_records, log(10 * counts.size) / rate, _REACHES * reach))
    _tell(progress, 1, "cells")
    grouping = Grouping(
        table.schema, tuple(name for name, _ in cells), groups_of_cells(kept, plan.cells)
    )
    margins: tuple[tuple[NoisyMargin, ...], ...] = ((),)
    if plan.numbers:
        margins = _release_margins(
            table, grouping, plan.numbers, method=margin, budget=purses["margins"], rng=rng
        )
    _tell(progress, 2, "margins")
    groups = CellGroups(
        categories=tuple(column.axis() for column in plan.categories),
        numbers=tuple(column.axis() for column in plan.numbers),
        counts=counts,
        rate=rate,
        kept=kept,
        margins=margins,
    )
    correlation = None
    if "correlations" in purses:
        correlation = _release_correlation(
            table, grouping, groups, budget=purses["correlations"], rng=rng
        )
    _tell(progress, 3, "correlations")
    return CellCopulas(
        receipt=Receipt.issue(
            method=method, settings=settings, budget=budget, neighbours=table.neighbours, rng=rng
        ),
        schema=plan.schema,
        groups=groups,
        correlation=correlation,
    )


def cells_error(
    schema: Schema,
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    n_hint: int | None,
    epsilon: Fraction,
    *,
    margin: MarginMethod = "auto",
) -> ExpectedError:
    """Foretell the errors of a cell's count, and of a range count inside a group.

    It refuses all that `release_cells` would refuse.
    """
    plan = make_cell_plan(schema, numbers, categories)
    figures = plan.foretell(margin, n_hint or USUAL_RECORDS, epsilon)
    if not n_hint:
        figures.pop("correlation_95", None)
    summary = f"{plan.cells:,} cells; each count within {figures['one_cell_95']:,.0f} of the truth"
    if "group_range_count_95" in figures:
        reach = figures["group_range_count_95"]
        summary += f", half of a column in a group of cells within {reach:,.0f}"
    if n_hint:
        figures["one_cell_95_per_record"] = figures["one_cell_95"] / n_hint
    return ExpectedError(f"{summary} (95 %)", figures, target="one_cell_95")


def _keep(counts: IntArray, least: float) -> IntArray:
    """Pick the cells that get margins of their own, from noisy counts alone."""
    found = np.flatnonzero(counts >= least)
    fullest = np.lexsort((found, -counts[found]))[:MOST_GROUPS]
    return np.sort(found[fullest]).astype(np.int64)


def _release_margins(
    table: Table,
    grouping: Grouping,
    columns: tuple[Column, ...],
    *,
    method: MarginMethod,
    budget: Budget,
    rng: RandomSource,
) -> tuple[tuple[NoisyMargin, ...], ...]:
    """Publish the margins of `columns` in each group.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        fixed grouping.  Columns share the purse.  Within a column's share every group's
        margin costs all of it (`release_margin`), and a record is in one group only.
    """
    shares = margin_shares(columns, method)
    purses = budget.split(**{f"margin of {name}": share for name, share in shares.items()})
    names = [f"group {group + 1}" for group in range(grouping.groups)]
    kernel = GroupMargins(grouping, tuple(column.name for column in columns))
    by_column = []
    for purse, counts in zip(purses.values(), kernel.split(table.sum(kernel)), strict=True):
        parts = zip(purse.share_disjoint(names).values(), counts, strict=True)
        by_column.append(
            [release_margin(own, method=method, budget=part, rng=rng) for part, own in parts]
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
    kernel = GroupScoreProducts(grouping, columns, group_scores(groups.laws, steepness))
    # All scores may be 0, if margins are concentrated on one leaf.
    sensitivity = Fraction(max(kernel.sensitivity(table.neighbours), 1))
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

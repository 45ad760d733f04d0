"""Publish a noisy grid over the box of the records, and centers of clusters found in it.

Known as: UGkM, MkM and EUGkM, which differ in how finely the grid is cut.
Reference: D. Su, PhD thesis, Purdue, 2016, section 4.5; D. Su, J. Cao, N. Li, E. Bertino and
H. Jin, "Differentially Private k-Means Clustering", CODASPY 2016.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric, noisy_size
from dpublish.methods.kmeans.dplloyd_impr import SIZE_SHARE
from dpublish.methods.kmeans.grid_size import GridRule, grid_side
from dpublish.methods.kmeans.lloyd_round import require_clusters
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import public_generator
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.methods.kmeans.synopsis_clusters import cluster_synopsis
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MOST_STARTS = 1000


@dataclass(frozen=True, kw_only=True)
class EUGkM(Method[KMeansRelease]):
    """Method: a grid whose cells grow as noise and spread within cells balance (EUGkM)."""

    name: ClassVar[str] = "eugkm"
    rule: ClassVar[GridRule] = "eug"

    clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by, all of them unless named.", default=()
    )
    starts: int = setting("How often to search the noisy grid for centers; free.", default=30)

    def __post_init__(self) -> None:
        require_clusters(self.clusters)
        require_starts(self.starts)
        object.__setattr__(self, "clusters", int(self.clusters))  # a NumPy integer, too
        object.__setattr__(self, "starts", int(self.starts))

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the grid and the centers.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for the size of the grid, which depends on it and on
            public facts alone; the counts of its cells cost the rest (`release_grid`).
            Both shares add up to epsilon.  The centers are computed from the noisy counts.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = Box.of(table.schema, self.columns)
        budgets = budget.split(size=SIZE_SHARE, counts=1 - SIZE_SHARE)
        records = count_records(table, box, budget=budgets["size"], rng=rng)
        epsilon = budgets["counts"].epsilon
        side = grid_side(self.rule, records.value, box.dimensions, self.clusters, epsilon)
        sizes = (side,) * box.dimensions
        grid = release_grid(table, box, sizes, records, budget=budgets["counts"], rng=rng)
        if progress is not None:
            progress(1, 2, "grid")
        found = cluster_synopsis(grid, self.clusters, starts=self.starts, rng=public_generator(rng))
        if progress is not None:
            progress(2, 2, "centers")
        return KMeansRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            centers=box.unscale(found.centers),
            synopsis=grid,
            expected=dict(expected.figures),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cell; with a number of records also the size of the grid."""
        box = Box.of(schema, self.columns)
        require_rate(epsilon * SIZE_SHARE)
        rate = epsilon * (1 - SIZE_SHARE)
        side = grid_side(self.rule, n_records or 0, box.dimensions, self.clusters, rate)
        return ExpectedError(*grid_errors(box, side, rate, n_records), target="cell_count_95")


class UGkM(EUGkM):
    """Method: a grid with about ten records to a cell, as for counting ranges (UGkM)."""

    name: ClassVar[str] = "ugkm"
    rule: ClassVar[GridRule] = "ug"


class MkM(EUGkM):
    """Method: a grid as fine as private M-estimators ask for, whatever epsilon (MkM)."""

    name: ClassVar[str] = "mkm"
    rule: ClassVar[GridRule] = "mkm"


def require_starts(starts: int) -> None:
    """Refuse a number of searches that is none, or takes too long."""
    require_count(starts=starts)
    if starts > MOST_STARTS:
        raise InvalidParameter(f"starts ({starts}) must be at most {MOST_STARTS:,}")


def count_records(table: Table, box: Box, *, budget: Budget, rng: RandomSource) -> NoisySize:
    """Count the records of which all numbers of the box are known, with noise.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a count
        of sensitivity 1 with geometric noise (`noisy_size`).
    """
    everyone = BoxGrid(box, (1,) * box.dimensions)
    rate = budget.epsilon
    size = noisy_size(int(table.sum(everyone)[0]), budget=budget, rng=rng)
    return NoisySize(size, rate)


def release_grid(
    table: Table,
    box: Box,
    sizes: tuple[int, ...],
    records: NoisySize | None,
    *,
    budget: Budget,
    rng: RandomSource,
) -> GridSynopsis:
    """Publish the noisy counts of all cells of a grid with `sizes` cells along its columns.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        public sizes.  A record lies in one cell, by a rule that looks at it alone, so all
        counts together change by 1; every cell, an empty one too, gets geometric noise of
        rate epsilon (`add_geometric`).  Values outside the bounds were clipped onto them and
        count once, in the outermost cell.
    """
    kernel = BoxGrid(box, sizes)
    rate = budget.epsilon
    sensitivity = kernel.sensitivity(table.neighbors)
    exact = table.sum(kernel)
    counts = add_geometric(exact, sensitivity=sensitivity, budget=budget, rng=rng)
    return GridSynopsis(kernel.sizes, counts, rate / sensitivity, records)


def grid_errors(
    box: Box, side: int, rate: Fraction, n_records: int | None
) -> tuple[str, dict[str, float]]:
    """Predict the noise of one cell and, with a number of records, what the cells are like."""
    require_rate(rate)
    figures = {"cell_count_95": float(sum_quantile(rate, 1, 0.95))}
    summary = f"the count of each cell within {figures['cell_count_95']:,.0f} (95 %)"
    if not n_records:
        return f"a grid as fine as the number of records allows; {summary}", figures
    cells = side**box.dimensions
    figures |= {
        "cells": float(cells),
        "records_per_cell": n_records / cells,
        "cell_width": 2 / side,
    }
    return f"about {cells:,} cells, {side} along each column; {summary}", figures

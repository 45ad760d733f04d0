"""Find clusters of any shape in records spread as a noisy adaptive grid has them.

The grid is made without regard to clusters: it is finer where there are more records.  Its
estimates are spread evenly over WaveCluster's own grid, where the plain algorithm runs.

Known as: Baseline (adaptive grid and synthetic data).
Reference: L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric, noisy_size
from dpublish.methods.wavecluster import plan as shared
from dpublish.methods.wavecluster.adaptive_grid import (
    ALPHA,
    combine,
    first_size,
    split_sizes,
    spread_cells,
    spread_parts,
    uniform_size,
)
from dpublish.methods.wavecluster.kernels import SplitGrid
from dpublish.methods.wavecluster.plan import WavePlan, require_settings
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import Adjacency, significant_cells
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

_PARTS = 1 << 10  # estimates are whole multiples of this part of a record


@dataclass(frozen=True, kw_only=True)
class WaveBaseline(Method[WaveClusterRelease]):
    """Method: publish an adaptive grid, spread it over WaveCluster's grid, and cluster that."""

    name: ClassVar[str] = "wave-baseline"

    columns: tuple[str, ...] = setting(shared.COLUMNS_HELP, default=())
    cells: int | Literal["auto"] = setting(shared.CELLS_HELP, default=shared.AUTO)
    wavelet: str = setting(shared.WAVELET_HELP, default="haar")
    levels: int = setting(shared.LEVELS_HELP, default=1)
    percentile: Fraction = setting(shared.PERCENTILE_HELP, default=Fraction(1, 10))
    adjacency: Adjacency = setting(shared.ADJACENCY_HELP, default="full")
    min_cells: int = setting(shared.MIN_CELLS_HELP, default=1)
    size_share: Fraction = setting(
        "Part of epsilon that pays for the number of records.", default=Fraction(2, 100)
    )

    def __post_init__(self) -> None:
        require_settings(self)
        if not isinstance(self.size_share, Fraction) or not 0 < self.size_share < 1:
            raise InvalidParameter(f"size_share ({self.size_share}) must lie between 0 and 1")

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed, by
            sequential composition: the number of records, the counts of the first cells and
            those of their parts each move by 1 in all and get noise of rate their share.  The
            first cells depend on the noisy number, their parts on the noisy counts; where
            they lie is not learned from rows.  All else is computed from the noisy counts.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        plan = WavePlan.of(table.schema, self)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(size=self.size_share, grid=1 - self.size_share)
        everyone = BoxGrid(plan.box, (1,) * plan.box.dimensions)
        size = noisy_size(int(table.sum(everyone)[0]), budget=budgets["size"], rng=rng)
        make = adaptive_estimates if plan.box.dimensions == 2 else uniform_estimates
        spread = make(table, plan, size, budget=budgets["grid"], rng=rng)
        whole = np.rint(spread * _PARTS).astype(np.int64)
        significant = significant_cells(plan.transform.apply(whole), self.percentile)
        if progress is not None:
            progress(1, 1, "grid")
        receipt = run.receipt()
        return plan.publish(significant, whole / _PARTS, receipt, expected=dict(expected.figures))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the errors of the number of records and of one count of the grid."""
        plan = WavePlan.of(schema, self)
        size_rate = epsilon * self.size_share
        is_adaptive = plan.box.dimensions == 2
        rest = epsilon - size_rate
        rate = rest * (1 - ALPHA) if is_adaptive else rest
        require_rate(size_rate)
        require_rate(rate)
        figures = plan.figures() | {
            "one_part_95": half_width(rate, np.ones(1), 0.95),
            "number_of_records_95": half_width(size_rate, np.ones(1), 0.95),
        }
        if n_records:
            cut = (
                first_size(n_records, rest)
                if is_adaptive
                else uniform_size(n_records, rest, plan.box.dimensions)
            )
            figures["first_cells_along"] = float(cut)
        summary = (
            f"each part of the grid within {figures['one_part_95']:,.0f} of the truth (95 %) "
            f"before it is spread over {plan.kernel.cells:,} cells"
        )
        return ExpectedError(summary, figures, target="one_part_95")


def adaptive_estimates(
    table: Table, plan: WavePlan, size: int, *, budget: Budget, rng: RandomSource
) -> NDArray[np.float64]:
    """Estimate the counts of the plan's grid from an adaptive grid of two columns.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        `size`: two vectors of counts over partitions of the box, each of sensitivity 1, with
        noise of rate its share.  The second partition depends on the first noisy counts.
    """
    epsilon = budget.epsilon
    budgets = budget.split(first=ALPHA, parts=1 - ALPHA)
    along = first_size(size, epsilon)
    cells = BoxGrid(plan.box, (along, along))
    exact = table.sum(cells)
    first = add_geometric(
        exact,
        sensitivity=cells.sensitivity(table.neighbors),
        budget=budgets["first"],
        rng=rng,
    )
    splits = split_sizes(first, epsilon)
    leaves = SplitGrid(plan.box, along, splits)
    exact = table.sum(leaves)
    parts = add_geometric(
        exact,
        sensitivity=leaves.sensitivity(table.neighbors),
        budget=budgets["parts"],
        rng=rng,
    )
    estimates = np.maximum(combine(first, parts, splits), 0)
    return spread_parts(estimates, splits, along, plan.transform.sizes)


def uniform_estimates(
    table: Table, plan: WavePlan, size: int, *, budget: Budget, rng: RandomSource
) -> NDArray[np.float64]:
    """Estimate the counts of the plan's grid from an equal grid, for any number of columns.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        `size`: counts over a partition of the box have sensitivity 1 and get noise of rate
        epsilon.
    """
    along = uniform_size(size, budget.epsilon, plan.box.dimensions)
    cells = BoxGrid(plan.box, (along,) * plan.box.dimensions)
    exact = table.sum(cells)
    counts = add_geometric(
        exact, sensitivity=cells.sensitivity(table.neighbors), budget=budget, rng=rng
    )
    estimates = np.maximum(counts, 0).astype(np.float64).reshape(cells.sizes)
    return spread_cells(estimates, plan.transform.sizes)

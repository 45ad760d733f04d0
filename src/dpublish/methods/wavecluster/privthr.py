"""Find clusters of any shape, with a noisy number of significant coefficients.

Counts are perturbed, and so is the number of exact coefficients that are not positive.  The
latter says how many coefficients are significant, and as many of the largest noisy ones are
taken: noise in empty cells no longer passes for records.

Known as: PrivTHR.
Reference: L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015; the
sensitivity is that of the wavelet in use, which the paper has for Haar's only.  As printed:
`counts_share` 9/10, `variant` paper.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from dpublish.accuracy.intervals import count_errors, half_width
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.wavecluster import plan as shared
from dpublish.methods.wavecluster.plan import WavePlan, require_settings
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.sensitivities import positive_sensitivity
from dpublish.methods.wavecluster.wavecluster import (
    Adjacency,
    Coefficients,
    largest_cells,
    significant_count,
)

Variant = Literal["auto", "direct", "paper"]
_DIRECT_FROM = Fraction(3, 10)


@dataclass(frozen=True, kw_only=True)
class PrivTHR(Method[WaveClusterRelease]):
    """Method: perturb the counts and the number of empty coefficients, then take the largest."""

    name: ClassVar[str] = "privthr"

    columns: tuple[str, ...] = setting(shared.COLUMNS_HELP, default=())
    cells: int | Literal["auto"] = setting(shared.CELLS_HELP, default=shared.AUTO)
    wavelet: str = setting(shared.WAVELET_HELP, default="haar")
    levels: int = setting(shared.LEVELS_HELP, default=1)
    percentile: Fraction = setting(shared.PERCENTILE_HELP, default=Fraction(1, 10))
    adjacency: Adjacency = setting(shared.ADJACENCY_HELP, default="full")
    min_cells: int = setting(shared.MIN_CELLS_HELP, default=1)
    variant: Variant = setting(
        "How the number of significant coefficients follows from the noisy number of those that "
        "are not positive: direct subtracts it from all, paper takes half of it off the "
        "positive noisy ones; auto is direct where epsilon is 0.3 or more.",
        default="auto",
    )
    counts_share: Fraction = setting(
        "Part of epsilon that pays for the counts (alpha); the number of coefficients that are "
        "not positive gets the rest.",
        default=Fraction(7, 10),
    )

    def __post_init__(self) -> None:
        require_settings(self)
        require_known("variant", self.variant, ("auto", "direct", "paper"))
        shared.require_share(self.counts_share)

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed, by
            sequential composition.  The record lies in one cell at most, so all counts
            together move by 1; they get noise of rate their share.  Coefficients are exact
            integers, and the record raises or lowers only those that its cell weighs
            in, so the number of those that are not positive moves by at most Δ_Z
            (docs/proofs/wavecluster.md); it gets noise of rate its share / Δ_Z.  All else is
            computed from the two.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        plan = WavePlan.of(table.schema, self)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(counts=self.counts_share, rank=1 - self.counts_share)
        rate = budgets["counts"].epsilon
        exact = table.sum(plan.kernel)
        counts = add_geometric(
            exact,
            sensitivity=plan.kernel.sensitivity(table.neighbors),
            budget=budgets["counts"],
            rng=rng,
        )
        empty = add_geometric(
            np.count_nonzero(plan.transform.apply(exact) <= 0) + np.zeros(1, dtype=np.int64),
            sensitivity=positive_sensitivity(plan.transform),
            budget=budgets["rank"],
            rng=rng,
        )
        noisy = plan.transform.apply(counts)
        chosen = self.count_significant(noisy, int(empty[0]), budget.epsilon)
        if progress is not None:
            progress(1, 1, "counts")
        receipt = run.receipt()
        return plan.publish(
            largest_cells(noisy, chosen),
            counts,
            receipt,
            expected=dict(expected.figures),
            noise_rate=rate,
            chosen=chosen,
        )

    def count_significant(self, noisy: Coefficients, empty: int, epsilon: Fraction) -> int:
        """Say how many coefficients to take (k'), from public numbers only."""
        empty = min(max(empty, 0), noisy.size)
        is_direct = epsilon >= _DIRECT_FROM if self.variant == "auto" else self.variant == "direct"
        if is_direct:
            return significant_count(noisy.size - empty, self.percentile)
        # Noise lifts about half of the empty coefficients above 0.  It is an integer and may
        # be 0: such a coefficient counts as half lifted.
        lifted = 2 * int(np.count_nonzero(noisy > 0)) + int(np.count_nonzero(noisy == 0))
        positive = (lifted - empty) // 2
        return max(significant_count(positive, self.percentile), 0)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the errors of the counts and of the number of positive coefficients."""
        plan = WavePlan.of(schema, self)
        rate = epsilon * self.counts_share
        rank_rate = epsilon * (1 - self.counts_share) / positive_sensitivity(plan.transform)
        require_rate(rate)
        require_rate(rank_rate)
        figures = plan.figures() | count_errors(rate, plan.kernel.cells, None)
        figures["positive_coefficients_95"] = half_width(rank_rate, np.ones(1), 0.95)
        if n_records:
            figures["records_per_cell"] = n_records / plan.kernel.cells
        summary = (
            f"{plan.kernel.cells:,} cells; each count within {figures['one_cell_95']:,.0f} and "
            f"the number of positive coefficients (of {plan.transform.size:,}) within "
            f"{figures['positive_coefficients_95']:,.0f} of the truth (95 %)"
        )
        return ExpectedError(summary, figures, target="one_cell_95")

"""PrivTHR: clusters of any shape, with a noisy number of significant coefficients."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from dpublish.accuracy.intervals import half_width
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.wavecluster.plan import WaveMethod, WavePlan, require_share
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import (
    Coefficients,
    largest_cells,
    positive_sensitivity,
    significant_count,
)

Variant = Literal["auto", "direct", "paper"]
_DIRECT_FROM = Fraction(3, 10)
_TWO_SIDED = 1.96  # standard deviations that hold 95 % of a normal distribution


@dataclass(frozen=True, kw_only=True)
class PrivTHR(WaveMethod):
    """Publish clusters of any shape, with a share of epsilon spent on how many cells they have.

    The counts of a grid get noise, and so does the number of its exact wavelet coefficients that
    are not positive.  That number says how many coefficients are significant, and as many of the
    largest noisy ones are taken, so that noise in empty cells no longer passes for records.
    Choose it for clusters of any shape; choose `KMeans` for round clusters of a known number.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/wavecluster.md.

    Parameters:
        columns: Columns of numbers that span the grid; all of them unless named.
        cells: Cells along each column, a multiple of 2 ** `levels`; `"auto"` takes 40, or fewer
            where the grid would have more than 65,536 cells.
        wavelet: Wavelet that smooths the counts, such as `"haar"`, `"db2"`, `"bior2.2"`.
        levels: How often the wavelet halves each axis.
        percentile: Part of the positive coefficients that is too small to be significant (p).
        adjacency: `"full"` joins coefficients that share a corner; `"face"` only those that
            share a face.
        min_cells: Drop clusters of fewer coefficients than this.
        variant: How the number of significant coefficients follows from the noisy number of
            those that are not positive: `"direct"` subtracts it from all, `"paper"` takes half
            of it off the positive noisy ones; `"auto"` is direct where epsilon is 0.3 or more.
        counts_share: Part of epsilon that the counts spend (alpha); the number of coefficients
            that are not positive spends the rest.

    Returns:
        A `WaveClusterRelease` with `clusters`, `label(rows)`, `masses()`, `count(query)`,
        `rows(n)` and `tables()`.

    Example:
        >>> from dpublish import Budget, PrivTHR, datasets, seeded
        >>> points = datasets.table("shapes", 5_000)
        >>> method = PrivTHR(min_cells=5)
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["clusters"]
        '4, made of 102 of 400 coefficients'
        >>> release.masses().round().tolist()
        [1661.0, 2200.0, 376.0, 695.0]

    Reference:
        L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015, as printed
        with `counts_share` 9/10 and `variant` paper.  The sensitivity is that of the wavelet in
        use; the paper has that of Haar's only.
    """

    name: ClassVar[str] = "privthr"
    proofs: ClassVar[tuple[str, ...]] = ("wavecluster", "exact")
    publishes: ClassVar[str] = "clusters of any shape, as labeled cells of a noisy grid"
    prefer_when: ClassVar[str] = "no center describes the shape of a cluster"
    standing: ClassVar[Standing] = "default"

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
        super().__post_init__()
        require_known("variant", self.variant, ("auto", "direct", "paper"))
        require_share("counts_share", self.counts_share)

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed, by
            sequential composition.  The record lies in one cell at most, so all counts
            together move by 1; they get noise of rate their share.  Coefficients are exact
            integers, and the record raises or lowers only those that its cell weighs
            in, so the number of those that are not positive moves by at most Δ_Z
            (docs/proofs/wavecluster.md); it gets noise of rate its share / Δ_Z.  All else is
            computed from the two.
        """
        plan = WavePlan.of(run.schema, self)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = run.split(counts=self.counts_share, rank=1 - self.counts_share)
        rate = budgets["counts"].epsilon
        exact = run.sum(plan.kernel)
        counts = run.add_noise(exact, of=plan.kernel, budget=budgets["counts"])
        empty = run.add_noise(
            np.count_nonzero(plan.transform.apply(exact) <= 0) + np.zeros(1, dtype=np.int64),
            sensitivity=positive_sensitivity(plan.transform),
            budget=budgets["rank"],
        )
        noisy = plan.transform.apply(counts)
        chosen = self.count_significant(noisy, int(empty[0]), run.epsilon)
        run.step(1, 1, "counts")
        significant = largest_cells(noisy, chosen)
        return plan.publish(run, significant, counts, noise_rate=rate, chosen=chosen)

    def count_significant(self, noisy: Coefficients, empty: int, epsilon: Fraction) -> int:
        """Compute how many coefficients to take (k'), from public numbers only."""
        empty = min(max(empty, 0), noisy.size)
        if self.is_direct(epsilon):
            return significant_count(noisy.size - empty, self.percentile)
        # Noise lifts about half of the empty coefficients above 0.  It is an integer and may
        # be 0: such a coefficient counts as half lifted.
        lifted = 2 * int(np.count_nonzero(noisy > 0)) + int(np.count_nonzero(noisy == 0))
        positive = (lifted - empty) // 2
        return max(significant_count(positive, self.percentile), 0)

    def is_direct(self, epsilon: Fraction) -> bool:
        """Whether the noisy number of empty coefficients is subtracted from all of them."""
        return epsilon >= _DIRECT_FROM if self.variant == "auto" else self.variant == "direct"

    def _missed(self, plan: WavePlan, figures: Mapping[str, float], epsilon: Fraction) -> float:
        """Predict by how much k' is off: by noise in the number of empty coefficients.

        The paper's variant takes half of that number off, and adds the deviation of how many
        empty ones are lifted, which is largest if all are empty.
        """
        off = figures["positive_coefficients_95"]
        if not self.is_direct(epsilon):
            off = off / 2 + _TWO_SIDED * sqrt(plan.transform.size) / 2
        return float(1 - self.percentile) * off

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the errors of the counts and of the number of positive coefficients."""
        plan = WavePlan.of(schema, self)
        rate = epsilon * self.counts_share
        rank_rate = epsilon * (1 - self.counts_share) / positive_sensitivity(plan.transform)
        require_rate(rate)
        require_rate(rank_rate)
        figures = plan.figures() | plan.noise_figures(rate)
        figures["positive_coefficients_95"] = half_width(rank_rate, np.ones(1), 0.95)
        figures["significant_95"] = self._missed(plan, figures, epsilon)
        if n_records:
            figures["records_per_cell"] = n_records / plan.kernel.cells
        summary = (
            f"{plan.kernel.cells:,} cells; each count within {figures['one_cell_95']:,.0f} and "
            f"the number of positive coefficients (of {plan.transform.size:,}) within "
            f"{figures['positive_coefficients_95']:,.0f} of the truth (95 %); a coefficient of "
            f"{figures['all_coefficients_95']:,.0f} records stands out from all noise"
        )
        return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)

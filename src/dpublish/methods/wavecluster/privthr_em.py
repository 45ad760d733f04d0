"""PrivTHR_EM: clusters of any shape, with a threshold chosen by the exponential mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import ClassVar

import numpy as np

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.rank_threshold import rank_scale
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.wavecluster.bounds import rank_bound
from dpublish.methods.wavecluster.plan import WaveMethod, WavePlan, require_share
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import Coefficients, WaveTransform, rank_sensitivity

_OUTSIDE = 0.05


@dataclass(frozen=True, kw_only=True)
class PrivTHREM(WaveMethod):
    """Publish clusters of any shape, made of noisy coefficients above a chosen threshold.

    The counts of a grid get noise.  The exponential mechanism chooses a threshold that about as
    many of the exact wavelet coefficients reach as are significant, and noisy coefficients that
    reach it form clusters.  Where the threshold is small, many empty cells get through.  Choose
    it to compare with PrivTHR_EM; choose `PrivTHR` otherwise.

    The threshold is in the scale of the wavelet, not in records.  With Haar in the plane, halved
    once, a coefficient is half the records of 2 x 2 cells: a threshold of 4 stands for 8 records.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/wavecluster.md.

    Parameters:
        columns, cells, wavelet, levels: The grid and how it is smoothed, as for `PrivTHR`.
        percentile, adjacency, min_cells: What makes a cluster, as for `PrivTHR`.
        counts_share: Part of epsilon that the counts spend (alpha); the threshold spends the
            rest.

    Returns:
        A `WaveClusterRelease` with `threshold`, `clusters`, `label(rows)`, `masses()`,
        `count(query)`, `rows(n)` and `tables()`.

    Example:
        >>> from dpublish import Budget, PrivTHREM, datasets, seeded
        >>> points = datasets.table("shapes", 5_000)
        >>> method = PrivTHREM(min_cells=5)
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["clusters"]
        '4, made of 170 of 400 coefficients'
        >>> round(release.threshold, 3)
        1.5

    Reference:
        L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015, whose
        range of thresholds ends at the private maximum; here it ends at a bound made of the
        noisy counts.
    """

    name: ClassVar[str] = "privthr-em"
    proofs: ClassVar[tuple[str, ...]] = ("wavecluster", "selection", "exact")
    publishes: ClassVar[str] = "clusters of any shape, and the density threshold of their cells"
    prefer_when: ClassVar[str] = (
        "clusters are much denser than the noise, and the threshold matters"
    )

    counts_share: Fraction = setting(
        "Part of epsilon that pays for the counts (alpha); the threshold gets the rest.",
        default=Fraction(7, 10),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share("counts_share", self.counts_share)

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed, by
            sequential composition.  The record lies in one cell at most, so all counts
            together move by 1; they get noise of rate their share.  The range of thresholds
            is computed from the noisy counts, and `choose_threshold` costs its share with
            the sensitivity of ranks for the wavelet in use (docs/proofs/wavecluster.md).  The
            rank of the threshold among the exact coefficients is not published.
        """
        plan = WavePlan.of(run.schema, self)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = run.split(counts=self.counts_share, threshold=1 - self.counts_share)
        rate = budgets["counts"].epsilon
        exact = run.sum(plan.kernel)
        counts = run.add_noise(exact, of=plan.kernel, budget=budgets["counts"])
        noisy = plan.transform.apply(counts)
        threshold = run.choose_threshold(
            plan.transform.apply(exact),
            highest=highest_threshold(noisy, plan.transform, rate),
            percentile=self.percentile,
            sensitivity=rank_sensitivity(plan.transform, self.percentile),
            budget=budgets["threshold"],
        )
        run.step(1, 1, "counts")
        return plan.publish(
            run,
            np.asarray(noisy >= threshold, dtype=np.bool_),
            counts,
            noise_rate=rate,
            threshold=float(threshold * Fraction(plan.transform.unit)),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the errors of the counts and of the threshold's rank."""
        plan = WavePlan.of(schema, self)
        rate = epsilon * self.counts_share
        require_rate(rate)
        scale = rank_scale(rank_sensitivity(plan.transform, self.percentile), self.percentile)
        rank_rate = selection_rate(epsilon * (1 - self.counts_share), scale)
        figures = plan.figures() | plan.noise_figures(rate)
        # Ranks off by more than this have less than 5 % of the weight of the right one.
        figures["rank_95"] = log(1 / _OUTSIDE) / float(rank_rate * self.percentile.denominator)
        if n_records:
            figures["records_per_cell"] = n_records / plan.kernel.cells
            # In records: none of the coefficients exceeds all records, and the wanted one is
            # at least a record above the next.
            above = highest_threshold(np.zeros(1, dtype=np.int64), plan.transform, rate)
            most = n_records + figures["all_coefficients_95"] + above / plan.heaviest
            figures["rank_bound_95"] = rank_bound(
                epsilon * (1 - self.counts_share),
                rank_sensitivity(plan.transform, self.percentile),
                candidates=most,
                right=1,
                risk=_OUTSIDE,
            )
        summary = (
            f"{plan.kernel.cells:,} cells; each count within {figures['one_cell_95']:,.0f} of the "
            f"truth (95 %); the threshold's rank off by some {figures['rank_95']:,.0f}"
        )
        return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)


def highest_threshold(noisy: Coefficients, transform: WaveTransform, rate: Fraction) -> int:
    """Bound the thresholds (B) above from noisy coefficients, so that few exact ones exceed it."""
    cells = np.prod(transform.sizes)
    noise = ceil(transform.norm * Fraction(log(cells / _OUTSIDE)) / rate)
    return max(int(noisy.max()), 0) + noise

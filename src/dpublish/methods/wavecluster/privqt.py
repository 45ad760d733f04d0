"""PrivQT: clusters of any shape in a grid of noisy counts."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import ExpectedError, Run
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.wavecluster.plan import WaveMethod, WavePlan
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import significant_cells


@dataclass(frozen=True, kw_only=True)
class PrivQT(WaveMethod):
    """Publish clusters of any shape, found by WaveCluster in a grid of noisy counts.

    Every count of the grid gets noise, and the plain algorithm runs on the noisy counts.  Noise
    turns empty cells into positive ones, so that more coefficients look significant than are.
    Choose it where epsilon is large, or to compare; choose `PrivTHR` otherwise, and `KMeans`
    for round clusters of a known number.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  A record lies in
        one cell, so all counts together change by 1.  Proof: docs/proofs/wavecluster.md.

    Parameters:
        columns, cells, wavelet, levels: The grid and how it is smoothed, as for `PrivTHR`.
        percentile, adjacency, min_cells: What makes a cluster, as for `PrivTHR`.

    Returns:
        A `WaveClusterRelease` with `clusters`, `label(rows)`, `masses()`, `count(query)`,
        `rows(n)` and `tables()`.

    Example:
        >>> from dpublish import Budget, PrivQT, datasets, seeded
        >>> points = datasets.table("shapes", 5_000)
        >>> method = PrivQT(min_cells=5)
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["clusters"]
        '1, made of 229 of 400 coefficients'

    Reference:
        L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015.
    """

    name: ClassVar[str] = "privqt"
    proofs: ClassVar[tuple[str, ...]] = ("wavecluster", "exact")
    publishes: ClassVar[str] = "a noisy grid, and the clusters of any shape found in it"
    prefer_when: ClassVar[str] = (
        "the noisy grid matters as much as the clusters, or few cells are dense"
    )

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: the
            record lies in one cell at most, so all counts together move by 1, and each gets
            two-sided geometric noise of rate epsilon.  Coefficients, clusters and masses are
            computed from the noisy counts alone.
        """
        plan = WavePlan.of(run.schema, self)
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(counts=1)["counts"]
        counts = run.add_noise(run.sum(plan.kernel), of=plan.kernel, budget=share)
        significant = significant_cells(plan.transform.apply(counts), self.percentile)
        run.step(1, 1, "counts")
        return plan.publish(run, significant, counts, noise_rate=run.epsilon)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the errors of counts and coefficients, and how many empty ones get through."""
        require_rate(epsilon)
        plan = WavePlan.of(schema, self)
        figures = plan.figures() | plan.noise_figures(epsilon)
        if n_records:
            figures["records_per_cell"] = n_records / plan.kernel.cells
        summary = (
            f"{plan.kernel.cells:,} cells; each count within {figures['one_cell_95']:,.0f} of "
            f"the truth (95 %); noise makes {100 * figures['lifted_share']:.0f} of 100 empty "
            "coefficients look filled"
        )
        return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)

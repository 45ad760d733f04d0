"""Find clusters of any shape in noisy counts.

Every count of the grid is perturbed; the plain algorithm then runs on the noisy counts.  Noise
turns empty cells into positive ones, so more coefficients look significant than are.

Known as: PrivQT.
Reference: L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.accuracy.intervals import count_errors
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.wavecluster import plan as shared
from dpublish.methods.wavecluster.plan import WavePlan, require_settings
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import Adjacency, significant_cells


@dataclass(frozen=True, kw_only=True)
class PrivQT(Method[WaveClusterRelease]):
    """Method: perturb every count of a grid, then cluster the noisy grid."""

    name: ClassVar[str] = "privqt"

    columns: tuple[str, ...] = setting(shared.COLUMNS_HELP, default=())
    cells: int | Literal["auto"] = setting(shared.CELLS_HELP, default=shared.AUTO)
    wavelet: str = setting(shared.WAVELET_HELP, default="haar")
    levels: int = setting(shared.LEVELS_HELP, default=1)
    percentile: Fraction = setting(shared.PERCENTILE_HELP, default=Fraction(1, 10))
    adjacency: Adjacency = setting(shared.ADJACENCY_HELP, default="full")
    min_cells: int = setting(shared.MIN_CELLS_HELP, default=1)

    def __post_init__(self) -> None:
        require_settings(self)

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: the
            record lies in one cell at most, so all counts together move by 1, and each gets
            two-sided geometric noise of rate epsilon.  Coefficients, clusters and masses are
            computed from the noisy counts alone.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        plan = WavePlan.of(table.schema, self)
        # Opened before any row is read: a share that is already used stops here.
        share = budget.split(counts=1)["counts"]
        rate = share.epsilon
        sensitivity = plan.kernel.sensitivity(table.neighbors)
        exact = table.sum(plan.kernel)
        counts = add_geometric(exact, sensitivity=sensitivity, budget=share, rng=rng)
        significant = significant_cells(plan.transform.apply(counts), self.percentile)
        if progress is not None:
            progress(1, 1, "counts")
        receipt = run.receipt()
        return plan.publish(
            significant, counts, receipt, expected=dict(expected.figures), noise_rate=rate
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of one count, of all counts at once, and of the total."""
        require_rate(epsilon)
        plan = WavePlan.of(schema, self)
        figures = plan.figures() | count_errors(epsilon, plan.kernel.cells, None)
        if n_records:
            figures["records_per_cell"] = n_records / plan.kernel.cells
        summary = (
            f"{plan.kernel.cells:,} cells; each count within {figures['one_cell_95']:,.0f} of "
            "the truth (95 %)"
        )
        return ExpectedError(summary, figures, target="one_cell_95")

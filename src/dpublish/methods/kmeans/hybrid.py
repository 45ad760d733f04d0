"""Hybrid k-means: a noisy grid, centers found in it, and one round over the records."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

from dpublish.core.method import ExpectedError, Run, Standing
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.clustering import cluster_grid
from dpublish.methods.kmeans.dplloyd_impr import count_weight
from dpublish.methods.kmeans.error_model import grid_error, round_error
from dpublish.methods.kmeans.eugkm import (
    RECORDS_PER_CELL,
    ThetaMethod,
    grid_errors,
    grid_side,
    release_grid,
)
from dpublish.methods.kmeans.lloyd_round import lloyd_round, round_errors
from dpublish.methods.kmeans.method import SIZE_SHARE, count_records, publish_centers
from dpublish.methods.kmeans.released import KMeansRelease

PERCENT = 100
GRID_WEIGHT, ROUND_WEIGHT = 0.14, 0.42
"""How much of either error is left after both steps; fitted in the thesis."""


@dataclass(frozen=True, kw_only=True)
class HybridKMeans(ThetaMethod):
    """Publish a noisy grid and centers found in it, moved by one round over the records.

    The grid is that of `EUGkM`, the round that of `DPLloydImpr`.  A model of both errors decides
    what each gets of epsilon, and leaves the round out where it would not help.  Choose it to
    compare with Hybrid; choose `KMeans` for the best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  The noisy number
        of records spends 3 % of epsilon, grid and round spend the rest.
        Proof of the round: docs/proofs/lloyd.md.

    Parameters:
        n_clusters: Number of clusters (k), at most 1,000.
        columns: Columns of numbers to cluster by; all of them unless named.
        n_init: How often to search the noisy grid for centers, at most 1,000; free.
        theta: What epsilon times the number of records is divided by to size the grid: more
            makes fewer cells.

    Returns:
        A `KMeansRelease` with `centers`, `label(rows)`, `recluster(n_clusters)`,
        `cluster_sizes`, `count(query)`, `rows(n)`, and `notes`, which state the shares.

    Example:
        >>> from dpublish import Budget, HybridKMeans, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = HybridKMeans(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.notes
        ('no round after the grid, since there are about 4,995 records',)

    Reference:
        D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially Private k-Means Clustering",
        CODASPY 2016; D. Su, PhD thesis, Purdue, 2016, section 4.6 and Algorithm 16.
    """

    name: ClassVar[str] = "hybrid"
    proofs: ClassVar[tuple[str, ...]] = ("lloyd", "exact")
    publishes: ClassVar[str] = "a noisy grid, and its centers after one noisy round of k-means"
    prefer_when: ClassVar[str] = (
        "there are few columns and many records, and you compare with Hybrid"
    )
    standing: ClassVar[Standing] = "baseline"

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the grid and the centers.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for the size of the grid and for how the rest is
            shared, which depend on it and on public facts alone.  The grid costs its share
            (`release_grid`), and so does the round, if there is one: it starts from centers
            that follow from the grid (`lloyd_round`).  All shares add up to epsilon.
        """
        box = self.box(run.schema)
        budgets = run.split(size=SIZE_SHARE, clusters=1 - SIZE_SHARE)
        records = count_records(run, box, budget=budgets["size"])
        size, rest = records.value, budgets["clusters"]
        percent = self._split(size, box.dimensions, rest.epsilon).grid_percent
        if percent < PERCENT:
            shares = rest.split(grid=percent, round=PERCENT - percent)
        else:
            shares = rest.split(grid=1)
        side = self._side(size, box.dimensions, shares["grid"].epsilon)
        sizes = (side,) * box.dimensions
        grid = release_grid(run, box, sizes, records, budget=shares["grid"])
        run.step(1, 3, "grid")
        generator = run.public_generator()
        centers = cluster_grid(grid, self.n_clusters, n_init=self.n_init, rng=generator).centers
        run.step(2, 3, "centers")
        if "round" in shares:
            weight = count_weight(box.dimensions)
            centers = lloyd_round(run, box, centers, count_weight=weight, budget=shares["round"])
        run.step(3, 3, "round")
        return publish_centers(run, box, centers, synopsis=grid, notes=(_reason(percent, size),))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cell; with a number of records also the model's error."""
        box = self.box(schema)
        require_rate(epsilon * SIZE_SHARE)
        rest, weight = epsilon * (1 - SIZE_SHARE), count_weight(box.dimensions)
        # Either step may get as little as this, whatever the noisy size turns out to be.
        round_errors(box, self.n_clusters, rest / PERCENT, weight, n_records)
        split = self._split(n_records or 0, box.dimensions, rest)
        rate = rest * split.grid_percent / PERCENT
        side = self._side(n_records or 0, box.dimensions, rate)
        summary, figures = grid_errors(box, side, rate, n_records)
        if not n_records:
            return ExpectedError(summary, figures, target="cell_count_95", is_of_goal=False)
        figures |= {"grid_percent": float(split.grid_percent), "squared_error": split.error}
        if split.grid_percent < PERCENT:
            figures |= round_errors(box, self.n_clusters, rest - rate, weight, n_records)
            summary += f"; then one round with {PERCENT - split.grid_percent} % of the rest"
        return ExpectedError(summary, figures, target="squared_error", is_of_goal=False)

    def _split(self, size: int, dimensions: int, epsilon: Fraction) -> "Split":
        return share_out(size, dimensions, self.n_clusters, epsilon, theta=self.theta)

    def _side(self, size: int, dimensions: int, epsilon: Fraction) -> int:
        return grid_side(
            "eug", size, dimensions, self.n_clusters, epsilon, records_per_cell=self.theta
        )


class Split(NamedTuple):
    """What the grid gets, in percent, and the squared error that the model predicts."""

    grid_percent: int
    error: float


def share_out(
    size: int,
    dimensions: int,
    clusters: int,
    epsilon: Fraction,
    *,
    theta: Fraction | int = RECORDS_PER_CELL,
) -> Split:
    """Choose what the grid gets, from a noisy number of records and public facts.

    The grid gets all if a round is not predicted to help, or if there seem to be no records.
    """
    whole = grid_error(max(size, 1) * float(epsilon), dimensions, clusters, theta)
    if size <= 0:
        return Split(PERCENT, whole)
    records = size * float(epsilon)
    errors = {
        percent: GRID_WEIGHT * grid_error(records * percent / PERCENT, dimensions, clusters, theta)
        + ROUND_WEIGHT * round_error(records * (1 - percent / PERCENT), dimensions, clusters)
        for percent in range(1, PERCENT)
    }
    best = min(errors, key=errors.__getitem__)
    return Split(best, errors[best]) if errors[best] < whole else Split(PERCENT, whole)


def _reason(percent: int, size: int) -> str:
    about = f"there are about {max(size, 0):,} records"
    if percent == PERCENT:
        return f"no round after the grid, since {about}"
    return f"the grid got {percent} % and one round the rest, since {about}"

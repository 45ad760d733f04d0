"""Publish a noisy grid, centers found in it, and move these by one round over the records.

Known as: Hybrid (EUGkM, then one round of DPLloyd-Impr).
Reference: D. Su, PhD thesis, Purdue, 2016, section 4.6 and Algorithm 16; D. Su, J. Cao, N. Li,
E. Bertino and H. Jin, "Differentially Private k-Means Clustering", CODASPY 2016.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.dplloyd_impr import MEAN_COORDINATE, SIZE_SHARE, count_weight
from dpublish.methods.kmeans.eugkm import (
    count_records,
    grid_errors,
    release_grid,
    require_starts,
)
from dpublish.methods.kmeans.grid_size import RECORDS_PER_CELL, grid_side
from dpublish.methods.kmeans.lloyd_round import (
    find_box,
    lloyd_round,
    require_clusters,
    round_errors,
)
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import public_generator
from dpublish.methods.kmeans.synopsis_clusters import cluster_synopsis

PERCENT = 100
GRID_WEIGHT, ROUND_WEIGHT = 0.14, 0.42
"""How much of either error is left after both steps; fitted in the thesis."""


@dataclass(frozen=True, kw_only=True)
class HybridKMeans(Method[KMeansRelease]):
    """Method: a noisy grid and, where it is worth its share, one round of k-means."""

    name: ClassVar[str] = "hybrid"

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
            noisy number of records pays for the size of the grid and for how the rest is
            shared, which depend on it and on public facts alone.  The grid costs its share
            (`release_grid`), and so does the round, if there is one: it starts from centers
            that follow from the grid (`lloyd_round`).  All shares add up to epsilon.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = find_box(table.schema, self.columns)
        budgets = budget.split(size=SIZE_SHARE, clusters=1 - SIZE_SHARE)
        records = count_records(table, box, budget=budgets["size"], rng=rng)
        size, rest = records.value, budgets["clusters"]
        percent = share_out(size, box.dimensions, self.clusters, rest.epsilon).grid_percent
        if percent < PERCENT:
            shares = rest.split(grid=percent, round=PERCENT - percent)
        else:
            shares = rest.split(grid=1)
        side = grid_side("eug", size, box.dimensions, self.clusters, shares["grid"].epsilon)
        sizes = (side,) * box.dimensions
        grid = release_grid(table, box, sizes, records, budget=shares["grid"], rng=rng)
        if progress is not None:
            progress(1, 3, "grid")
        centers = cluster_synopsis(
            grid, self.clusters, starts=self.starts, rng=public_generator(rng)
        ).centers
        if progress is not None:
            progress(2, 3, "centers")
        if "round" in shares:
            centers = lloyd_round(
                table,
                box,
                centers,
                count_weight=count_weight(box.dimensions),
                budget=shares["round"],
                rng=rng,
            )
        if progress is not None:
            progress(3, 3, "round")
        return KMeansRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            centers=box.unscale(centers),
            synopsis=grid,
            expected=dict(expected.figures),
            notes=(_reason(percent, size),),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cell; with a number of records also the model's error."""
        box = find_box(schema, self.columns)
        require_rate(epsilon * SIZE_SHARE)
        rest, weight = epsilon * (1 - SIZE_SHARE), count_weight(box.dimensions)
        # Either step may get as little as this, whatever the noisy size turns out to be.
        round_errors(box, self.clusters, rest / PERCENT, weight, n_records)
        split = share_out(n_records or 0, box.dimensions, self.clusters, rest)
        rate = rest * split.grid_percent / PERCENT
        side = grid_side("eug", n_records or 0, box.dimensions, self.clusters, rate)
        summary, figures = grid_errors(box, side, rate, n_records)
        if not n_records:
            return ExpectedError(summary, figures, target="cell_count_95")
        figures |= {"grid_percent": float(split.grid_percent), "squared_error": split.error}
        if split.grid_percent < PERCENT:
            figures |= round_errors(box, self.clusters, rest - rate, weight, n_records)
            summary += f"; then one round with {PERCENT - split.grid_percent} % of the rest"
        return ExpectedError(summary, figures, target="squared_error")


class Split(NamedTuple):
    """What the grid gets, in percent, and the squared error that the model predicts."""

    grid_percent: int
    error: float


def share_out(size: int, dimensions: int, clusters: int, epsilon: Fraction) -> Split:
    """Choose what the grid gets, from a noisy number of records and public facts.

    The grid gets all if a round is not predicted to help, or if there seem to be no records.
    """
    whole = grid_error(max(size, 1) * float(epsilon), dimensions, clusters)
    if size <= 0:
        return Split(PERCENT, whole)
    records = size * float(epsilon)
    errors = {
        percent: GRID_WEIGHT * grid_error(records * percent / PERCENT, dimensions, clusters)
        + ROUND_WEIGHT * round_error(records * (1 - percent / PERCENT), dimensions, clusters)
        for percent in range(1, PERCENT)
    }
    best = min(errors, key=errors.__getitem__)
    return Split(best, errors[best]) if errors[best] < whole else Split(PERCENT, whole)


def grid_error(records: float, dimensions: int, clusters: int) -> float:
    """Model the squared error of centers in a grid; `records` are multiplied by epsilon.

    >>> round(grid_error(10_000.0, 2, 5), 9)
    1.3333e-05
    """
    power = 2 / (2 + dimensions)
    shape = 2 * dimensions * clusters ** ((dimensions - 2) / dimensions)
    return float(shape / (3 * RECORDS_PER_CELL ** (power * dimensions) * records ** (2 * power)))


def round_error(records: float, dimensions: int, clusters: int) -> float:
    """Model the squared error that the noise of one round makes."""
    spread = 2 * dimensions * (1 + 4 * MEAN_COORDINATE**2)
    return float(spread * (clusters * (dimensions + 1) / records) ** 2)


def _reason(percent: int, size: int) -> str:
    about = f"there are about {max(size, 0):,} records"
    if percent == PERCENT:
        return f"no round after the grid, since {about}"
    return f"the grid got {percent} % and one round the rest, since {about}"

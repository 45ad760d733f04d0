"""EUGkM, UGkM, MkM: a noisy grid over the records, and centers of clusters found in it."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from typing import ClassVar, Literal

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.accuracy.rounding import format_number
from dpublish.aggregates.box_grid import MOST_CELLS, BoxGrid
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.clustering import cluster_grid
from dpublish.methods.kmeans.error_model import grid_bias, grid_variance
from dpublish.methods.kmeans.method import (
    SIZE_SHARE,
    CenterMethod,
    count_records,
    publish_centers,
    require_at_most,
)
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.privacy.budget import Budget

MOST_STARTS = 1000
LEAST_THETA, MOST_THETA = Fraction(1, 1000), 1_000_000
GridRule = Literal["ug", "mkm", "eug"]
RECORDS_PER_CELL = 10
"""What epsilon times a number of records is divided by; the papers' constant."""
DENSE_RECORDS_PER_CELL = 2
"""The same where only dense regions are clustered, which can tell noise from records."""

_NEAR = 1.5  # how far an even number of cells may be from the wanted one, as a factor
_MANY_INTEGERS = 50  # in a cell: one more or less is not seen


@dataclass(frozen=True, kw_only=True)
class GridMethod(CenterMethod):
    """A method that searches a noisy grid for centers."""

    n_init: int = setting("How often to search the noisy grid for centers; free.", default=30)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_most("n_init", self.n_init, MOST_STARTS)
        object.__setattr__(self, "n_init", int(self.n_init))


@dataclass(frozen=True, kw_only=True)
class ThetaMethod(GridMethod):
    """A method that says how fine its grid is."""

    theta: Fraction = setting(
        "What epsilon times the number of records is divided by to size the grid.",
        default=Fraction(RECORDS_PER_CELL),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.theta) not in (int, Fraction):
            raise InvalidParameter("theta must be an integer or an exact Fraction")
        if not LEAST_THETA <= self.theta <= MOST_THETA:
            raise InvalidParameter(f"theta must lie between {LEAST_THETA} and {MOST_THETA:,}")
        object.__setattr__(self, "theta", Fraction(self.theta))


@dataclass(frozen=True, kw_only=True)
class UniformGridMethod(GridMethod):
    """A method whose grid has as many cells along each column, by one of several rules."""

    rule: ClassVar[GridRule]

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the grid and the centers.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for the size of the grid, which depends on it and on
            public facts alone; the counts of its cells cost the rest (`release_grid`).
            Both shares add up to epsilon.  The centers are computed from the noisy counts.
        """
        box = self.box(run.schema)
        budgets = run.split(size=SIZE_SHARE, counts=1 - SIZE_SHARE)
        records = count_records(run, box, budget=budgets["size"])
        epsilon = budgets["counts"].epsilon
        side = self._side(records.value, box.dimensions, epsilon)
        sizes = (side,) * box.dimensions
        grid = release_grid(run, box, sizes, records, budget=budgets["counts"])
        run.step(1, 2, "grid")
        generator = run.public_generator()
        found = cluster_grid(grid, self.n_clusters, n_init=self.n_init, rng=generator)
        run.step(2, 2, "centers")
        return publish_centers(run, box, found.centers, synopsis=grid)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cell; with a number of records also the size of the grid."""
        box = self.box(schema)
        require_rate(epsilon * SIZE_SHARE)
        rate = epsilon * (1 - SIZE_SHARE)
        side = self._side(n_records or 0, box.dimensions, rate)
        summary, figures = grid_errors(box, side, rate, n_records)
        if n_records:
            spent, cells = n_records * float(rate), figures["cells"]
            noise = grid_variance(spent, cells, box.dimensions, self.n_clusters)
            figures["center_squared_error"] = min(noise, 4.0 * box.dimensions)
            figures["center_squared_bias"] = grid_bias(cells, box.dimensions)
            shift, width = (
                format_number(sqrt(figures[f"center_squared_{kind}"]), 2)
                for kind in ("error", "bias")
            )
            summary += f"; noise moves a center by about {shift}, cells by at most {width}"
        return ExpectedError(summary, figures, target="cell_count_95", is_of_goal=False)

    def _side(self, size: int, dimensions: int, epsilon: Fraction) -> int:
        """Choose the number of cells along each column from a noisy number of records."""
        return grid_side(self.rule, size, dimensions, self.n_clusters, epsilon)


@dataclass(frozen=True, kw_only=True)
class EUGkM(ThetaMethod, UniformGridMethod):
    """Publish a noisy grid over a few columns, and centers of clusters found in it.

    The cells are as large as balances the noise of their counts against the distances within
    them.  Choose it to compare with EUGkM.  Choose `KMeans` for better centers from a finer
    grid, and for more than about five columns, where a grid has too few cells.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  The noisy number
        of records, which sets the size of the grid, spends 3 % of epsilon; the counts spend the
        rest.  A record lies in one cell, so all counts together change by 1.

    Parameters:
        n_clusters: Number of clusters (k), at most 1,000.
        columns: Columns of numbers to cluster by; all of them unless named.
        n_init: How often to search the noisy grid for centers, at most 1,000; free.
        theta: What epsilon times the number of records is divided by to size the grid: more
            makes fewer cells.

    Returns:
        A `KMeansRelease` with `centers`, `label(rows)`, `recluster(n_clusters)`,
        `cluster_sizes`, `count(query)`, `rows(n)` and `tables()`.

    Example:
        >>> from dpublish import Budget, EUGkM, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = EUGkM(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["grid"]
        '22 x 22 cells, about 5,023 records'
        >>> release.centers.round(2).tolist()
        [[0.1, 0.04], [0.42, -0.32], [-0.28, 0.05], [0.46, -0.58], [0.67, -0.34]]

    Reference:
        D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially Private k-Means Clustering",
        CODASPY 2016; D. Su, PhD thesis, Purdue, 2016, section 4.5.
    """

    name: ClassVar[str] = "eugkm"
    proofs: ClassVar[tuple[str, ...]] = ("exact",)
    publishes: ClassVar[str] = "a noisy grid sized for clustering, and the centers found in it"
    prefer_when: ClassVar[str] = "two or three columns matter, and you compare with EUGkM"
    standing: ClassVar[Standing] = "baseline"
    rule: ClassVar[GridRule] = "eug"

    def _side(self, size: int, dimensions: int, epsilon: Fraction) -> int:
        """Choose the number of cells along each column, as many as theta says."""
        return grid_side(
            self.rule, size, dimensions, self.n_clusters, epsilon, records_per_cell=self.theta
        )


class UGkM(EUGkM):
    """Publish a noisy grid of about ten records to a cell, and centers found in it.

    The grid is as fine as suits counting ranges, at epsilon 1.  Choose it to compare with UGkM;
    choose `EUGkM` for a grid made for clusters, and `KMeans` for the best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, as for `EUGkM`.

    Parameters:
        n_clusters, columns, n_init, theta: As for `EUGkM`.

    Returns:
        A `KMeansRelease`, as `EUGkM` does.

    Example:
        >>> from dpublish import Budget, UGkM, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = UGkM(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["grid"]
        '22 x 22 cells, about 5,023 records'

    Reference:
        D. Su, PhD thesis, Purdue, 2016, section 4.5, with the grid of W. Qardaji, W. Yang, N. Li,
        "Differentially Private Grids for Geospatial Data", ICDE 2013.
    """

    name: ClassVar[str] = "ugkm"
    proofs: ClassVar[tuple[str, ...]] = ("exact",)
    publishes: ClassVar[str] = "a noisy grid sized for range counts, and the centers found in it"
    prefer_when: ClassVar[str] = "range counts matter as much as the centers"
    standing: ClassVar[Standing] = "baseline"
    rule: ClassVar[GridRule] = "ug"


class MkM(UniformGridMethod):
    """Publish a noisy grid as fine as private M-estimators take it, and centers found in it.

    The number of cells follows from the number of records and columns, whatever epsilon is, so
    that the noise outweighs the records where epsilon is small.  Choose it to compare with MkM;
    choose `EUGkM` for a grid that follows epsilon, and `KMeans` for the best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, as for `EUGkM`.

    Parameters:
        n_clusters, columns, n_init: As for `EUGkM`.

    Returns:
        A `KMeansRelease`, as `EUGkM` does.

    Example:
        >>> from dpublish import Budget, MkM, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = MkM(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["grid"]
        '41 x 41 cells, about 5,033 records'

    Reference:
        J. Lei, "Differentially Private M-Estimators", NIPS 2011; D. Su, PhD thesis, Purdue, 2016,
        section 4.5.
    """

    name: ClassVar[str] = "mkm"
    proofs: ClassVar[tuple[str, ...]] = ("exact",)
    publishes: ClassVar[str] = (
        "a noisy grid whose size does not depend on epsilon, and the centers found in it"
    )
    prefer_when: ClassVar[str] = "you want a baseline for the grid methods"
    standing: ClassVar[Standing] = "baseline"
    rule: ClassVar[GridRule] = "mkm"


def release_grid(
    run: Run, box: Box, sizes: tuple[int, ...], records: NoisySize | None, *, budget: Budget
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
    rate = budget.epsilon / kernel.sensitivity(run.neighbors)
    exact = run.sum(kernel)
    counts = run.add_noise(exact, of=kernel, budget=budget)
    return GridSynopsis(kernel.sizes, counts, rate, records)


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


# --- How finely to cut the box, from public facts and a noisy number of records -------------


def grid_side(
    rule: GridRule,
    size: int,
    dimensions: int,
    clusters: int,
    epsilon: Fraction | float,
    *,
    records_per_cell: Fraction | float = RECORDS_PER_CELL,
) -> int:
    """Choose the number of cells along each column.

    There are at least as many cells as clusters, unless these would be too many to count.

    >>> grid_side("eug", 10_000, 2, 5, 1.0), grid_side("eug", 10_000, 6, 5, 1.0)
    (32, 6)
    >>> grid_side("eug", -7, 2, 5, 1.0), grid_side("ug", 10**9, 10, 5, 1.0)
    (3, 4)
    """
    useful = max(size, 1) * float(epsilon) / float(records_per_cell)
    wanted = round(min(_wanted(rule, max(size, 1), dimensions, useful), MOST_CELLS))
    most = round(MOST_CELLS ** (1 / dimensions))
    if most**dimensions > MOST_CELLS:
        most -= 1
    return int(min(max(wanted, _root(clusters, dimensions)), most))


def even_sizes(box: Box, side: int) -> tuple[int, ...]:
    """Choose the cells along each column so that cells hold equally many integers.

    A column of numbers gets `side` cells.  Where cells of an integer column would hold a few
    integers each, some one more than others, the noisy counts would show stripes: then the
    nearest divisor of the number of its values is taken, if it is within a factor of 1.5.
    Public: it depends on the bounds alone.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("age", "integer", bounds=[0, 99]),)))
    >>> even_sizes(box, 37), even_sizes(box, 400), even_sizes(box, 4)
    ((50,), (100,), (4,))
    """
    return tuple(
        _even_side(int(column.bounds[1]) - int(column.bounds[0]) + 1, side)
        if column.partition.whole
        else side
        for column in box.columns
    )


def _even_side(values: int, side: int) -> int:
    if values <= side:
        return values
    if values >= _MANY_INTEGERS * side:
        return side
    most = min(int(side * _NEAR), values)
    divisors = [n for n in range(max(ceil(side / _NEAR), 1), most + 1) if values % n == 0]
    return min(divisors, key=lambda n: abs(log(n / side)), default=side)


def _wanted(rule: GridRule, size: int, dimensions: int, useful: float) -> float:
    if rule == "mkm":
        return float((size / sqrt(log(size))) ** (2 / (2 + dimensions))) if size >= 3 else 1.0
    power = 1 / dimensions if rule == "ug" else 2 / (2 + dimensions)
    return float(useful**power)


def _root(clusters: int, dimensions: int) -> int:
    """Find the least side of a grid that has as many cells as there are clusters."""
    side = 1
    while side**dimensions < clusters:
        side += 1
    return side

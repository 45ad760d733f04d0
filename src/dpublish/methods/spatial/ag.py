"""AG: an adaptive grid, finer where there are more records."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.method import ExpectedError, Run
from dpublish.data.schema import Schema
from dpublish.methods.spatial.box_domain import (
    MOST_BOXES,
    SIZE_SHARE,
    UNIFORM_CONSTANT,
    BoxDomain,
    BoxMethod,
    release_size,
    side_lengths,
    wanted_cells,
)
from dpublish.methods.spatial.kernels import BoxCells, GridRoute, cut_boxes
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.types import IntArray

_FIRST_SHARE = Fraction(1, 2)  # of what remains; the second level gets as much
_COARSER = 16  # a first cell stands for so many of the uniform grid
_LEAST_FIRST, _MOST_FIRST = 10, MOST_BOXES // 4
_SECOND_CONSTANT = 5
_MOST_RANGES = 64


@dataclass(frozen=True, kw_only=True)
class AG(BoxMethod):
    """Publish noisy counts of two nested grids, the second finer where the first counts more.

    A coarse grid is counted first; each of its cells is then cut again, by its noisy count.
    Choose it for range counts over two columns with dense and empty regions, such as
    locations; choose `PSD` for more columns or very uneven data, `UG` for even data.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record: each grid has a
        share of epsilon of its own, and the second is cut by noisy counts only.  Proof:
        docs/proofs/boxes.md.

    Parameters:
        columns: Columns to cut; every column with an order if none is named.

    Returns:
        A `SpatialRelease` of both grids, made consistent by least squares, with `count(query)`,
        `count_boxes(...)`, `rows(n)` and `tables()`.

    Example:
        >>> from dpublish import AG, Budget, datasets, seeded
        >>> shapes = datasets.table("shapes", 10_000)
        >>> release = AG().release(shapes, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.summary()["published"])
        286 boxes, 186 of them without parts
        >>> print(release.count("x < 50 and y < 50"))
        2,083.8 (95 % confidence interval 2,062.3 to 2,105.3)

    Reference:
        W. Qardaji, W. Yang, N. Li, "Differentially Private Grids for Geospatial Data",
        ICDE 2013, for two columns.  The number of records is a noisy one here; for other
        numbers of columns the sizes follow from the same balance (`wanted_cells`).
    """

    name: ClassVar[str] = "ag"
    proofs: ClassVar[tuple[str, ...]] = ("boxes", "exact")
    publishes: ClassVar[str] = (
        "noisy counts of a grid that is finer where records are dense; range counts and rows "
        "follow for free"
    )
    prefer_when: ClassVar[str] = "two ordered columns matter, such as locations on a map"

    def _release(self, run: Run) -> SpatialRelease:
        """Publish both grids.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  A
            fiftieth is spent on the noisy number of records, from which the first grid follows;
            half of the rest on its counts, from which the second grid follows; the other half
            on the counts of the second.  A record lies in one cell of each grid, so each
            vector of counts changes by 1 in all.  Each step holds for every outcome of the
            steps before, so the shares add up (sequential composition).
            Proof: docs/proofs/boxes.md.
        """
        domain = BoxDomain.choose(self.columns, run.schema, run.epsilon)
        rest = 1 - SIZE_SHARE
        # Opened before any row is read: a share that is already used stops here.
        shares = run.split(
            size=SIZE_SHARE, first=rest * _FIRST_SHARE, second=rest * (1 - _FIRST_SHARE)
        )
        rates = shares["first"].epsilon, shares["second"].epsilon
        size = release_size(run, domain, budget=shares["size"])
        sides = _first_sides(domain, size.value, sum(rates, Fraction(0)))
        first = domain.grid(sides)
        exact = run.sum(first)
        coarse = run.add_noise(exact, of=first, budget=shares["first"])
        run.step(1, 2, "first grid")
        lows, highs = cut_boxes(first.lows, first.highs, first.parts)
        parts = _second_sides(coarse, rates[1], highs - lows)
        route = GridRoute(domain.sizes, tuple(sides.ravel().tolist()))
        second = BoxCells(domain.names, route, lows, highs, parts)
        exact = run.sum(second)
        fine = run.add_noise(exact, of=second, budget=shares["second"])
        run.step(2, 2, "second grid")
        inner_lows, inner_highs = cut_boxes(lows, highs, parts)
        inside = np.repeat(np.arange(len(lows)), np.prod(parts, axis=1))
        return SpatialRelease(
            receipt=run.receipt(),
            schema=domain.schema,
            lows=np.concatenate([lows, inner_lows]),
            highs=np.concatenate([highs, inner_highs]),
            parents=np.concatenate([np.full(len(lows), -1, dtype=np.int64), inside]),
            levels=np.repeat(np.arange(2), [len(lows), len(inner_lows)]),
            rates=rates,
            counts=np.concatenate([coarse, fine]),
            size=size,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of one part and, if a number of records is guessed, the grid."""
        domain = BoxDomain.choose(self.columns, schema, epsilon)
        rest = epsilon * (1 - SIZE_SHARE)
        figures = {"one_box_95": float(sum_quantile(rest * (1 - _FIRST_SHARE), 1, 0.95))}
        if n_records is not None:
            figures["first_boxes"] = float(np.prod(_first_sides(domain, n_records, rest)))
        summary = f"the count of a part within {figures['one_box_95']:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")


def _first_sides(domain: BoxDomain, size: int, epsilon: Fraction) -> IntArray:
    """Compute into how many ranges to cut each column first, for a noisy number of records."""
    wanted = wanted_cells(np.array([size]), epsilon, domain.dimensions, UNIFORM_CONSTANT)
    least = _LEAST_FIRST ** min(domain.dimensions, 2)
    return side_lengths(np.clip(wanted / _COARSER, least, _MOST_FIRST), domain.high)


def _second_sides(counts: IntArray, epsilon: Fraction, extents: IntArray) -> IntArray:
    """Compute into how many ranges to cut each first cell along each column, by its noisy count."""
    wanted = wanted_cells(counts, epsilon, extents.shape[1], _SECOND_CONSTANT)
    limits = np.minimum(extents, _MOST_RANGES)
    while True:  # one part each is never too many
        parts = side_lengths(np.minimum(wanted, MOST_BOXES), limits)
        if int(np.prod(parts, axis=1).sum()) <= MOST_BOXES - counts.size:
            return parts
        wanted = np.maximum(wanted / 2, 1.0)

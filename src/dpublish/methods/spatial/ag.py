"""Publish a grid that is finer where there are more records.

Known as: AG, the adaptive grid.
Reference: W. Qardaji, W. Yang, N. Li, "Differentially Private Grids for Geospatial Data",
ICDE 2013, for two columns; the number of records is a noisy one here.  For other numbers of
columns the sizes follow from the same balance (`grid_sizes`).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.histogram.domain import require_names
from dpublish.methods.spatial.box_domain import MOST_BOXES, BoxDomain, release_size
from dpublish.methods.spatial.grid_sizes import UNIFORM_CONSTANT, side_lengths, wanted_cells
from dpublish.methods.spatial.kernels import BoxCells, GridRoute, cut_boxes
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

SIZE_SHARE = Fraction(1, 50)
_FIRST_SHARE = Fraction(1, 2)  # of what remains; the second level gets as much
_COARSER = 16  # a first cell stands for so many of the uniform grid
_LEAST_FIRST, _MOST_FIRST = 10, MOST_BOXES // 4
_SECOND_CONSTANT = 5
_MOST_RUNS = 64


@dataclass(frozen=True, kw_only=True)
class AG(Method[SpatialRelease]):
    """Method: perturb a coarse grid, then cut and perturb its cells again, the fuller the finer."""

    name: ClassVar[str] = "ag"

    columns: tuple[str, ...] = setting(
        "Columns to cut; all numeric, integer and ordinal ones unless named.", default=()
    )

    def __post_init__(self) -> None:
        require_names(self.columns)

    def _release(self, run: Run) -> SpatialRelease:
        """Publish both grids of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  A
            fiftieth buys the noisy number of records, from which the first grid follows; half
            of the rest its counts, from which the second grid follows; the other half its
            counts.  A record lies in one cell of each grid, so each vector of counts changes
            by 1 in all.  Each step holds for every outcome of the steps before, so the
            shares add up (sequential composition).  Proof: docs/proofs/boxes.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        domain = self._domain(table.schema, budget.epsilon)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = _open(budget)
        rates = budgets["first"].epsilon, budgets["second"].epsilon
        size = release_size(table, domain, budget=budgets["size"], rng=rng)
        sides = _first_sides(domain, size.value, sum(rates, Fraction(0)))
        first = domain.grid(sides)
        exact = table.sum(first)
        coarse = add_geometric(exact, sensitivity=1, budget=budgets["first"], rng=rng)
        if progress is not None:
            progress(1, 2, "first grid")
        lows, highs = cut_boxes(first.lows, first.highs, first.parts)
        parts = _second_sides(coarse, rates[1], highs - lows)
        route = GridRoute(domain.sizes, tuple(sides.ravel().tolist()))
        second = BoxCells(domain.names, route, lows, highs, parts)
        exact = table.sum(second)
        fine = add_geometric(exact, sensitivity=1, budget=budgets["second"], rng=rng)
        if progress is not None:
            progress(2, 2, "second grid")
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
        domain = self._domain(schema, epsilon)
        rest = epsilon * (1 - SIZE_SHARE)
        figures = {"one_box_95": float(sum_quantile(rest * (1 - _FIRST_SHARE), 1, 0.95))}
        if n_records is not None:
            figures["first_boxes"] = float(np.prod(_first_sides(domain, n_records, rest)))
        summary = f"the count of a part within {figures['one_box_95']:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")

    def _domain(self, schema: Schema, epsilon: Fraction) -> BoxDomain:
        require_rate(epsilon * SIZE_SHARE)
        return BoxDomain.choose(self.columns, schema)


def _open(budget: Budget) -> dict[str, Budget]:
    rest = 1 - SIZE_SHARE
    return budget.split(
        size=SIZE_SHARE, first=rest * _FIRST_SHARE, second=rest * (1 - _FIRST_SHARE)
    )


def _first_sides(domain: BoxDomain, size: int, epsilon: Fraction) -> IntArray:
    """Say into how many runs to cut each column first, for a noisy number of records."""
    wanted = wanted_cells(np.array([size]), epsilon, domain.dimensions, UNIFORM_CONSTANT)
    least = _LEAST_FIRST ** min(domain.dimensions, 2)
    return side_lengths(np.clip(wanted / _COARSER, least, _MOST_FIRST), domain.high)


def _second_sides(counts: IntArray, epsilon: Fraction, extents: IntArray) -> IntArray:
    """Say into how many runs to cut each first cell along each column, by its noisy count."""
    wanted = wanted_cells(counts, epsilon, extents.shape[1], _SECOND_CONSTANT)
    limits = np.minimum(extents, _MOST_RUNS)
    while True:  # one part each is never too many
        parts = side_lengths(np.minimum(wanted, MOST_BOXES), limits)
        if int(np.prod(parts, axis=1).sum()) <= MOST_BOXES - counts.size:
            return parts
        wanted = np.maximum(wanted / 2, 1.0)

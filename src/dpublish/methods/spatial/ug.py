"""Publish a grid whose fineness follows from the noisy number of records.

Known as: UG, the uniform grid.
Reference: W. Qardaji, W. Yang, N. Li, "Differentially Private Grids for Geospatial Data",
ICDE 2013, for two columns; the number of records is a noisy one here.
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
from dpublish.methods.spatial.kernels import cut_boxes
from dpublish.methods.spatial.released import SpatialRelease

SIZE_SHARE = Fraction(1, 50)


@dataclass(frozen=True, kw_only=True)
class UG(Method[SpatialRelease]):
    """Method: cut every column into equal runs, and perturb the count of every cell."""

    name: ClassVar[str] = "ug"

    columns: tuple[str, ...] = setting(
        "Columns to cut; all numeric, integer and ordinal ones unless named.", default=()
    )

    def __post_init__(self) -> None:
        require_names(self.columns)

    def _release(self, run: Run) -> SpatialRelease:
        """Publish the grid of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  A
            fiftieth buys the noisy number of records; grid and noise follow from it and from
            public facts.  The rest buys the counts: a record lies in one cell, so the vector
            of all cells changes by 1 in all.  This holds whatever the noisy number was, so
            both shares add up (sequential composition).
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        domain = self._domain(table.schema, budget.epsilon)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(size=SIZE_SHARE, counts=1 - SIZE_SHARE)
        size = release_size(table, domain, budget=budgets["size"], rng=rng)
        rate = budgets["counts"].epsilon
        kernel = domain.grid(_sides(domain, size.value, rate))
        exact = table.sum(kernel)
        counts = add_geometric(
            exact,
            sensitivity=kernel.sensitivity(table.neighbors),
            budget=budgets["counts"],
            rng=rng,
        )
        if progress is not None:
            progress(1, 1, "grid")
        lows, highs = cut_boxes(kernel.lows, kernel.highs, kernel.parts)
        return SpatialRelease(
            receipt=run.receipt(),
            schema=domain.schema,
            lows=lows,
            highs=highs,
            parents=np.full(len(lows), -1, dtype=np.int64),
            levels=np.zeros(len(lows), dtype=np.int64),
            rates=(rate,),
            counts=counts,
            size=size,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of one cell and, if a number of records is guessed, the grid."""
        domain = self._domain(schema, epsilon)
        rate = epsilon * (1 - SIZE_SHARE)
        figures = {"one_box_95": float(sum_quantile(rate, 1, 0.95))}
        if n_records is not None:
            boxes = int(np.prod(_sides(domain, n_records, rate)))
            figures |= {"boxes": float(boxes), "records_per_box": n_records / boxes}
        summary = f"the count of a cell within {figures['one_box_95']:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")

    def _domain(self, schema: Schema, epsilon: Fraction) -> BoxDomain:
        require_rate(epsilon * SIZE_SHARE)
        return BoxDomain.choose(self.columns, schema)


def _sides(domain: BoxDomain, size: int, epsilon: Fraction) -> np.ndarray:
    """Say into how many runs to cut each column, for a noisy number of records."""
    wanted = wanted_cells(np.array([size]), epsilon, domain.dimensions, UNIFORM_CONSTANT)
    wanted = np.minimum(wanted, MOST_BOXES)
    sides = side_lengths(wanted, domain.high)
    while int(np.prod(sides)) > MOST_BOXES:  # sides are rounded, so less may have to be wanted
        wanted = 0.99 * wanted
        sides = side_lengths(wanted, domain.high)
    return sides

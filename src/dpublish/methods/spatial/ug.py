"""UG: a uniform grid whose number of cells follows from the noisy number of records."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.method import ExpectedError, Run, Standing
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
from dpublish.methods.spatial.kernels import cut_boxes
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.types import IntArray


@dataclass(frozen=True, kw_only=True)
class UG(BoxMethod):
    """Publish noisy counts of a uniform grid, as fine as the number of records allows.

    Every column is cut into ranges of equal size; how many follows from the noisy number of
    records and epsilon.  Choose it for range counts over two or three columns whose records
    are not too unevenly distributed, and as a baseline; choose `AG` or `PSD` where records
    cluster, `Privelet` for one long column, `Histogram` where the cells are given.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record: the grid follows
        from a noisy number of records, and a record lies in one cell.  Proof:
        docs/proofs/boxes.md.

    Parameters:
        columns: Columns to cut; all numeric, integer and ordinal columns if none is named.

    Returns:
        A `SpatialRelease`: `count(query)` with a confidence interval, `count_boxes` for many
        ranges at once, synthetic `rows(n)`, and the cells as `tables()`.

    Example:
        >>> from dpublish import UG, Budget, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> method = UG(columns=("age", "hours"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.count("age < 40 and hours >= 30"))
        1,293.5 (95 % confidence interval 973.9 to 1,388.3)

    Reference:
        W. Qardaji, W. Yang, N. Li, "Differentially Private Grids for Geospatial Data",
        ICDE 2013, for two columns; the number of records is a noisy one here.
    """

    name: ClassVar[str] = "ug"
    proofs: ClassVar[tuple[str, ...]] = ("boxes", "exact")
    publishes: ClassVar[str] = (
        "noisy counts of a grid of equal boxes; range counts and rows follow for free"
    )
    prefer_when: ClassVar[str] = (
        "two or three ordered columns matter, and records are scattered evenly"
    )
    standing: ClassVar[Standing] = "baseline"

    def _release(self, run: Run) -> SpatialRelease:
        """Publish the grid.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  A
            fiftieth is spent on the noisy number of records; the grid follows from it and from
            public facts.  The rest is spent on the counts: a record lies in one cell, so the
            vector of all cells changes by 1 in all.  This holds whatever the noisy number was,
            so both shares add up (sequential composition).
        """
        domain = BoxDomain.choose(self.columns, run.schema, run.epsilon)
        # Opened before any row is read: a share that is already used stops here.
        shares = run.split(size=SIZE_SHARE, counts=1 - SIZE_SHARE)
        size = release_size(run, domain, budget=shares["size"])
        rate = shares["counts"].epsilon
        kernel = domain.grid(_sides(domain, size.value, rate))
        counts = run.add_noise(run.sum(kernel), of=kernel, budget=shares["counts"])
        run.step(1, 1, "grid")
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
        domain = BoxDomain.choose(self.columns, schema, epsilon)
        rate = epsilon * (1 - SIZE_SHARE)
        figures = {"one_box_95": float(sum_quantile(rate, 1, 0.95))}
        if n_records is not None:
            boxes = int(np.prod(_sides(domain, n_records, rate)))
            figures |= {"boxes": float(boxes), "records_per_box": n_records / boxes}
        summary = f"the count of a cell within {figures['one_box_95']:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")


def _sides(domain: BoxDomain, size: int, epsilon: Fraction) -> IntArray:
    """Compute into how many ranges to cut each column, for a noisy number of records."""
    wanted = wanted_cells(np.array([size]), epsilon, domain.dimensions, UNIFORM_CONSTANT)
    wanted = np.minimum(wanted, MOST_BOXES)
    sides = side_lengths(wanted, domain.high)
    while int(np.prod(sides)) > MOST_BOXES:  # sides are rounded, so less may have to be wanted
        wanted = 0.99 * wanted
        sides = side_lengths(wanted, domain.high)
    return sides

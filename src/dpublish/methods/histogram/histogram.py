"""Publish a histogram with independent noise in every cell.

Known as: the Laplace (geometric) histogram; the baseline of every comparison, and the best
choice for few cells.  In its sparse form: the thresholded release of high-dimensional counts.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar, Literal

import numpy as np

from dpublish.accuracy.intervals import count_errors
from dpublish.aggregates.counts import Counts
from dpublish.aggregates.sparse_counts import SparseCounts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.core.noisy_size import RESERVED
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema, parse_columns
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.sparse_counts import auto_threshold, require_sparse, sparse_counts
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.privacy.neighbors import AddRemoveRecord

MAX_DENSE_CELLS = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Histogram(Method[HistogramRelease]):
    """Method: count records by `columns`, then perturb every count."""

    name: ClassVar[str] = "histogram"

    columns: tuple[str, ...] = setting(
        "Columns to count by; age@2 takes the column at level 2 of its taxonomy (0 is the root)."
    )
    threshold: int | Literal["auto"] | None = setting(
        "Publish only cells whose noisy count reaches this; auto picks it from the number of "
        "cells and epsilon so that about one empty cell gets through. Needed for huge domains.",
        default=None,
    )

    def __post_init__(self) -> None:
        if not isinstance(self.columns, tuple) or not self.columns:
            raise InvalidParameter("columns must name at least one column")
        if self.threshold is not None and self.threshold != "auto":
            require_count(threshold=self.threshold)
            object.__setattr__(self, "threshold", int(self.threshold))  # a NumPy integer, too

    def _release(self, run: Run) -> HistogramRelease:
        """Publish the histogram of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: the
            record lies in one cell, so the vector of all cells, empty ones included, moves
            by 1 in all, and each gets two-sided geometric noise of rate epsilon.  The
            sparse form has the same distribution as perturbing every cell of the public
            domain and dropping those below the public threshold.  Estimates, rows and
            answers are computed from the noisy counts alone.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        if not isinstance(table.neighbors, AddRemoveRecord):
            raise InvalidParameter("histogram hides one record added or removed, nothing else")
        axes = self._axes(table.schema)
        threshold = self._threshold(table.schema, axes, budget.epsilon)
        columns = tuple((axis.column, axis.level) for axis in axes)
        # Opened before any row is read: a share that is already used stops here.
        share = budget.split(counts=1)["counts"]
        if threshold is None:
            dense = Counts(table.schema, (columns,))
            rate = budget.epsilon / dense.sensitivity(table.neighbors)
            exact = table.sum(dense)
            counts = add_geometric(
                exact, sensitivity=dense.sensitivity(table.neighbors), budget=share, rng=rng
            )
            cells = np.arange(counts.size, dtype=np.int64)
        else:
            sparse = SparseCounts(table.schema, columns)
            rate = budget.epsilon / sparse.sensitivity(table.neighbors)
            occupied = table.sum(sparse).compact()
            cells, counts = sparse_counts(
                occupied.keys,
                occupied.counts,
                domain_size=sparse.domain_size,
                threshold=threshold,
                sensitivity=sparse.sensitivity(table.neighbors),
                budget=share,
                rng=rng,
            )
        if progress is not None:
            progress(1, 1, "histogram")
        return HistogramRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=tuple(table.schema[a.column] for a in axes)),
            axes=axes,
            cells=cells,
            counts=counts,
            noise_rate=rate,
            threshold=threshold,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of one cell, of all cells at once, and of the total.

        The noise does not depend on the number of records; `n_records` only relates it to them.
        """
        require_rate(epsilon)
        axes = self._axes(schema)
        cells = prod(axis.size for axis in axes)
        threshold = self._threshold(schema, axes, epsilon)
        figures = {"cells": float(cells)} | count_errors(epsilon, cells, threshold)
        if n_records:
            figures["records_per_cell"] = n_records / cells
        if threshold is None:
            reach = figures["one_cell_95"]
            summary = f"{cells:,} cells; each count within {reach:,.0f} of the truth (95 %)"
            return ExpectedError(summary, figures, target="one_cell_95")
        reach = figures["all_cells_95"]
        summary = (
            f"{cells:,} cells, those at or above {threshold:,} published; all published counts "
            f"within {reach:,.0f} of the truth (95 %)"
        )
        return ExpectedError(summary, figures, target="all_cells_95")

    def _axes(self, schema: Schema) -> tuple[Axis, ...]:
        if schema.unit is not None:
            raise InvalidParameter(
                f"histogram protects single records, but this schema's unit is {schema.unit!r}, "
                "which may own many rows; use topk, or a table with one row per unit"
            )
        chosen = parse_columns(self.columns, schema)
        if RESERVED & {name for name, _ in chosen}:
            raise InvalidParameter(f"rename the columns {', '.join(sorted(RESERVED))} first")
        return tuple(schema[name].axis(level) for name, level in chosen)

    def _threshold(self, schema: Schema, axes: tuple[Axis, ...], epsilon: Fraction) -> int | None:
        cells = prod(axis.size for axis in axes)
        if self.threshold is not None:
            # The kernel refuses domains that are too large, before anything is paid or read.
            SparseCounts(schema, tuple((axis.column, axis.level) for axis in axes))
            auto = self.threshold == "auto"
            threshold = auto_threshold(cells, epsilon) if auto else int(self.threshold)
            require_sparse(cells, threshold, epsilon)
            return threshold
        if cells > MAX_DENSE_CELLS:
            raise InvalidParameter(
                f"{cells:,} cells are too many to publish one by one (at most "
                f"{MAX_DENSE_CELLS:,}); coarsen columns with name@level, or add --threshold auto"
            )
        return None

"""Histogram: noisy counts of every cell of a few columns."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar, Literal

import numpy as np

from dpublish.accuracy.intervals import count_errors
from dpublish.aggregates.counts import Counts
from dpublish.aggregates.sparse_counts import SparseCounts
from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.noisy_size import RESERVED, NoisySize
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema, listed_names, needs_contribution, parse_columns
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.sparse_counts import auto_threshold, require_sparse
from dpublish.methods.histogram.released import HistogramRelease

MAX_DENSE_CELLS = 20_000_000


SIZE_SHARE = Fraction(1, 20)
"""Part of epsilon for the number of records, where cells below a threshold are not published."""


@dataclass(frozen=True, kw_only=True)
class Histogram(Method[HistogramRelease]):
    """Publish noisy counts of every combination of a few columns.

    Each count gets two-sided geometric (discrete Laplace) noise of its own.  Choose it when a
    few columns matter and every count needs a confidence interval; with a `threshold` it also
    suits domains of up to 2^62 cells, most of them empty.  Choose `Privelet` or `PSD` for long
    ranges of numbers, and a synthetic table such as `PrivBayes` when many columns matter.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  A record lies in
        one cell, so all counts together change by 1.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        threshold: Publish only cells whose noisy count is at least this; `"auto"` chooses it
            so that about one empty cell passes.  None publishes every cell.

    Returns:
        A `HistogramRelease` with `count(query)`, `marginal(column)`, `rows(n)`, `tables()`.

    Example:
        >>> from dpublish import Budget, Histogram, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = Histogram(columns=("education", "sex"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.count("sex = Female"))
        1,001 (95 % confidence interval 994 to 1,008)

    Reference:
        A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy
        Mechanisms", STOC 2009; for the threshold G. Cormode, C. Procopiuc, D. Srivastava,
        T. Tran, "Differentially Private Summaries for Sparse Data", ICDT 2012.
    """

    name: ClassVar[str] = "histogram"
    proofs: ClassVar[tuple[str, ...]] = ("exact",)
    task: ClassVar[str] = "counting"
    publishes: ClassVar[str] = (
        "noisy counts of every combination of a few columns; range counts and rows follow for free"
    )
    prefer_when: ClassVar[str] = "a few columns matter, and every count needs a confidence interval"
    standing: ClassVar[Standing] = "default"

    columns: tuple[str, ...] = setting(
        "Columns to count by; age@2 takes the column at level 2 of its taxonomy (0 is the root)."
    )
    threshold: int | Literal["auto"] | None = setting(
        "Publish only cells whose noisy count reaches this; auto picks it from the number of "
        "cells and epsilon so that about one empty cell passes. Needed for huge domains.",
        default=None,
    )

    def __post_init__(self) -> None:
        if not isinstance(self.columns, tuple) or not self.columns:
            raise InvalidParameter("columns must name at least one column")
        if self.threshold is not None and self.threshold != "auto":
            require_count(threshold=self.threshold)
            object.__setattr__(self, "threshold", int(self.threshold))  # a NumPy integer, too

    def _release(self, run: Run) -> HistogramRelease:
        """Publish the histogram.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: the
            record lies in one cell, so the vector of all cells, empty ones included, moves
            by 1 in all, and each gets two-sided geometric noise of rate epsilon.  The
            sparse form has the same distribution as adding noise to every cell of the public
            domain and dropping those below the public threshold; it spends a part of epsilon
            on the number of counted records, which moves by 1.  Estimates, rows and answers
            are computed from the noisy numbers alone.
        """
        axes = self._axes(run.schema)
        threshold = self._threshold(run.schema, axes, run.epsilon)
        columns = tuple((axis.column, axis.level) for axis in axes)
        # Opened before any row is read: a share that is already used stops here.
        if threshold is None:
            share = run.split(counts=1)["counts"]
            dense = Counts(run.schema, (columns,))
            rate = run.epsilon / dense.sensitivity(run.neighbors)
            counts = run.add_noise(run.sum(dense), of=dense, budget=share)
            cells = np.arange(counts.size, dtype=np.int64)
            records = None
        else:
            shares = run.split(counts=1 - SIZE_SHARE, size=SIZE_SHARE)
            sparse = SparseCounts(run.schema, columns)
            sensitivity = sparse.sensitivity(run.neighbors)
            rate = shares["counts"].epsilon / sensitivity
            occupied = run.sum(sparse).compact()
            cells, counts = run.sparse_counts(
                occupied.keys,
                occupied.counts,
                domain_size=sparse.domain_size,
                threshold=threshold,
                sensitivity=sensitivity,
                budget=shares["counts"],
            )
            size = run.add_noise(
                occupied.counts.sum(keepdims=True), of=sparse, budget=shares["size"]
            )
            records = NoisySize(int(size[0]), shares["size"].epsilon / sensitivity)
        run.step(1, 1, "histogram")
        return HistogramRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=tuple(run.schema[a.column] for a in axes)),
            axes=axes,
            cells=cells,
            counts=counts,
            noise_rate=rate,
            threshold=threshold,
            records=records,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names(self.columns, schema)

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
        rate = epsilon if threshold is None else _counting_part(epsilon)
        figures = {"cells": float(cells)} | count_errors(rate, cells, threshold)
        if n_records:
            figures["records_per_cell"] = n_records / cells
        if threshold is None:
            width = figures["one_cell_95"]
            summary = f"{cells:,} cells; each count within {width:,.0f} of the truth (95 %)"
            return ExpectedError(summary, figures, target="one_cell_95")
        width = figures["all_cells_95"]
        summary = (
            f"{cells:,} cells, those at or above {threshold:,} published; all published counts "
            f"within {width:,.0f} of the truth (95 %)"
        )
        return ExpectedError(summary, figures, target="all_cells_95")

    def _axes(self, schema: Schema) -> tuple[Axis, ...]:
        if schema.unit is not None:
            raise needs_contribution(schema, self.name)
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
            rate = _counting_part(epsilon)
            threshold = auto_threshold(cells, rate) if auto else int(self.threshold)
            require_sparse(cells, threshold, rate)
            return threshold
        if cells > MAX_DENSE_CELLS:
            raise InvalidParameter(
                f"{cells:,} cells are too many to publish one by one (at most "
                f"{MAX_DENSE_CELLS:,}); coarsen columns with name@level, or add --threshold auto"
            )
        return None


def _counting_part(epsilon: Fraction) -> Fraction:
    """Return what is spent on the cells above a threshold; the rest on the number of records."""
    return epsilon * (1 - SIZE_SHARE)

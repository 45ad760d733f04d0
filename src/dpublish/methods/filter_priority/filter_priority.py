"""FilterPriority: a weighted sample of the largest noisy cells of a huge domain."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import count_errors
from dpublish.aggregates.sparse_counts import SparseCounts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.sparse_counts import auto_threshold, require_sparse
from dpublish.methods.filter_priority.released import TABLE_COLUMNS, FilterPriorityRelease
from dpublish.methods.histogram.domain import (
    COUNTED_COLUMNS,
    counted_columns,
    counted_names,
    require_few,
    require_names,
)
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

MOST_SAMPLED = 1_000_000


class Sampled(NamedTuple):
    """Which items were kept, in order, and the cutoff below which they were kept at random."""

    kept: NDArray[np.intp]
    cutoff: float


@dataclass(frozen=True, kw_only=True)
class FilterPriority(Method[FilterPriorityRelease]):
    """Publish a weighted sample of the largest noisy counts of a huge domain.

    Every cell of the domain gets noise, small counts are dropped, and a priority sample of the
    rest is kept: its weights add up to the noisy counts on average.  Choose it when the columns
    have far more cells than records and the result must stay small; choose `Histogram` with a
    threshold when all cells that pass may be published.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/cell_sample.md.

    Parameters:
        columns: Columns to count by, each value or bin apart; all numeric, integer and ordinal
            columns if none is named.
        sample: Most cells to publish.
        threshold: Least noisy count that is published; `"auto"` chooses it so that about one
            empty cell passes.

    Returns:
        A `FilterPriorityRelease` with `count(query)`, `marginal(column)`, `rows(n)`,
        `tables()`.  Its counts have no confidence interval: what the threshold hides is unknown.

    Example:
        >>> from dpublish import Budget, FilterPriority, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = FilterPriority(columns=("sex", "education", "region"), sample=20)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.summary()["published"])
        20 of 48 cells, noisy count at least 4, those below 99 at random

    Reference:
        G. Cormode, C. Procopiuc, D. Srivastava, T. Tran, "Differentially Private Summaries for
        Sparse Data", ICDT 2012; the sampling after N. Duffield, C. Lund, M. Thorup, "Priority
        Sampling for Estimation of Arbitrary Subset Sums", J. ACM 54(6), 2007.
    """

    name: ClassVar[str] = "filter-priority"
    proofs: ClassVar[tuple[str, ...]] = ("cell_sample", "exact")
    task: ClassVar[str] = "counting"
    publishes: ClassVar[str] = (
        "a weighted sample of the largest noisy cells; counts and rows follow for free"
    )
    prefer_when: ClassVar[str] = "the domain is huge, and many records are equal in all columns"

    columns: tuple[str, ...] = setting(COUNTED_COLUMNS, default=())
    sample: int = setting("Most cells to publish.", default=10_000)
    threshold: int | Literal["auto"] = setting(
        "Least noisy count that is published; auto picks it from the number of cells and "
        "epsilon so that about one empty cell passes.",
        default="auto",
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_count(sample=self.sample)
        object.__setattr__(self, "sample", int(self.sample))  # a NumPy integer, too
        if self.sample > MOST_SAMPLED:
            raise InvalidParameter(f"sample ({self.sample}) must be at most {MOST_SAMPLED:,}")
        if self.threshold != "auto":
            require_count(threshold=self.threshold)
            object.__setattr__(self, "threshold", int(self.threshold))

    def _release(self, run: Run) -> FilterPriorityRelease:
        """Publish a sample of the noisy cells.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: the
            record lies in one cell, so the vector of all cells of the public domain, empty
            ones included, moves by 1 in all.  `sparse_counts` has the distribution of adding
            noise of rate epsilon to every cell and dropping those below the public threshold.
            The sample is drawn from these noisy cells alone, so it is post-processing.
            Proof: docs/proofs/cell_sample.md.
        """
        kernel, threshold = self._plan(run.schema, run.epsilon)
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(counts=1)["counts"]
        occupied = run.sum(kernel).compact()
        noisy = run.sparse_counts(
            occupied.keys,
            occupied.counts,
            domain_size=kernel.domain_size,
            threshold=threshold,
            sensitivity=kernel.sensitivity(run.neighbors),
            budget=share,
        )
        kept, cutoff = priority_sample(noisy.counts, self.sample, run.rng)
        run.step(1, 1, "sample")
        return FilterPriorityRelease(
            receipt=run.receipt(),
            schema=replace(
                run.schema, columns=tuple(run.schema[axis.column] for axis in kernel.axes)
            ),
            cells=noisy.keys[kept],
            counts=noisy.counts[kept],
            cutoff=cutoff,
            sample=self.sample,
            threshold=threshold,
            noise_rate=share.epsilon,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return counted_names(schema, self.columns)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of published counts; what the threshold hides is not known."""
        require_rate(epsilon)
        kernel, threshold = self._plan(schema, epsilon)
        figures = {"cells": float(kernel.domain_size)}
        figures |= count_errors(epsilon, kernel.domain_size, threshold)
        if n_records:
            figures["records_per_cell"] = n_records / kernel.domain_size
        summary = (
            f"{kernel.domain_size:,} cells, at most {self.sample:,} of those at or above "
            f"{threshold:,} published; noisy counts within {figures['all_cells_95']:,.0f} of the "
            "truth (95 %)"
        )
        return ExpectedError(summary, figures, target="all_cells_95")

    def _plan(self, schema: Schema, epsilon: Fraction) -> tuple[SparseCounts, int]:
        """Decide from the schema what is counted and published, and refuse what is too large."""
        columns = counted_columns(schema, self.columns)
        require_few(columns)
        if TABLE_COLUMNS & {column.name for column in columns}:
            raise InvalidParameter(f"rename the columns {', '.join(sorted(TABLE_COLUMNS))} first")
        # The kernel refuses domains that are too large, before anything is paid or read.
        kernel = SparseCounts(schema, tuple((column.name, None) for column in columns))
        auto = self.threshold == "auto"
        cells = kernel.domain_size
        threshold = auto_threshold(cells, epsilon) if auto else int(self.threshold)
        require_sparse(cells, threshold, epsilon)
        return kernel, threshold


def priority_sample(counts: IntArray, size: int, rng: RandomSource) -> Sampled:
    """Keep the `size` items of highest priority: count / u, with u uniform on (0, 1].

    With the next highest priority as cutoff, max(count, cutoff) of the kept items adds up to
    the sum of all counts on average, and so it is for any part of them.  Counts are positive.
    """
    if counts.size <= size:
        return Sampled(np.arange(counts.size), 0.0)
    uniform = ((rng.words(counts.size) >> np.uint64(11)).astype(np.float64) + 1) / 2**53
    priorities = counts / uniform
    order = np.argsort(-priorities, kind="stable")
    return Sampled(np.sort(order[:size]), float(priorities[order[size]]))

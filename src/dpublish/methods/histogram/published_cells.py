"""Add noise to counts: of every cell of a domain, or of those that reach a threshold."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpublish.aggregates.sparse_counts import OccupiedCells
from dpublish.core.method import Method, Run, setting
from dpublish.core.noisy_size import RESERVED
from dpublish.core.task import Task, task_names
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.sparse_counts import NoisyCells
from dpublish.methods.histogram.released import LabeledHistogramRelease
from dpublish.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class LabeledHistogramMethod(Method[LabeledHistogramRelease]):
    """What methods share that publish class counts over cells of chosen predictors."""

    task: ClassVar[str] = "classification"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(
        "Columns that may predict the class; all others, unless named.", default=()
    )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

    def class_task(self, schema: Schema) -> Task:
        """Find the target and its predictors, by the settings and the schema alone."""
        return Task.of(schema, target=self.target, predictors=self.predictors)


def require_free_names(task: Task) -> None:
    """Refuse columns that are called like columns of the published table."""
    if RESERVED & {column.name for column in (*task.predictors, task.target)}:
        raise InvalidParameter(f"rename the columns {', '.join(sorted(RESERVED))} first")


def add_noise_to_cells(
    run: Run,
    occupied: OccupiedCells,
    size: int,
    threshold: int | None,
    *,
    budget: Budget,
) -> NoisyCells:
    """Publish noisy counts of a domain of `size` cells, of which some are occupied.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: it lies
        in one cell, so all counts of the domain, empty cells included, change by 1 in all.
        That is the sensitivity given to `run.add_noise` or `run.sparse_counts`.
    """
    if threshold is not None:
        return run.sparse_counts(
            occupied.keys,
            occupied.counts,
            domain_size=size,
            threshold=threshold,
            sensitivity=1,
            budget=budget,
        )
    counts = np.zeros(size, dtype=np.int64)
    counts[occupied.keys] = occupied.counts
    noisy = run.add_noise(counts, sensitivity=1, budget=budget)
    return NoisyCells(np.arange(size, dtype=np.int64), noisy)

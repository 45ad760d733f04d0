"""How many predictors a projected histogram takes, and into which cells each is cut.

All of it follows from the public schema and from a number of records that was perturbed first.
"""

from dataclasses import dataclass
from math import floor, log, prod, sqrt
from typing import Literal

from dpublish.aggregates.sparse_counts import MAX_DOMAIN
from dpublish.core.task import Task
from dpublish.data.axis import Axis
from dpublish.data.column import Column, NumberColumn
from dpublish.data.cut import cut_axis

AUTO = "auto"


@dataclass(frozen=True)
class Plan:
    """The predictors to choose from, each cut into cells, and how many of them to choose."""

    axes: tuple[Axis, ...]
    chosen: int

    @property
    def rounds(self) -> int:
        """How many choices have to be made: none, if all predictors are taken."""
        return self.chosen if self.chosen < len(self.axes) else 0

    @classmethod
    def of(cls, task: Task, attributes: int | Literal["auto"], records: int) -> "Plan":
        """Plan for so many predictors; auto takes as many as leave the cells well filled.

        The grid with the most cells that so many predictors can have must not have more than
        `cell_limit`; a single predictor is always taken.
        """
        if isinstance(attributes, int):
            axes = useful_axes(task, min(attributes, len(task.predictors)), records)
            return cls(axes, min(attributes, len(axes)))
        limit = min(cell_limit(records), (MAX_DOMAIN - 1) // task.target.size)
        for count in range(len(task.predictors), 1, -1):
            axes = useful_axes(task, count, records)
            largest = sorted((axis.size for axis in axes), reverse=True)[:count]
            if len(largest) == count and prod(largest) <= limit:
                return cls(axes, count)
        axes = useful_axes(task, 1, records)
        return cls(axes, min(1, len(axes)))


def cell_limit(records: int) -> float:
    """Return how many cells so many records fill well: N / sqrt(ln N).

    >>> round(cell_limit(40_000)), cell_limit(-7)
    (12288, 1.0)
    """
    return records / sqrt(log(records)) if records >= 3 else 1.0


def useful_axes(task: Task, attributes: int, records: int) -> tuple[Axis, ...]:
    """Cut each predictor into cells; one that is left with a single cell is of no use."""
    limit = cell_limit(records)
    bins = floor(limit ** (2 / (2 + attributes)))
    axes = (
        fit_axis(column, bins if isinstance(column, NumberColumn) else floor(limit))
        for column in task.predictors
    )
    return tuple(axis for axis in axes if axis.size > 1)


def fit_axis(column: Column, most: int) -> Axis:
    """Take the finest level of a column that has at most so many cells.

    Numbers that have no levels between root and leaves are merged into equal runs of leaves.

    >>> from dpublish.data.schema import column
    >>> fit_axis(column("age", "integer", bounds=[0, 99]), 4).labels
    ('0..24', '25..49', '50..74', '75..99')
    """
    if isinstance(column, NumberColumn) and column.height == 1 and column.size > most:
        ordinary, special = column.partition.size, column.size - column.partition.size
        runs = max(most - special, 1)
        if runs + special <= max(most, 1):
            starts = [run * ordinary // runs for run in range(runs)]
            return cut_axis(column, [*starts, *range(ordinary, column.size)])
    sizes = [len(level.starts) for level in column.taxonomy.levels]
    return column.axis(max(level for level, size in enumerate(sizes) if size <= max(most, 1)))

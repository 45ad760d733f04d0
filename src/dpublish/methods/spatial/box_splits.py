"""A tree of boxes that grows by one level at a time, each box cut in two along one column.

The tree is public: cuts are private choices that are paid for, or lie in the middle.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpublish.data.table import Table
from dpublish.mechanisms.selection import select
from dpublish.methods.spatial.box_domain import BoxDomain
from dpublish.methods.spatial.kernels import BoxCells, TreeRoute
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

MOST_RUNS = 1024
"""A median is looked for among the ends of at most so many runs of leaves."""


@dataclass(frozen=True, eq=False)
class Level:
    """The boxes of one depth.

    Attributes:
        lows: First leaf of each box along each column.
        highs: The leaf after the last.
        parents: The place of each box's parent in the level above.
        turns: How often each column was cut on the way to each box.
    """

    lows: IntArray
    highs: IntArray
    parents: IntArray
    turns: IntArray

    def can_cut(self) -> NDArray[np.bool_]:
        """Say which boxes hold more than one leaf of some column."""
        return np.asarray(np.any(self.highs - self.lows > 1, axis=1))

    def next_columns(self, sizes: tuple[int, ...]) -> IntArray:
        """Choose the column to cut each box along, from public facts.

        Columns take turns; of those whose turn it is, the one along which the box takes up
        most of the domain, then the first.
        """
        extents = self.highs - self.lows
        waits = np.where(extents > 1, self.turns - extents / (np.array(sizes) + 1.0), np.inf)
        return np.asarray(np.argmin(waits, axis=1), dtype=np.int64)

    def middles(self, columns: IntArray) -> IntArray:
        """Cut each box in the middle of a column; a box of one leaf is left whole."""
        boxes = np.arange(columns.size)
        low, high = self.lows[boxes, columns], self.highs[boxes, columns]
        return np.where(self.can_cut(), low + (high - low) // 2, high)

    def cut(self, columns: IntArray, cuts: IntArray) -> "Level":
        """Make the boxes below; one that is left whole is its own only part."""
        parts = 1 + self.can_cut().astype(np.int64)
        above = np.repeat(np.arange(parts.size), parts)
        rows = np.arange(above.size)
        is_upper = np.concatenate(([False], above[1:] == above[:-1]))
        lows, highs, turns = (a[above].copy() for a in (self.lows, self.highs, self.turns))
        along, at = columns[above], cuts[above]
        lows[rows[is_upper], along[is_upper]] = at[is_upper]
        highs[rows[~is_upper], along[~is_upper]] = at[~is_upper]
        turns[rows, along] += 1
        return Level(lows, highs, above, turns)


@dataclass(eq=False)
class Growth:
    """The tree so far, level by level."""

    domain: BoxDomain
    levels: list[Level] = field(default_factory=list)
    columns: list[IntArray] = field(default_factory=list)
    cuts: list[IntArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        low, high = self.domain.low, self.domain.high
        self.levels.append(Level(low, high, np.zeros(1, dtype=np.int64), np.zeros_like(low)))

    @property
    def last(self) -> Level:
        """The boxes at the end."""
        return self.levels[-1]

    def grow(self, columns: IntArray, cuts: IntArray) -> None:
        """Cut every box at the end in two."""
        self.levels.append(self.last.cut(columns, cuts))
        self.columns.append(columns)
        self.cuts.append(cuts)

    def kernel(self, parts: IntArray) -> BoxCells:
        """Ask for the counts of parts of the boxes at the end."""
        last = self.last
        ends = np.zeros(last.parents.size, dtype=np.int64)
        first = sum(level.parents.size for level in self.levels[:-1])
        children = [np.flatnonzero(np.diff(one.parents, prepend=-1)) for one in self.levels[1:]]
        starts = np.cumsum([level.parents.size for level in self.levels])
        numbered = [start + below for start, below in zip(starts, children, strict=False)]
        route = TreeRoute(
            np.concatenate([*self.columns, ends - 1]),
            np.concatenate([*self.cuts, ends]),
            np.concatenate([*numbered, ends]),
            first,
        )
        return BoxCells(self.domain.names, route, last.lows, last.highs, parts)

    def sum_up(self, counts: IntArray) -> list[IntArray]:
        """Add the counts of the boxes at the end up, level by level from the top."""
        sums = [counts]
        for level in reversed(self.levels[1:]):
            above = np.zeros(int(level.parents[-1]) + 1, dtype=np.int64)
            np.add.at(above, level.parents, sums[-1])
            sums.append(above)
        return sums[::-1]


def cut_at_medians(growth: Growth, table: Table, *, budget: Budget, rng: RandomSource) -> None:
    """Cut every box at the end near the median of its records.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        boxes are public and disjoint, so a record lies in one of them, and each may spend the
        whole budget (parallel composition).  The candidates of a box are the ends of public
        runs of leaves, scored by minus the difference between the numbers of records on both
        sides.  A record moves each score by 1, up or down, so two scores' changes differ by
        R = 2 at most, which is what `select` is told.
    """
    level = growth.last
    columns = level.next_columns(growth.domain.sizes)
    cuts = level.middles(columns)
    boxes = np.flatnonzero(level.can_cut())
    if not boxes.size:
        budget.spend()  # there is nothing left to choose, which public boxes say
        growth.grow(columns, cuts)
        return
    budgets = budget.share_disjoint(f"box-{box}" for box in boxes)
    low = level.lows[boxes, columns[boxes]]
    extent = level.highs[boxes, columns[boxes]] - low
    parts = np.ones_like(level.lows)
    parts[boxes, columns[boxes]] = np.minimum(extent, MOST_RUNS)
    kernel = growth.kernel(parts)
    counts = table.sum(kernel)
    for place, box in enumerate(boxes):
        runs = counts[kernel.starts[box] : kernel.starts[box + 1]]
        chosen = select(
            median_scores(runs), sensitivity_range=2, budget=budgets[f"box-{box}"], rng=rng
        )
        cuts[box] = low[place] - (-(chosen + 1) * extent[place] // runs.size)
    growth.grow(columns, cuts)


def median_scores(runs: IntArray) -> IntArray:
    """Score the cuts between runs by minus the difference of the records on both sides.

    >>> median_scores(np.array([4, 1, 1])).tolist()
    [-2, -4]
    """
    below = np.cumsum(runs)
    return np.asarray(-np.abs(2 * below[:-1] - below[-1]))

"""PSD: a tree of boxes, cut at private medians first, then in the middle, counted at all depths.

The tree grows by one level at a time, each box cut in two along one column.  It is public:
cuts are private choices that are paid for, or lie in the middle.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, log2
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.spatial.box_domain import (
    MOST_BOXES,
    SIZE_SHARE,
    BoxDomain,
    BoxMethod,
    release_size,
    wanted_cells,
)
from dpublish.methods.spatial.kernels import BoxCells, TreeRoute
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

MOST_LEVELS = MOST_BOXES.bit_length() - 2  # so that all levels together have MOST_BOXES boxes
MOST_APART = 4  # columns whose missing values are cut off first
MOST_MEDIANS = 8  # levels with private medians; beyond, boxes are many and each choice is poor
MOST_RANGES = 1024
"""A median is searched among the ends of at most so many ranges of codes."""
_CONSTANT = 20  # twice that of a grid: the counts of a level have but a part of epsilon


@dataclass(frozen=True, kw_only=True)
class PSD(BoxMethod):
    """Publish noisy counts of a tree of boxes, fine where records are dense.

    Boxes are cut in two again and again: first near the median of their records, found by a
    private choice, then in the middle.  Every level is counted, so long ranges add up few
    noisy counts.  Choose it for range counts over several columns with uneven data; choose
    `AG` for two columns, `UG` for even data, `Privelet` for one long column.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record: medians and counts
        of every level have shares of their own.  Proof: docs/proofs/boxes.md.

    Parameters:
        columns: Columns to cut; all numeric, integer and ordinal columns if none is named.
        median_share: Part of epsilon, after the number of records is paid for, that is spent
            on the medians; the rest is spent on the counts.

    Returns:
        A `SpatialRelease`, its counts made consistent by least squares over the tree.  It has
        `count(query)` with a confidence interval, `count_boxes(...)`, `rows(n)`, `tables()`.

    Example:
        >>> from dpublish import PSD, Budget, datasets, seeded
        >>> loans = datasets.table("loans", 5_000)
        >>> method = PSD(columns=("age", "income", "debt"))
        >>> release = method.release(loans, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.count("age < 40 and debt >= 20000"))
        564.5 (95 % confidence interval 284.6 to 678)

    Reference:
        G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu, "Differentially Private Spatial
        Decompositions", ICDE 2012 (its hybrid form, kd-hybrid).  The number of records is a
        noisy one here, medians are exact private choices, and the least squares allow for any
        variances.
    """

    name: ClassVar[str] = "psd"
    proofs: ClassVar[tuple[str, ...]] = ("boxes", "selection", "exact")
    publishes: ClassVar[str] = (
        "noisy counts of a tree of boxes, cut at noisy medians; range counts and rows follow for "
        "free"
    )
    prefer_when: ClassVar[str] = (
        "a few ordered columns have many values, and records are dense in some regions"
    )
    standing: ClassVar[Standing] = "baseline"

    median_share: Fraction = setting(
        "Part of epsilon, after the number of records is paid for, that is spent on the medians.",
        default=Fraction(3, 10),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.median_share < 1:
            raise InvalidParameter(f"median_share ({self.median_share}) must lie between 0 and 1")

    def _release(self, run: Run) -> SpatialRelease:
        """Publish the boxes.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  A
            fiftieth is spent on the noisy number of records, which decides how many levels
            there are.  Each level of medians has a share; its boxes are disjoint and public, so
            the choices cost the largest (`cut_at_medians`).  Each level of counts has a
            share, too: a record lies in one box of it, so the counts of a level change by 1
            in all.  Every step holds for any outcome of those before it, so the shares add
            up (sequential composition).  Proof: docs/proofs/boxes.md.
        """
        domain = self._domain(run.schema, run.epsilon)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(size=SIZE_SHARE, tree=1 - SIZE_SHARE)
        size = release_size(run, domain, budget=budgets["size"])
        height = tree_height(domain, size.value, budgets["tree"].epsilon)
        medians = median_levels(height)
        shares = _share_out(budgets["tree"], self.median_share, medians, height)
        growth = Growth(domain)
        apart = set_apart(growth)
        for depth in range(height):
            if depth < medians:
                cut_at_medians(run, growth, budget=shares[f"median-{depth}"])
            else:
                columns = growth.last.next_columns(domain.sizes)
                growth.grow(columns, growth.last.middles(columns))
            run.step(depth + 1, height + 1, "boxes")
        kernel = growth.kernel(np.ones_like(growth.last.lows))
        exact = growth.sum_up(run.sum(kernel))
        budget_of = {depth: shares[f"counts-{depth}"] for depth in counted_levels(height)}
        counts = [
            run.add_noise(level, of=kernel, budget=budget_of[depth])
            if depth in budget_of
            else np.zeros_like(level)
            for depth, level in enumerate(exact, start=-apart)
        ]
        run.step(height + 1, height + 1, "counts")
        sizes = [level.parents.size for level in growth.levels]
        return SpatialRelease(
            receipt=run.receipt(),
            schema=domain.schema,
            lows=np.concatenate([level.lows for level in growth.levels]),
            highs=np.concatenate([level.highs for level in growth.levels]),
            parents=_parents(growth),
            levels=np.repeat(np.arange(len(sizes)), sizes),
            rates=tuple(
                budget_of[depth].epsilon if depth in budget_of else None
                for depth in range(-apart, height + 1)
            ),
            counts=np.concatenate(counts),
            size=size,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a box at the end, in the deepest tree that can come out."""
        domain = self._domain(schema, epsilon)
        tree = epsilon * (1 - SIZE_SHARE)
        shares = _count_weights(most_levels(domain))
        rate = tree * (1 - self.median_share) * shares[-1] / sum(shares)
        figures = {"one_box_95": float(sum_quantile(rate, 1, 0.95))}
        if n_records is not None:
            boxes = 2 ** tree_height(domain, n_records, tree)
            figures |= {"boxes": float(boxes), "records_per_box": n_records / boxes}
        summary = f"the count of a box within {figures['one_box_95']:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")

    def _domain(self, schema: Schema, epsilon: Fraction) -> BoxDomain:
        """Find the columns, and refuse an epsilon too small for the deepest tree."""
        domain = BoxDomain.choose(self.columns, schema, epsilon)
        tree = epsilon * (1 - SIZE_SHARE)
        height = most_levels(domain)
        weights = _count_weights(height)
        require_rate(tree * (1 - self.median_share) * weights[0] / sum(weights))
        selection_rate(tree * self.median_share / max(median_levels(height), 1), 2)
        return domain


def most_levels(domain: BoxDomain) -> int:
    """Return how deep a tree may become: until all boxes are single cells, or too many."""
    apart = len(_set_apart_columns(domain))
    return min(ceil(sum(log2(size) for size in domain.sizes)), MOST_LEVELS - apart)


def tree_height(domain: BoxDomain, size: int, epsilon: Fraction) -> int:
    """Compute how often to cut boxes in two, for a noisy number of records."""
    boxes = wanted_cells(np.array([size]), epsilon, domain.dimensions, _CONSTANT)[0]
    return min(floor(log2(boxes)), most_levels(domain))


def median_levels(height: int) -> int:
    """Return how many levels are cut at medians: the first half, where boxes hold many records."""
    return min(ceil(height / 2), MOST_MEDIANS)


def set_apart(growth: "Growth") -> int:
    """Cut off the codes of missing and unlisted values; return how many cuts that took.

    These codes come after all others and are not part of the order, so no box should hold
    both.  The cuts are public and cost nothing.  Of very many such columns only the first are
    cut.
    """
    columns = _set_apart_columns(growth.domain)
    for column in columns:
        boxes = growth.last.parents.size
        at = growth.domain.schema.columns[column].axis().ordinary_leaves
        growth.grow(np.full(boxes, column, dtype=np.int64), np.full(boxes, at, dtype=np.int64))
    return len(columns)


def _set_apart_columns(domain: BoxDomain) -> list[int]:
    columns = enumerate(domain.schema.columns)
    return [index for index, column in columns if column.axis().special][:MOST_APART]


def counted_levels(height: int) -> range:
    """Return which levels have counts: all but the root, whose number of records is known."""
    return range(min(height, 1), height + 1)


def _count_weights(height: int) -> list[int]:
    """Weigh the levels of counts: each gets about 2^(1/3) times as much as the one above."""
    return [round(64 * 2 ** (depth / 3)) for depth in counted_levels(height)]


def _share_out(
    budget: Budget, median_share: Fraction, medians: int, height: int
) -> dict[str, Budget]:
    """Split the budget: a share for each level of medians and for each level of counts."""
    weights = _count_weights(height)
    share = median_share if medians else Fraction(0)
    named = {f"median-{depth}": share / medians for depth in range(medians)}
    for depth, weight in zip(counted_levels(height), weights, strict=True):
        named[f"counts-{depth}"] = (1 - share) * Fraction(weight, sum(weights))
    return budget.split(**named)


def _parents(growth: "Growth") -> IntArray:
    """Number all boxes, and return the number of the box around each."""
    sizes = [level.parents.size for level in growth.levels]
    starts = np.cumsum([0, *sizes])
    below = [start + level.parents for start, level in zip(starts, growth.levels[1:], strict=False)]
    return np.concatenate([[-1], *below])


@dataclass(frozen=True, eq=False)
class Level:
    """The boxes of one depth.

    Attributes:
        lows: First code of each box along each column.
        highs: The code after the last.
        parents: The index of each box's parent in the level above.
        turns: How often each column was cut on the way to each box.
    """

    lows: IntArray
    highs: IntArray
    parents: IntArray
    turns: IntArray

    def can_cut(self) -> NDArray[np.bool_]:
        """Mark the boxes that hold more than one code of some column."""
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
        """Cut each box in the middle of a column; a box of one code is left whole."""
        boxes = np.arange(columns.size)
        low, high = self.lows[boxes, columns], self.highs[boxes, columns]
        return np.where(self.can_cut(), low + (high - low) // 2, high)

    def cut(self, columns: IntArray, cuts: IntArray) -> "Level":
        """Build the boxes below; one that is left whole is its own only part."""
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
        """Build the kernel that counts parts of the boxes at the end."""
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


def cut_at_medians(run: Run, growth: Growth, *, budget: Budget) -> None:
    """Cut every box at the end near the median of its records.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        boxes are public and disjoint, so a record lies in one of them, and each may spend the
        whole budget (parallel composition).  The candidates of a box are the ends of public
        ranges of codes, scored by minus the difference between the numbers of records on both
        sides.  A record moves each score by 1, up or down, so two scores' changes differ by
        R = 2 at most, which is the range that `run.select` gets.
    """
    level = growth.last
    columns = level.next_columns(growth.domain.sizes)
    cuts = level.middles(columns)
    boxes = np.flatnonzero(level.can_cut())
    if not boxes.size:
        budget.spend()  # there is nothing left to choose, as the public boxes show
        growth.grow(columns, cuts)
        return
    budgets = budget.share_disjoint(f"box-{box}" for box in boxes)
    low = level.lows[boxes, columns[boxes]]
    extent = level.highs[boxes, columns[boxes]] - low
    parts = np.ones_like(level.lows)
    parts[boxes, columns[boxes]] = np.minimum(extent, MOST_RANGES)
    kernel = growth.kernel(parts)
    counts = run.sum(kernel)
    for index, box in enumerate(boxes):
        ranges = counts[kernel.starts[box] : kernel.starts[box + 1]]
        chosen = run.select(
            median_scores(ranges), sensitivity_range=2, budget=budgets[f"box-{box}"]
        )
        cuts[box] = low[index] - (-(chosen + 1) * extent[index] // ranges.size)
    growth.grow(columns, cuts)


def median_scores(ranges: IntArray) -> IntArray:
    """Score the cuts between ranges by minus the difference of the records on both sides.

    >>> median_scores(np.array([4, 1, 1])).tolist()
    [-2, -4]
    """
    below = np.cumsum(ranges)
    return np.asarray(-np.abs(2 * below[:-1] - below[-1]))

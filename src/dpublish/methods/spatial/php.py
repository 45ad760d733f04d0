"""P-HP: hierarchical partitioning, which cuts the domain in two where records are uneven."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.sparse_counts import MAX_DOMAIN, OccupiedCells, SparseCounts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.domain import (
    COUNTED_COLUMNS,
    counted_columns,
    counted_names,
    require_few,
    require_names,
)
from dpublish.methods.spatial.box_domain import SIZE_SHARE
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

MAX_DEPTH = 12
CUT_SHARE = Fraction(1, 2)
SCORE_STEP = 16  # scores count sixteenths of a record
SCORE_RANGE = 2 * SCORE_STEP
_RECORDS_PER_BOX = 40  # times epsilon: with fewer, noise would choose the cuts


@dataclass(frozen=True, kw_only=True)
class PHP(Method[SpatialRelease]):
    """Publish noisy counts of boxes, cut in two where records are distributed unevenly.

    The box of all cells is cut in two again and again, each time where both parts differ most
    from an even share of the records; only the final boxes are counted.  Empty cells are not
    listed, so the domain may be huge (below 2^62 cells).  Choose it for large areas of similar
    counts; choose `PSD` or `AG` for many columns, `Histogram` where every cell matters.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/partition.md.

    Parameters:
        columns: Columns to count by, each value or bin apart; all numeric, integer and ordinal
            columns if none is named.
        depth: How often every box is cut in two; None derives it from the noisy number of
            records and epsilon.

    Returns:
        A `SpatialRelease` with `count(query)`, `count_boxes(...)`, `rows(n)`, `tables()`; within
        a box records count as evenly distributed.

    Example:
        >>> from dpublish import PHP, Budget, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> release = PHP(columns=("age", "hours"), depth=6).release(
        ...     people, budget=Budget.seeded("1"), rng=seeded(7)
        ... )
        >>> release.ends.size  # boxes that are not cut again
        59

    Reference:
        G. Acs, C. Castelluccia, R. Chen, "Differentially Private Histogram Publishing through
        Lossy Compression", ICDM 2012; here with a score whose sensitivity is a constant.
    """

    name: ClassVar[str] = "p-hp"
    proofs: ClassVar[tuple[str, ...]] = ("partition", "selection", "exact")
    task: ClassVar[str] = "counting"
    publishes: ClassVar[str] = (
        "noisy counts of boxes that are cut where records are uneven; range counts and rows follow"
        " for free"
    )
    prefer_when: ClassVar[str] = (
        "a few ordered columns matter together, and records are dense in part of the domain"
    )

    columns: tuple[str, ...] = setting(COUNTED_COLUMNS, default=())
    depth: int | None = setting(
        "How often every box is cut in two; unless given, it follows from the noisy number of "
        "records and epsilon.",
        default=None,
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        if self.depth is not None:
            require_count(depth=self.depth)
            object.__setattr__(self, "depth", int(self.depth))  # a NumPy integer, too
            if self.depth > MAX_DEPTH:
                raise InvalidParameter(f"depth ({self.depth}) must be at most {MAX_DEPTH}")

    def _release(self, run: Run) -> SpatialRelease:
        """Publish a partition of the domain with noisy counts.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy size costs its share; the depth follows from it and the schema.  The boxes
            of a level are disjoint and known from the level above, and their cuts cost one
            share for all (`choose_cuts`).  A record lies in one final box, so their counts
            move by 1 in all and get two-sided geometric noise of their share.  A level where
            no box can be cut any more is paid for all the same.
            Proof: docs/proofs/partition.md.
        """
        columns = self._plan(run.schema, run.epsilon)
        shares = run.split(size=SIZE_SHARE, cuts=CUT_SHARE, counts=1 - SIZE_SHARE - CUT_SHARE)
        kernel = _kernel(run.schema, columns)
        cells = OccupiedBox.of(kernel, run.sum(kernel).compact())
        records = run.noisy_size(cells.records, budget=shares["size"])
        size = NoisySize(records, shares["size"].epsilon)
        depth = self._depth(columns, records, run.epsilon)
        boxes, parents, held = cut_again(run, cells, depth, budget=shares["cuts"])
        rate = shares["counts"].epsilon
        is_end = np.ones(len(boxes), dtype=np.bool_)
        is_end[[parent for parent in parents if parent >= 0]] = False
        exact = np.array(held, dtype=np.int64)[is_end]
        counts = np.zeros(len(boxes), dtype=np.int64)
        counts[is_end] = run.add_noise(exact, sensitivity=1, budget=shares["counts"])
        return SpatialRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=columns),
            lows=np.array([box.lows for box in boxes], dtype=np.int64),
            highs=np.array([box.highs for box in boxes], dtype=np.int64),
            parents=np.array(parents, dtype=np.int64),
            levels=is_end.astype(np.int64),
            rates=(None, rate),
            counts=counts,
            size=size,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return counted_names(schema, self.columns)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise in a box; how unevenly records lie in it is not known."""
        require_rate(epsilon)
        columns = self._plan(schema, epsilon)
        depth = self._depth(columns, n_records, epsilon)
        boxes = min(2**depth, prod(column.size for column in columns))
        rate = epsilon * (1 - SIZE_SHARE - CUT_SHARE)
        width = float(sum_quantile(rate, 1, 0.95))
        figures = {"one_box_95": width, "most_boxes": float(boxes)}
        summary = f"at most {boxes:,} boxes; each count within {width:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")

    def _plan(self, schema: Schema, epsilon: Fraction) -> tuple[Column, ...]:
        """Find the columns, and refuse what is too large or too poor to be cut."""
        columns = counted_columns(schema, self.columns)
        require_few(columns)
        _kernel(schema, columns)  # refuses domains that are too large
        require_rate(epsilon * SIZE_SHARE)
        require_rate(epsilon * CUT_SHARE / (MAX_DEPTH * SCORE_RANGE))
        return columns

    def _depth(self, columns: tuple[Column, ...], records: int | None, epsilon: Fraction) -> int:
        """Choose the depth: boxes hold some records for each unit of noise, on average.

        Without a number of records it is the largest that any number leads to.
        """
        if self.depth is not None:
            return self.depth
        cells = prod(column.size for column in columns)
        most = min(MAX_DEPTH, max((cells - 1).bit_length(), 1))
        depth = 1 if records is not None else most
        while (
            records is not None
            and depth < most
            and records * epsilon >= _RECORDS_PER_BOX * 2 ** (depth + 1)
        ):
            depth += 1
        return depth


def _kernel(schema: Schema, columns: tuple[Column, ...]) -> SparseCounts:
    if prod(column.size for column in columns) >= MAX_DOMAIN:
        raise InvalidParameter(
            "the columns have 2**62 cells or more, too many to number; take fewer columns, or "
            "columns with fewer bins"
        )
    return SparseCounts(schema, tuple((column.name, None) for column in columns))


class Box(NamedTuple):
    """A box of cells: low <= code < high along each column; public once it is chosen."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]

    @property
    def cuts(self) -> int:
        """Number of ways to cut it in two."""
        return sum(self.highs) - sum(self.lows) - len(self.lows)

    def where(self, number: int) -> tuple[int, int]:
        """Find one of its cuts, numbered along the first column, then the next.

        Returns:
            The column, and the first code right of the cut.
        """
        column = 0
        while number >= self.highs[column] - self.lows[column] - 1:
            number -= self.highs[column] - self.lows[column] - 1
            column += 1
        return column, self.lows[column] + number + 1

    def cut(self, number: int) -> tuple["Box", "Box"]:
        """Cut it at one of its cuts.

        >>> Box((0, 0), (2, 3)).cut(1)
        (Box(lows=(0, 0), highs=(2, 1)), Box(lows=(0, 1), highs=(2, 3)))
        """
        column, at = self.where(number)
        left = (*self.highs[:column], at, *self.highs[column + 1 :])
        right = (*self.lows[:column], at, *self.lows[column + 1 :])
        return Box(self.lows, left), Box(right, self.highs)


class OccupiedBox(NamedTuple):
    """A box with the cells in it that hold records: private."""

    box: Box
    codes: IntArray
    """Codes of the occupied cells, a row for each column."""
    counts: IntArray
    """How many records each of them holds."""

    @classmethod
    def of(cls, kernel: SparseCounts, cells: OccupiedCells) -> "OccupiedBox":
        """Put all occupied cells into the box of the whole domain."""
        codes = np.array(kernel.decode(cells.keys), dtype=np.int64)
        return cls(Box((0,) * len(kernel.shape), kernel.shape), codes, cells.counts)

    @property
    def records(self) -> int:
        """Number of records in the box."""
        return int(self.counts.sum())

    def cut(self, number: int) -> tuple["OccupiedBox", "OccupiedBox"]:
        """Cut it at one of its cuts."""
        column, at = self.box.where(number)
        is_left = self.codes[column] < at
        left, right = self.box.cut(number)
        return (
            OccupiedBox(left, self.codes[:, is_left], self.counts[is_left]),
            OccupiedBox(right, self.codes[:, ~is_left], self.counts[~is_left]),
        )


class Partition(NamedTuple):
    """Boxes, each after the one that it was cut from, and the index of that one (-1: none)."""

    boxes: list[Box]
    parents: list[int]
    records: list[int]
    """How many records each box holds; private."""


def cut_again(run: Run, cells: OccupiedBox, depth: int, *, budget: Budget) -> Partition:
    """Cut the box of all cells in two, `depth` times over.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, but for
        the numbers of records, which are exact: `depth` equal shares, one for each level,
        spent by `choose_cuts`.  Which boxes there are, and which of them hold more than one
        cell, is known from the levels above; whether a box holds any record decides nothing.
    """
    shares = budget.split_evenly(depth, "level")
    boxes, parents, records = [cells.box], [-1], [cells.records]
    level = [(0, cells)]
    for done, share in enumerate(shares):
        open_boxes = [(index, one) for index, one in level if one.box.cuts]
        chosen = choose_cuts(run, [one for _, one in open_boxes], budget=share)
        level = []
        for (index, one), number in zip(open_boxes, chosen, strict=True):
            for part in one.cut(number):
                level.append((len(boxes), part))
                boxes.append(part.box)
                parents.append(index)
                records.append(part.records)
        run.step(done + 1, depth, "levels")
    return Partition(boxes, parents, records)


def choose_cuts(run: Run, boxes: Sequence[OccupiedBox], *, budget: Budget) -> list[int]:
    """Choose one cut for each of several disjoint boxes that can be cut.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one of the boxes.  The record lies in one box at most, so the choices compose in
        parallel.  There it moves L - f S by 1 - f or by -f, both within (-1, 1), so every
        score of that box moves by at most SCORE_STEP up or down, rounded or not, and two
        scores by at most SCORE_RANGE apart.  Each box uses permute-and-flip with rate
        epsilon / SCORE_RANGE.  Proof: docs/proofs/partition.md.
    """
    return run.select_each(map(cut_scores, boxes), sensitivity_range=SCORE_RANGE, budget=budget)


def cut_scores(cells: OccupiedBox) -> IntArray:
    """Score every cut of a box: by how many records its left part differs from an even share.

    That is |L - f S|, in sixteenths rounded down, for S records in the box, L of them and a
    part f of the cells left of the cut.  Twice that is the distance (L1) between records
    distributed evenly over the box and records distributed evenly over each part.

    >>> whole = OccupiedBox(Box((0, 0), (2, 2)), np.array([[0], [0]]), np.array([6]))
    >>> cut_scores(whole)
    array([48, 48])
    """
    scores = []
    for codes, low, high in zip(cells.codes, *cells.box, strict=True):
        length = high - low
        # Integers below 2**53: floats add them up exactly.
        along = np.bincount(codes - low, cells.counts, length).astype(np.int64)
        left = np.cumsum(along)[:-1]
        share = np.arange(1, length, dtype=np.int64)
        whole, rest = np.divmod(np.abs(left * length - cells.records * share), length)
        scores.append(whole * SCORE_STEP + rest * SCORE_STEP // length)
    return np.concatenate(scores)

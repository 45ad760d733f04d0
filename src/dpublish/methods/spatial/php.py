"""Publish counts of boxes found by cutting the domain in two again and again.

Known as: P-HP, hierarchical partitioning; here with a score whose sensitivity is a constant.
Reference: G. Acs, C. Castelluccia, R. Chen, "Differentially Private Histogram Publishing
through Lossy Compression", ICDM 2012.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Progress, Run, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric, noisy_size
from dpublish.methods.histogram.domain import (
    counted_columns,
    require_few,
    require_names,
)
from dpublish.methods.spatial.bisection import SCORE_RANGE, Box, choose_cuts
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MAX_CELLS = 2**20
MAX_DEPTH = 12
SIZE_SHARE = Fraction(1, 50)
CUT_SHARE = Fraction(1, 2)
_RECORDS_PER_BOX = 40  # times epsilon: with fewer, noise would choose the cuts


class Partition(NamedTuple):
    """Boxes, each after the one that it was cut from, and where that one is (-1: nowhere)."""

    boxes: list[Box]
    parents: list[int]


@dataclass(frozen=True, kw_only=True)
class PHP(Method[SpatialRelease]):
    """Method: cut the box of all cells in two, again and again, then perturb the final counts."""

    name: ClassVar[str] = "p-hp"

    columns: tuple[str, ...] = setting(
        "Columns to count by, at their leaves; all numeric, integer and ordinal ones if none "
        "is named.",
        default=(),
    )
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
        """Publish a partition of `table`'s domain with noisy counts.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy size costs its share; the depth follows from it and the schema.  The boxes
            of a level are disjoint and known from the level above, and their cuts cost one
            share for all (`choose_cuts`).  A record lies in one final box, so their counts
            move by 1 in all and get two-sided geometric noise of their share.  A level where
            no box can be cut any more is paid for all the same.
            Proof: docs/proofs/partition.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        columns = self._plan(table.schema, budget.epsilon)
        budgets = budget.split(size=SIZE_SHARE, cuts=CUT_SHARE, counts=1 - SIZE_SHARE - CUT_SHARE)
        kernel = Counts(table.schema, (tuple((column.name, None) for column in columns),))
        cells = kernel.split(table.sum(kernel))[0]
        records = noisy_size(int(cells.sum()), budget=budgets["size"], rng=rng)
        size = NoisySize(records, budgets["size"].epsilon)
        depth = self._depth(columns, records, budget.epsilon)
        boxes, parents = cut_again(cells, depth, budget=budgets["cuts"], rng=rng, progress=progress)
        rate = budgets["counts"].epsilon
        is_end = np.ones(len(boxes), dtype=np.bool_)
        is_end[[parent for parent in parents if parent >= 0]] = False
        ends = [box for box, end in zip(boxes, is_end, strict=True) if end]
        exact = np.array([cells[box.slices].sum() for box in ends], dtype=np.int64)
        counts = np.zeros(len(boxes), dtype=np.int64)
        counts[is_end] = add_geometric(exact, sensitivity=1, budget=budgets["counts"], rng=rng)
        return SpatialRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=columns),
            lows=np.array([box.lows for box in boxes], dtype=np.int64),
            highs=np.array([box.highs for box in boxes], dtype=np.int64),
            parents=np.array(parents, dtype=np.int64),
            levels=is_end.astype(np.int64),
            rates=(None, rate),
            counts=counts,
            size=size,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise in a box; how unevenly records lie in it is not known."""
        require_rate(epsilon)
        columns = self._plan(schema, epsilon)
        depth = self._depth(columns, n_records, epsilon)
        boxes = min(2**depth, prod(column.size for column in columns))
        rate = epsilon * (1 - SIZE_SHARE - CUT_SHARE)
        reach = float(sum_quantile(rate, 1, 0.95))
        figures = {"one_box_95": reach, "most_boxes": float(boxes)}
        summary = f"at most {boxes:,} boxes; each count within {reach:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")

    def _plan(self, schema: Schema, epsilon: Fraction) -> tuple[Column, ...]:
        """Find the columns, and refuse what is too large or too poor to be cut."""
        columns = counted_columns(schema, self.columns)
        require_few(columns)
        cells = prod(column.size for column in columns)
        if cells > MAX_CELLS:
            raise InvalidParameter(
                f"{cells:,} cells are too many to cut into boxes (at most {MAX_CELLS:,}); take "
                "fewer columns, or columns with fewer bins"
            )
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


def cut_again(
    cells: NDArray[np.int64],
    depth: int,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> Partition:
    """Cut the box of all cells in two, `depth` times over.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: `depth`
        equal shares, one for each level, spent by `choose_cuts`.  Which boxes there are, and
        which of them hold more than one cell, is known from the levels above.
    """
    shares = budget.split_evenly(depth, "level")
    whole = Box((0,) * cells.ndim, cells.shape)
    boxes, parents, level = [whole], [-1], [0]
    for done, share in enumerate(shares):
        open_boxes = [place for place in level if boxes[place].cuts]
        chosen = choose_cuts(cells, [boxes[place] for place in open_boxes], budget=share, rng=rng)
        level = []
        for place, number in zip(open_boxes, chosen, strict=True):
            level += [len(boxes), len(boxes) + 1]
            boxes += boxes[place].cut(number)
            parents += [place, place]
        if progress is not None:
            progress(done + 1, depth, "levels")
    return Partition(boxes, parents)

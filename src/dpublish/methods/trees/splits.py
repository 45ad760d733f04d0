"""The splits that a node of a tree may choose from, and how good each of them is.

The splits are public, given the tree above the node.  The score of a split is the sum of the
scores of its cells.  A record lies in one cell of every split, so adding it changes one term of
each sum: the range sensitivity is that of a single cell, however many splits there are and
however many cells they have.  Proof: docs/proofs/diffpid3.md.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from dpublish.data.axis import Axis
from dpublish.errors import InvalidParameter, require_known
from dpublish.types import IntArray

Score = Literal["max", "gini", "entropy"]
GINI_STEPS = 2**20
ENTROPY_STEPS = 2**10
MOST_RECORDS = 2**30
_GINI_LIMIT = 2**31
_ENTROPY_SLACK = 5


@dataclass(frozen=True)
class Split:
    """Part the records by `column` into runs of codes that begin at `starts`."""

    column: str
    starts: tuple[int, ...]

    def cells(self, counts: IntArray) -> IntArray:
        """Add up counts by code and class to counts by branch and class."""
        return np.asarray(np.add.reduceat(counts, self.starts, axis=0))


@dataclass(frozen=True)
class Room:
    """What the splits above a node have left to split.

    A category can be used once on a path.  Numbers can be cut again, wherever the node
    still holds codes on either side.

    Attributes:
        axes: The predictors, each on the level whose cells it may be split into.
        used: Categories that a node above has used.
        spans: Codes of number columns that can still occur: the first, and the first after
            the last.
    """

    axes: tuple[Axis, ...]
    used: frozenset[str] = frozenset()
    spans: tuple[tuple[str, int, int], ...] = ()

    @cached_property
    def splits(self) -> Mapping[str, tuple[Split, ...]]:
        """The splits by column; a column that cannot be split is not listed."""
        listed = {axis.column: tuple(self._splits_of(axis)) for axis in self.axes}
        return {column: splits for column, splits in listed.items() if splits}

    @property
    def usual_branches(self) -> Fraction:
        """How many branches a split has, on average over the columns that can be split."""
        widths = [len(splits[0].starts) for splits in self.splits.values()]
        return Fraction(sum(widths), max(len(widths), 1))

    def below(self, split: Split) -> Iterator["Room"]:
        """Find what is left to split in each child of `split`."""
        axis = next(axis for axis in self.axes if axis.column == split.column)
        if axis.edges is None:
            child = replace(self, used=self.used | {split.column})
            yield from (child for _ in split.starts)
            return
        low, high = self._span(axis)
        others = tuple(span for span in self.spans if span[0] != split.column)
        for start, stop in pairwise((*split.starts, axis.taxonomy.size)):
            span = (split.column, max(low, start), min(high, stop))
            yield replace(self, spans=(*others, span))

    def _splits_of(self, axis: Axis) -> Iterator[Split]:
        starts = axis.leaf_starts[:-1].tolist()
        if axis.edges is not None:
            low, high = self._span(axis)
            yield from (Split(axis.column, (0, cut)) for cut in starts if low < cut < high)
        elif axis.column not in self.used and len(starts) > 1:
            yield Split(axis.column, tuple(starts))

    def _span(self, axis: Axis) -> tuple[int, int]:
        spans = {column: (low, high) for column, low, high in self.spans}
        return spans.get(axis.column, (0, axis.taxonomy.size))


@dataclass(frozen=True)
class CellScore:
    """A score of cells, in steps.

    Attributes:
        of: Takes class counts along the last axis and returns a score for each cell.
        sensitivity_range: R in steps.
        steps: How many steps make up a score of one record.
    """

    of: Callable[[IntArray], IntArray]
    sensitivity_range: int
    steps: int


def make_score(name: Score, max_records: int | None = None) -> CellScore:
    """Build the score called `name`; the entropy needs a number of records to scale it to.

    >>> make_score("max").of(np.array([[3, 1], [0, 2]]))
    array([3, 2])
    >>> make_score("gini").sensitivity_range == 2 * GINI_STEPS
    True
    """
    require_known("score", name, ("max", "gini", "entropy"))
    if (name == "entropy") != (max_records is not None):
        raise InvalidParameter("max_records goes with the score entropy, and entropy with it")
    if name == "max":
        return CellScore(lambda counts: np.asarray(counts.max(axis=-1)), 1, 1)
    if name == "gini":
        return CellScore(_purity, 2 * GINI_STEPS, GINI_STEPS)
    entropy = _Entropy(max_records or 1)
    return CellScore(entropy.of, entropy.slope + _ENTROPY_SLACK, ENTROPY_STEPS)


def score_splits(splits: tuple[Split, ...], counts: IntArray, score: CellScore) -> IntArray:
    """Score the splits of one column, given the node's counts by code and class."""
    if len(splits[0].starts) != 2:
        return np.array([score.of(split.cells(counts)).sum() for split in splits])
    # Many cuts of the same column: what lies left of each follows from running sums.
    cuts = [split.starts[1] for split in splits]
    left = np.cumsum(counts, axis=0)[np.array(cuts) - 1]
    both = np.stack([left, counts.sum(axis=0) - left], axis=1)
    return np.asarray(score.of(both).sum(axis=1))


def _purity(counts: IntArray) -> IntArray:
    """Floor the sum of squared counts, divided by the size of the cell, on the lattice.

    This is the negative Gini count plus the number of records, which all splits share.
    Integers throughout: counts are cut off where squares would not fit, which leaves
    them counts that a record changes by at most one.
    """
    kept = np.minimum(counts, _GINI_LIMIT // counts.shape[-1])
    sizes = np.maximum(kept.sum(axis=-1), 1)
    whole, rest = np.divmod((kept * kept).sum(axis=-1), sizes)
    return np.asarray(whole * GINI_STEPS + rest * GINI_STEPS // sizes)


class _Entropy:
    """Minus the entropy count of a cell: the sum of f(count) less f(size), f(m) = m log2 m.

    Beyond `max_records` f goes on as a straight line, so that its slope is bounded for tables
    of any size.  Each f is rounded to an integer of steps by itself.
    """

    def __init__(self, max_records: int) -> None:
        self._limit = max_records
        top = self._curve(np.array([max_records, max_records + 1]))
        self.slope = int(top[1] - top[0])

    def of(self, counts: IntArray) -> IntArray:
        return np.asarray(self._f(counts).sum(axis=-1) - self._f(counts.sum(axis=-1)))

    def _f(self, counts: IntArray) -> IntArray:
        inside = self._curve(np.minimum(counts, self._limit))
        return np.asarray(inside + np.maximum(counts - self._limit, 0) * self.slope)

    @staticmethod
    def _curve(counts: IntArray) -> IntArray:
        # Below 2^30 records a relative error of 2^-50 in the logarithm is 1/32 of a step.
        exact = counts * np.log2(np.maximum(counts, 1))
        return np.asarray(np.rint(exact * ENTROPY_STEPS), dtype=np.int64)

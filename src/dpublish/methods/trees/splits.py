"""The splits that a node of a tree may choose from: public, given the tree above it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.methods.trees.scores import CellScore

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Part the records by `column` into runs of leaves that begin at `starts`."""

    column: str
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Room:
    """What the splits above a node have left to split.

    A category can be used once on a path.  Numbers can be cut again, wherever the node
    still holds leaves on either side.

    Attributes:
        axes: The predictors, each on the level whose cells it may be split into.
        used: Categories that a node above has used.
        spans: Leaves of number columns that can still occur: the first, and the first after
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
        """Say what is left to split in each child of `split`."""
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


def score_splits(splits: tuple[Split, ...], counts: Whole, score: CellScore) -> NDArray[np.int64]:
    """Score the splits of one column, given the node's counts by leaf and class."""
    if len(splits[0].starts) != 2:
        return np.array([score.of(cells_of(split, counts)).sum() for split in splits])
    # Many cuts of the same column: what lies left of each follows from running sums.
    cuts = [split.starts[1] for split in splits]
    left = np.cumsum(counts, axis=0)[np.array(cuts) - 1]
    both = np.stack([left, counts.sum(axis=0) - left], axis=1)
    return np.asarray(score.of(both).sum(axis=1))


def cells_of(split: Split, counts: Whole) -> Whole:
    """Add up the counts by leaf and class to counts by branch and class."""
    return np.asarray(np.add.reduceat(counts, split.starts, axis=0))

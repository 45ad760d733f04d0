"""Count by conditions in noisy counts of cells, with confidence intervals that hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import (
    half_width,
    one_cell_bound,
    require_confidence,
    terms_half_width,
)
from dpublish.accuracy.noise_distribution import Terms
from dpublish.core.answer import Answer
from dpublish.core.noisy_size import NoisySize
from dpublish.core.query.axes import Coverage, read_query
from dpublish.data.axis import Axis
from dpublish.errors import InvalidQuery
from dpublish.types import FloatArray, IntArray

SharesOf = Callable[[Axis, IntArray, IntArray], FloatArray]

NO_INTERVAL = (
    "these counts are estimates whose error is not known, so there is no confidence interval"
)
_AT_ONCE = 1 << 22
_HIDDEN_SHARE = 0.1  # part of the risk that noise of some cell is larger than predicted


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Noisy counts over the cells of some axes.

    Attributes:
        axes: The axes.
        counts: Noisy counts of all cells in row-major order, or of the listed ones.
        rate: Rate of the noise of each count; None if the counts are estimates.
        cells: Numbers of the cells counted; None if all are.
        threshold: Least noisy count that was published; None if all were.
        records: Noisy number of all records, if it was published beside cells above a threshold.
        roundings: How far beyond its edges a cell of each axis may hold numbers; None: not at all.
    """

    axes: tuple[Axis, ...]
    counts: NDArray[np.int64] | NDArray[np.float64]
    rate: Fraction | None
    cells: IntArray | None = None
    threshold: int | None = None
    records: NoisySize | None = None
    roundings: tuple[float, ...] | None = None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def _positions(self) -> tuple[IntArray, ...]:
        """Position of each listed cell along each axis."""
        cells = np.arange(prod(self.shape)) if self.cells is None else self.cells
        return tuple(i.astype(np.int64) for i in np.unravel_index(cells, self.shape))

    @cached_property
    def _tensor(self) -> FloatArray:
        return self.counts.astype(np.float64).reshape(self.shape)

    def answer(self, query: str, confidence: float) -> Answer:
        """Count the records that satisfy `query`.

        Of records in a cell that is covered in part, the estimate takes the part of its size.
        The interval goes from the cells that are covered as a whole, less their noise, to all
        that are touched, plus theirs, so it holds wherever in a cell its records lie.
        """
        require_confidence(confidence)
        asked = read_query(self.axes, query, roundings=self.roundings)
        if self.threshold is not None:
            return self._sparse_answer(asked, confidence)
        value = _contract(self._tensor, asked.weights)
        if self.rate is None:
            notes = [note for note in (asked.assumption, NO_INTERVAL) if note]
            return Answer(value, None, None, confidence, "; ".join(notes))
        ends = []
        for sign, weights in ((-1, asked.inner), (1, asked.outer)):
            terms = Terms.of_products(weights, float(self.rate))
            width = terms_half_width(terms, confidence) if terms.repeats.any() else 0.0
            ends.append(_contract(self._tensor, weights) + sign * width)
        return around(value, ends[0], ends[1], confidence, asked.note)

    def _sparse_answer(self, asked: Coverage, confidence: float) -> Answer:
        """Bound the truth when unpublished cells may hold anything below the threshold.

        But for a tenth of the risk, no covered cell's noise is beyond `most`.  Then cells
        of at least threshold + `most` records are all published: which these are does not
        depend on the noise, so theirs adds up as usual (to no more than that of all published
        cells).  Cells published with threshold + 2 `most` or more are among them.  What is
        published below may owe that to its noise, and what is hidden is below threshold +
        `most`.

        If the number of records is published, no more of them satisfy the query than there are
        besides those in other cells.  Both ends, the records in other cells and their number may
        each fail with a part of the risk.
        """
        risk = 1 - confidence
        has_total = self.records is not None
        cells = prod(self.shape) if has_total else _cells_of(asked.outer)
        rate = self.rate or Fraction(1)
        sparse = _SparseCells(
            counts=self.counts.astype(np.float64),
            rate=rate,
            threshold=self.threshold or 0,
            most=one_cell_bound(rate, 2 * max(cells, 1), 1 - _HIDDEN_SHARE * risk),
            confidence=1 - (0.5 if has_total else 1 - _HIDDEN_SHARE) * risk,
        )
        inner, outer = self._listed(asked.inner) > 0, self._listed(asked.outer) > 0
        high = sparse.highest(outer, _cells_of(asked.outer) - int(outer.sum()))
        if self.records is not None:
            width = half_width(self.records.rate, np.ones(1), 1 - 0.3 * risk)
            high = min(high, self.records.value + width - max(sparse.lowest(~outer), 0.0))
        value = float(self._listed(asked.weights) @ sparse.counts)
        return around(value, sparse.lowest(inner), high, confidence, asked.note)

    def _listed(self, per_axis: Sequence[FloatArray]) -> FloatArray:
        """Weigh the listed cells by the product of a weight along each axis."""
        weights = np.ones(self.counts.size)
        for index, along in zip(self._positions, per_axis, strict=True):
            weights *= along[index]
        return weights

    def boxes(
        self,
        columns: Sequence[str],
        lows: IntArray,
        highs: IntArray,
        shares_of: SharesOf | None = None,
    ) -> FloatArray:
        """Estimate the number of records in each of many boxes of codes.

        `shares_of` finds the part of each cell of an axis in ranges of codes, if the axis is
        not made of the codes that are meant.
        """
        shares_of = shares_of or box_shares
        names = [axis.column for axis in self.axes]
        shape = (len(lows), len(columns))
        if lows.shape != shape or highs.shape != shape or len(set(columns)) != len(columns):
            raise InvalidQuery("boxes need a low and a high end for each column, each column once")
        for name in columns:
            if name not in names:
                raise InvalidQuery(f"this release knows nothing of {name!r}, only of {names}")
        named = [names.index(name) for name in columns]
        axes = [self.axes[which] for which in named]
        others = tuple(which for which in range(len(names)) if which not in named)
        size = self.counts.size
        tensor = None
        if self.cells is None:
            kept = sorted(named)
            tensor = self._tensor.sum(axis=others).transpose([kept.index(a) for a in named])
            size = tensor.size // axes[0].size if axes else 1
        found = np.empty(len(lows))
        step = max(_AT_ONCE // max(size, 1), 1)
        for start in range(0, len(lows), step):
            some = slice(start, start + step)
            shares = [
                shares_of(axis, lows[some, index], highs[some, index])
                for index, axis in enumerate(axes)
            ]
            found[some] = (
                self._sparse_sums(shares, named, len(lows[some]))
                if tensor is None
                else _contract_many(tensor, shares, len(lows[some]))
            )
        return found

    def _sparse_sums(self, shares: list[FloatArray], named: list[int], boxes: int) -> FloatArray:
        weights = np.ones((boxes, self.counts.size))
        for which, share in zip(named, shares, strict=True):
            weights *= share[:, self._positions[which]]
        return np.asarray(weights @ self.counts)


@dataclass(frozen=True, eq=False)
class _SparseCells:
    """Noisy counts of the cells above a threshold, and how far the noise goes.

    Attributes:
        counts: The published counts.
        rate: Rate of their noise.
        threshold: Least of them.
        most: How far the noise of each cell goes, all at once.
        confidence: Probability with which a sum of them lies within its half-width.
    """

    counts: FloatArray
    rate: Fraction
    threshold: int
    most: int
    confidence: float

    def lowest(self, chosen: NDArray[np.bool_]) -> float:
        """Bound the records in some of the published cells from below."""
        counts = self.counts[chosen]
        sure = counts >= self.threshold + 2 * self.most
        sums = np.where(sure, counts, np.maximum(counts - self.most, 0)).sum()
        return float(sums) - self._width(counts.size)

    def highest(self, chosen: NDArray[np.bool_], hidden: int) -> float:
        """Bound the records in some of the published cells, and in hidden ones, from above."""
        counts = self.counts[chosen]
        sure = counts >= self.threshold + 2 * self.most
        sums = np.where(sure, counts, counts + self.most).sum()
        return float(sums) + self._width(counts.size) + hidden * (self.threshold - 1 + self.most)

    def _width(self, cells: int) -> float:
        return half_width(self.rate, np.ones(cells), self.confidence) if cells else 0.0


def _cells_of(per_axis: Sequence[FloatArray]) -> int:
    """Count the cells that have a weight along every axis."""
    return prod(int(np.count_nonzero(along)) for along in per_axis)


def around(
    value: float, low: float, high: float, confidence: float, note: str | None = None
) -> Answer:
    """Return an answer whose confidence interval holds its estimate, and starts at 0 or above.

    A wider interval holds as well, and no count is negative.
    """
    return bounded(value, min(low, value), max(high, value), confidence, note)


def bounded(
    value: float, low: float, high: float, confidence: float, note: str | None = None
) -> Answer:
    """Return an answer whose interval starts at 0 or above: no count is negative."""
    return Answer(value, max(low, 0.0), max(high, 0.0), confidence, note)


def box_shares(axis: Axis, lows: IntArray, highs: IntArray) -> FloatArray:
    """Find the part of each cell (columns) that lies in each range of codes (rows).

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 9], bins=5, branching=2).axis(2)
    >>> box_shares(age, np.array([0]), np.array([3]))
    array([[1. , 0.5, 0. ]])
    """
    running = np.concatenate([[0.0], np.cumsum(_code_sizes(axis))])
    limit = axis.taxonomy.size
    low, high = running[np.clip(lows, 0, limit)], running[np.clip(highs, 0, limit)]
    ends = running[axis.leaf_starts]
    overlap = np.minimum(high[:, None], ends[1:]) - np.maximum(low[:, None], ends[:-1])
    return np.asarray(np.maximum(overlap, 0) / np.diff(ends))


def _code_sizes(axis: Axis) -> FloatArray:
    """Measure codes: bins of numbers by their length, listed values alike.

    The code of missing numbers has no length within a cell of numbers, such as the root.
    """
    if axis.leaf_edges is None:
        return np.ones(axis.taxonomy.size)
    starts = axis.leaf_starts[axis.leaf_to_cell]
    special = (starts >= axis.ordinary_leaves).astype(np.float64)
    special[: axis.ordinary_leaves] = np.diff(axis.leaf_edges)
    return special


def _contract(tensor: FloatArray, weights: Sequence[FloatArray]) -> float:
    """Add up a block of numbers, weighed along each axis; what has no weight is not visited."""
    parts = []
    for along in weights:
        kept = np.flatnonzero(along)
        if kept.size == 0:
            return 0.0
        parts.append(slice(int(kept[0]), int(kept[-1]) + 1))
    block = tensor[tuple(parts)]
    for along, part in zip(reversed(weights), reversed(parts), strict=True):
        block = block @ along[part]
    return float(block)


def _contract_many(tensor: FloatArray, shares: Sequence[FloatArray], boxes: int) -> FloatArray:
    """Add up the same block for each row of weights."""
    if not shares:
        return np.full(boxes, float(tensor))
    block = shares[0] @ tensor.reshape(tensor.shape[0], -1)
    for share in shares[1:]:
        shaped = block.reshape(boxes, share.shape[1], -1)
        block = np.matmul(share[:, None, :], shaped)[:, 0, :]
    return block.reshape(boxes)

"""Count by conditions in noisy counts of cells, with confidence intervals that hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt

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
from dpublish.core.query.axes import read_query
from dpublish.data.axis import Axis
from dpublish.data.query.weights import is_partial
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
    """

    axes: tuple[Axis, ...]
    counts: NDArray[np.int64] | NDArray[np.float64]
    rate: Fraction | None
    cells: IntArray | None = None
    threshold: int | None = None

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

        Records in a cell that is covered in part are taken to lie in the covered part
        independently of each other, each with a probability of its size; the interval allows for
        that.
        """
        require_confidence(confidence)
        asked = read_query(self.axes, query)
        weights = asked.weights
        if self.threshold is not None:
            return self._sparse_answer(weights, confidence, asked.assumption)
        value = _contract(self._tensor, weights)
        if self.rate is None:
            notes = [note for note in (asked.assumption, NO_INTERVAL) if note]
            return Answer(value, None, None, confidence, "; ".join(notes))
        terms = Terms.of_products(weights, float(self.rate))
        inner = value - _contract(self._tensor, [along**2 for along in weights])
        width = terms_half_width(terms, confidence, deviation=sqrt(max(inner, 0.0)))
        return bounded(value, value - width, value + width, confidence, asked.assumption)

    def _sparse_answer(
        self, per_axis: Sequence[FloatArray], confidence: float, note: str | None
    ) -> Answer:
        """Bound the truth when unpublished cells may hold anything below the threshold.

        But for a tenth of the risk, no covered cell's noise is beyond `most`.  Then cells
        of at least threshold + `most` records are all published: which these are does not
        depend on the noise, so theirs adds up as usual (to no more than that of all published
        cells).  Cells published with threshold + 2 `most` or more are among them.  What is
        published below may owe that to its noise, and what is hidden is below threshold +
        `most`.
        """
        threshold, rate = self.threshold or 0, self.rate or Fraction(1)
        weights = np.ones(self.counts.size)
        for index, along in zip(self._positions, per_axis, strict=True):
            weights *= along[index]
        covered = prod(int(np.count_nonzero(along)) for along in per_axis)
        risk = 1 - confidence
        most = one_cell_bound(rate, 2 * max(covered, 1), 1 - _HIDDEN_SHARE * risk)
        published = weights > 0
        weights, counts = weights[published], self.counts[published].astype(np.float64)
        sure = counts >= threshold + 2 * most
        hidden = prod(float(along.sum()) for along in per_axis) - float(weights.sum())
        hidden = max(hidden, 0.0) * (threshold - 1 + most)
        inner = float((weights * (1 - weights)) @ counts)
        noise = 1 - (1 - _HIDDEN_SHARE) * risk
        width = half_width(rate, weights, noise, deviation=sqrt(inner))
        if any(np.any(is_partial(along)) for along in per_axis):
            # Of the hidden records, too, probability puts more or fewer into the covered part.
            hidden += half_width(rate, weights, noise, deviation=sqrt(inner + hidden)) - width
        value = float(weights @ counts)
        low = float(weights @ np.where(sure, counts, np.maximum(counts - most, 0))) - width
        high = float(weights @ np.where(sure, counts, counts + most)) + width
        return bounded(value, low, high + hidden, confidence, note)

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

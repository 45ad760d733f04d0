"""Which part of each of many boxes lies in what is asked for."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpublish.types import FloatArray, IntArray

_MOST_NUMBERS = 1 << 22  # that are held at once


class BoxOverlap:
    """Boxes of leaf codes, ready to be compared with many others.

    Many boxes share their ends along a column, so each pair of ends is compared once.

    >>> overlap = BoxOverlap(np.array([[0, 0], [2, 0]]), np.array([[2, 4], [4, 4]]))
    >>> overlap.shares([np.array([1.0, 1, 1, 0]), np.array([1.0, 0, 0, 0])]).tolist()
    [0.25, 0.125]
    """

    def __init__(self, lows: IntArray, highs: IntArray) -> None:
        self._lows, self._highs = lows, highs

    @cached_property
    def _ends(self) -> list[tuple[IntArray, IntArray, NDArray[np.intp]]]:
        """Along each column: the different pairs of ends, and which pair each box has."""
        found = []
        for low, high in zip(self._lows.T, self._highs.T, strict=True):
            step = int(high.max()) + 1
            pairs, which = np.unique(low * step + high, return_inverse=True)
            found.append((*np.divmod(pairs, step), which))
        return found

    def shares(self, weights: Sequence[FloatArray]) -> FloatArray:
        """Give the part of each box that is asked for, by the weight of each column's leaves."""
        shares = np.ones(len(self._lows))
        for (low, high, which), along in zip(self._ends, weights, strict=True):
            running = np.concatenate(([0.0], np.cumsum(along)))
            part = (running[high] - running[low]) / (high - low)
            shares *= np.clip(part, 0.0, 1.0)[which]
        return shares

    def sums(
        self, values: FloatArray, columns: Sequence[int], lows: IntArray, highs: IntArray
    ) -> FloatArray:
        """Spread `values` evenly over the boxes, and add up what lies in each of other boxes.

        Args:
            values: A number for each box.
            columns: The columns by which the other boxes are limited.
            lows: First leaf of each other box along these columns.
            highs: The leaf after the last.
        """
        answers = np.empty(len(lows))
        add_up = self._sum_grid if self._is_grid else self._sum_boxes
        for part in self._chunks(len(lows)):
            along = [np.ones((part.stop - part.start, low.size)) for low, _, _ in self._ends]
            for place, column in enumerate(columns):
                low, high, _ = self._ends[column]
                inner = np.minimum(high, highs[part, place, None])
                inner -= np.maximum(low, lows[part, place, None])
                along[column] = np.maximum(inner, 0) / (high - low)
            answers[part] = add_up(values, along)
        return answers

    def _sum_boxes(self, values: FloatArray, along: Sequence[FloatArray]) -> FloatArray:
        shares = np.ones((len(along[0]), values.size))
        for parts, (_, _, which) in zip(along, self._ends, strict=True):
            if np.any(parts != 1):
                shares *= parts[:, which]
        return np.asarray(shares @ values)

    def _sum_grid(self, values: FloatArray, along: Sequence[FloatArray]) -> FloatArray:
        """Add up along one column after the other, which is much less work."""
        left = (values.reshape(-1, along[-1].shape[1]) @ along[-1].T).T
        for parts in reversed(along[:-1]):
            left = np.einsum("qgu,qu->qg", left.reshape(len(left), -1, parts.shape[1]), parts)
        return np.asarray(left[:, 0])

    @cached_property
    def _is_grid(self) -> bool:
        """Whether the boxes are all cells of a grid, in order."""
        shape = tuple(low.size for low, _, _ in self._ends)
        if prod(shape) != len(self._lows):
            return False
        numbers = np.zeros(len(self._lows), dtype=np.int64)
        for size, (_, _, which) in zip(shape, self._ends, strict=True):
            numbers = numbers * size + which
        return np.array_equal(numbers, np.arange(len(self._lows)))

    def _chunks(self, size: int) -> Iterator[slice]:
        step = max(_MOST_NUMBERS // max(len(self._lows), 1), 1)
        return (slice(start, min(start + step, size)) for start in range(0, size, step))

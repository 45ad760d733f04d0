"""Boxes of codes: what a list of them must satisfy, its columns, and overlaps with other boxes."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.released import whole_column
from dpublish.data.axis import Axis
from dpublish.errors import InvalidParameter
from dpublish.types import FloatArray, IntArray

_MOST_NUMBERS = 1 << 22  # that are held at once
_ROUNDING = 1e-9


def require_boxes(
    sizes: IntArray, lows: IntArray, highs: IntArray, parents: IntArray, *, partial: bool
) -> None:
    """Refuse boxes that are not in the domain, not in their parents, or do not fill them.

    Parts of a box may be fewer than fill it only if `partial`.  That they do not overlap is
    checked by their volume alone.
    """
    shape = (parents.size, sizes.size)
    for array, wanted in ((lows, shape), (highs, shape), (parents, shape[:1])):
        if array.dtype != np.int64 or array.shape != wanted:
            raise InvalidParameter("boxes are integers: ends for each column, and a parent")
    if not parents.size:
        raise InvalidParameter("there must be at least one box")
    if np.any(lows < 0) or np.any(lows >= highs) or np.any(highs > sizes):
        raise InvalidParameter("every box holds at least one code of each column, and no others")
    if np.any(parents < -1) or np.any(parents >= np.arange(parents.size)):
        raise InvalidParameter("a box is listed after the one around it")
    inner = np.flatnonzero(parents >= 0)
    around = parents[inner]
    if np.any(lows[inner] < lows[around]) or np.any(highs[inner] > highs[around]):
        raise InvalidParameter("a box lies within its parent")
    # Volumes are measured against the box around: those of the domain may be too small.
    extents = highs - lows
    outer = np.where((parents >= 0)[:, None], extents[parents], sizes)
    _require_filled(np.prod(extents / outer, axis=1), parents, partial)


def _require_filled(volumes: FloatArray, parents: IntArray, partial: bool) -> None:
    has_parts = np.bincount(parents + 1) > 0
    filled = np.bincount(parents + 1, weights=volumes)[has_parts]
    if np.any(filled > 1 + _ROUNDING):
        raise InvalidParameter("the parts of a box do not overlap")
    if not partial and np.any(filled < 1 - _ROUNDING):
        raise InvalidParameter("the parts of a box fill it, unless the boxes are partial")


def end_columns(axes: Sequence[Axis], lows: IntArray, highs: IntArray) -> dict[str, pa.Array]:
    """Return the first and the last code of every box along every column, and their labels."""
    columns: dict[str, pa.Array] = {}
    for axis, low, high in zip(axes, lows.T, highs.T, strict=True):
        labels = pa.array(axis.labels)
        for word, code in (("first", low), ("last", high - 1)):
            named = pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), labels)
            columns[f"{word} code of {axis.column}"] = pa.array(code)
            columns[f"{word} value of {axis.column}"] = named
    return columns


def read_ends(table: pa.Table, names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Read the first code of every box along every column, and the one after the last."""
    lows = [whole_column(table, f"first code of {name}") for name in names]
    lasts = [whole_column(table, f"last code of {name}") for name in names]
    return np.stack(lows, axis=1), np.stack(lasts, axis=1) + 1


class BoxOverlap:
    """Boxes of codes, ready to be compared with many others.

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
        """Compute the part of each box that is covered, by the weight of each column's codes."""
        shares = np.ones(len(self._lows))
        for (low, high, which), along in zip(self._ends, weights, strict=True):
            running = np.concatenate(([0.0], np.cumsum(along)))
            part = (running[high] - running[low]) / (high - low)
            shares *= np.clip(part, 0.0, 1.0)[which]
        return shares

    def sums(
        self, values: FloatArray, columns: Sequence[int], lows: IntArray, highs: IntArray
    ) -> FloatArray:
        """Distribute `values` evenly over the boxes, and add up what lies in each of other boxes.

        Args:
            values: A number for each box.
            columns: The columns by which the other boxes are limited.
            lows: First code of each other box along these columns.
            highs: The code after the last.
        """
        answers = np.empty(len(lows))
        add_up = self._sum_grid if self._is_grid else self._sum_boxes
        for part in self._chunks(len(lows)):
            along = [np.ones((part.stop - part.start, low.size)) for low, _, _ in self._ends]
            for index, column in enumerate(columns):
                low, high, _ = self._ends[column]
                inner = np.minimum(high, highs[part, index, None])
                inner -= np.maximum(low, lows[part, index, None])
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

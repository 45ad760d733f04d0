"""How far counts in random boxes of bins are from the truth, step by step."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RangeQueries:
    """Queries for the number of people in a box of bins.

    Attributes:
        shape: Number of bins along each axis.
        lows: First bin of each query (a row) along each axis.
        highs: The bin after the last.
    """

    shape: tuple[int, ...]
    lows: IntArray
    highs: IntArray

    def __post_init__(self) -> None:
        axes = len(self.shape)
        if self.lows.shape != self.highs.shape or self.lows.shape[1:] != (axes,):
            raise InvalidParameter("each query has a first and a last bin along every axis")
        is_inside = (self.lows >= 0) & (self.lows <= self.highs) & (self.highs <= self.shape)
        if not len(self.lows) or not is_inside.all():
            raise InvalidParameter("queries must lie within the bins, and there must be some")

    @cached_property
    def _corners(self) -> tuple[IntArray, FloatArray]:
        """Where cumulative sums have the corners of each box, and with which sign they count."""
        axes = len(self.shape)
        corners = list(product((0, 1), repeat=axes))
        ends = np.stack([self.lows, self.highs])
        padded = tuple(size + 1 for size in self.shape)
        indices = [
            np.ravel_multi_index(
                tuple(ends[side, :, axis] for axis, side in enumerate(corner)), padded
            )
            for corner in corners
        ]
        signs = [float((-1) ** (axes - sum(corner))) for corner in corners]
        return np.stack(indices), np.array(signs)

    @classmethod
    def draw(
        cls, shape: tuple[int, ...], count: int, *, seed: int, share: float | None = None
    ) -> "RangeQueries":
        """Draw boxes with random corners, or boxes that hold a `share` of all bins.

        Of a given share, boxes have sides in proportion to the axes', of an integer number
        of bins, and lie anywhere.

        >>> queries = RangeQueries.draw((4, 10), 2, seed=1, share=0.25)
        >>> queries.highs - queries.lows
        array([[2, 5],
               [2, 5]])
        """
        require_count(count=count)
        rng = plain_generator(seed)
        sizes = np.array(shape)
        if share is None:
            ends = rng.integers(sizes, size=(2, count, len(shape)))
            return cls(shape, ends.min(axis=0), ends.max(axis=0) + 1)
        if not 0 < share <= 1:
            raise InvalidParameter(f"share ({share}) must be above 0 and at most 1")
        sides = np.maximum(1, np.rint(sizes * share ** (1 / len(shape)))).astype(np.int64)
        lows = rng.integers(sizes - sides + 1, size=(count, len(shape)))
        return cls(shape, lows, lows + sides)

    def answers(self, counts: NDArray[np.generic]) -> FloatArray:
        """Answer every query from the counts of all bins.

        >>> queries = RangeQueries((2, 2), np.array([[0, 0], [1, 0]]), np.array([[2, 2], [2, 1]]))
        >>> queries.answers(np.array([1, 2, 3, 4]))
        array([10.,  3.])
        """
        sums = counts.reshape(self.shape).astype(np.float64)
        for axis in range(len(self.shape)):
            sums = sums.cumsum(axis=axis)
        padded = np.zeros(tuple(size + 1 for size in self.shape))
        padded[(slice(1, None),) * len(self.shape)] = sums
        indices, signs = self._corners
        return np.asarray(signs @ padded.ravel()[indices])

    def mean_error(self, estimate: FloatArray, truth: IntArray) -> float:
        """Compute the mean absolute error over all queries at one step."""
        return float(np.abs(self.answers(estimate - truth)).mean())

    def mean_relative_error(self, estimate: FloatArray, truth: IntArray, sanity: float) -> float:
        """Compute the mean relative error over all queries at one step.

        Errors are divided by the true answer, or by the sanity bound where that is more.

        >>> queries = RangeQueries((2,), np.array([[0], [1]]), np.array([[1], [2]]))
        >>> queries.mean_relative_error(np.array([12.0, 3.0]), np.array([10, 0]), sanity=5)
        0.4
        """
        if not sanity > 0:
            raise InvalidParameter(f"the sanity bound ({sanity}) must be above 0")
        errors = np.abs(self.answers(estimate - truth))
        return float((errors / np.maximum(self.answers(truth), sanity)).mean())

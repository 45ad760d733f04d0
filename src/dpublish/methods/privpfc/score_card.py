"""A score card: integer scores that add up to how likely each class is for a record.

A card is public.  It is computed in integers only, so what it says of a record depends on
that record alone, bit by bit, in whatever batch the record comes: the sensitivity of sums over
a card's probabilities needs just that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.errors import InvalidParameter
from dpublish.types import IntArray

UNIT = 1 << 20
"""Probabilities are whole multiples of 1 / UNIT."""
STEP = 1 << 10
"""Scores are log-odds in whole multiples of 1 / STEP."""
LIMIT = 8 * STEP
"""A term's scores lie between -LIMIT and LIMIT."""

_FARTHEST = 16 * STEP  # a class farther behind the best counts as this far behind
_POWERS = np.rint(np.exp(np.arange(_FARTHEST + 1) / -STEP) * (1 << 30)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ScoreTerm:
    """What the cell of some axes adds to the score of each class.

    Attributes:
        axes: Axes whose cells, in row-major order, number the rows of `scores`.
        scores: A row per cell and a column per class.
        unknown: Scores of a record with an unknown value along one of the axes.
    """

    axes: tuple[Axis, ...]
    scores: IntArray
    unknown: IntArray

    def __post_init__(self) -> None:
        cells = int(np.prod([axis.size for axis in self.axes], dtype=np.int64))
        if self.scores.ndim != 2 or len(self.scores) != cells:
            raise InvalidParameter("a term needs a row of scores for each of its cells")
        for array in (self.scores, self.unknown):
            if array.dtype != np.int64 or array.shape[-1] != self.scores.shape[1]:
                raise InvalidParameter("scores must be integers, one for each class")
            if array.size and (array.min() < -LIMIT or array.max() > LIMIT):
                raise InvalidParameter(f"scores must lie between {-LIMIT} and {LIMIT}")

    def look_up(self, codes: Mapping[str, NDArray[Any]], size: int) -> IntArray:
        """Return the scores of records by their leaf codes; a negative code is unknown."""
        cells = np.zeros(size, dtype=np.int64)
        unknown = np.zeros(size, dtype=np.bool_)
        for axis in self.axes:
            leaves = codes[axis.column]
            if leaves.dtype.kind == "i":
                unknown |= leaves < 0
            cells = cells * axis.size + axis.leaf_to_cell[leaves]
        found = self.scores[cells]
        if unknown.any():
            found[unknown] = self.unknown
        return found


@dataclass(frozen=True, eq=False)
class ScoreCard:
    """Terms whose scores add up; at least one."""

    terms: tuple[ScoreTerm, ...]

    def __post_init__(self) -> None:
        if len({term.scores.shape[1] for term in self.terms}) != 1:
            raise InvalidParameter("a score card needs terms, all about the same classes")

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.terms[0].scores.shape[1])

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the card looks at."""
        return tuple(dict.fromkeys(axis.column for term in self.terms for axis in term.axes))

    def score(self, codes: Mapping[str, NDArray[Any]], size: int) -> IntArray:
        """Add up the scores of each record: a row per record and a column per class."""
        total = np.zeros((size, self.classes), dtype=np.int64)
        for term in self.terms:
            total += term.look_up(codes, size)
        return total


def to_probabilities(scores: IntArray) -> IntArray:
    """Turn scores into probabilities of the classes: not negative, and at most UNIT in all.

    >>> to_probabilities(np.array([[0, 0], [0, STEP], [0, 99 * STEP]])).tolist()
    [[524288, 524288], [282005, 766570], [0, 1048575]]
    """
    behind = np.minimum(scores.max(axis=1, keepdims=True) - scores, _FARTHEST)
    powers = _POWERS[behind]
    # At most 2^30 times 2^20: no overflow.  Rounding down keeps the sum within UNIT.
    return np.asarray(powers * UNIT // powers.sum(axis=1, keepdims=True))

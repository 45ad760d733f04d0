"""How well a split parts the classes: whole scores of its cells, and their range sensitivity.

The score of a split is the sum of the scores of its cells.  A record lies in one cell of
every split, so adding it changes one term of each sum: the range sensitivity is that of a
single cell, however many splits there are and however many cells they have.
Proof: docs/proofs/decision_tree.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_known

Whole = NDArray[np.int64]
Score = Literal["max", "gini", "entropy"]
GINI_STEPS = 2**20
ENTROPY_STEPS = 2**10
MOST_RECORDS = 2**30
_GINI_LIMIT = 2**31
_ENTROPY_SLACK = 5


@dataclass(frozen=True)
class CellScore:
    """A score of cells, in steps.

    Attributes:
        of: Takes class counts along the last axis and gives a score for each cell.
        sensitivity_range: R in steps.
        steps: How many steps make up one record's worth of score.
    """

    of: Callable[[Whole], Whole]
    sensitivity_range: int
    steps: int


def make_score(name: Score, max_records: int | None = None) -> CellScore:
    """Make the score called `name`; the entropy needs a number of records to scale it to.

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


def _purity(counts: Whole) -> Whole:
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

    def of(self, counts: Whole) -> Whole:
        return np.asarray(self._f(counts).sum(axis=-1) - self._f(counts.sum(axis=-1)))

    def _f(self, counts: Whole) -> Whole:
        inside = self._curve(np.minimum(counts, self._limit))
        return np.asarray(inside + np.maximum(counts - self._limit, 0) * self.slope)

    @staticmethod
    def _curve(counts: Whole) -> Whole:
        # Below 2^30 records a relative error of 2^-50 in the logarithm is 1/32 of a step.
        exact = counts * np.log2(np.maximum(counts, 1))
        return np.asarray(np.rint(exact * ENTROPY_STEPS), dtype=np.int64)

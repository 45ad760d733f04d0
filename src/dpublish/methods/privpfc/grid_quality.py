"""How good a grid is for predicting classes, once noise is added: the score that chooses it.

A cell predicts its most frequent class.  With counts a >= b of its two most frequent
classes, that is right for about a records, less what is lost when noise turns the two round:
quality = a - w(a - b), w(x) = x e^(-epsilon x) (1 + epsilon x / 2) / 2.  A grid's score is
the sum over its cells.

Reference: D. Su, J. Cao, N. Li and M. Lyu, "PrivPfC: differentially private data publication
for classification", VLDB Journal, 2018, Eq. 5.  Its Eq. 1 is the same for two classes; for
more its sensitivity is larger than the paper says, so it is not used.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, expm1, floor, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import require_positive

SMALLEST_EPSILON = Fraction(1, 1 << 16)
_NO_LOSS = 32  # where epsilon x is more, w(x) rounds to 0 for every epsilon that is used


@dataclass(frozen=True)
class GridQuality:
    """Score grids in integers, so that no rounding error enters the proof.

    w is tabulated as whole multiples of 1 / `unit`.  The range sensitivity is that of the
    table itself: whatever the errors of the floats from which it was made, it is exact.

    Attributes:
        epsilon: Budget of the noise that will be added to the chosen grid's counts.  Below
            2^-16 it counts as 2^-16, which keeps the table small; the sensitivity stays exact.

    Privacy:
        Adding a record changes one cell of a grid.  Either its most frequent class gains
        one, or the second does and stays second (or ties), or neither changes: with
        x = a - b before or after, the score changes by unit - (W[x] - W[x-1]), by
        W[x] - W[x-1], or by 0.  `range_sensitivity` is the difference between the largest
        and the smallest of these over all x >= 1, hence a bound on R for any set of grids.
        Proof: docs/proofs/grid_quality.md.

    >>> quality = GridQuality(Fraction(1))
    >>> (quality.score_cells(np.array([[9, 3, 0], [0, 3, 0]])) / quality.unit).round(3)
    array([8.997, 3.   , 0.   ])
    >>> round(quality.range_sensitivity / quality.unit, 3)
    1.168
    """

    epsilon: Fraction
    unit: ClassVar[int] = 1 << 20

    def __post_init__(self) -> None:
        require_positive(epsilon=self.epsilon)

    @cached_property
    def losses(self) -> NDArray[np.int64]:
        """W: what noise costs a cell, by how far its two most frequent classes lie apart.

        The last entry is 0, and stands for all larger distances.
        """
        epsilon = max(self.epsilon, SMALLEST_EPSILON)
        apart = np.arange(ceil(_NO_LOSS / epsilon) + 1, dtype=np.float64)
        scaled = float(epsilon) * apart
        loss = apart / 2 * np.exp(-scaled) * (1 + scaled / 2)
        whole = np.rint(loss * self.unit).astype(np.int64)
        used = np.trim_zeros(whole, "b")
        return _frozen(np.append(used, 0) if used.size else np.zeros(2, dtype=np.int64))

    @cached_property
    def range_sensitivity(self) -> int:
        """R: the most by which one record changes the difference between two grids' scores."""
        steps = np.diff(self.losses)
        changes = np.concatenate([self.unit - steps, steps, [0]])
        return int(np.ptp(changes))

    def score_cells(self, counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Score each cell; the first axis of `counts` runs over two or more classes."""
        first = np.zeros(counts.shape[1:], dtype=np.int64)
        second = first.copy()
        for one in counts:
            np.maximum(second, np.minimum(first, one), out=second)
            np.maximum(first, one, out=first)
        return self.unit * first - self._lose(first - second)

    def score_differences(self, differences: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Score cells of two classes, less half a unit for each record in the cell.

        The number of records is the same for all grids, so a choice needs the difference
        between the two counts only.
        """
        apart: NDArray[np.int64] = np.abs(differences).astype(np.int64, copy=False)
        return self.unit // 2 * apart - self._lose(apart)

    def _lose(self, apart: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.losses.take(apart, mode="clip")


def _frozen(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array


def best_lead(epsilon: float) -> float:
    """Compute x*, the lead of a class at which one more record counts most.

    The closed form of the paper's Lemma 1, over real numbers, written so that small epsilons lose
    no digits.  A release does not use it: `GridQuality` reads its range off its own table.

    >>> round(best_lead(0.1), 2)
    27.83
    """
    grown = expm1(epsilon)
    root = sqrt(2 * grown**2 + epsilon**2 * (grown + 1))
    return (epsilon * (grown + 1) + root) / (epsilon * grown)


def largest_change(epsilon: float) -> float:
    """Compute the paper's sensitivity (Eq. 3): the most by which one record changes a cell.

    The largest value over whole leads lies next to x*, where the curve over real ones is highest.

    >>> round(largest_change(0.1), 4)
    1.0889
    """
    lead = best_lead(epsilon)
    return max(_change(max(floor(lead), 1), epsilon), _change(floor(lead) + 1, epsilon))


def _change(lead: int, epsilon: float) -> float:
    return 1 + _loss(lead - 1, epsilon) - _loss(lead, epsilon)


def _loss(apart: float, epsilon: float) -> float:
    return apart / 2 * exp(-epsilon * apart) * (1 + epsilon * apart / 2)

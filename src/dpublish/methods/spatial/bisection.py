"""Cut boxes of cells in two, privately, where the records are most unevenly spread."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.mechanisms.selection import distances_below_best, permute_and_flip, selection_rate
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

SCORE_STEP = 16  # scores count sixteenths of a record
SCORE_RANGE = 2 * SCORE_STEP


class Box(NamedTuple):
    """A box of leaves: low <= code < high along each column; public once it is chosen."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]

    @property
    def cuts(self) -> int:
        """Number of ways to cut it in two."""
        return sum(self.highs) - sum(self.lows) - len(self.lows)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where its cells lie in an array of all cells."""
        return tuple(map(slice, self.lows, self.highs))

    def cut(self, number: int) -> tuple["Box", "Box"]:
        """Cut it at one of its places, numbered along the first column, then the next.

        >>> Box((0, 0), (2, 3)).cut(1)
        (Box(lows=(0, 0), highs=(2, 1)), Box(lows=(0, 1), highs=(2, 3)))
        """
        place = 0
        while number >= self.highs[place] - self.lows[place] - 1:
            number -= self.highs[place] - self.lows[place] - 1
            place += 1
        at = self.lows[place] + number + 1
        left = (*self.highs[:place], at, *self.highs[place + 1 :])
        right = (*self.lows[:place], at, *self.lows[place + 1 :])
        return Box(self.lows, left), Box(right, self.highs)


def cut_scores(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Score every cut of a box: by how many records its left part differs from an even share.

    That is |L - f S|, in sixteenths rounded down, for S records in the box, L of them and a
    part f of the cells left of the cut.  Twice that is the distance (L1) between spreading
    the records evenly over the box and evenly over each part.

    >>> cut_scores(np.array([[6, 0], [0, 0]]))
    array([48, 48])
    """
    total, cells = int(counts.sum()), counts.size
    scores = []
    for place, length in enumerate(counts.shape):
        others = tuple(axis for axis in range(counts.ndim) if axis != place)
        left = np.cumsum(counts.sum(axis=others))[:-1]
        share = np.arange(1, length, dtype=np.int64) * (cells // length)
        whole, rest = np.divmod(np.abs(left * cells - total * share), cells)
        scores.append(whole * SCORE_STEP + rest * SCORE_STEP // cells)
    return np.concatenate(scores)


def choose_cuts(
    counts: NDArray[np.int64], boxes: list[Box], *, budget: Budget, rng: RandomSource
) -> list[int]:
    """Choose one cut for each of several disjoint boxes that can be cut.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        `counts`.  The record lies in one box at most, so the choices compose in parallel.
        There it moves L - f S by 1 - f or by -f, both within (-1, 1), so every score of that
        box moves by at most SCORE_STEP up or down, rounded or not, and two scores by at most
        SCORE_RANGE apart.  Each box uses permute-and-flip with rate epsilon / SCORE_RANGE.
        Proof: docs/proofs/partition.md.
    """
    rate = selection_rate(budget.epsilon, SCORE_RANGE)
    budget.spend()
    return [
        permute_and_flip(rate, distances_below_best(cut_scores(counts[box.slices])), rng)
        for box in boxes
    ]

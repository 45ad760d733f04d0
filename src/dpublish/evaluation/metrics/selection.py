"""How much is missed by a private choice of the highest scores.

Both measures are 0 for a perfect choice and 1 for one that is worth nothing.  They are computed
from true scores and are not private.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count


def score_error_rate(chosen: Sequence[int], scores: NDArray[np.integer[Any]], count: int) -> float:
    """Measure the part of the `count` best scores' total that the choice misses (SER).

    A choice of fewer than `count` has a score of 0 for each one that is missing.  The average over
    those chosen, which the thesis prints, would reward choosing the best one alone; the two
    agree whenever `count` are chosen.

    >>> score_error_rate([0, 2], np.array([60, 40, 20, 5]), count=2)
    0.2
    """
    best = _best(scores, count).sum()
    _require_choice(chosen, scores, count)
    return float((best - scores[list(chosen)].sum()) / best)


def false_negative_rate(
    chosen: Sequence[int], scores: NDArray[np.integer[Any]], count: int
) -> float:
    """Measure the part of the `count` best that the choice misses (FNR); ties are as good.

    >>> false_negative_rate([0, 2], np.array([60, 40, 20, 5]), count=2)
    0.5
    """
    lowest = _best(scores, count).min()
    _require_choice(chosen, scores, count)
    return float(1 - np.count_nonzero(scores[list(chosen)] >= lowest) / count)


def _best(scores: NDArray[np.integer[Any]], count: int) -> NDArray[np.integer[Any]]:
    require_count(count=count)
    if count > len(scores):
        raise InvalidParameter(f"count ({count}) must be at most the number of scores")
    return np.partition(scores, -count)[-count:]


def _require_choice(chosen: Sequence[int], scores: NDArray[np.integer[Any]], count: int) -> None:
    if len(set(chosen)) != len(chosen) or len(chosen) > count:
        raise InvalidParameter("a choice names at most count different indices")
    if any(not 0 <= index < len(scores) for index in chosen):
        raise InvalidParameter("a choice names indices of scores")

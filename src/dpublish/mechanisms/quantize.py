"""Turn real scores into whole ones, on a public lattice, and say what that does to R.

A choice among whole scores has exact odds.  Rounding real scores down to multiples of
2**exponent gets them there, but one record may then pull two scores a little farther apart
than before: the lattice has a range sensitivity of its own, which `quantize` returns.
"""

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_positive
from dpublish.mechanisms.selection import FARTHEST

FINEST = -200
_LARGEST = 2.0**800  # times 2**200 is still a float; infinity counts as this much


class LatticeScores(NamedTuple):
    """Whole scores, in steps below the highest, and their range sensitivity in steps."""

    scores: NDArray[np.int64]
    sensitivity_range: int


def quantize(
    scores: NDArray[np.floating[Any]],
    *,
    sensitivity_range: int | Fraction,
    numeric_error: int | Fraction = 0,
    exponent: int,
    aligned: bool = False,
) -> LatticeScores:
    """Round scores down to multiples of 2**exponent and count them in steps from the highest.

    The result goes to `select` or `top_k`, scores and range together.  No score raises an
    error, for an error would give it away: NaN counts as lower than all, and a score `FARTHEST`
    or more steps below the highest counts as that many below.  Scores are assumed to be at
    most 2**800 in size; what is larger counts as 2**800, and then R must hold of that.

    Args:
        scores: Real scores, one for each of a public list of candidates.
        sensitivity_range: R of the ideal scores: the most by which one record can change the
            difference between two of them.
        numeric_error: Bound on how far a computed score is from its ideal value.
        exponent: Public fineness of the lattice, from -200 to 0.
        aligned: Guarantee that for any two neighbors all changes of score lie between two
            multiples of 2**exponent that are R apart (counts: between 0 and 1), and that
            the scores are computed without error.  Then rounding costs nothing.

    >>> quantize(np.array([0.4, 2.6]), sensitivity_range=1, exponent=-1)
    LatticeScores(scores=array([-5,  0]), sensitivity_range=3)
    >>> quantize(np.array([0.4, 2.6]), sensitivity_range=1, exponent=-1, aligned=True)
    LatticeScores(scores=array([-5,  0]), sensitivity_range=2)
    """
    steps = lattice_range(
        sensitivity_range=sensitivity_range,
        numeric_error=numeric_error,
        exponent=exponent,
        aligned=aligned,
    )
    if type(scores) is not np.ndarray or scores.dtype.kind != "f" or scores.ndim != 1:
        raise InvalidParameter("scores must be a one-dimensional array of floats")
    if scores.dtype.itemsize > 8 or scores.size == 0:
        raise InvalidParameter("scores must be at least one float of at most 64 bits")
    with np.errstate(all="ignore"):  # a warning would give a score away, too
        finite = np.nan_to_num(scores.astype(np.float64), nan=-_LARGEST)
        # Scaling up by a power of two and rounding down are both exact.
        floors = np.floor(np.ldexp(finite.clip(-_LARGEST, _LARGEST), -exponent))
    return LatticeScores(-_steps_below_highest(floors), steps)


def lattice_range(
    *,
    sensitivity_range: int | Fraction,
    numeric_error: int | Fraction = 0,
    exponent: int,
    aligned: bool = False,
) -> int:
    """Bound the range sensitivity of scores rounded down to multiples of 2**exponent, in steps.

    If all changes lie in [a, b] with b - a <= R, the computed ones lie in [a - 2e, b + 2e] for
    an error e.  Rounded down, they lie between floor(a - 2e) and ceil(b + 2e), in steps: at
    most one more than R + 4e, rounded up.  (Bounds for a symmetric interval, such as
    2 * ceil(sensitivity), would be too small here: the ends need not be multiples of a step.)
    """
    for value in (sensitivity_range, numeric_error):
        if not isinstance(value, (int, Fraction)):
            raise InvalidParameter(
                "sensitivity_range and numeric_error must be integers or Fractions"
            )
    require_positive(sensitivity_range=sensitivity_range)
    if numeric_error < 0:
        raise InvalidParameter(f"numeric_error ({numeric_error}) must not be negative")
    if not isinstance(exponent, int) or not FINEST <= exponent <= 0:
        raise InvalidParameter(f"exponent ({exponent}) must be an integer from {FINEST} to 0")
    steps = (sensitivity_range + 4 * Fraction(numeric_error)) * (1 << -exponent)
    if not aligned:
        return ceil(steps) + 1
    if numeric_error or steps.denominator != 1:
        raise InvalidParameter(
            "aligned scores have no numeric_error, and a sensitivity_range of whole steps"
        )
    return steps.numerator


def _steps_below_highest(floors: NDArray[np.float64]) -> NDArray[np.int64]:
    highest = int(floors.max())
    if abs(highest) < FARTHEST:
        inside = floors.clip(min=-(2.0**63)).astype(np.int64)
        return np.asarray(highest - np.maximum(inside, highest - FARTHEST))
    steps = (min(highest - int(floor), FARTHEST) for floor in floors.tolist())
    return np.fromiter(steps, dtype=np.int64, count=floors.size)

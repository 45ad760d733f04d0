"""Real numbers as whole multiples of a power of two, so that noise on them can be exact.

The floor of a value on the lattice is computed exactly.  It is the floor, not the nearest
point, because the floor commutes with shifts: a value that moves by whole steps moves its
floor by just as many.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import ExactNumber, parse_exact

LIMIT_BITS = 60
UNIT_LIMIT = 1 << LIMIT_BITS  # of numbers before and after noise: twice this, noise is exact
_EXPONENTS = range(-1000, 901)  # the lattice and its limits are ordinary floats


@dataclass(frozen=True, eq=False)
class LatticeValues:
    """Published real numbers: `units` whole multiples of `2**exponent`."""

    units: NDArray[np.int64]
    exponent: int

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers as floats, rounded only where a float cannot hold them."""
        return np.asarray(np.ldexp(self.units.astype(np.float64), self.exponent))

    def fractions(self) -> list[Fraction]:
        """List the numbers exactly, in row-major order."""
        step = Fraction(2) ** self.exponent
        return [int(unit) * step for unit in self.units.ravel()]


def require_reals(values: ArrayLike) -> NDArray[np.float64] | NDArray[np.object_]:
    """Turn arrays of floats into such an array and anything else into an array of exact numbers.

    Plain numbers and lists are taken as they are, since NumPy would choose a type for them that
    depends on the (private) values.
    """
    is_typed = isinstance(values, (np.ndarray, np.generic))
    array = np.asarray(values) if is_typed else np.array(values, dtype=object)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind not in "iuO":
        raise InvalidParameter(f"values must be numbers, not {array.dtype}")
    return array.astype(object)


def choose_exponent(sensitivity: Fraction, epsilon: Fraction, touched: int) -> int:
    """Choose a lattice a million times finer than the noise, from public settings alone.

    Where one record touches many coordinates the lattice is finer still, so that rounding
    each of them costs less than a thousandth of the sensitivity.

    >>> choose_exponent(Fraction(1), Fraction(1), 1)
    -20
    """
    step = min(sensitivity / epsilon / 2**20, sensitivity / touched / 2**10)
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > step
    return _require_exponent(exponent)


def exponent_of(granularity: ExactNumber) -> int:
    """Find which power of two `granularity` is.

    >>> exponent_of("1/8"), exponent_of(4)
    (-3, 2)
    """
    step = parse_exact(granularity, "granularity")
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    if Fraction(2) ** exponent != step:
        raise InvalidParameter(f"granularity ({granularity}) must be a power of two, like 1/1024")
    return _require_exponent(exponent)


def lattice_sensitivity(sensitivity: Fraction, exponent: int, touched: int) -> int:
    """Bound the L1 distance in units between the floors of neighboring vectors.

    Coordinates move by d_1, d_2, ..., at most `touched` of them by anything, and the |d_j|
    add up to at most `sensitivity`.  A floor moves by at most ceil(|d_j| / step), which is
    less than |d_j| / step + 1.  So the sum is an integer less than
    sensitivity / step + touched.

    >>> lattice_sensitivity(Fraction(1), -3, 1), lattice_sensitivity(Fraction(1), -3, 5)
    (8, 12)
    """
    return -int(-sensitivity // Fraction(2) ** exponent) + touched - 1


def floor_units(
    values: NDArray[np.float64] | NDArray[np.object_], exponent: int
) -> NDArray[np.int64]:
    """Floor each value onto multiples of `2**exponent`, exactly; count the multiples.

    Two rules see to it that no value raises an error, which would give it away: what is not
    a finite number counts as 0, and what lies beyond `2**60` units is moved there.
    """
    if values.dtype == object:
        units = [_floor_one(value, exponent) for value in values.ravel()]
        return np.array(units, dtype=np.int64).reshape(values.shape)
    reals = values.astype(np.float64)
    limit = ldexp(1, LIMIT_BITS + exponent)
    with np.errstate(all="ignore"):
        finite = np.clip(np.where(np.isfinite(reals), reals, 0), -limit, limit)
        scaled = np.ldexp(finite, -exponent)
    # Scaling is exact unless the result is tiny; if it vanished, the sign is left to tell.
    vanished = (scaled == 0) & (finite < 0)
    return np.asarray(np.where(vanished, -1, np.floor(scaled)).astype(np.int64))


def _floor_one(value: object, exponent: int) -> int:
    if not isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        return 0
    try:
        units = int(_exact(value) // Fraction(2) ** exponent)
    except (ArithmeticError, TypeError, ValueError):
        return 0  # infinite or not a number: no error may tell
    return max(-UNIT_LIMIT, min(units, UNIT_LIMIT))


def _exact(value: float | Fraction | np.integer[Any] | np.floating[Any]) -> Fraction:
    if isinstance(value, (float, np.floating)):
        return Fraction(*value.as_integer_ratio())
    return Fraction(int(value.numerator), int(value.denominator))


def _require_exponent(exponent: int) -> int:
    if exponent not in _EXPONENTS:
        raise InvalidParameter(
            f"granularity (2**{exponent}) must lie between 2**-1000 and 2**900; rescale the values"
        )
    return exponent

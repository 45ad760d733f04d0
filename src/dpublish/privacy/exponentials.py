"""Enclose exp(-x) between integers: what budgets and samplers share of exact arithmetic.

One `Decimal.exp` with a bound on its error; every rounding is outwards.  Why it is exact:
docs/proofs/exact.md.
"""

from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class Bounds(NamedTuple):
    """Integers around `2**precision` times a real number: low <= it <= high."""

    low: int
    high: int


@lru_cache(maxsize=1024)
def exp_bounds(exponent: Fraction, precision: int) -> Bounds:
    """Enclose `2**precision * exp(-exponent)` for an exponent >= 0.

    >>> exp_bounds(Fraction(1), 8)  # 256 / e = 94.17...
    Bounds(low=94, high=95)
    """
    if exponent == 0:
        return Bounds(1 << precision, 1 << precision)
    if exponent > precision:
        return Bounds(0, 1)  # exp(-x) < 2**-x
    digits = precision * 31 // 100 + 20
    down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    top, bottom = Decimal(exponent.numerator), Decimal(exponent.denominator)
    # copy_negate is exact; unary minus would round to the thread's own context.
    least = down.exp(up.divide(top, bottom).copy_negate())
    most = up.exp(down.divide(top, bottom).copy_negate())
    # Decimal.exp rounds to the nearest whatever the context says: one step outwards makes up.
    low, low_unit = down.next_minus(least).as_integer_ratio()
    high, high_unit = up.next_plus(most).as_integer_ratio()
    return Bounds((low << precision) // low_unit, _ceil_divide(high << precision, high_unit))


def _context(digits: int, rounding: str) -> Context:
    """Make a decimal context that depends on no other settings."""
    return Context(
        prec=digits,
        rounding=rounding,
        Emin=MIN_EMIN,
        Emax=MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


def _ceil_divide(top: int, bottom: int) -> int:
    return -(-top // bottom)

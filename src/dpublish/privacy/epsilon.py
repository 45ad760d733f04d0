"""Epsilon is an exact fraction inside and a decimal string outside; a float is neither.

The float 0.1 is a little more than one tenth, and ten of them are not 1.  A budget kept in
floats is therefore either overspent or refused in its last digit.
"""

import re
from decimal import Decimal
from fractions import Fraction
from math import isfinite

from dpublish.errors import InvalidParameter

ExactNumber = Fraction | Decimal | int | str

_DECIMAL = re.compile(r"\s*(\d{1,30}(\.\d{1,30})?|\.\d{1,30})([eE][+-]?\d{1,2})?\s*")
_RATIO = re.compile(r"\s*\d{1,1000}\s*/\s*\d{1,1000}\s*")  # shares of shares have many digits


def parse_epsilon(value: ExactNumber, name: str = "epsilon") -> Fraction:
    """Read a positive exact number: `"0.1"`, `"1/3"`, `2`, a `Decimal` or a `Fraction`.

    >>> parse_epsilon("0.1")
    Fraction(1, 10)
    >>> parse_epsilon(0.1)
    Traceback (most recent call last):
    dpublish.errors.InvalidParameter: epsilon (0.1) is a binary float, which is not exact; \
write "0.1" (a string)
    """
    if isinstance(value, float):
        remedy = f'; write "{Decimal(repr(float(value))):f}" (a string)' if isfinite(value) else ""
        raise InvalidParameter(f"{name} ({value}) is a binary float, which is not exact{remedy}")
    if isinstance(value, str):
        exact = _parse_text(value, name)
    elif _is_exact(value):
        exact = Fraction(value)
    else:
        raise InvalidParameter(f"{name} must be a number such as 1 or a string such as '0.1'")
    if exact <= 0:
        raise InvalidParameter(f"{name} ({value}) must be greater than 0, for example 0.5")
    return exact


def _is_exact(value: ExactNumber) -> bool:
    if isinstance(value, Decimal):
        # An exponent could ask for more digits than memory holds.
        return value.is_finite() and abs(value.adjusted()) <= 1000
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool)


def _parse_text(text: str, name: str) -> Fraction:
    if text.strip().startswith("-"):
        raise InvalidParameter(f"{name} ({text}) must be greater than 0, for example 0.5")
    if not (_DECIMAL.fullmatch(text) or _RATIO.fullmatch(text)):
        raise InvalidParameter(f"{name} ({text[:40]!r}) is not a number; write for example 0.5")
    try:
        return Fraction("".join(text.split()))
    except ZeroDivisionError:
        raise InvalidParameter(f"{name} ({text}) divides by zero") from None


def format_epsilon(value: Fraction) -> str:
    """Write an exact number so that `parse_epsilon` reads the same one back.

    >>> format_epsilon(Fraction(1, 8)), format_epsilon(Fraction(1, 3))
    ('0.125', '1/3')
    """
    digits = 0
    while digits <= 30:
        scaled = value * 10**digits
        if scaled.denominator == 1:
            text = str(scaled.numerator).rjust(digits + 1, "0")
            return f"{text[:-digits]}.{text[-digits:]}" if digits else text
        digits += 1
    return f"{value.numerator}/{value.denominator}"


def rational_weight(value: float, denominator: int = 64) -> Fraction:
    """Round an irrational weight, such as c^(2/3), to a ratio that can be shared out exactly.

    Any positive weights give a valid split; rounding only moves the optimum a little.
    """
    return max(Fraction(round(value * denominator), denominator), Fraction(1, denominator))

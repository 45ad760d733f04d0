"""Epsilon is an exact fraction inside; outside it is a decimal, as text or as a number.

The float 0.1 is a little more than one tenth, and ten of them are not 1.  A budget kept in
floats is therefore either overspent or refused in its last digit.  So a float is read once, as
the shortest decimal that stands for it, which is what was typed: 0.1 is 1/10.  What mechanisms
compute with, such as a sensitivity, is never read from a float: it may have been rounded down.
"""

import re
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any

from dpublish.errors import InvalidParameter, InvalidType

ExactNumber = Fraction | Decimal | int | str
"""A number that is exact as it is written."""
EpsilonLike = ExactNumber | float
"""An exact number, or a float that is read by its shortest decimal."""

_DECIMAL = re.compile(r"\s*(\d{1,30}(\.\d{1,30})?|\.\d{1,30})([eE][+-]?\d{1,2})?\s*")
_RATIO = re.compile(r"\s*\d{1,1000}\s*/\s*\d{1,1000}\s*")  # shares of shares have many digits
_LIKE_NUMBER = re.compile(
    r"\s*(\d+(\.\d+)?|\.\d+)(?P<exponent>[eE][+-]?\d+)?\s*|(?P<ratio>\s*\d+\s*/\s*\d+\s*)"
)
_COMMA = re.compile(r"\s*\d{1,20},\d{1,20}\s*")
_WRITTEN = re.compile(r"\d+(\.\d+|/\d+)?", re.ASCII)
_EXPONENT_DIGITS = 2
_SHOWN = 40  # characters of what was given that a message repeats
_READABLE = 8  # characters of an exact number that people read at a glance
_TOO_LONG = 10**4000  # Python writes numbers of up to 4300 digits


def parse_epsilon(value: EpsilonLike, name: str = "epsilon") -> Fraction:
    """Read a positive number: `0.1`, `"0.1"`, `"1/3"`, `2`, a `Decimal` or a `Fraction`.

    A float is read by its shortest decimal, so that 0.1 is 1/10; NumPy's numbers are read alike.

    >>> parse_epsilon("0.1"), parse_epsilon(0.1), parse_epsilon(2)
    (Fraction(1, 10), Fraction(1, 10), Fraction(2, 1))
    """
    if is_float(value):
        return parse_exact(_shortest(value, name), name)
    return parse_exact(value, name)  # type: ignore[arg-type]  # no float is left


def parse_exact(value: ExactNumber, name: str) -> Fraction:
    """Read a positive number that is exact as it stands; a float is refused.

    >>> parse_exact(0.1, "sensitivity")
    Traceback (most recent call last):
    dpublish.errors.InvalidType: sensitivity (0.1) is a binary float, which is not exact; \
write "0.1" (a string) or a Fraction
    """
    if is_float(value):
        raise InvalidType(_no_float(value, name))
    if isinstance(value, str):
        exact = _parse_text(value, name)
    elif _is_exact(value):
        exact = _to_fraction(value)
    else:
        raise InvalidType(
            f"{name} must be a number such as 0.5 or a string such as '1/3', not {_kind_of(value)}"
        )
    if exact <= 0:
        raise InvalidParameter(f"{name} ({quoted(value)}) must be greater than 0, for example 0.5")
    if max(exact.numerator, exact.denominator) >= _TOO_LONG:
        raise InvalidParameter(f"{name} has more than 4000 digits; write a rounder one")
    return exact


def is_float(value: object) -> bool:
    """Check whether a number is binary and may have been rounded: a float, or one of NumPy's.

    >>> is_float(0.5), is_float(Fraction(1, 2)), is_float(1)
    (True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, Rational | Decimal)


def how_read(value: EpsilonLike) -> str:
    """Say how a float was read, for the receipt; nothing of a number that was exact.

    >>> how_read(0.1), how_read("0.1")
    ('given as the float 0.1 and read by its shortest decimal, which is exactly 1/10', '')
    """
    if not is_float(value):
        return ""
    read = f"given as the float {_decimal_text(value)} and read by its shortest decimal"
    return f"{read}, which is exactly {parse_epsilon(value)}"


def _decimal_text(value: object) -> str:
    """Write the shortest decimal that stands for a float, in its own precision."""
    return float.__repr__(value) if isinstance(value, float) else str(value)


def _shortest(value: object, name: str) -> Decimal | int:
    """Return the shortest decimal that stands for a float."""
    if not isfinite(value):  # type: ignore[arg-type]  # it is a real number
        raise InvalidParameter(f"{name} ({value}) must be a finite number, for example 0.5")
    return Decimal(_decimal_text(value))


def _no_float(value: object, name: str) -> str:
    text = f"{Decimal(_decimal_text(value)):f}" if isfinite(value) else ""  # type: ignore[arg-type]
    remedy = f'; write "{text}" (a string) or a Fraction' if 0 < len(text) <= _SHOWN else ""
    return f"{name} ({value}) is a binary float, which is not exact{remedy}"


def _kind_of(value: object) -> str:
    """Name what was given instead of a number."""
    if value is None or isinstance(value, bool | Decimal):
        return str(value) if len(str(value)) <= _SHOWN else "one of so many digits"
    return f"an object of type {type(value).__name__}"


def quoted(value: object) -> str:
    r"""Quote what was given in one short line; a number stands without quotation marks.

    >>> quoted("0"), quoted("x" * 99 + "\n"), quoted(-(10**5000))
    ("'0'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'", 'a number of very many digits')
    """
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    try:
        text = str(value) if isinstance(value, (Decimal, Fraction)) else repr(value)
    except ValueError:  # Python does not write out numbers of more than 4300 digits
        return "a number of very many digits"
    return (
        " ".join(text.split()) if len(text) <= _SHOWN else f"{' '.join(text[:_SHOWN].split())}..."
    )


def _is_exact(value: object) -> bool:
    if isinstance(value, Decimal):
        # An exponent could ask for more digits than memory holds.
        return value.is_finite() and abs(value.adjusted()) <= 1000
    return isinstance(value, Rational) and not isinstance(value, bool)


def _to_fraction(value: Any) -> Fraction:
    """Turn an exact number into a fraction of Python's own integers."""
    return Fraction(int(value)) if isinstance(value, Integral) else Fraction(value)


def _parse_text(text: str, name: str) -> Fraction:
    if text.strip().startswith("-"):
        raise InvalidParameter(f"{name} ({quoted(text)}) must be greater than 0, for example 0.5")
    if not (_DECIMAL.fullmatch(text) or _RATIO.fullmatch(text)):
        raise InvalidParameter(f"{name} ({quoted(text)}) {_why_not(text)}")
    try:
        return Fraction("".join(text.split()))
    except ZeroDivisionError:
        raise InvalidParameter(f"{name} ({quoted(text)}) divides by zero") from None


def _why_not(text: str) -> str:
    """Explain why a text was not read: what looks like a number breaks a limit."""
    found = _LIKE_NUMBER.fullmatch(text)
    if found is None:
        if _COMMA.fullmatch(text):
            pointed = ".".join(text.strip().split(","))
            return f"is not a number: it has a comma; write a point: {pointed}"
        return "is not a number; write for example 0.5"
    exponent = (found["exponent"] or "").lower().lstrip("e")
    if len(exponent.lstrip("+-")) > _EXPONENT_DIGITS:
        size = "small" if exponent.startswith("-") else "large"
        sign = "-" if exponent.startswith("-") else ""
        return f"is too {size}: its power of ten is {sign}99 at most; write for example 0.5"
    if found["ratio"]:
        return "has too many digits: 1000 on either side of the / at most"
    return "has too many digits: 30 before the point and 30 after it at most"


def read_exact(text: str) -> Fraction:
    """Read a number of any length as `format_epsilon` wrote it; zero is allowed.

    >>> read_exact("0.125"), read_exact("1/3")
    (Fraction(1, 8), Fraction(1, 3))
    """
    if not _WRITTEN.fullmatch(text):  # an exponent could need more digits than memory holds
        raise ValueError("not an exact number")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("not an exact number: it divides by zero") from None


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


def format_short(value: Fraction) -> str:
    """Write a number in decimals for a message: exactly if that is short, else rounded down.

    What is rounded down can be spent where the number itself could.

    >>> format_short(Fraction(1, 8)), format_short(Fraction(1, 3))
    ('0.125', '0.333333333333')
    """
    exact = format_epsilon(value)
    if len(exact) <= _SHOWN and "/" not in exact:
        return exact
    context = Context(prec=12, rounding=ROUND_DOWN, Emin=-9999, Emax=9999)
    return _decimal(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _decimal(value: Decimal) -> str:
    """Write a decimal without an exponent, unless it would be longer than a message allows."""
    text = f"{value:f}"
    return text if len(text) <= _SHOWN else str(value)


def format_rounded(value: Fraction) -> str:
    """Write a number in decimals for people: exactly if that is short, else rounded, with a mark.

    >>> format_rounded(Fraction(1, 8)), format_rounded(Fraction(1, 24)), format_rounded(Fraction(2))
    ('0.125', '≈0.04167', '2')
    """
    exact = format_epsilon(value)
    if len(exact) <= _READABLE and "/" not in exact:
        return exact
    digits = Context(prec=4, Emin=-9999, Emax=9999)
    return f"≈{_decimal(digits.divide(Decimal(value.numerator), Decimal(value.denominator)))}"


def rational_weight(value: float, denominator: int = 64) -> Fraction:
    """Round an irrational weight, such as c^(2/3), to a ratio that can be shared out exactly.

    Any positive weights give a valid split; rounding only moves the optimum a little.
    """
    return max(Fraction(round(value * denominator), denominator), Fraction(1, denominator))

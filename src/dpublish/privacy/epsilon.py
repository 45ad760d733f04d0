"""Epsilon is an exact fraction inside and a decimal string outside; a float is neither.

The float 0.1 is a little more than one tenth, and ten of them are not 1.  A budget kept in
floats is therefore either overspent or refused in its last digit.
"""

import re
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from math import isfinite

from dpublish.errors import InvalidParameter

ExactNumber = Fraction | Decimal | int | str

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
        text = f"{Decimal(repr(float(value))):f}" if isfinite(value) else ""
        remedy = f'; write "{text}" (a string)' if 0 < len(text) <= _SHOWN else ""
        raise InvalidParameter(f"{name} ({value}) is a binary float, which is not exact{remedy}")
    if isinstance(value, str):
        exact = _parse_text(value, name)
    elif _is_exact(value):
        exact = Fraction(value)
    else:
        raise InvalidParameter(f"{name} must be a number such as 1 or a string such as '0.1'")
    if exact <= 0:
        raise InvalidParameter(f"{name} ({quoted(value)}) must be greater than 0, for example 0.5")
    if max(exact.numerator, exact.denominator) >= _TOO_LONG:
        raise InvalidParameter(f"{name} has more than 4000 digits; write a rounder one")
    return exact


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


def _is_exact(value: ExactNumber) -> bool:
    if isinstance(value, Decimal):
        # An exponent could ask for more digits than memory holds.
        return value.is_finite() and abs(value.adjusted()) <= 1000
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool)


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

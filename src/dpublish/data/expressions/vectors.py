"""Columns of values that an expression computes with, record by record.

Numbers, dates (days since 1970) and times (seconds since 1970) are doubles, and NaN stands for
missing.  Text is an Arrow array of canonical texts, null if missing.  Truth values are bytes: no,
yes or missing.

What becomes of a record depends on that record alone, bit by bit.  Addition, multiplication,
division and roots are exactly rounded by every processor.  NumPy's exponentials and logarithms are
not, and may take another path for the last values of an array; so these are computed one by one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.types import BoolArray, FloatArray

Form = Literal["number", "text", "truth", "date", "datetime"]
Truth = NDArray[np.uint8]
Vector = Any
"""A `FloatArray`, a `Truth` or an Arrow array of text, by its form."""

NO, YES, UNKNOWN = 0, 1, 2
DAY = 86_400.0
_LAST_DAY = 3_000_000.0  # beyond the year 9999; calendars end somewhere
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

ARROW_TYPES: Mapping[Form, Any] = {
    "number": pa.float64(),
    "text": pa.large_string(),
    "truth": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}
"""As what type a derived column is handed on."""


# --- In and out -------------------------------------------------------------------------------


def to_arrow(vector: Vector, form: Form) -> Any:
    """Hand a vector on as an Arrow array; what is missing is null."""
    if form == "text":
        return vector
    if form == "truth":
        return pa.array(vector == YES, mask=vector == UNKNOWN)
    absent = np.isnan(vector)
    if form == "number":
        return pa.array(vector, mask=absent)
    filled = np.where(absent, 0.0, vector)
    if form == "date":
        days = pa.array(np.floor(filled).astype(np.int32), mask=absent)
        return days.cast(pa.date32())
    micros = pa.array(np.rint(filled * 1e6).astype(np.int64), mask=absent)
    return micros.cast(pa.timestamp("us"))


def within_calendar(seconds: FloatArray) -> FloatArray:
    """Make points in time missing that no calendar has."""
    return np.where(np.abs(seconds) <= _LAST_DAY * DAY, seconds, np.nan)


def to_truth(array: Any) -> Truth:
    """Read an Arrow array of truth values."""
    filled = array.cast(pa.uint8()).fill_null(UNKNOWN)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.uint8)


# --- Truth ------------------------------------------------------------------------------------


def known_truth(found: BoolArray, absent: BoolArray) -> Truth:
    """Make truth values of an outcome, unknown where an operand is missing."""
    return np.where(absent, np.uint8(UNKNOWN), found.astype(np.uint8))


def opposite(truth: Truth) -> Truth:
    """Turn yes and no around; unknown stays."""
    return np.array([YES, NO, UNKNOWN], dtype=np.uint8)[truth]


def all_of(truths: Sequence[Truth]) -> Truth:
    """Join by `and`: one no decides, else one unknown."""
    no = np.logical_or.reduce([truth == NO for truth in truths])
    unknown = np.logical_or.reduce([truth == UNKNOWN for truth in truths])
    return np.where(no, NO, np.where(unknown, UNKNOWN, YES)).astype(np.uint8)


def any_of(truths: Sequence[Truth]) -> Truth:
    """Join by `or`: one yes decides, else one unknown."""
    return opposite(all_of([opposite(truth) for truth in truths]))


def is_absent(vector: Vector, form: Form) -> BoolArray:
    """Mark what is missing."""
    if form == "text":
        return np.asarray(vector.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.asarray(vector == UNKNOWN if form == "truth" else np.isnan(vector))


# --- Comparisons ------------------------------------------------------------------------------

_COMPARE: Mapping[str, Callable[[Any, Any], BoolArray]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compare(sign: str, left: FloatArray, right: FloatArray) -> Truth:
    """Compare numbers, days or seconds."""
    return known_truth(_COMPARE[sign](left, right), np.isnan(left) | np.isnan(right))


def same_text(left: Any, right: Any) -> Truth:
    """Compare texts."""
    found = pc.equal(left, right)
    return to_truth(found)


def among_texts(texts: Any, known: Any) -> Truth:
    """Look for texts in a list."""
    found = np.asarray(pc.is_in(texts, known).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return known_truth(found, is_absent(texts, "text"))


def among_numbers(numbers: FloatArray, known: FloatArray) -> Truth:
    """Look for numbers in a list."""
    return known_truth(np.isin(numbers, known), np.isnan(numbers))


def in_period(sign: str, seconds: FloatArray, start: float, stop: float) -> Truth:
    """Compare points in time with a period: equal is within it, less is before it."""
    outcomes: Mapping[str, Callable[[], BoolArray]] = {
        "=": lambda: (seconds >= start) & (seconds < stop),
        "!=": lambda: (seconds < start) | (seconds >= stop),
        "<": lambda: seconds < start,
        "<=": lambda: seconds < stop,
        ">": lambda: seconds >= stop,
        ">=": lambda: seconds >= start,
    }
    return known_truth(outcomes[sign](), np.isnan(seconds))


# --- Arithmetic -------------------------------------------------------------------------------


def calculate(sign: str, left: FloatArray, right: FloatArray) -> FloatArray:
    """Combine numbers; what is no finite number is missing."""
    with np.errstate(all="ignore"):
        return finite(_ARITHMETIC[sign](left, right))


def finite(numbers: FloatArray) -> FloatArray:
    """Make what overflowed, or has no result, missing."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _floor_divide(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.floor(left / right))


def _remainder(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return what is left, with the sign of the divisor; exactly rounded, as `fmod` is."""
    rest = np.fmod(left, right)
    return np.where((rest != 0) & ((rest < 0) != (right < 0)), rest + right, rest)


def power(base: FloatArray, exponent: FloatArray) -> FloatArray:
    """Raise to a power, one by one: each result is the same wherever the record stands."""
    return each(math.pow, base, exponent)


def whole_power(base: FloatArray, exponent: int) -> FloatArray:
    """Raise to a small whole power by multiplication, which every processor rounds alike."""
    with np.errstate(all="ignore"):
        found = np.where(np.isnan(base), np.nan, 1.0)
        for _ in range(abs(exponent)):
            found = found * base
        return finite(found if exponent >= 0 else 1.0 / found)


def each(function: Callable[..., float], *vectors: FloatArray) -> FloatArray:
    """Apply a function of Python's to one record after the other; no result is missing."""
    lists = [vector.tolist() for vector in vectors]
    try:
        found = np.fromiter(map(function, *lists), np.float64, len(lists[0]))
    except (ValueError, OverflowError, ZeroDivisionError):
        results = map(partial(_or_missing, function), *lists)
        found = np.fromiter(results, np.float64, len(lists[0]))
    absent = np.logical_or.reduce([np.isnan(vector) for vector in vectors])
    return np.where(absent, np.nan, finite(found))


def _or_missing(function: Callable[..., float], *numbers: float) -> float:
    try:
        return function(*numbers)
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


_ARITHMETIC: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": _floor_divide,
    "%": _remainder,
    "**": power,
}


def rounded(numbers: FloatArray, digits: int) -> FloatArray:
    """Round to so many decimals; a half goes to the even neighbor."""
    factor = 10.0 ** abs(digits)
    with np.errstate(all="ignore"):
        if digits >= 0:
            return finite(np.rint(numbers * factor) / factor)
        return finite(np.rint(numbers / factor) * factor)


# --- Dates ------------------------------------------------------------------------------------


def part_of_date(days: FloatArray, part: str) -> FloatArray:
    """Return the year, quarter, month or day of the month."""
    absent = np.isnan(days) | (np.abs(days) > _LAST_DAY)
    dates = np.where(absent, 0.0, np.floor(days)).astype(np.int64).astype("datetime64[D]")
    months = dates.astype("datetime64[M]").astype(np.int64)
    numbers: Mapping[str, Callable[[], NDArray[Any]]] = {
        "year": lambda: 1970 + months // 12,
        "quarter": lambda: 1 + months % 12 // 3,
        "month": lambda: 1 + months % 12,
        "day": lambda: 1 + (dates - dates.astype("datetime64[M]")).astype(np.int64),
    }
    return np.where(absent, np.nan, numbers[part]().astype(np.float64))


def weekday(days: FloatArray) -> Any:
    """Name the days of the week."""
    absent = np.isnan(days)
    numbers = (np.where(absent, 0.0, np.floor(days)).astype(np.int64) + 3) % 7
    return pa.array(_WEEKDAYS, pa.large_string()).take(pa.array(numbers, mask=absent))


def hour(seconds: FloatArray) -> FloatArray:
    """Return the hour of the day, 0 to 23."""
    return np.asarray(np.floor(_remainder(seconds, np.full_like(seconds, DAY)) / 3600.0))

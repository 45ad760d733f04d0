"""Calendar periods: years, quarters, months, weeks, days and hours as ranges of integers.

A date is the number of days since 1970-01-01, a datetime the number of seconds since midnight of
that day, on a wall clock that knows no time zone.  So a period is a range of integers, and
whatever holds for columns of integers holds for dates.  Nothing here looks at rows.
"""

import re
from datetime import date
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

DateKind = Literal["date", "datetime"]
Period = Literal["hour", "day", "week", "month", "quarter", "year"]
DATE_KINDS: tuple[DateKind, ...] = ("date", "datetime")
PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month", "quarter", "year")
DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
_FIRST_YEAR = 1970
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
# From the coarsest level down to the bins; weeks cross months, so they have years of their own.
_LEVELS: dict[str, tuple[str, ...]] = {
    "year": ("year",),
    "quarter": ("year", "quarter"),
    "month": ("year", "quarter", "month"),
    "day": ("year", "quarter", "month", "day"),
    "hour": ("year", "quarter", "month", "day", "hour"),
    "week": ("week year", "week"),
}
_WRITTEN = re.compile(
    r"""(?P<year>[0-9]{4})(?:
        -Q(?P<quarter>[1-4])
      | -W(?P<week>[0-9]{2})
      | -(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})
            (?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?)?)?
    )?""",
    re.VERBOSE | re.IGNORECASE,
)


class Span(NamedTuple):
    """The integers from `start` up to, not including, `stop`."""

    start: int
    stop: int


def read_period(text: str, kind: DateKind) -> Span | None:
    """Read a period; None if the text is none, or names a day or hour that does not exist.

    >>> read_period("2024-02", "date"), read_period("1970-01-02 13:00", "datetime")
    (Span(start=19754, stop=19783), Span(start=133200, stop=133260))
    >>> read_period("2024-02-30", "date")
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or (kind == "date" and found["hour"]):
        return None
    parts = {name: int(part) for name, part in found.groupdict().items() if part is not None}
    try:
        days = _read_days(parts)
    except ValueError:
        return None
    if kind == "date":
        return days
    return _read_time(days, parts)


def _read_days(parts: dict[str, int]) -> Span:
    year = parts["year"]
    if "week" in parts:
        monday = _day(date.fromisocalendar(year, parts["week"], 1))
        return Span(monday, monday + 7)
    if "day" in parts:
        day = _day(date(year, parts["month"], parts["day"]))
        return Span(day, day + 1)
    date(year, parts.get("month", 1), 1)  # refuses month 13, and the year 0
    first = (year - _FIRST_YEAR) * 12 + 3 * (parts.get("quarter", 1) - 1)
    first += parts.get("month", 1) - 1
    length = 1 if "month" in parts else 3 if "quarter" in parts else 12
    start, stop = _month_starts(np.array([first, first + length])).tolist()
    return Span(start, stop)


def _read_time(days: Span, parts: dict[str, int]) -> Span | None:
    start = days.start * DAY_SECONDS
    if "hour" not in parts:
        return Span(start, days.stop * DAY_SECONDS)
    hour, minute, second = (parts.get(name, 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    length = 1 if "second" in parts else 60 if "minute" in parts else HOUR_SECONDS
    start += hour * HOUR_SECONDS + minute * 60 + second
    return Span(start, start + length)


def _day(found: date) -> int:
    return found.toordinal() - date(_FIRST_YEAR, 1, 1).toordinal()


def _month_starts(months: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first day of months that are counted from January 1970."""
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def write_value(number: float, kind: DateKind) -> str:
    """Write a number of days or seconds as a date or time, without seconds if there are none.

    >>> write_value(19754, "date"), write_value(133200, "datetime")
    ('2024-02-01', '1970-01-02 13:00')
    """
    if kind == "date":
        return str(np.datetime64(int(number), "D"))
    text = str(np.datetime64(int(number), "s")).replace("T", " ")
    return text.removesuffix(":00")


def write_bounds(low: int, high: int, kind: DateKind) -> list[str]:
    """Write bounds so that they are read back: whole days as such, else to the second.

    >>> write_bounds(0, 86_399, "datetime"), write_bounds(0, 7_260, "datetime")
    (['1970-01-01', '1970-01-01'], ['1970-01-01T00:00:00', '1970-01-01T02:01:00'])
    """
    if kind == "datetime" and (low % DAY_SECONDS or (high + 1) % DAY_SECONDS):
        return [str(np.datetime64(bound, "s")) for bound in (low, high)]
    per_day = 1 if kind == "date" else DAY_SECONDS
    return [str(np.datetime64(bound // per_day, "D")) for bound in (low, high)]


def find_days(numbers: NDArray[np.int64], kind: DateKind) -> NDArray[np.int64]:
    """Return the days on which some dates or times lie."""
    return numbers if kind == "date" else numbers // DAY_SECONDS


def number_periods(numbers: NDArray[np.int64], period: str, kind: DateKind) -> NDArray[np.int64]:
    """Number the periods in which some dates or times lie, in order of time."""
    if period == "hour":
        return numbers // HOUR_SECONDS
    days = find_days(numbers, kind)
    if period == "day":
        return days
    if period == "week":
        return (days + 3) // 7  # the first of 1970 was a Thursday
    if period == "week year":  # that of the week's Thursday
        days = (days + 3) // 7 * 7
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return np.asarray(months // _MONTHS.get(period, 12))


def cut_periods(low: int, high: int, period: Period, kind: DateKind) -> tuple[float, ...]:
    """Return the edges of the periods from `low` to `high`, both included.

    The first and the last period are cut off at these bounds.

    >>> cut_periods(0, 45, "month", "date")
    (0.0, 31.0, 46.0)
    """
    first, last = number_periods(np.array([low, high]), period, kind).tolist()
    numbers = np.arange(first + 1, last + 1)
    if period == "hour":
        starts = numbers * HOUR_SECONDS
    elif period == "day":
        starts = numbers
    elif period == "week":
        starts = numbers * 7 - 3
    else:
        starts = _month_starts(numbers * _MONTHS[period])
    if kind == "datetime" and period != "hour":
        starts = starts * DAY_SECONDS
    return tuple(map(float, (low, *starts.tolist(), high + 1)))


def count_periods(low: int, high: int, period: Period, kind: DateKind) -> int:
    """Count the periods from `low` to `high`."""
    first, last = number_periods(np.array([low, high]), period, kind).tolist()
    return int(last - first + 1)


def choose_period(low: int, high: int, kind: DateKind) -> Period:
    """Choose bins by the public bounds alone: up to 72 hours, 92 days or 240 months; else years.

    >>> choose_period(0, 30, "date"), choose_period(0, 730, "date")
    ('day', 'month')
    """
    if kind == "datetime" and count_periods(low, high, "hour", kind) <= 72:
        return "hour"
    if count_periods(low, high, "day", kind) <= 92:
        return "day"
    return "month" if count_periods(low, high, "month", kind) <= 240 else "year"


def levels_above(period: Period) -> tuple[str, ...]:
    """List the levels of the calendar from the coarsest down to the bins."""
    return _LEVELS[period]


def name_periods(numbers: NDArray[np.int64], period: str) -> list[str]:
    """Write the names of numbered periods.

    >>> name_periods(np.array([54 * 12 + 2]), "month"), name_periods(np.array([2822]), "week")
    (['2024-03'], ['2024-W05'])
    """
    if period == "year":
        return [f"{number + _FIRST_YEAR:04d}" for number in numbers.tolist()]
    if period == "quarter":
        pairs = (divmod(number, 4) for number in numbers.tolist())
        return [f"{year + _FIRST_YEAR:04d}-Q{quarter + 1}" for year, quarter in pairs]
    if period == "month":
        return [str(text) for text in numbers.astype("M8[M]")]
    if period == "day":
        return [str(text) for text in numbers.astype("M8[D]")]
    if period == "hour":
        return [f"{text}:00".replace("T", " ") for text in map(str, numbers.astype("M8[h]"))]
    thursdays = numbers * 7
    years = thursdays.astype("M8[D]").astype("M8[Y]")
    weeks = (thursdays - years.astype("M8[D]").astype(np.int64)) // 7 + 1
    return [f"{year}-W{week:02d}" for year, week in zip(years, weeks.tolist(), strict=True)]

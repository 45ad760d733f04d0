"""Columns of dates and times, and the parts of a date as columns of their own.

A date is an integer number of days, a time one of seconds on the wall clock of the stated time
zone, so a column of dates is a column of integers that is cut along the calendar
and shown as dates.  A part of a date (its weekday, its hour) is an ordinal that is computed,
record by record, from the column of dates; the table need not have it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpublish.data.column import MISSING_LABEL, CategoryColumn, NumberColumn
from dpublish.data.encoding import Encoded, code_type
from dpublish.data.interval import MAX_LEAVES, Partition, whole_bins
from dpublish.data.periods import (
    DAY_SECONDS,
    HOUR_SECONDS,
    PERIODS,
    DateKind,
    Period,
    Span,
    choose_period,
    count_periods,
    cut_periods,
    find_days,
    levels_above,
    name_periods,
    number_periods,
    read_period,
    write_value,
)
from dpublish.data.stamps import UTC_NAME, Clock, StampReader, find_zone, require_format
from dpublish.data.taxonomy import ROOT, Level, Taxonomy
from dpublish.errors import InvalidSchema, require_known

DatePart = Literal["weekday", "hour", "month", "day", "quarter", "year"]
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_BOUNDS = 'must be two dates, such as ["2023-01-01", "2024-12-31"], the earlier first'


@dataclass(frozen=True)
class CalendarPartition(Partition):
    """Days or seconds cut into cells, shown as dates.

    Attributes:
        kind: Whether the numbers are days (date) or seconds (datetime).
        period: The period of the calendar that each cell is; None if cells are cut otherwise.
    """

    kind: DateKind = "date"
    period: Period | None = None

    def cut_anew(self, edges: tuple[float, ...]) -> "CalendarPartition":
        """Cut the same dates at other edges."""
        return CalendarPartition(edges, whole=True, kind=self.kind)

    def label(self, start: int, stop: int) -> str:
        """Name the cells from `start` up to, not including, `stop` as one range of dates."""
        if self._names is None:
            first = write_value(self.edges[start], self.kind)
            last = write_value(self.edges[stop] - 1, self.kind)
        else:
            first, last = self._names[start], self._names[stop - 1]
        return first if first == last else f"{first}..{last}"

    def number(self, period: str) -> NDArray[np.int64]:
        """Number the periods in which the cells start."""
        return number_periods(np.array(self.edges[:-1]).astype(np.int64), period, self.kind)

    @cached_property
    def _names(self) -> list[str] | None:
        return None if self.period is None else name_periods(self.number(self.period), self.period)


@dataclass(frozen=True, kw_only=True)
class DateColumn(NumberColumn):
    """Dates (`kind` date) or times (datetime) within public bounds.

    Values are days, or seconds on the wall clock of `time_zone`, since 1970-01-01.

    Attributes:
        time_zone: Whose wall clock is read; it concerns only values that have an offset or a
            zone, all others are taken as they stand.
        format: How text is written, with the codes of `strptime`; None for ISO 8601.
    """

    kind: DateKind
    partition: CalendarPartition
    time_zone: str = UTC_NAME
    format: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None:
            require_format(self.format)
        _ = self._reader  # looks up the time zone
        super().__post_init__()

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The levels of the calendar down to the bins."""
        if self.partition.period is None:
            return self._merge_leaves()
        extra = (MISSING_LABEL,) if self.missing == "category" else ()
        levels = [Level((0,), (ROOT,))]
        for period in levels_above(self.partition.period):
            levels.append(self._level(period, extra))
        return Taxonomy(tuple(levels))

    def show(self, number: float, digits: int = 4) -> str:
        """Write the nearest day or second for people."""
        return write_value(round(number), self.kind)

    def read(self, array: Any) -> NDArray[np.float64]:
        """Read an Arrow array as days or seconds that are not clipped; NaN stands for missing."""
        return self._reader.read(array, self.name)

    def _level(self, period: str, extra: Sequence[str]) -> Level:
        """Put neighboring cells together that lie in one period; `extra` leaves stay alone."""
        numbers = self.partition.number(period)
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        if period == "week year":  # the weeks of 2024 are not its days, so the name says weeks
            ends = [*starts[1:].tolist(), self.partition.size]
            runs = zip(starts.tolist(), ends, strict=True)
            labels = [self.partition.label(start, end) for start, end in runs]
        else:
            labels = name_periods(numbers[starts], period)
        beyond = range(self.partition.size, self.partition.size + len(extra))
        return Level((*starts.tolist(), *beyond), (*labels, *extra))

    @cached_property
    def _reader(self) -> StampReader:
        per_day = DAY_SECONDS if self.kind == "date" else 1
        low, high = (int(bound) * per_day for bound in self.bounds)
        return StampReader(self.kind, Clock.of(self.time_zone, low, high), self.format)


@dataclass(frozen=True, kw_only=True)
class DatePartColumn(CategoryColumn):
    """A part of a date, such as its weekday, as an ordinal with public labels.

    Its code is computed from the value of the column of dates after clipping, so that both
    agree; where that is missing, so is the part, under the same rule.

    Attributes:
        source: The column of dates.
        part: Which part of it.
    """

    source: DateColumn
    part: DatePart

    @classmethod
    def of(cls, name: str, source: DateColumn, part: DatePart) -> "DatePartColumn":
        """Declare a part of a column of dates.

        >>> from dpublish.data.schema import column
        >>> admitted = column("admitted", "date", bounds=["2023-01-01", "2024-12-31"])
        >>> DatePartColumn.of("quarter", admitted, "quarter").labels
        ('Q1', 'Q2', 'Q3', 'Q4')
        """
        require_known("part", part, get_args(DatePart))
        if not isinstance(source, DateColumn):
            raise InvalidSchema("part needs a column of kind date or datetime to be taken from")
        if part == "hour" and source.kind == "date":
            raise InvalidSchema(f"hour needs kind datetime, but {source.name!r} is of kind date")
        return cls(
            name=name,
            kind="ordinal",
            categories=_labels_of(part, source),
            missing=source.missing,
            source=source,
            part=part,
        )

    @property
    def source_name(self) -> str:
        """Name of the column of dates."""
        return self.source.name

    def encode_source(self, array: Any) -> Encoded:
        """Find the leaf of every value of an Arrow array of the column of dates."""
        clipped, keep = self.source.values(array)
        numbers = _PARTS[self.part](clipped.astype(np.int64), self.source)
        codes = numbers.astype(code_type(self.size))
        if self.missing == "category" and keep is not None:
            codes[~keep] = self.size - 1
            keep = None
        return Encoded(codes, keep)


def _labels_of(part: DatePart, source: DateColumn) -> tuple[str, ...]:
    if part == "year":
        low, high = (int(bound) for bound in source.bounds)
        first, last = number_periods(np.array([low, high]), "year", source.kind).tolist()
        return tuple(name_periods(np.arange(first, last + 1), "year"))
    fixed: dict[str, tuple[str, ...]] = {
        "weekday": _WEEKDAYS,
        "month": _MONTHS,
        "quarter": ("Q1", "Q2", "Q3", "Q4"),
        "day": tuple(map(str, range(1, 32))),
        "hour": tuple(map(str, range(24))),
    }
    return fixed[part]


def _weekday(numbers: NDArray[np.int64], source: DateColumn) -> NDArray[np.int64]:
    return (find_days(numbers, source.kind) + 3) % 7  # the first of 1970 was a Thursday


def _hour(numbers: NDArray[np.int64], source: DateColumn) -> NDArray[np.int64]:
    return numbers % DAY_SECONDS // HOUR_SECONDS


def _month(numbers: NDArray[np.int64], source: DateColumn) -> NDArray[np.int64]:
    return number_periods(numbers, "month", source.kind) % 12


def _quarter(numbers: NDArray[np.int64], source: DateColumn) -> NDArray[np.int64]:
    return number_periods(numbers, "quarter", source.kind) % 4


def _day(numbers: NDArray[np.int64], source: DateColumn) -> NDArray[np.int64]:
    days = find_days(numbers, source.kind).astype("M8[D]")
    return np.asarray((days - days.astype("M8[M]").astype("M8[D]")).astype(np.int64))


def _year(numbers: NDArray[np.int64], source: DateColumn) -> NDArray[np.int64]:
    first = number_periods(np.array([int(source.bounds[0])]), "year", source.kind)
    return number_periods(numbers, "year", source.kind) - first


_PARTS: dict[DatePart, Callable[[NDArray[np.int64], DateColumn], NDArray[np.int64]]] = {
    "weekday": _weekday,
    "hour": _hour,
    "month": _month,
    "day": _day,
    "quarter": _quarter,
    "year": _year,
}


def cut_dates(
    kind: DateKind, bounds: Sequence[Any] | None, bins: int | str | None, time_zone: str
) -> CalendarPartition:
    """Cut the dates between two bounds into periods of the calendar, or into equal bins.

    A bound may be any period: the first begins with the lower one, the last ends with the upper.
    """
    if bounds is None:
        raise InvalidSchema(
            'bounds are missing; write bounds = ["2023-01-01", "2024-12-31"] from public knowledge'
        )
    if isinstance(bounds, str) or len(bounds) != 2:
        raise InvalidSchema(f"bounds {_BOUNDS}")
    low = _read_bound(bounds[0], kind, time_zone).start
    high = _read_bound(bounds[1], kind, time_zone).stop - 1
    if low > high:
        raise InvalidSchema(f"bounds {_BOUNDS}; here the later one comes first")
    if isinstance(bins, int):
        edges = whole_bins(low, high, bins).edges
        return CalendarPartition(edges, whole=True, kind=kind)
    period = choose_period(low, high, kind) if bins is None else _read_period_name(bins, kind)
    count = count_periods(low, high, period, kind)
    if count > MAX_LEAVES:
        raise InvalidSchema(
            f'bins = "{period}" makes {count:,} bins, more than {MAX_LEAVES:,}; choose longer ones'
        )
    return CalendarPartition(
        cut_periods(low, high, period, kind), whole=True, kind=kind, period=period
    )


def _read_period_name(bins: str, kind: DateKind) -> Period:
    for period in PERIODS:
        if period != bins:
            continue
        if period == "hour" and kind == "date":
            raise InvalidSchema('bins = "hour" needs kind datetime; a date has no hours')
        return period
    raise InvalidSchema(
        f"bins ({bins}) must be one of {', '.join(PERIODS)}, or a number of equal bins"
    )


def _read_bound(bound: object, kind: DateKind, time_zone: str) -> Span:
    if isinstance(bound, datetime) and bound.tzinfo is not None:
        bound = bound.astimezone(find_zone(time_zone) or UTC).replace(tzinfo=None)
    if isinstance(bound, datetime):
        bound = bound.replace(microsecond=0)
        bound = bound.date() if kind == "date" else bound
    text = bound.isoformat() if isinstance(bound, date) else bound
    found = read_period(text, kind) if isinstance(text, str) else None
    if found is None:
        shown = f"{bound!r} is no date" if isinstance(bound, str) else "one of these is no date"
        raise InvalidSchema(f"bounds {_BOUNDS}; {shown}")
    return found

"""Turn Arrow columns of dates, times and text into whole days or seconds since 1970-01-01.

What becomes of a value depends on that value alone, and no value can raise an error: text that
is no date, month 13 and February 30 are missing.  Times are those of a wall clock in the stated
time zone: a time with an offset or a zone is moved there, one without is taken as it stands.
Only our own arithmetic is used, so the answer is the same on every engine.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.data.encoding import dictionary_positions, is_text, plain_array, used_entries
from dpublish.data.periods import DAY_SECONDS, HOUR_SECONDS, DateKind
from dpublish.errors import InvalidSchema, UnreadableData

UTC_NAME = "UTC"
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Some databases write dates and times without an end (`infinity`) as the largest numbers.
_LAST, _LAST_DAY = np.iinfo(np.int64).max, np.iinfo(np.int32).max
_FAR = 1 << 52  # seconds beyond all bounds; sums with them stay exact
_STEP = timedelta(days=1)  # no zone ever moved its clocks forth and back within a day
_EARLIEST, _LATEST = datetime(1850, 1, 1, tzinfo=UTC), datetime(2400, 1, 1, tzinfo=UTC)
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_FULL = len("2024-02-29T13:30:00")
_ZONE = r"Z|z|[+-][0-9]{2}(?::?[0-9]{2})?"
_ISO = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"(?:[Tt ](?P<H>[0-9]{2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]+)?)?"
    rf" ?(?P<z>{_ZONE})?)?"
)
_CODES = {
    "Y": "(?P<Y>[0-9]{4})",
    "y": "(?P<y>[0-9]{2})",
    "m": "(?P<m>[0-9]{1,2})",
    "d": "(?P<d>[0-9]{1,2})",
    "b": "(?P<b>[A-Za-z]{3})",
    "B": "(?P<B>[A-Za-z]{3,9})",
    "H": "(?P<H>[0-9]{1,2})",
    "I": "(?P<I>[0-9]{1,2})",
    "p": "(?P<p>[AaPp][Mm])",
    "M": "(?P<M>[0-9]{1,2})",
    "S": "(?P<S>[0-9]{1,2})",
    "f": "[0-9]+",
    "z": f"(?P<z>{_ZONE})",
    "%": "%",
}
_SHORT = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y"}


@dataclass(frozen=True)
class Clock:
    """How far a zone's wall clock is ahead of UTC, from some instants on; all of it is public.

    `offsets` has one entry more than `changes`: the first holds before the first change.
    """

    changes: tuple[int, ...] = ()
    offsets: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, zone: str, low: int, high: int) -> "Clock":
        """Look up a zone between two instants, in seconds since 1970-01-01 UTC.

        >>> Clock.of("Europe/Paris", 1711584000, 1711843200)
        Clock(changes=(1711846800,), offsets=(3600, 7200))
        """
        rules = find_zone(zone)
        if rules is None:
            return cls()
        start, end = (min(max(_instant(end), _EARLIEST), _LATEST) for end in (low, high))
        return cls._between(rules, start - 2 * _STEP, end + 2 * _STEP)

    @classmethod
    def _between(cls, rules: ZoneInfo, start: datetime, end: datetime) -> "Clock":
        changes: list[int] = []
        offsets = [_ahead(rules, start)]
        while start < end:
            later = start + _STEP
            if (offset := _ahead(rules, later)) != offsets[-1]:
                seconds = range(int(start.timestamp()), int(later.timestamp()))
                known = offsets[-1]
                first = bisect_right(
                    seconds, 0, key=lambda at: _ahead(rules, _instant(at)) != known
                )
                changes.append(seconds[0] + first)
                offsets.append(offset)
            start = later
        return cls(tuple(changes), tuple(offsets))

    def local(self, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the wall clock shows at some instants."""
        if not self.changes:
            return seconds + self.offsets[0]
        return np.asarray(seconds + self._ahead_by[np.searchsorted(self._at, seconds, "right")])

    @cached_property
    def _at(self) -> NDArray[np.int64]:
        return np.array(self.changes, dtype=np.int64)

    @cached_property
    def _ahead_by(self) -> NDArray[np.int64]:
        return np.array(self.offsets, dtype=np.int64)


def find_zone(name: str) -> ZoneInfo | None:
    """Find the rules of a zone; None for UTC, which needs none."""
    if name == UTC_NAME:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidSchema(
            f'time_zone ({name}) is not known here; write an IANA name such as "Europe/Paris", '
            'or "UTC"'
        ) from None


def _instant(seconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _ahead(rules: ZoneInfo, at: datetime) -> int:
    offset = at.astimezone(rules).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@dataclass(frozen=True)
class StampReader:
    """Reads a column as dates or times: its kind, its clock and, of text, its format.

    Attributes:
        kind: Days (date) or seconds (datetime).
        clock: The wall clock on which times are read.
        format: How text is written, with the codes of `strptime`; None for ISO 8601.
    """

    kind: DateKind
    clock: Clock = Clock()
    format: str | None = None

    def read(self, array: Any, name: str) -> NDArray[np.float64]:
        """Read an Arrow array; NaN stands for missing, and for what is no date.

        >>> StampReader("date").read(pa.array(["1970-01-31", "1970-02-30", None]), "admitted")
        array([30., nan, nan])
        """
        if isinstance(array, pa.ChunkedArray):
            return np.concatenate([np.empty(0), *(self.read(part, name) for part in array.chunks)])
        array = plain_array(array)
        if pa.types.is_dictionary(array.type):
            entries, positions = used_entries(array)
            return np.append(self.read(entries, name), np.nan)[positions]
        if is_text(array.type):
            return self._read_text(array)
        if pa.types.is_date(array.type):
            days = _days(array)
            return self._finish(days * DAY_SECONDS, _is_known(array) & (np.abs(days) < _LAST_DAY))
        if pa.types.is_timestamp(array.type):
            return self._read_times(array)
        raise UnreadableData(
            f"column {name!r} has the type {array.type}, but dates, times or text that holds "
            "them are needed"
        )

    def _read_times(self, array: Any) -> NDArray[np.float64]:
        ticks = _integers(array, pa.int64())
        seconds = np.clip(ticks // _TICKS[array.type.unit], -_FAR, _FAR)
        if array.type.tz is not None:
            seconds = self.clock.local(seconds)
        return self._finish(seconds, _is_known(array) & (ticks > -_LAST) & (ticks < _LAST))

    def _read_text(self, array: Any) -> NDArray[np.float64]:
        trimmed = pc.ascii_trim_whitespace(array)
        if self.format is not None:
            return self._match(trimmed)
        plain = _Plain(trimmed)
        seconds = np.where(plain.has_zone, self.clock.local(plain.seconds), plain.seconds)
        found = np.full(len(trimmed), np.nan)
        read = plain.rows[plain.is_sound]
        found[read] = self._finish(seconds, plain.is_sound)[plain.is_sound]
        is_left = np.ones(len(trimmed), dtype=np.bool_)
        is_left[read] = False
        rest = np.flatnonzero(is_left)
        if rest.size:
            found[rest] = self._match(trimmed.take(pa.array(rest)))
        return found

    def _match(self, texts: Any) -> NDArray[np.float64]:
        """Read texts by a pattern, each distinct one once."""
        encoded = texts.cast(pa.large_binary()).dictionary_encode()
        parts = _Parts(encoded.dictionary, self._pattern)
        seconds = np.where(parts.has_zone, self.clock.local(parts.instants), parts.seconds)
        found = np.append(self._finish(seconds, parts.is_sound), np.nan)
        return np.asarray(found[dictionary_positions(encoded)])

    def _finish(self, seconds: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        numbers = seconds // DAY_SECONDS if self.kind == "date" else seconds
        return np.where(known, numbers.astype(np.float64), np.nan)

    @cached_property
    def _pattern(self) -> str:
        return f"^(?:{_ISO if self.format is None else _translate(self.format)})$"


def require_format(text: str) -> None:
    """Refuse a format that has unknown codes, or that does not name a day.

    >>> require_format("%d.%m.%Y")
    """
    codes = re.findall("%(.?)", _expand(text))
    for code in codes:
        if code not in _CODES:
            known = ", ".join(f"%{code}" for code in _CODES)
            raise InvalidSchema(f"format holds %{code}, which is not known; known: {known}")
    for wanted in (("Y", "y"), ("m", "b", "B"), ("d",)):
        if sum(codes.count(code) for code in wanted) != 1:
            raise InvalidSchema(
                'format must name the year, the month and the day, each once, such as "%d.%m.%Y"'
            )
    repeated = {code for code in codes if codes.count(code) > 1 and code not in "f%"}
    if repeated or {"H", "I"} <= set(codes) or ("I" in codes) != ("p" in codes):
        raise InvalidSchema("format must name each part once, and %I together with %p")


def _expand(text: str) -> str:
    for short, long in _SHORT.items():
        text = text.replace(short, long)
    return text


def _translate(text: str) -> str:
    """Write a format as a regular expression with a group for each part."""
    pieces = re.split("%(.)", _expand(text))
    return "".join(
        _CODES[piece] if is_code else re.escape(piece)
        for piece, is_code in zip(pieces, [False, True] * len(pieces), strict=False)
    )


class _Plain:
    """Texts such as 2024-02-29T13:30:00, without an offset or with a Z, read from their bytes.

    Most tables write all times in this way, and no pattern is as fast.  Texts that are written
    otherwise, and times that do not exist, are not sound here: a pattern decides on them.
    """

    def __init__(self, texts: Any) -> None:
        _, offsets, letters = texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset :][: len(texts) + 1]
        lengths = np.where(_is_known(texts), np.diff(ends), 0)
        self.rows = np.flatnonzero((lengths == _FULL) | (lengths == _FULL + 1))
        self._letters = np.frombuffer(letters or b"", dtype=np.uint8)
        self._starts = ends[self.rows]
        self._is_longer = lengths[self.rows] > _FULL

    @cached_property
    def has_zone(self) -> NDArray[np.bool_]:
        """Whether a Z was written."""
        last = np.where(self._is_longer, self._starts + _FULL, self._starts)
        return np.isin(self._letters[last], np.frombuffer(b"Zz", dtype=np.uint8))

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(self._digits(at, 2) for at in (5, 8, 11, 14, 17))

    @cached_property
    def _months(self) -> NDArray[np.int64]:
        return (self._digits(0, 4) - 1970) * 12 + self._numbers[0] - 1

    @cached_property
    def seconds(self) -> NDArray[np.int64]:
        """Seconds since 1970-01-01 on the clock that was written."""
        _, day, hour, minute, second = self._numbers
        days = _first_days(self._months) + day - 1
        return np.asarray(days * DAY_SECONDS + hour * HOUR_SECONDS + minute * 60 + second)

    @cached_property
    def is_sound(self) -> NDArray[np.bool_]:
        """Whether a text is written in full, and is a time that exists."""
        month, day, hour, minute, second = self._numbers
        length = _first_days(self._months + 1) - _first_days(self._months)
        found: NDArray[np.bool_] = self.has_zone | ~self._is_longer
        found &= (self._digits(0, 4) >= 1) & (month >= 1) & (month <= 12)
        found &= (day >= 1) & (day <= length) & (hour >= 0) & (hour <= 23)
        found &= (minute >= 0) & (minute <= 59) & (second >= 0) & (second <= 59)
        for at, sign in ((4, "-"), (7, "-"), (13, ":"), (16, ":")):
            found &= self._letters[self._starts + at] == ord(sign)
        signs = np.frombuffer(b"Tt ", dtype=np.uint8)
        return found & np.isin(self._letters[self._starts + 10], signs)

    def _digits(self, at: int, count: int) -> NDArray[np.int64]:
        """Read some digits of every text as a number; below 0 if one of them is none."""
        found = np.zeros(self._starts.size, dtype=np.int64)
        is_number = np.ones(self._starts.size, dtype=np.bool_)
        for position in range(at, at + count):
            digit = self._letters[self._starts + position] - np.uint8(ord("0"))  # wraps around
            is_number &= digit <= 9
            found = 10 * found + digit
        return np.where(is_number, found, -1)


class _Parts:
    """The parts of written dates, each value by itself."""

    def __init__(self, texts: Any, pattern: str) -> None:
        self._found = pc.extract_regex(texts, pattern)
        self._names = {field.name for field in self._found.type}
        self._size = len(texts)

    @cached_property
    def _months(self) -> NDArray[np.int64]:
        """Months since January 1970, of the parts as they stand."""
        return (self._year - 1970) * 12 + self._month - 1

    @cached_property
    def is_sound(self) -> NDArray[np.bool_]:
        """Whether a text is a date that exists, and a time that a clock shows."""
        first = _first_days(self._months)
        length = _first_days(self._months + 1) - first
        day = self._number("d")
        found: NDArray[np.bool_] = (
            _is_known(self._found)
            & (self._month >= 1)
            & (self._month <= 12)
            & (self._year >= 1)
            & (day >= 1)
            & (day <= length)
            & self._is_time
            & (np.abs(self._offset) < DAY_SECONDS)
        )
        return found

    @cached_property
    def seconds(self) -> NDArray[np.int64]:
        """Seconds since 1970-01-01 on the clock that was written."""
        days = _first_days(self._months) + self._number("d") - 1
        return np.asarray(
            days * DAY_SECONDS
            + self._hour * HOUR_SECONDS
            + self._number("M") * 60
            + self._number("S")
        )

    @cached_property
    def has_zone(self) -> NDArray[np.bool_]:
        """Whether an offset was written."""
        return self._is_written("z")

    @property
    def instants(self) -> NDArray[np.int64]:
        """Seconds since 1970-01-01 UTC, where an offset was written."""
        return self.seconds - self._offset

    @cached_property
    def _year(self) -> NDArray[np.int64]:
        if "Y" in self._names:
            return self._number("Y")
        short = self._number("y")
        return np.where(short < 69, short + 2000, short + 1900)  # as POSIX reads two digits

    @cached_property
    def _month(self) -> NDArray[np.int64]:
        for code, length in (("b", 3), ("B", None)):
            if code in self._names:
                return self._name_month(code, length)
        return self._number("m")

    def _name_month(self, code: str, length: int | None) -> NDArray[np.int64]:
        names = pa.array([name[:length] for name in _MONTH_NAMES], pa.large_string())
        texts = pc.ascii_lower(self._texts(code))
        return np.asarray(pc.index_in(texts, names).fill_null(-1).to_numpy(), np.int64) + 1

    @cached_property
    def _hour(self) -> NDArray[np.int64]:
        if "p" not in self._names:
            return self._number("H")
        is_late = pc.equal(pc.ascii_lower(self._texts("p")), "pm").fill_null(False)
        return self._number("I") % 12 + 12 * np.asarray(
            is_late.to_numpy(zero_copy_only=False), np.int64
        )

    @cached_property
    def _is_time(self) -> NDArray[np.bool_]:
        twelve = self._number("I")
        sound: NDArray[np.bool_] = (
            (self._hour <= 23) & (self._number("M") <= 59) & (self._number("S") <= 59)
        )
        return sound & (twelve >= 1) & (twelve <= 12) if "I" in self._names else sound

    @cached_property
    def _offset(self) -> NDArray[np.int64]:
        """How far the written clock is ahead of UTC."""
        if "z" not in self._names:
            return np.zeros(self._size, dtype=np.int64)
        digits = pc.replace_substring_regex(self._texts("z"), "[^0-9]", "")
        hours = _numbers(pc.utf8_slice_codeunits(digits, 0, 2))
        minutes = _numbers(pc.utf8_slice_codeunits(digits, 2, 4))
        is_behind = pc.starts_with(self._texts("z"), "-").fill_null(False)
        signs = np.where(is_behind.to_numpy(zero_copy_only=False), -1, 1)
        return np.asarray(signs * (hours * HOUR_SECONDS + minutes * 60))

    def _texts(self, code: str) -> Any:
        return pc.struct_field(self._found, code).cast(pa.large_string())

    def _number(self, code: str) -> NDArray[np.int64]:
        if code not in self._names:
            return np.zeros(self._size, dtype=np.int64)
        return _numbers(self._texts(code))

    def _is_written(self, code: str) -> NDArray[np.bool_]:
        if code not in self._names:
            return np.zeros(self._size, dtype=np.bool_)
        found = pc.not_equal(self._texts(code), "").fill_null(False)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _numbers(texts: Any) -> NDArray[np.int64]:
    """Read texts of digits; an empty one is 0."""
    filled = pc.if_else(pc.equal(texts, ""), "0", texts).fill_null("0")
    return np.asarray(filled.cast(pa.int64()).to_numpy(), dtype=np.int64)


def _first_days(months: NDArray[np.int64]) -> NDArray[np.int64]:
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def _days(array: Any) -> NDArray[np.int64]:
    if pa.types.is_date64(array.type):
        return _integers(array, pa.int64()) // (DAY_SECONDS * 1000)
    return _integers(array, pa.int32()).astype(np.int64)


def _integers(array: Any, width: Any) -> NDArray[Any]:
    numbers = array.view(width).fill_null(0)
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _is_known(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def write_stamps(
    kind: DateKind, numbers: NDArray[Any], missing: NDArray[np.bool_] | None = None
) -> Any:
    """Write whole days or seconds as an Arrow array of dates, or of times on the wall clock.

    >>> write_stamps("date", np.array([19_754]))[0].as_py()
    datetime.date(2024, 2, 1)
    """
    if kind == "date":
        days = pa.array(numbers.astype(np.int32), pa.int32(), mask=missing)
        return days.cast(pa.date32())
    return pa.array(numbers.astype(np.int64), pa.int64(), mask=missing).cast(pa.timestamp("s"))

"""Dates and times are read value by value, and none of them can raise an error."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.stamps import Clock, StampReader, require_format, write_stamps
from dpublish.errors import InvalidSchema, UnreadableData
from dpublish.randomness import plain_generator

EPOCH = datetime(1970, 1, 1)
PARIS = Clock.of("Europe/Paris", 1_672_531_200, 1_735_689_599)


def seconds(text):
    return (datetime.fromisoformat(text) - EPOCH).total_seconds()


def times(array, clock=None, written=None):
    reader = StampReader("datetime", clock or Clock(), written)
    return [None if np.isnan(x) else x for x in reader.read(array, "seen").tolist()]


def days(array, written=None):
    found = StampReader("date", format=written).read(array, "admitted").tolist()
    return [None if np.isnan(x) else date(1970, 1, 1) + timedelta(days=x) for x in found]


TEXTS = {
    "2024-02-29": date(2024, 2, 29),
    "  2024-02-29\t": date(2024, 2, 29),
    "2024-02-29 23:59:59": date(2024, 2, 29),
    "2024-02-29T23:59:59.999999": date(2024, 2, 29),
    "0001-01-01": date(1, 1, 1),
    "9999-12-31": date(9999, 12, 31),
    "2023-02-29": None,
    "2024-02-30": None,
    "2024-13-01": None,
    "2024-00-10": None,
    "2024-01-00": None,
    "0000-01-01": None,
    "0000-00-00": None,
    "2024-1-1": None,
    "24-01-01": None,
    "2024-01-01 25:00": None,
    "2024-01-01 23:60": None,
    "2024-01-01 23:59:60": None,
    "2024-01-01 12:00+99:00": None,
    "2024-01-01 12": None,
    "01.02.2024": None,
    "x": None,
    "-": None,
    "": None,
    "٢٠٢٤-٠١-٠١": None,
}


def test_text_is_a_date_or_missing_and_never_an_error():
    assert days(pa.array([*TEXTS, None])) == [*TEXTS.values(), None]


def test_what_becomes_of_a_text_does_not_depend_on_its_neighbors():
    for text, wanted in TEXTS.items():
        assert days(pa.array([text], pa.string_view())) == [wanted]
        assert days(pa.array([text] * 3).dictionary_encode()) == [wanted] * 3


def test_bytes_that_are_no_text_are_missing():
    raw = pa.array([b"\xff\xfe", b"2024-01-01\xff", b"2024-01-01"], pa.binary())
    array = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    assert days(array) == [None, None, date(2024, 1, 1)]


def test_bytes_and_patterns_read_the_same_times():
    rng = plain_generator(8)
    stems = np.datetime_as_string(
        rng.integers(-70_000_000_000, 250_000_000_000, 3_000).astype("M8[s]")
    )
    letters = "0123456789-:TtZz +x\u00e9"
    texts = []
    for number, stem in enumerate(stems.tolist()):
        text = stem + ("", "Z", "z", ".5", "+01:00", "+", "0")[number % 7]
        for _ in range(number % 3):
            at = int(rng.integers(0, len(text)))
            text = text[:at] + letters[int(rng.integers(0, len(letters)))] + text[at + 1 :]
        texts.append(text)
    texts += ["2023-02-29T00:00:00", "2024-01-01T24:00:00", "2024-01-01T23:60:00Z", ""]
    texts += ["2024-01-01T23:59:60", "0000-01-01T00:00:00", "2024-13-01 00:00:00", "2024-01-01"]
    reader = StampReader("datetime", PARIS)
    array = pa.array([*texts, None], pa.large_string())
    found = reader.read(array, "seen")
    assert np.array_equal(found, reader._match(array), equal_nan=True)
    assert 900 < np.isfinite(found).sum() < 2_500
    sliced = reader.read(array.slice(5, 100), "seen")
    assert np.array_equal(sliced, found[5:105], equal_nan=True)


@pytest.mark.parametrize(
    ("written", "text", "wanted"),
    [
        ("%d.%m.%Y", "1.3.2024", date(2024, 3, 1)),
        ("%d.%m.%Y", "01.03.2024", date(2024, 3, 1)),
        ("%d.%m.%Y", "31.02.2024", None),
        ("%d.%m.%Y", "01.13.2024", None),
        ("%d.%m.%Y", "2024-03-01", None),
        ("%d.%m.%Y", "01x03x2024", None),
        ("%D", "12/31/68", date(2068, 12, 31)),
        ("%D", "12/31/69", date(1969, 12, 31)),
        ("%d %b %Y", "3 mar 2024", date(2024, 3, 3)),
        ("%d %b %Y", "3 mai 2024", None),
        ("%B %d, %Y", "February 29, 2024", date(2024, 2, 29)),
        ("%Y%m%d", "20240229", date(2024, 2, 29)),
        ("100%% %F", "100% 2024-02-29", date(2024, 2, 29)),
    ],
)
def test_text_is_read_in_the_stated_format(written, text, wanted):
    require_format(written)
    assert days(pa.array([text]), written) == [wanted]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2024-03-01 12:05:07 AM", "2024-03-01T00:05:07"),
        ("2024-03-01 12:05:07 pm", "2024-03-01T12:05:07"),
        ("2024-03-01 01:05:07 PM", "2024-03-01T13:05:07"),
        ("2024-03-01 13:05:07 PM", None),
        ("2024-03-01 00:05:07 AM", None),
    ],
)
def test_a_clock_of_twelve_hours_is_read(text, wanted):
    written = "%Y-%m-%d %I:%M:%S %p"
    require_format(written)
    assert times(pa.array([text]), written=written) == [wanted and seconds(wanted)]


@pytest.mark.parametrize("written", ["%d.%m", "%Y-%m-%d %Y", "%q", "%Y-%m-%d %I", "%", "%H:%M"])
def test_a_format_that_names_no_day_is_refused(written):
    with pytest.raises(InvalidSchema, match="format"):
        require_format(written)


def test_a_wall_clock_shows_what_python_says():
    around = [1_711_846_800, 1_729_990_800]  # where clocks were moved in 2024
    at = np.array([x + d for x in around for d in range(-7_200, 7_201, 1_800)])
    zone = ZoneInfo("Europe/Paris")
    wanted = [
        (datetime.fromtimestamp(x, UTC).astimezone(zone).replace(tzinfo=None) - EPOCH)
        for x in at.tolist()
    ]
    assert PARIS.local(at).tolist() == [x.total_seconds() for x in wanted]


@pytest.mark.parametrize("name", ["America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "UTC"])
def test_every_change_of_a_zone_is_found(name):
    low, high = 1_230_768_000, 1_420_070_400
    clock, zone = Clock.of(name, low, high), ZoneInfo(name)
    at = np.arange(low, high, 3_600 * 5 + 7)
    wanted = [datetime.fromtimestamp(x, zone).utcoffset().total_seconds() for x in at.tolist()]
    assert (clock.local(at) - at).tolist() == wanted


def test_times_with_an_offset_move_to_the_zone_and_others_stay():
    found = times(
        pa.array(
            [
                *("2024-07-01 12:00", "2024-07-01T12:00Z", "2024-07-01T12:00+05:30"),
                *("2024-01-01 12:00Z", "2024-07-01 12:00:00 -0230", "2024-07-01T12:00-02"),
            ]
        ),
        PARIS,
    )
    wanted = ["2024-07-01T12:00", "2024-07-01T14:00", "2024-07-01T08:30", "2024-01-01T13:00"]
    wanted += ["2024-07-01T16:30", "2024-07-01T16:00"]
    assert found == [seconds(text) for text in wanted]


def test_the_hour_that_is_skipped_stays_and_the_hour_that_comes_twice_is_one():
    gap = pa.array(["2024-03-31 02:30"])
    fold = pa.array(["2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "2024-10-27 02:30"])
    assert times(gap, PARIS) == [seconds("2024-03-31T02:30")]
    assert times(fold, PARIS) == [seconds("2024-10-27T02:30")] * 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_stored_times_of_every_unit_are_read_to_the_second(unit, zone):
    stored = pa.array([1_719_835_200, -1, None], pa.int64())
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    late = pa.array([None if x is None else x * ticks + ticks - 1 for x in stored.to_pylist()])
    array = late.cast(pa.timestamp(unit, zone))
    ahead = 0 if zone is None else 7_200
    found = times(array, PARIS)
    assert found[0] == 1_719_835_200 + ahead
    assert found[2] is None
    assert times(array)[:2] == [1_719_835_200, -1]


def test_stored_dates_are_read_by_their_day():
    wanted = [date(2024, 2, 29), None, date(1969, 12, 31)]
    for kind in (pa.date32(), pa.date64()):
        assert days(pa.array(wanted, kind)) == wanted
        assert days(pa.array(wanted, kind).slice(1)) == wanted[1:]
    assert times(pa.array(wanted, pa.date32())) == [19_782 * 86_400, None, -86_400]


def test_the_date_of_an_instant_is_that_of_the_wall_clock():
    array = pa.array([1_704_065_400], pa.timestamp("s", "UTC"))  # 2023-12-31 23:30 UTC
    found = StampReader("date", PARIS).read(array, "admitted")
    assert found.tolist() == [19_723]  # 2024-01-01


def test_dates_without_an_end_are_missing():
    assert days(pa.array([2**31 - 1, -(2**31) + 1, 0], pa.int32()).cast(pa.date32())) == [
        None,
        None,
        date(1970, 1, 1),
    ]
    ends = [2**63 - 1, -(2**63) + 1, -(2**63), 0]
    largest = pa.array(ends, pa.int64()).cast(pa.timestamp("us"))
    assert times(largest) == [None, None, None, 0]


def test_chunks_runs_and_nulls_are_read_alike():
    parts = pa.chunked_array([["2024-01-01"], [], ["x", None]])
    assert days(parts) == [date(2024, 1, 1), None, None]
    assert days(pa.nulls(2)) == [None, None]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["2024-01-01"]))
    assert days(runs) == [date(2024, 1, 1)] * 2


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.time32("s"), pa.duration("s")])
def test_types_that_are_no_dates_are_refused_by_their_type_alone(kind):
    with pytest.raises(UnreadableData, match=r"'admitted' has the type .* but dates, times or"):
        StampReader("date").read(pa.array([], kind), "admitted")


def test_written_dates_are_read_back():
    for kind in ("date", "datetime"):
        array = write_stamps(kind, np.array([19_782, -5]), np.array([False, True]))
        found = StampReader(kind).read(array, "x")
        assert found[0] == 19_782
        assert np.isnan(found[1])


@pytest.mark.parametrize("name", ["Mars/Phobos", "", "../etc/passwd", "/etc/localtime"])
def test_an_unknown_zone_is_refused_with_an_example(name):
    with pytest.raises(InvalidSchema, match="Europe/Paris"):
        Clock.of(name, 0, 1)

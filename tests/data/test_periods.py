"""Periods of the calendar agree with Python's own dates, day by day."""

from datetime import date, datetime, timedelta

import numpy as np
import pytest

from dpublish.data.periods import (
    PERIODS,
    choose_period,
    count_periods,
    cut_periods,
    name_periods,
    number_periods,
    read_period,
    write_bounds,
    write_value,
)

FIRST = date(1970, 1, 1)
DAYS = range(-800, 22_000, 7)


def names_of(day):
    """What each period of a day is called, by Python's own calendar."""
    year, week, _ = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{year:04d}-W{week:02d}",
        "month": f"{day.year:04d}-{day.month:02d}",
        "quarter": f"{day.year:04d}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04d}",
    }


@pytest.mark.parametrize("period", ["day", "week", "month", "quarter", "year"])
def test_every_day_lies_in_the_period_that_is_named_after_it(period):
    numbers = number_periods(np.array(DAYS), period, "date")
    named = name_periods(numbers, period)
    for day, name in zip(DAYS, named, strict=True):
        assert name == names_of(FIRST + timedelta(days=day))[period]
        start, stop = read_period(name, "date")
        assert start <= day < stop


@pytest.mark.parametrize(
    ("kind", "period"),
    [
        ("datetime", "hour"),
        *((kind, x) for kind in ("date", "datetime") for x in PERIODS if x != "hour"),
    ],
)
def test_cuts_lie_where_the_number_of_the_period_changes(kind, period):
    low, high = (19_000, 19_800) if kind == "date" else (19_000 * 86_400 + 5, 19_040 * 86_400)
    edges = cut_periods(low, high, period, kind)
    assert (edges[0], edges[-1]) == (low, high + 1)
    assert len(edges) - 1 == count_periods(low, high, period, kind)
    inner = np.array(edges[1:-1]).astype(np.int64)
    assert (
        number_periods(inner, period, kind) == number_periods(inner - 1, period, kind) + 1
    ).all()


@pytest.mark.parametrize(
    ("text", "start", "stop"),
    [
        ("2024", "2024-01-01T00:00:00", "2025-01-01T00:00:00"),
        ("2024-Q2", "2024-04-01T00:00:00", "2024-07-01T00:00:00"),
        ("2024-q2", "2024-04-01T00:00:00", "2024-07-01T00:00:00"),
        ("2024-02", "2024-02-01T00:00:00", "2024-03-01T00:00:00"),
        ("2024-W01", "2024-01-01T00:00:00", "2024-01-08T00:00:00"),
        ("2020-W53", "2020-12-28T00:00:00", "2021-01-04T00:00:00"),
        ("2024-02-29", "2024-02-29T00:00:00", "2024-03-01T00:00:00"),
        ("2024-02-29 13", "2024-02-29T13:00:00", "2024-02-29T14:00:00"),
        ("2024-02-29T13:30", "2024-02-29T13:30:00", "2024-02-29T13:31:00"),
        (" 2024-02-29T13:30:05 ", "2024-02-29T13:30:05", "2024-02-29T13:30:06"),
    ],
)
def test_a_period_is_a_range_of_seconds(text, start, stop):
    wanted = [
        (datetime.fromisoformat(end) - datetime(1970, 1, 1)).total_seconds()
        for end in (start, stop)
    ]
    assert list(read_period(text, "datetime")) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("2024-13", "2024-00", "2023-02-29", "2024-W54", "2023-W53", "2024-Q5", "24-01-01"),
        *("2024-2-1", "2024-01-01x", "", "Monday", "2024-01-01T24:00", "2024-01-01T12:60", "0000"),
    ],
)
def test_what_is_no_period_is_none(text):
    assert read_period(text, "datetime") is None


def test_a_date_has_no_time_of_day():
    assert read_period("2024-01-01T12:00", "date") is None


def test_values_and_bounds_are_read_back_as_they_were_written():
    for kind, number in (("date", -1), ("date", 19_789), ("datetime", 1_700_000_001)):
        assert read_period(write_value(number, kind), kind).start == number
    for low, high in ((0, 86_399), (0, 86_340), (5, 86_399), (60, 7_199)):
        first, last = write_bounds(low, high, "datetime")
        assert read_period(first, "datetime").start == low
        assert read_period(last, "datetime").stop - 1 == high


def test_bins_are_chosen_by_the_bounds_alone():
    assert choose_period(0, 3 * 86_400 - 1, "datetime") == "hour"
    assert choose_period(0, 3 * 86_400, "datetime") == "day"
    assert [choose_period(0, days, "date") for days in (91, 92, 7_000, 8_000)] == [
        "day",
        "month",
        "month",
        "year",
    ]

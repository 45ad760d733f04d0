"""Queries about dates: a period is inside or outside as a whole, on cells and on rows alike."""

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.query.axes import read_query
from dpublish.core.query.cells import CellCounts
from dpublish.core.query.rows import matches
from dpublish.data.query.language import parse_query
from dpublish.data.query.weights import axis_weights
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidQuery
from dpublish.methods.personalized.preferences import look_up, parse_rule

FIRST, LAST = date(2023, 1, 15), date(2024, 12, 20)
DAYS = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1)]
BOUNDS = [FIRST, LAST]
QUERIES = {
    "admitted = 2024": lambda day: day.year == 2024,
    "admitted = 2024-Q1": lambda day: day.year == 2024 and day.month <= 3,
    "admitted = 2024-02": lambda day: (day.year, day.month) == (2024, 2),
    "admitted = 2023-01": lambda day: day < date(2023, 2, 1),
    "admitted = 2024-02-29": lambda day: day == date(2024, 2, 29),
    "admitted = 2024-W05": lambda day: tuple(day.isocalendar())[:2] == (2024, 5),
    "admitted != 2024-02": lambda day: (day.year, day.month) != (2024, 2),
    "admitted in {2024-02, 2024-Q1, 2023-12}": lambda day: (
        date(2023, 12, 1) <= day < date(2024, 4, 1)
    ),
    "admitted in 2024-01..2024-03": lambda day: date(2024, 1, 1) <= day < date(2024, 4, 1),
    "admitted in 2023..2024-Q1": lambda day: day < date(2024, 4, 1),
    "admitted in 2024-02-10..2024-02-10": lambda day: day == date(2024, 2, 10),
    "admitted >= 2024-02": lambda day: day >= date(2024, 2, 1),
    "admitted > 2024-02": lambda day: day >= date(2024, 3, 1),
    "admitted <= 2024-02": lambda day: day < date(2024, 3, 1),
    "admitted < 2024-02": lambda day: day < date(2024, 2, 1),
    "admitted >= 2024-02-15": lambda day: day >= date(2024, 2, 15),
    "admitted > 2023 and admitted < 2024-Q3": lambda day: (
        date(2024, 1, 1) <= day < date(2024, 7, 1)
    ),
    "admitted > 2025": lambda day: False,
    "admitted <= 2030": lambda day: True,
}


def admitted(bins="day", **settings):
    return column("admitted", "date", bounds=BOUNDS, bins=bins, **settings)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("missing", ["drop", "category"])
def test_days_are_covered_as_python_compares_them(query, missing):
    found = axis_weights(admitted(missing=missing).axis(), parse_query(query).conditions)
    assert found[: len(DAYS)].tolist() == [float(QUERIES[query](day)) for day in DAYS]
    if missing == "category":
        assert found[-1] == float("!=" in query)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("bins", ["week", "month", "quarter", "year", 11])
def test_coarser_cells_are_covered_by_the_part_of_their_days(query, bins):
    coarse = admitted(bins)
    codes, _ = coarse.encode(pa.array(DAYS))
    inside = np.array([QUERIES[query](day) for day in DAYS], dtype=np.float64)
    wanted = np.bincount(codes, weights=inside) / np.bincount(codes)
    found = axis_weights(coarse.axis(), parse_query(query).conditions)
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("bins", ["day", "week", "month", "year", 11])
def test_rows_match_as_python_compares_them_whatever_the_bins(query, bins):
    schema = Schema((admitted(bins, missing="drop"),))
    rows = pa.table({"admitted": pa.array([*DAYS, None])})
    wanted = [QUERIES[query](day) for day in DAYS]
    assert matches(rows, query, schema).tolist() == [*wanted, False]


def test_weeks_of_a_year_and_days_of_a_year_are_two_things():
    weeks = admitted("week").axis(1)
    whole = axis_weights(weeks, parse_query('admitted = "2024-W01..2024-W51"').conditions)
    assert whole.tolist() == [0.0, 1.0]
    days = axis_weights(weeks, parse_query("admitted = 2023").conditions)
    assert 0.99 < days[0] <= 1
    assert days[1] == 0


def test_times_are_compared_to_the_second():
    seen = column("seen", "datetime", bounds=["2024-01-01", "2024-01-02"], bins="hour")
    schema = Schema((seen,))
    texts = ["2024-01-01 13:29:59", "2024-01-01 13:30:00", "2024-01-01 13:30:59", "2024-01-02"]
    rows = pa.table({"seen": texts})
    for query, wanted in {
        "seen >= 2024-01-01T13:30": [0, 1, 1, 1],
        "seen > 2024-01-01T13:30": [0, 0, 0, 1],
        "seen = 2024-01-01T13": [1, 1, 1, 0],
        'seen = "2024-01-01 13:00"': [1, 1, 1, 0],  # the name of the bin
        "seen = 2024-01-01T13:00": [1, 1, 1, 0],
        "seen = 2024-01-01T13:30": [0, 1, 1, 0],
        "seen <= 2024-01-01T13:29": [1, 0, 0, 0],
        "seen in 2024-01-01T13:30:00..2024-01-01T13:30:58": [0, 1, 0, 0],
        "seen <= 2024-01-01": [1, 1, 1, 0],
    }.items():
        assert matches(rows, query, schema).tolist() == [bool(x) for x in wanted], query
    part = axis_weights(seen.axis(), parse_query("seen >= 2024-01-01T13:30").conditions)
    assert part[12:15].tolist() == [0.0, 0.5, 1.0]


def test_answers_within_a_cell_are_estimates_and_say_so():
    counts = CellCounts((admitted("month").axis(),), np.arange(24), Fraction(1))
    exact = counts.answer("admitted = 2024-02", 0.95)
    assert (exact.value, exact.assumption) == (13.0, None)
    part = counts.answer("admitted in 2024-02-01..2024-02-10", 0.95)
    assert part.value == pytest.approx(13 * 10 / 29)
    assert "evenly distributed" in part.assumption


def test_what_lies_beyond_the_bounds_is_named_as_dates():
    asked = read_query((admitted("month").axis(),), "admitted > 2024-12-20")
    assert asked.assumption == (
        "values of admitted beyond 2023-01-15 to 2024-12-20 were counted at these ends"
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("admitted = 2024-13", "holds dates, and '2024-13' is none; write such as 2024, 2024-Q1"),
        ("admitted >= 2024-02-30", "holds dates, and '2024-02-30' is none"),
        ("admitted in 2024..x", "holds dates, and 'x' is none"),
        ("admitted in 2024-03..2024-02", "ends before it starts"),
        ("admitted = 2026", "holds the dates from 2023-01-15 to 2024-12-20, not '2026'"),
        ("admitted >= 2024-01-01T12:00", "holds dates"),
        ("admitted = 19400", "holds dates"),
    ],
)
def test_what_is_no_date_is_refused(query, message):
    for bins in ("day", "year"):
        with pytest.raises(InvalidQuery) as refusal:
            axis_weights(admitted(bins).axis(), parse_query(query).conditions)
        assert message in str(refusal.value)


def test_weekdays_are_asked_for_by_name():
    weekday = column("weekday", source=admitted("month"), part="weekday")
    schema = Schema((admitted("month"), weekday))
    rows = pa.table({"admitted": pa.array(DAYS)})
    found = matches(rows, "weekday = Monday and admitted = 2024-02", schema)
    assert [day for day, x in zip(DAYS, found, strict=True) if x] == [
        date(2024, 2, day) for day in (5, 12, 19, 26)
    ]
    named = pa.table({"weekday": ["Monday", "Friday"]})
    assert matches(named, "weekday > Monday", schema).tolist() == [False, True]
    weights = axis_weights(weekday.axis(), parse_query("weekday in Saturday..Sunday").conditions)
    assert weights.tolist() == [0, 0, 0, 0, 0, 1, 1]


def test_a_rule_of_levels_names_periods():
    levels = look_up(parse_rule("..2023=1/2, 2024-Q1=1, 2024-04..=2"), admitted("month"))
    assert list(map(str, levels)) == ["1/2"] * 12 + ["1"] * 3 + ["2"] * 9

"""Columns of dates: bins, levels, clipping, missing rules, parts, files and refusals."""

import json
import pickle
import tomllib
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.data.check import check_table
from dpublish.data.cut import cut_axis
from dpublish.data.date_column import DateColumn, DatePartColumn
from dpublish.data.schema import Schema, column, parse_columns
from dpublish.data.schema_file import dumps_toml, from_dict, load_schema, to_dict
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidSchema, UnreadableData

TWO_YEARS = ["2023-01-01", "2024-12-31"]


def admitted(**settings):
    return column("admitted", "date", **{"bounds": TWO_YEARS, "bins": "month", **settings})


def dates(*texts):
    return pa.array(texts, pa.string())


def test_months_have_quarters_and_years_above_them():
    found = admitted()
    assert isinstance(found, DateColumn)
    assert found.axis(1).labels == ("2023", "2024")
    assert found.axis(2).labels[:2] == ("2023-Q1", "2023-Q2")
    assert found.axis().labels[13:15] == ("2024-02", "2024-03")
    assert parse_columns("admitted@1", Schema((found,))) == (("admitted", 1),)


@pytest.mark.parametrize(
    ("bins", "sizes", "first"),
    [
        ("year", [1, 2], "2023"),
        ("quarter", [1, 2, 8], "2023-Q1"),
        ("month", [1, 2, 8, 24], "2023-01"),
        ("day", [1, 2, 8, 24, 731], "2023-01-01"),
        ("week", [1, 4, 106], "2022-W52"),
    ],
)
def test_levels_go_from_years_down_to_the_bins(bins, sizes, first):
    taxonomy = admitted(bins=bins).taxonomy
    assert [len(level.starts) for level in taxonomy.levels] == sizes
    assert taxonomy.labels(taxonomy.height)[0] == first


def test_hours_are_bins_of_times():
    seen = column("seen", "datetime", bounds=["2024-02-28", "2024-03-01"], bins="hour")
    assert seen.size == 72
    assert seen.axis().labels[24:26] == ("2024-02-29 00:00", "2024-02-29 01:00")
    assert seen.axis(4).labels == ("2024-02-28", "2024-02-29", "2024-03-01")
    assert seen.axis(3).labels == ("2024-02", "2024-03")


def test_weeks_lie_in_the_year_of_their_thursday():
    weeks = admitted(bins="week").axis(1).labels
    assert weeks == ("2022-W52", "2023-W01..2023-W52", "2024-W01..2024-W52", "2025-W01")


def test_a_number_of_bins_cuts_days_evenly_and_names_them():
    found = column("admitted", "date", bounds=["2024-01-01", "2024-01-10"], bins=5, branching=2)
    assert found.axis().labels[:2] == ("2024-01-01..2024-01-02", "2024-01-03..2024-01-04")
    assert found.axis(1).labels == ("2024-01-01..2024-01-08", "2024-01-09..2024-01-10")
    days = column("admitted", "date", bounds=["2024-01-01", "2024-01-10"], bins=10)
    assert days.axis().labels[0] == "2024-01-01"


def test_bins_that_are_not_stated_follow_from_the_bounds():
    assert column("x", "date", bounds=["2024-01-01", "2024-01-31"]).axis().labels[0] == "2024-01-01"
    assert column("x", "date", bounds=TWO_YEARS).axis().labels[0] == "2023-01"
    assert column("x", "date", bounds=["1900", "2024"]).axis().labels[0] == "1900"


def test_bounds_may_be_dates_times_texts_and_periods():
    for bounds in (
        [date(2023, 1, 1), date(2024, 12, 31)],
        [datetime(2023, 1, 1, 15), datetime(2024, 12, 31)],
        ["2023", "2024"],
        ["2023-01", "2024-Q4"],
    ):
        assert admitted(bounds=bounds) == admitted()
    whole = column("seen", "datetime", bounds=["2024-01-01", "2024-01-01"], bins=1)
    assert whole.bounds == (1_704_067_200, 1_704_153_599)
    aware = [datetime(2024, 1, 1, 0, tzinfo=UTC), datetime(2024, 1, 1, 1, tzinfo=UTC)]
    seen = column("seen", "datetime", bounds=aware, time_zone="Asia/Kolkata")
    assert seen.axis().labels[0] == "2024-01-01 05:00"
    assert seen.bounds[0] == 1_704_067_200 + 19_800


def test_values_out_of_bounds_are_clipped_and_others_find_their_month():
    codes, keep = admitted().encode(
        dates("1999-05-05", "2023-01-01", "2023-01-31", "2023-02-01", "2024-12-31", "9999-12-31")
    )
    assert codes.tolist() == [0, 0, 0, 1, 23, 23]
    assert keep is None


def test_every_day_has_the_code_of_its_month():
    every = np.arange(19_358, 20_089)
    codes, _ = admitted().encode(pa.array(every.astype(np.int32)).cast(pa.date32()))
    months = every.astype("M8[D]").astype("M8[M]").astype(int)
    assert np.array_equal(codes, months - months[0])


@pytest.mark.parametrize("rule", ["refuse", "drop", "category"])
def test_what_is_no_date_follows_the_missing_rule(rule):
    found = admitted(missing=rule)
    codes, keep = found.encode(dates("2023-01-01", "2024-13-01", "", None))
    if rule == "category":
        assert codes.tolist() == [0, 24, 24, 24]
        assert keep is None
        assert [found.axis(level).labels[-1] for level in (1, 2, 3)] == ["(missing)"] * 3
    else:
        assert keep.tolist() == [True, False, False, False]
    assert found.values(dates("2024-13-01")).keep.tolist() == [False]


@pytest.mark.parametrize("bins", ["month", "week", 7])
def test_a_schema_file_gives_back_what_was_written(tmp_path, bins):
    written = Schema(
        (
            admitted(missing="category", bins=bins, format="%d.%m.%Y"),
            column("seen", "datetime", bounds=TWO_YEARS, bins=5, time_zone="Asia/Tokyo"),
            column("half", "datetime", bounds=["2024-01-01T12:00", "2024-01-01T12:05"], bins=2),
            column("weekday", source=admitted(bins=bins), part="weekday"),
        )
    )
    plain = json.loads(json.dumps(to_dict(written)))
    assert from_dict(plain) == written
    path = tmp_path / "schema.toml"
    path.write_text(dumps_toml(written), encoding="utf-8")
    assert load_schema(path) == written
    assert pickle.loads(pickle.dumps(written)) == written


def test_a_faulty_date_is_named_once_and_not_for_its_parts_again():
    dates = {"kind": "date", "bounds": ["2023-01-01", "2024-13-01"]}
    parts = {"from": "admitted", "part": "weekday"}
    with pytest.raises(InvalidSchema) as refused:
        from_dict({"columns": {"weekday": parts, "admitted": dates}})
    assert "2024-13-01" in str(refused.value)
    assert "weekday" not in str(refused.value)


def test_a_schema_file_may_hold_dates_as_toml_writes_them(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(
        """
        [[columns]]
        name = "weekday"
        from = "admitted"
        part = "weekday"
        [[columns]]
        name = "admitted"
        kind = "date"
        bounds = [2023-01-01, 2024-12-31]
        bins = "month"
        [[columns]]
        name = "seen"
        kind = "datetime"
        bounds = [2024-01-01T00:00:00, 2024-01-02T00:00:00Z]
        """
    )
    schema = load_schema(path)
    assert schema["admitted"] == admitted()
    assert schema.names == ("weekday", "admitted", "seen")
    assert schema["weekday"] == column("weekday", source=admitted(), part="weekday")
    assert schema["seen"].bounds == (1_704_067_200, 1_704_153_600)


def test_a_part_without_its_column_is_written_with_it():
    part = column("weekday", source=admitted(missing="drop"), part="weekday")
    alone = Schema((part,))
    plain = to_dict(alone)
    assert plain["columns"][0]["from"]["name"] == "admitted"
    assert from_dict(json.loads(json.dumps(plain))) == alone
    assert from_dict(tomllib.loads(dumps_toml(alone))) == alone


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": None}, "bounds are missing; write bounds = "),
        ({"bounds": ["2024-13-01", "2025-01-01"]}, "'2024-13-01' is no date"),
        ({"bounds": ["2024-02-30", "2025-01-01"]}, "'2024-02-30' is no date"),
        ({"bounds": ["2024-01-01T10:00", "2025"]}, "is no date"),
        ({"bounds": ["2025", "2024"]}, "the later one comes first"),
        ({"bounds": [1, 2]}, "must be two dates"),
        ({"bounds": [True, None]}, "must be two dates"),
        ({"bounds": ["2024"]}, "must be two dates"),
        ({"bounds": "2024"}, "must be two dates"),
        ({"bins": "fortnight"}, "bins (fortnight) must be one of hour, day, week"),
        ({"bins": "hour"}, "needs kind datetime"),
        ({"bins": 0}, "bins"),
        ({"bins": 800}, "cannot be cut into 800 bins"),
        ({"time_zone": "Mars/Phobos"}, 'write an IANA name such as "Europe/Paris"'),
        ({"format": "%d.%m"}, "format must name the year"),
        ({"branching": 2}, "branching needs a number of bins"),
        ({"cuts": [1, 2]}, "cuts does not apply"),
        ({"values": ["a"]}, "values does not apply"),
        ({"taxonomy": {"a": ["b"]}}, "taxonomy does not apply"),
    ],
)
def test_what_is_wrong_with_a_column_of_dates_is_said(settings, message):
    with pytest.raises(InvalidSchema) as refusal:
        admitted(**settings)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("column 'admitted': ")


def test_too_many_bins_are_refused_before_they_are_made():
    with pytest.raises(InvalidSchema, match="more than 100,000; choose longer ones"):
        column("seen", "datetime", bounds=["0001", "9999"], bins="hour")


def test_keys_of_dates_are_refused_for_other_kinds():
    with pytest.raises(InvalidSchema, match="time_zone does not apply"):
        column("age", "integer", bounds=[0, 1], time_zone="UTC")
    with pytest.raises(InvalidSchema, match="bins must be an integer; periods are for dates"):
        column("age", "integer", bounds=[0, 1], bins="month")
    plain = {"columns": [{"name": "age", "kind": "integer", "bounds": ["a", "b"]}]}
    with pytest.raises(InvalidSchema, match="bounds must be a list of two numbers"):
        from_dict(plain)


# --- Parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "labels", "found"),
    [
        ("weekday", ("Monday", "Sunday"), "Thursday"),
        ("month", ("January", "December"), "February"),
        ("quarter", ("Q1", "Q4"), "Q1"),
        ("day", ("1", "31"), "29"),
        ("year", ("2023", "2024"), "2024"),
        ("hour", ("0", "23"), "13"),
    ],
)
def test_a_part_is_an_ordinal_with_public_labels(part, labels, found):
    seen = column("seen", "datetime", bounds=TWO_YEARS)
    taken = column("part", source=seen, part=part)
    assert isinstance(taken, DatePartColumn)
    assert taken.kind == "ordinal"
    assert (taken.labels[0], taken.labels[-1]) == labels
    codes, keep = taken.encode_source(dates("2024-02-29 13:59"))
    assert taken.labels[codes[0]] == found
    assert keep is None


def test_parts_of_every_day_are_those_of_python():
    every = [date(2023, 1, 1).fromordinal(738_521 + number) for number in range(731)]
    array = pa.array(every)
    codes = {
        part: column("x", source=admitted(), part=part).encode_source(array).codes.tolist()
        for part in ("weekday", "month", "quarter", "day", "year")
    }
    assert codes["weekday"] == [day.weekday() for day in every]
    assert codes["month"] == [day.month - 1 for day in every]
    assert codes["quarter"] == [(day.month - 1) // 3 for day in every]
    assert codes["day"] == [day.day - 1 for day in every]
    assert codes["year"] == [day.year - 2023 for day in every]


def test_a_part_is_missing_where_the_date_is():
    left_out = column("weekday", source=admitted(missing="drop"), part="weekday")
    assert left_out.encode_source(dates("2024-13-01", "2024-01-01")).keep.tolist() == [False, True]
    counted = column("weekday", source=admitted(missing="category"), part="weekday")
    assert counted.axis().labels[-1] == "(missing)"
    codes, keep = counted.encode_source(dates(None, "2024-01-01"))
    assert (codes.tolist(), keep) == ([7, 0], None)


def test_a_part_agrees_with_the_date_after_clipping():
    weekday = column("weekday", source=admitted(), part="weekday")
    codes, _ = weekday.encode_source(dates("1999-12-31"))
    assert weekday.labels[codes[0]] == "Sunday"  # of 2023-01-01, as the release shows the date


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"part": "weekday"}, "needs both"),
        ({"source": admitted()}, "needs both"),
        ({"source": admitted(), "part": "hour"}, "hour needs kind datetime"),
        ({"source": admitted(), "part": "minute"}, "minute"),
        ({"source": admitted(), "part": "day", "kind": "integer"}, "must be ordinal"),
        ({"source": admitted(), "part": "day", "missing": "drop"}, "missing does not apply"),
        ({"source": column("a", "integer", bounds=[0, 1]), "part": "day"}, "kind date or datetime"),
    ],
)
def test_what_is_wrong_with_a_part_is_said(settings, message):
    with pytest.raises(InvalidSchema, match=message):
        column("part", **settings)


def test_a_part_of_a_column_that_is_not_there_is_refused_by_name():
    plain = {"columns": [{"name": "weekday", "from": "admited", "part": "weekday"}]}
    with pytest.raises(InvalidSchema, match=r"column 'weekday': from \(admited\) must be the name"):
        from_dict(plain)


# --- Tables -----------------------------------------------------------------------------------


def test_parts_are_not_looked_for_in_the_table(tmp_path):
    schema = Schema((admitted(), column("weekday", source=admitted(), part="weekday")))
    path = tmp_path / "visits.csv"
    path.write_text("admitted,name\n2024-01-01,Ann\n2024-01-02,Bob\n2024-01-09,Cid\n")
    kernel = Counts(schema, ((("admitted", 1), ("weekday", 1)),))
    with open_table(path, schema) as table:
        counts = kernel.split(table.sum(kernel))[0]
    assert counts.tolist() == [[0] * 7, [1, 2, 0, 0, 0, 0, 0]]


def test_a_part_is_read_where_its_date_is_no_column_of_the_schema():
    weekday = column("weekday", source=admitted(), part="weekday")
    schema = Schema((weekday,))
    kernel = Counts(schema, ((("weekday", 1),),))
    table = open_table(pa.table({"admitted": ["2024-01-01", "2024-01-08", "x"]}), schema)
    assert kernel.split(table.sum(kernel))[0].tolist() == [2, 0, 0, 0, 0, 0, 0]


def test_a_type_that_holds_no_dates_is_refused_when_the_table_is_opened():
    schema = Schema((column("weekday", source=admitted(), part="weekday"),))
    for kind in (pa.int64(), pa.time64("us")):
        with pytest.raises(UnreadableData, match="admitted"):
            open_table(pa.table({"admitted": pa.array([], kind)}), schema)
    with pytest.raises(UnreadableData, match="column 'admitted' of the Arrow table is not there"):
        open_table(pa.table({"weekday": ["Monday"]}), schema)


def test_dates_are_still_categories_where_the_schema_says_so():
    schema = Schema((column("day", "category", values=["2024-01-01", "2024-01-02"]),))
    kernel = Counts(schema, ((("day", 1),),))
    table = open_table(pa.table({"day": [date(2024, 1, 2)]}), schema)
    assert kernel.split(table.sum(kernel))[0].tolist() == [0, 1]


def test_the_owner_is_told_what_does_not_fit():
    schema = Schema((admitted(), column("weekday", source=admitted(), part="weekday")))
    rows = pa.table({"admitted": ["2024-01-01", "2024-02-30", "1999-01-01"]})
    assert [(x.column, x.problem, x.is_serious) for x in check_table(schema, rows)] == [
        (
            "admitted",
            "1 value (33 %) is text that is no date, which the schema rules out; the record is "
            "left out",
            True,
        ),
        ("admitted", "1 value (33 %) is below 2023-01-01 and counts as 2023-01-01", False),
        ("table", "1 record (33 %) is left out of a release that reads all columns", False),
    ]
    wrong = check_table(schema, pa.table({"admitted": [1.5]}))
    assert [x.problem for x in wrong] == ["has the type double, which cannot be used"]


def test_a_run_of_bins_is_named_by_its_ends():
    found = cut_axis(admitted(), [0, 3, 5]).labels
    assert found == ("2023-Q1", "2023-04..2023-05", "2023-06..2024-12")


def test_a_part_of_a_date_has_no_size():
    weekday = column("weekday", source=admitted(), part="weekday")
    with pytest.raises(InvalidParameter, match="kind ordinal"):
        weekday.values(pa.array(["Monday"]))

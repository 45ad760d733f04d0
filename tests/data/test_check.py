"""The owner's check says what does not fit, in how many rows, and what to write: no value."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.nasty_tables import DISGUISES, SCHEMA, cell_of, make_rows
from dpublish.data import table_counts
from dpublish.data.check import TABLE, Finding, check_table, inspect_table
from dpublish.data.schema import Schema, column
from dpublish.errors import UnreadableData
from dpublish.randomness import plain_generator

CLEAN = {"hours": 40.0, "slope": 0.5, "count": 3, "letter": "a", "sign": "n", "ignored": "x"}
IGNORED = Finding(TABLE, "has columns that the schema does not name ('ignored'); they are not read")
ONE = Schema((column("a", "integer", bounds=[0, 9]),))


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_table_that_fits_has_nothing_but_columns_that_are_not_read(disguise, tmp_path):
    source, options = DISGUISES[disguise]([CLEAN] * 5, tmp_path)
    extra = [] if disguise.startswith("polars") else [IGNORED]
    assert check_table(SCHEMA, source, **options) == extra


RULED_OUT = "which the schema rules out; their records are left out"
RULED_OUT_ONE = "which the schema rules out; the record is left out"


@pytest.mark.parametrize("disguise", ["csv", "parquet", "pandas objects", "duckdb file"])
@pytest.mark.parametrize(
    ("change", "name", "problem"),
    [
        ({"hours": None}, "hours", f"2 values (50 %) are missing, {RULED_OUT}"),
        ({"hours": 4711.0}, "hours", "2 values (50 %) are above 99 and count as 99"),
        ({"hours": -4711.0}, "hours", "2 values (50 %) are below 1 and count as 1"),
        ({"count": None}, "count", "2 values (50 %) are missing; their records are left out"),
        (
            {"slope": None},
            "slope",
            "2 values (50 %) are missing; their records are counted as (missing)",
        ),
        ({"letter": "4711"}, "letter", "2 values (50 %) are not listed and count as 'else'"),
        ({"sign": "4711"}, "sign", "2 values (50 %) are not listed; their records are left out"),
        ({"sign": None}, "sign", "2 values (50 %) are missing; their records are left out"),
    ],
)
def test_what_does_not_fit_is_told_once_with_its_number_of_rows(
    disguise, change, name, problem, tmp_path
):
    rows = [CLEAN, CLEAN | change, CLEAN | change, CLEAN]
    source, options = DISGUISES[disguise](rows, tmp_path)
    first, found, *rest = check_table(SCHEMA, source, **options)
    assert first == IGNORED
    assert (found.column, found.problem) == (name, problem)
    assert found.is_serious == ("rules out" in problem)
    is_left_out = "left out" in problem
    left_out = "2 records (50 %) are left out of a release that reads all columns"
    assert [each.problem for each in rest] == ([left_out] if is_left_out else [])


def test_each_finding_says_what_to_write():
    schema = Schema(
        (
            column("age", "integer", bounds=[0, 99]),
            column("sex", "category", values=["F", "M"]),
        )
    )
    table = pa.table({"age": ["300", "x", "", "1.5"], "sex": ["F", "?", None, "M"]})
    advice = {f.problem.split(") ")[1]: f.advice for f in check_table(schema, table)}
    assert 'missing = "category"' in advice[f"is missing, {RULED_OUT_ONE}"]
    assert "dpublish schema bounds" in advice["is above 99 and counts as 99"]
    assert 'other = "other"' in advice[f"is not listed, {RULED_OUT_ONE}"]
    assert 'kind = "numeric"' in advice["is not whole; such values are rounded down"]
    assert "written 1234.5" in advice[f"is text that is no number, {RULED_OUT_ONE}"]


@pytest.mark.parametrize(("values", "is_told"), [(["f", "m", "F"], True), (["F", "M", "f"], False)])
def test_a_list_that_few_values_fit_is_told_with_what_to_do(values, is_told):
    schema = Schema((column("sex", "category", values=["F", "M"], other="other"),))
    (found,) = check_table(schema, pa.table({"sex": values}))
    assert ("as the table writes them" in found.advice) == is_told


def test_texts_that_are_no_dates_or_numbers_are_explained_under_every_rule():
    schema = Schema(
        (
            column("on", "date", bounds=["2023", "2024"], missing="drop"),
            column("off", "date", bounds=["2023", "2024"], format="%d.%m.%Y", missing="category"),
            column("cost", "numeric", bounds=[0, 9], missing="drop"),
        )
    )
    table = pa.table({"on": ["31.01.2024"], "off": ["2024-01-31"], "cost": ["3,5"]})
    advice = {f.column: f.advice for f in check_table(schema, table)}
    assert advice["on"].startswith("say how dates are written")
    assert advice["off"] == "the schema says that dates are written as %d.%m.%Y"
    assert (
        advice["cost"] == "numbers are written 1234.5, with a point and nothing between thousands"
    )


@pytest.mark.parametrize("disguise", DISGUISES)
def test_counts_are_those_of_the_rows_on_every_source(disguise, tmp_path):
    rows = make_rows(997)
    source, options = DISGUISES[disguise](rows, tmp_path)
    found = inspect_table(SCHEMA, source, **options)
    assert found.rows == len(rows)
    assert found.left_out == sum(cell_of(row) is None for row in rows)
    for counts in found.columns[:3]:
        given = [row[counts.column] for row in rows]
        numbers = [math.nan if number is None else number for number in given]
        low, high = SCHEMA[counts.column].bounds
        assert counts.below == sum(number < low for number in numbers)
        assert counts.above == sum(number > high for number in numbers)
        assert counts.missing + counts.unreadable == sum(map(math.isnan, numbers))
    hours, slope, _, letter, sign = found.columns
    letters = [(row["letter"] or "").strip() for row in rows]
    assert letter.missing == letters.count("")
    assert letter.unlisted == sum(text not in ("", "a", "b", "c") for text in letters)
    assert letter.left_out == slope.left_out == 0
    assert sign.missing == sign.left_out == sum(row["sign"] is None for row in rows)
    assert hours.left_out == hours.missing + hours.unreadable


def test_no_finding_holds_a_value(tmp_path):
    source, options = DISGUISES["parquet folder"](make_rows(997), tmp_path)
    findings = check_table(SCHEMA, source, **options)
    *columns, last = findings
    assert [finding.column for finding in columns] == sorted(
        (finding.column for finding in columns), key=[TABLE, *SCHEMA.names].index
    )
    assert last.column == TABLE
    assert len(findings) == len(set(findings))
    secret = pa.table({"a": ["31415", "zq-secret", None]})
    told = " ".join(f"{f.problem} {f.advice}" for f in check_table(ONE, secret))
    assert "31415" not in told
    assert "zq-secret" not in told


def test_columns_that_are_absent_repeated_or_of_the_wrong_type_are_serious():
    schema = Schema(
        tuple(column(name, "integer", bounds=[0, 9]) for name in "abcd"),
        unit="who",
    )
    names = ["a", "a", "B", "c", "who"]
    table = pa.table([[1], [2], [3], [[4]], [0.5]], names=names)
    found = {finding.column: finding for finding in check_table(schema, table)}
    assert all(finding.is_serious for name, finding in found.items() if name != TABLE)
    assert "several times" in found["a"].problem
    assert "other letters" in found["b"].problem
    assert "has the type list" in found["c"].problem
    assert "is not there" in found["d"].problem
    assert "has the type double" in found["who"].problem


def test_rows_without_a_unit_and_numbers_that_are_not_whole_are_told():
    schema = Schema(ONE.columns, unit="who")
    table = pa.table({"who": ["x", " ", None], "a": [1.5, 2.0, 3.0]})
    assert [(f.column, f.is_serious) for f in check_table(schema, table)] == [
        ("a", False),
        ("who", True),
        (TABLE, False),
    ]


def test_rows_per_unit_are_told_and_what_each_bound_would_keep(tmp_path):
    """Units 1 to 100 have as many rows; some rows have none, and some units are spelled oddly."""
    units = np.repeat(np.arange(1, 101), np.arange(1, 101)).tolist()
    texts = [f" {u}.0" if i % 3 else str(u) for i, u in enumerate(units)] + [None, " "]
    schema = Schema(ONE.columns, unit="who")
    path = tmp_path / "t.parquet"
    table = pa.table({"who": texts, "a": [1] * len(texts)})
    pq.write_table(table.take(plain_generator(1).permutation(len(texts))), path, row_group_size=99)
    found = inspect_table(schema, path).units
    assert (found.units, found.without) == (100, 2)
    assert (found.median, found.percentile_95, found.most) == (50, 95, 100)
    assert dict(found.kept) == {
        m: sum(min(u, m) for u in range(1, 101)) for m in (1, 2, 3, 5, 10, 20, 50, 100)
    }
    told = check_table(schema, path)[-2].problem
    assert "50 in the median, at most 95 for 95 % of the people, 100 at most" in told
    assert "--contribution 1 keeps 2 %, 2 keeps 3.9 %" in told
    assert told.endswith("100 keeps 100 % of the records")


def test_units_of_many_batches_are_merged(monkeypatch):
    monkeypatch.setattr(table_counts, "_MERGE_ROWS", 5)
    schema = Schema(ONE.columns, unit="who")
    whole = pa.table({"who": [i % 7 for i in range(300)], "a": [1] * 300})
    source = pa.Table.from_batches(whole.to_batches(max_chunksize=11))
    found = inspect_table(schema, source).units
    assert (found.units, found.median, found.most) == (7, 43, 43)


def test_one_row_for_each_unit_is_nothing_to_tell():
    schema = Schema(ONE.columns, unit="who")
    assert check_table(schema, pa.table({"who": [1, 2], "a": [1, 2]})) == []
    assert inspect_table(schema, pa.table({"who": [1, 2], "a": [1, 2]})).units.kept == ((1, 2),)
    none = pa.table({"who": pa.array([], pa.int64()), "a": pa.array([], pa.int64())})
    assert inspect_table(schema, none).units.units == 0


def test_records_are_counted_as_they_are_after_the_steps():
    table = pa.table({"a": [1, 50, 3, None], "ward": ["x", "x", "y", "y"]})
    found = inspect_table(ONE, table, where="ward = x")
    assert (found.rows, found.columns[0].above, found.left_out) == (2, 1, 0)


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_that_is_no_number_is_told_apart_from_blanks(kind):
    table = pa.table({"a": pa.array(["1", " ", None, "x", "", "2"], pa.string()).cast(kind)})
    [counts] = inspect_table(ONE, table).columns
    assert (counts.missing, counts.unreadable, counts.left_out) == (3, 1, 4)


@pytest.mark.parametrize(
    ("text", "is_odd"),
    [
        ("a,b\n1,2\n", False),
        ("a,b\r\n1,2\r\n", False),
        ('a,b\n1,"two\nlines ""quoted"""\n\n3,\n', False),
        ("a,b\n1,2,3\n", True),
        ("a,b\n1\n", True),
        ('a,b\n1,"2\n3,4\n', True),
        ('a,b\n1,"2"x\n3,4\n', True),
        ("a,b\n1,\udcff\n", True),
    ],
)
def test_lines_that_break_the_rules_are_told(text, is_odd, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    problems = [finding.problem for finding in check_table(ONE, path) if finding.is_serious]
    odd = "has lines that do not fit its header, or whose quotes are not closed"
    assert problems == ([odd] if is_odd else [])


def test_what_cannot_be_read_at_all_is_an_error(tmp_path):
    with pytest.raises(UnreadableData, match="there is no file"):
        check_table(ONE, tmp_path / "t.parquet")
    pq.write_table(pa.table({"b": [1]}), tmp_path / "t.parquet")
    findings = check_table(ONE, tmp_path / "t.parquet")
    assert [finding.column for finding in findings] == [TABLE, "a"]

"""The owner's check says what does not fit, in words: no value, no count."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.nasty_tables import DISGUISES, SCHEMA, make_rows
from dpublish.data.check import TABLE, Finding, check_table
from dpublish.data.schema import Schema, column
from dpublish.errors import UnreadableData

CLEAN = {"hours": 40.0, "slope": 0.5, "count": 3, "letter": "a", "sign": "n", "ignored": "x"}
IGNORED = Finding(TABLE, "has columns that the schema does not name ('ignored'); they are not read")
ONE = Schema((column("a", "integer", bounds=[0, 9]),))


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_table_that_fits_has_nothing_but_columns_that_are_not_read(disguise, tmp_path):
    source, options = DISGUISES[disguise]([CLEAN] * 5, tmp_path)
    extra = [] if disguise.startswith("polars") else [IGNORED]
    assert check_table(SCHEMA, source, **options) == extra


@pytest.mark.parametrize("disguise", ["csv", "parquet", "pandas objects", "duckdb file"])
@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            {"hours": None},
            (
                "hours",
                "has missing values{}, which the schema rules out; their records are left out",
            ),
        ),
        (
            {"hours": 4711.0},
            ("hours", "has values outside the bounds; they are moved to the nearest bound"),
        ),
        ({"count": None}, ("count", "has missing values{}; their records are left out")),
        (
            {"slope": None},
            ("slope", "has missing values{}; their records are counted as (missing)"),
        ),
        ({"letter": "4711"}, ("letter", "has values that are not listed; they count as 'else'")),
        ({"sign": "4711"}, ("sign", "has values that are not listed; their records are left out")),
        ({"sign": None}, ("sign", "has missing values; their records are left out")),
    ],
)
def test_what_does_not_fit_is_told_once_and_in_words(disguise, change, finding, tmp_path):
    rows = [CLEAN, CLEAN | change, CLEAN | change, CLEAN]
    source, options = DISGUISES[disguise](rows, tmp_path)
    name, problem = finding
    is_text = disguise in ("csv", "pandas objects")
    problem = problem.format(", or text that is no number" if is_text else "")
    expected = Finding(name, problem, is_serious="rules out" in problem)
    assert check_table(SCHEMA, source, **options) == [IGNORED, expected]


def test_no_finding_holds_a_value_or_a_count(tmp_path):
    source, options = DISGUISES["parquet folder"](make_rows(997), tmp_path)
    findings = check_table(SCHEMA, source, **options)
    assert [finding.column for finding in findings] == sorted(
        (finding.column for finding in findings), key=[TABLE, *SCHEMA.names].index
    )
    words = " ".join(finding.problem for finding in findings)
    assert not any(letter.isdigit() for letter in words)
    assert len(findings) == len(set(findings)) == 10


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
    ]


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

"""The owner's check counts the rows that contradict what the schema states."""

from datetime import date

import pyarrow as pa
import pytest

from dpublish.data.check import TABLE, check_table, inspect_table
from dpublish.data.column_function import Formula, ValueMap
from dpublish.data.schema import Schema, column
from dpublish.data.statements import Combination, KnownTotal

BORN = column("born", "date", bounds=["2000-01-01", "2023-12-31"], missing="category")
COLUMNS = (
    column("age", "integer", bounds=[0, 99], missing="category"),
    column("sex", "category", values=["Female", "Male"], codes=["2", "1"]),
    column("child", "category", values=["yes", "no"]),
    BORN,
    column("weekday", source=BORN, part="weekday"),
)
ROWS = {
    "age": [3, 30, 30, None],
    "sex": [2, 1, 2, 2],
    "child": ["yes", "no", "yes", "no"],
    "born": [date(2023, 1, 1), date(2023, 1, 2), None, None],
}


def counts(rows=ROWS, **stated):
    found = inspect_table(Schema(COLUMNS, **stated), pa.table(rows))
    return [each.rows for each in found.facts]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("age < 16 and sex = Female", 1),
        ("age = 30 and sex = Female", 1),
        ('age = "(missing)" and sex = Female', 1),
        ("age < 16 and sex = Male", 0),
        ("weekday = Sunday and child = yes", 1),
    ],
)
def test_rows_with_an_impossible_combination_are_counted(where, rows):
    assert counts(impossible=(Combination(where),)) == [rows]
    findings = check_table(Schema(COLUMNS, impossible=(Combination(where),)), pa.table(ROWS))
    told = [each for each in findings if "contradict" in each.problem]
    assert len(told) == min(rows, 1)
    for each in told:
        assert (each.column, each.is_serious) == (TABLE, True)
        assert each.problem.startswith("1 record (25 %) contradicts what the schema states (impos")


def test_rows_whose_value_does_not_follow_are_counted():
    assert counts(functions=(Formula("child", "if(age < 18, 'yes', 'no')"),)) == [2]
    assert counts(functions=(Formula("child", "if(age >= 18, 'no', 'yes')"),)) == [2]
    assert counts(functions=(ValueMap("child", "sex", {"Female": "yes", "Male": "no"}),)) == [1]
    weekend = Formula("child", "if(weekday = Sunday, 'yes', 'no')")
    assert counts(functions=(weekend,)) == [2]  # without a day nothing follows, but it is there


def test_a_value_that_the_schema_leaves_out_contradicts_nothing():
    rows = ROWS | {"child": ["perhaps", None, "no", "no"]}
    function = Formula("child", "if(coalesce(age, 30) < 18, 'yes', 'no')")
    assert counts(rows, functions=(function,)) == [0]
    assert counts(rows, impossible=(Combination("age < 99 and child = no"),)) == [1]


def test_totals_are_compared_with_the_rows():
    totals = (KnownTotal(count=4), KnownTotal("sex = Female", count=2))
    assert counts(totals=totals) == [4, 3]
    told = [each.problem for each in check_table(Schema(COLUMNS, totals=totals), pa.table(ROWS))]
    assert "known total: 2 records with sex = Female, but there are 3" in told
    assert not any("in all" in problem for problem in told)


def test_nothing_is_told_of_statements_whose_columns_the_table_lacks():
    rows = {name: values for name, values in ROWS.items() if name != "sex"}
    stated = {"impossible": (Combination("age < 16 and sex = Male"),)}
    assert counts(rows, **stated, totals=(KnownTotal("sex = Male", count=1),)) == []
    assert counts(rows, totals=(KnownTotal(count=3),)) == [4]
    assert counts({"other": [1]}, totals=(KnownTotal(count=3),)) == []


def test_a_schema_without_statements_counts_nothing():
    assert counts() == []


def test_findings_hold_no_value_of_a_row():
    stated = {
        "impossible": (Combination("age < 16 and sex = Female"),),
        "functions": (Formula("child", "if(age < 18, 'yes', 'no')"),),
    }
    first, second = (
        check_table(Schema(COLUMNS, **stated), pa.table(ROWS | {"age": [age, 30, 30, None]}))
        for age in (3, 4)
    )
    assert first == second

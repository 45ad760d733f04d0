"""A personal answer refuses what no method publishes, and its report shows who paid what."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery
from dpublish.methods.personalized.exponential import PersonalizedEM
from dpublish.methods.personalized.released import PersonalizedAnswer
from dpublish.methods.personalized.report import answer_section as section
from dpublish.randomness import secure

LEVELS = (Fraction(1, 10), Fraction(1))
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("height", "numeric", bounds=[100, 200], bins=5),
        column("sex", "category", values=["F", "M"]),
    )
)


def answer(statistic, **settings):
    method = PersonalizedEM(
        preference="own", levels=LEVELS, sizes=(50, 50), statistic=statistic, **settings
    )
    rows = {"own": [0.5, 2.0], "age": [33, 44], "height": [150.0, 170.0], "sex": ["F", "M"]}
    table = open_table(pa.table(rows), method.prepare(SCHEMA))
    return method.release(table, budget=method.budget(Fraction(1, 2)), rng=secure())


def test_the_middle_of_a_leaf_is_the_number():
    integers = replace(answer("median", column="age"), value=3)
    assert (integers.label, integers.number) == ("30..39", 34.5)
    assert replace(answer("median", column="height"), value=1).number == 130.0


def test_the_interval_stays_within_what_is_possible():
    given = replace(answer("count", query="sex = F"), value=2, expected={"count_95": 30.0})
    interval = given.count("sex=F")
    assert (interval.value, interval.low, interval.high) == (2, 0, 32)
    assert replace(given, value=99).count("sex = F").high == 100


@pytest.mark.parametrize(
    "change",
    [
        {"value": 101},
        {"value": -1},
        {"statistic": "mode"},
        {"statistic": "median"},
        {"column": "age"},
        {"expected": {"count_95": float("nan")}},
        {"expected": {"count_95": -1.0}},
        {"most": 10**400},
        {"query": "shoe = 44"},
    ],
)
def test_what_no_method_would_publish_is_refused(change):
    with pytest.raises((InvalidParameter, InvalidQuery)):
        replace(answer("count"), **change)


@pytest.mark.parametrize("change", [{"column": "sex"}, {"most": 3}, {"column": None}])
def test_a_median_is_a_leaf_of_a_column_of_numbers(change):
    with pytest.raises(InvalidParameter):
        replace(answer("median", column="age"), value=1, **change)


def test_a_table_of_other_values_is_corrupt():
    given = answer("count")
    tables = {"answer": pa.table({"value": ["7"], "label": ["7"]})}
    with pytest.raises(CorruptRelease):
        PersonalizedAnswer.from_parts(
            receipt=given.receipt, schema=given.schema, metadata=given.metadata(), tables=tables
        )


@pytest.mark.parametrize(
    "given", [answer("count", query="sex = F"), answer("median", column="age")]
)
def test_the_report_shows_the_answer_and_what_each_level_paid(given):
    shown = section(given, True)
    assert shown.figures[0].svg.count("<rect") == 2 * 2  # each level, and what it paid
    assert "level 0.1: 0.05 of 0.1" in shown.figures[0].alt
    answers, levels = shown.listings
    assert given.label in {told for _, told in answers.rows}
    assert levels.rows == [["0.1", "0.05"], ["1", "0.5"]]
    assert not section(given, False).figures

"""The query language: what it reads, and what it refuses."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import DPublishError, InvalidQuery
from dpublish.release.query import Condition, parse_query, quote

PLAIN = st.text("abcXYZ019_-+.", min_size=1).filter(lambda t: ".." not in t and t[0] != ".")


@pytest.mark.parametrize(
    ("text", "column", "operator", "operands"),
    [
        ("age in 30..40", "age", "in range", ("30", "40")),
        ("age in -3 .. 2.5", "age", "in range", ("-3", "2.5")),
        ("sex = Female", "sex", "=", ("Female",)),
        ("sex == Female", "sex", "=", ("Female",)),
        ("sex != 'Not said'", "sex", "!=", ("Not said",)),
        ('income = "<=50K"', "income", "=", ("<=50K",)),
        ("income>=50000", "income", ">=", ("50000",)),
        ("colour in {red, 'light blue'}", "colour", "in set", ("red", "light blue")),
        ('"hours per week" < 40', "hours per week", "<", ("40",)),
    ],
)
def test_a_condition_is_read(text, column, operator, operands):
    assert parse_query(text).conditions == (Condition(column, operator, operands),)


def test_conditions_are_joined_by_and_in_any_case():
    query = parse_query("age >= 30 AND sex = Male and age < 40")
    assert query.columns == ("age", "sex")
    assert [c.operator for c in query.about("age")] == [">=", "<"]


def test_the_empty_query_asks_for_everything():
    assert parse_query("").conditions == ()
    assert parse_query("   ").conditions == ()


@pytest.mark.parametrize(
    "text",
    [
        "age",
        "age in",
        "age in 30",
        "age in 30..",
        "age in {1, 2",
        "age = ",
        "age = 1 sex = 2",
        "age = light blue",
        "= 3",
        "age ~ 3",
        "age = 1 and",
        "__import__('os')",
        "a" * 20_000,
    ],
)
def test_what_is_not_a_query_is_refused_in_one_line(text):
    with pytest.raises(InvalidQuery) as caught:
        parse_query(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_no_text_whatever_breaks_the_parser(text):
    with suppress(DPublishError):
        parse_query(text)


@given(st.text(max_size=12), st.text(max_size=12))
def test_whatever_is_quoted_is_read_back(name, value):
    condition = parse_query(f"{quote(name)} = {quote(value)}").conditions
    assert condition == (Condition(name, "=", (value,)),)


@given(PLAIN, PLAIN, st.text(max_size=10).filter(lambda t: '"' not in t))
def test_names_and_quoted_values_come_back_unchanged(first, second, quoted):
    query = parse_query(f'"{first}" = "{quoted}" and "{second}" in {{"{quoted}"}}')
    assert query.conditions[0] == Condition(first, "=", (quoted,))
    assert query.conditions[1] == Condition(second, "in set", (quoted,))

"""The query language: what it reads, and what it refuses."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.data.query.language import Condition, Query, parse_query, quote, require_columns
from dpublish.data.query.weights import axis_weights
from dpublish.data.schema import column
from dpublish.errors import InvalidQuery

PLAIN = st.text("abcXYZ019_-+.", min_size=1).filter(lambda t: ".." not in t and t[0] != ".")


@pytest.mark.parametrize(
    ("text", "column", "operator", "operands"),
    [
        ("age in 30..40", "age", "in range", ("30", "40")),
        ("age in -3 .. 2.5", "age", "in range", ("-3", "2.5")),
        ("age in -5..-2", "age", "in range", ("-5", "-2")),
        ("x in 1.5..2.5", "x", "in range", ("1.5", "2.5")),
        ("x in .5...75", "x", "in range", (".5", ".75")),
        ("x in 1e-3..1e+3", "x", "in range", ("1e-3", "1e+3")),
        ("x in '1.'..2", "x", "in range", ("1.", "2")),
        ("size in Small..'Very large'", "size", "in range", ("Small", "Very large")),
        ("sex = 'O''Neill'", "sex", "=", ("O'Neill",)),
        ("height = (missing)", "height", "=", ("(missing)",)),
        ("sex = Female", "sex", "=", ("Female",)),
        ("sex == Female", "sex", "=", ("Female",)),
        ("sex != 'Not said'", "sex", "!=", ("Not said",)),
        ('income = "<=50K"', "income", "=", ("<=50K",)),
        ("income>=50000", "income", ">=", ("50000",)),
        ("color in {red, 'light blue'}", "color", "in set", ("red", "light blue")),
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
    with suppress(InvalidQuery):
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


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("sex is Female", "column = value"),
        ("sex is not Female", "column != value"),
        ("not sex = Female", "column != value"),
        ("sex not in {Female}", "column != value"),
        ("!sex = Female", "column != value"),
        ("age between 30 and 40", "in 30..40"),
        ("age from 30 to 40", "in 30..40"),
        ("30 <= age <= 40", "in 30..40"),
        ("age = 30..40", "in 30..40"),
        ("age in 30-40", "in low..high"),
        ("age in (30, 40)", "in low..high"),
        ("sex = Female or age > 3", "column in {a, b}"),
        ("sex = Female || age > 3", "column in {a, b}"),
        ("sex = Female & age > 3", "'and'"),
        ("sex = Female, age > 3", "'and'"),
        ("income >= 50,000", "without commas"),
        ("sex <> Female", "write !="),
        ("age =< 3", "write <="),
        ("age => 3", "write >="),
        ("age \u2265 3", "write >="),
        ("sex like F%", "column = value"),
        ("sex = 'Female", "not closed"),
        ("town = New York", "quotes"),
    ],
)
def test_what_users_would_try_is_refused_with_what_to_write_instead(text, advice):
    with pytest.raises(InvalidQuery) as caught:
        parse_query(text)
    assert advice in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("agee > 3", "did you mean 'age'"),
        ("(age > 3)", "brackets are not needed"),
        ("30 < age", "write the column first"),
        ("income > 3", "only of age, sex"),
    ],
)
def test_an_unknown_column_is_refused_with_the_known_ones(text, advice):
    with pytest.raises(InvalidQuery, match="knows nothing of") as caught:
        require_columns(parse_query(text), ("age", "sex"))
    assert advice in str(caught.value)


@pytest.mark.parametrize("text", ["a" * 9_000 + " b", '"a\nb" is 3', '"a\nb" in 3'])
def test_a_refusal_is_short_and_in_one_line_whatever_the_query(text):
    with pytest.raises(InvalidQuery) as caught:
        parse_query(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 10_000


TEXTS = st.one_of(st.text(max_size=8), PLAIN, st.sampled_from(["and", "in", "..", "5.", ".5", "="]))
CONDITIONS = st.one_of(
    st.builds(
        Condition,
        TEXTS,
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        st.tuples(TEXTS),
    ),
    st.builds(Condition, TEXTS, st.just("in range"), st.tuples(TEXTS, TEXTS)),
    st.builds(
        Condition, TEXTS, st.just("in set"), st.lists(TEXTS, min_size=1, max_size=4).map(tuple)
    ),
)


@given(st.lists(CONDITIONS, max_size=5))
def test_a_query_written_out_is_read_back_as_itself(conditions):
    query = Query(tuple(conditions))
    assert parse_query(str(query)) == query


COLUMNS = [
    column("age", "integer", bounds=[-5, 99], bins=7, branching=2),
    column("height", "numeric", bounds=[0.1, 2.3], bins=6, missing="category"),
    column("town", "category", values=["a", "b", "c"], other="else", missing="category"),
    column("size", "ordinal", values=["s", "m", "l", "xl"], branching=2),
]
VALUES = st.one_of(
    st.sampled_from(["a", "s", "m", "xl", "(missing)", "else", "any", "3", "-2.5", "1e400", "nan"]),
    st.integers(-200, 200).map(str),
    st.floats().map(str),
    st.text(max_size=4),
)


@settings(max_examples=200)
@given(
    st.sampled_from(COLUMNS),
    st.integers(0, 2),
    st.lists(CONDITIONS, min_size=1, max_size=3),
    st.lists(VALUES, min_size=2, max_size=2),
)
def test_no_condition_whatever_breaks_the_weights(asked, level, conditions, values):
    axis = asked.axis(min(level, asked.height))
    operands = {"in range": tuple(values), "in set": tuple(values)}
    some = tuple(
        Condition(asked.name, c.operator, operands.get(c.operator, (values[0],)))
        for c in conditions
    )
    with suppress(InvalidQuery):
        weights = axis_weights(axis, some)
        assert weights.shape == (axis.size,)
        assert weights.min() >= 0
        assert weights.max() <= 1


def weigh(asked, text, level=None):
    return axis_weights(asked.axis(level), parse_query(text).about(asked.name)).tolist()


def test_an_edge_written_in_decimals_is_the_edge():
    thirds = column("x", "numeric", bounds=[0, 1], bins=10)
    assert thirds.axis().edges[3] != 0.3 or 0.1 + 0.2 != 0.3  # floats do not hold decimals
    for text in ("x < 0.3", "x in 0..0.3", "x < 0.30000000000000004"):
        assert weigh(thirds, text) == [1, 1, 1] + [0] * 7


def test_conditions_on_listed_values_are_exact_within_a_group():
    size = COLUMNS[3]
    assert weigh(size, "size >= m and size != l", 1) == [0.5, 0.5]
    assert weigh(size, "size = s and size = m", 1) == [0, 0]


@pytest.mark.parametrize(
    ("asked", "text"), [(COLUMNS[0], "age in 40..30"), (COLUMNS[3], "size in l..s")]
)
def test_a_range_that_ends_before_it_starts_is_refused(asked, text):
    with pytest.raises(InvalidQuery, match="ends before it starts"):
        weigh(asked, text)


def test_conditions_that_exclude_each_other_weigh_nothing():
    assert not any(weigh(COLUMNS[0], "age > 50 and age < 20"))
    assert not any(weigh(COLUMNS[2], "town = a and town = b"))

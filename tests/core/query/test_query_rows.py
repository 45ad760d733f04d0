"""The same query on rows in the clear: read as the schema reads them, and exact within leaves."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.core.prediction import encode_rows
from dpublish.core.query.rows import ClearRows, matches
from dpublish.data.query.language import parse_query
from dpublish.data.query.weights import axis_weights, is_partial
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidQuery
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10, branching=2),
        column("height", "numeric", bounds=[100, 220], bins=6, missing="category"),
        column("town", "category", values=["Ost", "West", 3], other="Else", missing="drop"),
        column("size", "ordinal", values=["s", "m", "l"], missing="category"),
    )
)


def make_rows(count=400):
    rng = plain_generator(5)
    return pa.table(
        {
            "age": pa.array(rng.integers(-20, 130, count), mask=rng.random(count) < 0.1),
            "height": pa.array(rng.uniform(80, 240, count), mask=rng.random(count) < 0.1),
            "town": pa.array(
                np.array(["Ost", " West ", "3.0", "Far"])[rng.integers(0, 4, count)],
                mask=rng.random(count) < 0.1,
            ),
            "size": pa.array(
                np.array(["s", "m", "l", "huge"])[rng.integers(0, 4, count)],
                mask=rng.random(count) < 0.1,
            ),
        }
    )


ROWS = make_rows()
CODES = encode_rows(ROWS, SCHEMA, SCHEMA.names)

NUMBERS = st.integers(-2, 24).map(lambda n: str(10 * n))
ALIGNED = {
    "age": st.one_of(
        st.tuples(NUMBERS, NUMBERS).map(lambda ends: f"age >= {ends[0]} and age < {ends[1]}"),
        st.sampled_from(['age = "30..39"', 'age != "0..19"', 'age in {"0..9", "20..39"}']),
    ),
    "height": st.one_of(
        # not below 220: what is clipped to this bound lies in the last cell, which says so
        st.sampled_from([80, 100, 140, 200, 240]).map(lambda n: f"height < {n}"),
        st.integers(4, 12).map(lambda n: f"height >= {20 * n}"),
        st.sampled_from(['height = "(missing)"', "height != '(missing)'", "height >= 0"]),
    ),
    "town": st.sampled_from(
        ["town = Ost", "town != West", "town in {Ost, 3}", "town = Else", "town != any"]
    ),
    "size": st.sampled_from(
        ["size >= m", "size < l", "size in s..m", "size != s", "size = '(missing)'", "size <= l"]
    ),
}


@settings(max_examples=150)
@given(st.data())
def test_at_the_leaves_rows_are_counted_as_a_histogram_without_noise_counts_them(data):
    names = data.draw(st.sets(st.sampled_from(SCHEMA.names)))
    text = " and ".join(data.draw(ALIGNED[name]) for name in sorted(names))
    query = parse_query(text)
    expected = np.ones(ROWS.num_rows, dtype=bool)
    for name in names:
        weights = axis_weights(SCHEMA[name].axis(), query.about(name))
        assert not is_partial(weights).any()
        expected &= (CODES[name] >= 0) & (weights[CODES[name]] > 0)
    assert np.array_equal(matches(ROWS, text, SCHEMA), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age >= 35", [False, True, True, False]),
        ("age in 33..34", [True, False, False, False]),
        ("age = 35", [False, True, False, False]),
        ("age != 35", [True, False, True, False]),
        ("age in {33, 99}", [True, False, True, False]),
        ("age > 98 and age != 35", [False, False, True, False]),
        ("age >= 33 and age != 35", [True, False, True, False]),
    ],
)
def test_a_query_that_cuts_a_leaf_looks_at_the_values(text, expected):
    rows = pa.table({"age": ["33", "35.0", "250", "many"]})
    assert matches(rows, text, SCHEMA).tolist() == expected


def test_values_in_cut_leaves_are_compared_as_they_are():
    rows = pa.table({"height": [129.9, 130.0, 130.1, None]})
    assert matches(rows, "height < 130", SCHEMA).tolist() == [True, False, False, False]
    assert matches(rows, "height <= 130", SCHEMA).tolist() == [True, True, False, False]
    assert matches(rows, "height in 130..200", SCHEMA).tolist() == [False, True, True, False]


def test_the_empty_query_takes_all_rows_and_a_contradiction_none():
    assert matches(ROWS, "", SCHEMA).all()
    assert not matches(ROWS, "age > 50 and age < 20", SCHEMA).any()


@pytest.mark.parametrize("text", ["income > 3", "town < Ost", "height = 170", "age > many"])
def test_what_a_release_would_refuse_is_refused(text):
    with pytest.raises(InvalidQuery):
        matches(ROWS, text, SCHEMA)


def test_columns_that_the_rows_lack_are_named():
    with pytest.raises(InvalidQuery, match="these rows tell nothing of 'town', only of age"):
        matches(pa.table({"age": [1]}), "town = Ost", SCHEMA)


@given(st.text(max_size=30))
def test_no_text_whatever_breaks_it(text):
    with suppress(InvalidQuery):
        assert matches(ROWS, text, SCHEMA).shape == (ROWS.num_rows,)


def test_a_column_is_read_once_for_many_queries():
    clear = ClearRows(ROWS, SCHEMA)
    first = clear.codes("town")
    clear.matches("town = Ost")
    assert clear.codes("town") is first
    assert len(clear) == ROWS.num_rows

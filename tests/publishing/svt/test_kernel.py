"""Counts of queries are exact, and one record more moves them by at most one, all one way."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.query.rows import matches
from dpublish.data.query.language import parse_query
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidQuery
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.publishing.svt.kernel import Matching

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10, missing="category"),
        column("weight", "numeric", bounds=[0, 200], bins=20, missing="drop"),
        column("ward", "category", values=["north", "south", "west"], missing="drop"),
        column("degree", "ordinal", values=["none", "school", "college"], missing="category"),
    )
)
ROWS = {
    "age": [33, 35, None, 150, 0, 64, 65, -3],
    "weight": [70.0, 70.5, 80.0, None, 20.0, 250.0, 90.0, 60.0],
    "ward": ["north", "south", "west", "north", None, "north", "elsewhere", "south"],
    "degree": ["none", "school", None, "college", "school", "none", "college", "college"],
}
QUERIES = [
    "",
    "age >= 35",
    "age > 35 and age <= 65",
    "age in 30..64 and ward != west",
    "weight < 70.5",
    "weight >= 200",
    "ward in {north, west}",
    "degree >= school",
    'degree = "(missing)"',
    "degree != none and weight > 20",
    "age >= 99",
]


def count(query, rows):
    return int(open_table(pa.table(rows), SCHEMA).sum(Matching(SCHEMA, parse_query(query)))[0])


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_counts_the_rows_that_satisfy_it(query):
    assert count(query, ROWS) == np.count_nonzero(matches(pa.table(ROWS), query, SCHEMA))


@pytest.mark.parametrize("query", QUERIES)
def test_leaving_out_any_record_lowers_a_count_by_at_most_one_and_raises_none(query):
    whole = count(query, ROWS)
    for left_out in range(8):
        rest = {name: col[:left_out] + col[left_out + 1 :] for name, col in ROWS.items()}
        assert whole - count(query, rest) in (0, 1)
    assert Matching(SCHEMA, parse_query(query)).sensitivity(AddRemoveRecord()) == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("agee > 3", "did you mean 'age'"),
        ("age = 33", "write a range"),
        ("age in 40..30", "ends before it starts"),
        ("ward = east", "east"),
        ("weight > heavy", "is none"),
    ],
)
def test_what_is_wrong_with_a_query_is_found_from_the_schema(query, words):
    with pytest.raises(InvalidQuery, match=words):
        Matching(SCHEMA, parse_query(query))

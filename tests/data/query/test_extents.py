"""Which cells a query holds as a whole, and which it touches: exact, however near an edge it is."""

import pytest

from dpublish.data.query.language import parse_query
from dpublish.data.query.weights import axis_extent
from dpublish.data.schema import column


@pytest.mark.parametrize(
    ("query", "inner", "outer"),
    [
        ("x = 5", [False, False], [True, False]),
        ("x != 5", [False, True], [True, True]),
        ("x in {5, 7}", [False, False], [True, False]),
    ],
)
def test_one_of_very_many_integers_is_some_of_a_cell(query, inner, outer):
    axis = column("x", "integer", bounds=[0, 4 * 10**9 - 1], bins=2).axis()
    found = axis_extent(axis, parse_query(query).conditions)
    assert (found.inner.tolist(), found.outer.tolist()) == (inner, outer)


@pytest.mark.parametrize(
    ("query", "inner", "outer"),
    [
        ("x < 1000000000.5", [True, False], [True, True]),
        ("x >= 1000000000.5", [False, False], [False, True]),
        ("x <= 999999999.5", [False, False], [True, False]),
        ("x < 1000000000", [True, False], [True, False]),
    ],
)
def test_a_limit_beside_an_edge_is_not_taken_for_it(query, inner, outer):
    axis = column("x", "numeric", bounds=[0, 2e9], bins=2).axis()
    found = axis_extent(axis, parse_query(query).conditions)
    assert (found.inner.tolist(), found.outer.tolist()) == (inner, outer)

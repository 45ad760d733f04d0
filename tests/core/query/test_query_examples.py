"""Examples of queries are answered by the release that they are made for."""

import pytest

from dpublish import Budget, open_table, seeded
from dpublish.core.query.examples import example_queries
from dpublish.core.registry import make_method
from method_examples import EXAMPLES, ROWS, SCHEMA


def make(method, settings):
    import pyarrow as pa

    table = open_table(pa.Table.from_pylist(ROWS), SCHEMA)
    made = make_method(method, settings)
    return made.release(table, budget=Budget.seeded(1), rng=seeded(3))


@pytest.mark.parametrize("method", ["histogram", "synth", "marginals"])
def test_they_are_answered(method):
    release = make(method, EXAMPLES[method][0])
    found = example_queries(release)
    assert found[0] == ""
    assert len(found) >= 3
    for query in found:
        release.count(query)


def test_they_name_a_value_or_the_middle_of_a_range():
    release = make("histogram", {"columns": ("age", "sex")})
    assert example_queries(release) == [
        "",
        "age in 25..75",
        "sex = Female",
        "age in 25..75 and sex = Female",
    ]


def test_a_release_that_does_not_count_has_none():
    assert example_queries(make("bounds", {"column": "age"})) == []

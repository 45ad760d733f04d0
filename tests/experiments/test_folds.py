"""Folds of benchmarks and of a user's own table."""

import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.experiments.folds import Folds, own_benchmark
from dpublish.experiments.own_table import OwnTable

SCHEMA = Schema(
    (
        column("y", "category", values=["a", "b"]),
        column("x", "integer", bounds=[0, 9], bins=2),
        column("one", "category", values=["only"]),
    )
)


def table(target, records=40, schema=SCHEMA):
    rows = pa.table(
        {
            "y": ["a" if number % 4 else "b" for number in range(records)],
            "x": [number % 10 for number in range(records)],
            "one": ["only"] * records,
        }
    )
    return OwnTable("mine", rows.select(list(schema.names)), schema, target, "0123")


def test_a_table_of_ones_own_is_cut_into_folds_by_its_class():
    own = own_benchmark(table("y"))
    assert own.missing_file(None) is None
    assert own.records == 40
    split = Folds(None, {"mine": own}).split("mine", 3, 0)
    assert (split.schema, split.target) == (SCHEMA, "y")
    assert split.train.num_rows == 36
    assert sorted(split.held_out.rows["y"].to_pylist()) == ["a", "a", "a", "b"]
    fewer = Folds(None, {"mine": own}).split("mine", 3, 10)
    assert fewer.train.num_rows == 10


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (table(None), "--target"),
        (table("x"), "number"),
        (table("one"), "two values"),
        (table("y", schema=Schema(SCHEMA.columns[:1])), "to predict it from"),
        (table("y", records=9), "fewer than 10 rows"),
    ],
)
def test_a_table_without_a_class_to_predict_is_refused_with_the_reason(given, word):
    with pytest.raises(InvalidParameter, match=word):
        own_benchmark(given)

"""Rows become numbers by the schema alone, one row at a time."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import column
from dpublish.evaluation.features import encode_features
from method_examples import SCHEMA, arrow_table


def test_a_row_is_encoded_the_same_way_whatever_the_others_hold():
    rows = arrow_table()
    together = encode_features(rows, SCHEMA.columns)
    alone = [encode_features(rows.slice(i, 1), SCHEMA.columns) for i in range(rows.num_rows)]
    assert np.array_equal(together, np.concatenate(alone))
    # age, two of sex, height and its absence, four towns and elsewhere
    assert together.shape == (5, 1 + 2 + 2 + 5)


def test_numbers_are_scaled_by_public_bounds_and_clipped():
    age = column("age", "integer", bounds=[20, 60])
    found = encode_features(pa.table({"age": ["20", "40", "60", "999", "-3"]}), [age])
    assert found[:, 0].tolist() == [0, 0.5, 1, 1, 0]


@pytest.mark.parametrize("rule", ["refuse", "drop", "category"])
def test_a_missing_number_lies_in_the_middle_and_is_marked_where_it_is_a_value(rule):
    age = column("age", "integer", bounds=[0, 100], missing=rule)
    found = encode_features(pa.table({"age": [None, 50.0]}), [age])
    assert found[:, 0].tolist() == [0.5, 0.5]
    assert found[:, 1:].tolist() == ([[1], [0]] if rule == "category" else [[], []])


def test_one_value_only_is_encoded_without_dividing_by_zero():
    only = column("only", "integer", bounds=[7, 7])
    assert encode_features(pa.table({"only": [7, 7]}), [only]).tolist() == [[0], [0]]


def test_no_column_and_no_row_are_fine():
    assert encode_features(arrow_table(), []).shape == (5, 0)
    assert encode_features(arrow_table([]), SCHEMA.columns).shape == (0, 10)

"""Bins are public: they follow from the schema and the settings alone."""

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.methods.streams.snapshot import MAX_BINS, Bins

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 15], branching=2),
        column("sex", "category", values=["F", "M"], missing="category"),
        column("person", "integer", bounds=[0, 9]),
        column("time", "integer", bounds=[0, 9]),
        column("long", "integer", bounds=[0, 1999]),
        column("wide", "integer", bounds=[0, 1000]),
    ),
    unit="person",
)


def test_bins_are_numbered_in_the_order_of_their_labels():
    bins = Bins.of(SCHEMA, ("age@2", "sex"))
    assert (bins.shape, bins.size, bins.names) == ((4, 3), 12, ("age", "sex"))
    assert bins.columns == (("age", 2), ("sex", 1))
    cells = bins.cells()
    assert cells.column_names == ["age", "age_low", "age_high", "sex"]
    assert cells["age"].to_pylist() == np.repeat(bins.axes[0].labels, 3).tolist()
    assert cells["sex"].to_pylist() == ["F", "M", "(missing)"] * 4


def test_bins_of_the_same_columns_are_equal():
    assert Bins.of(SCHEMA, "age,sex") == Bins.of(SCHEMA, ("age", "sex"))
    assert hash(Bins.of(SCHEMA, "age")) != hash(Bins.of(SCHEMA, "age@1"))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((), "at least one column"),
        (("height",), "height"),
        (("age", "age@1"), "twice"),
        (("age@9",), "levels"),
        (("person",), "identifies units"),
        (("time",), "rename"),
        (("long", "wide"), "too many"),
    ],
)
def test_what_no_stream_can_count_by_is_refused(columns, reason):
    with pytest.raises(DPublishError, match=reason):
        Bins.of(SCHEMA, columns)


def test_the_most_bins_are_still_taken():
    halves = (column("x", "integer", bounds=[1, 2000]), column("y", "integer", bounds=[1, 1000]))
    assert Bins.of(Schema(halves), ("x", "y")).size == MAX_BINS
    more = (halves[0], column("y", "integer", bounds=[1, 1001]))
    with pytest.raises(InvalidParameter, match="at most 2,000,000"):
        Bins.of(Schema(more), ("x", "y"))

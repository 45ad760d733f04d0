"""What a step reads: counts, and rows that tell a bin and nothing else."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.snapshot import Bins, Snapshot, rows_of, schema_of
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 15], branching=2, missing="category"),
        column("pay", "numeric", cuts=[0, 1, 10, 100]),
        column(
            "work",
            "category",
            taxonomy={"Paid": ["Private", "State"], "Unpaid": {}},
            other="unlisted",
            missing="category",
        ),
        column("size", "ordinal", values=["s", "m", "l"]),
    )
)
COLUMNS = [
    ("age",),
    ("age@2", "pay"),
    ("age@0", "size"),
    ("work",),
    ("work@1", "size"),
    ("work@0", "age@1", "size@0"),
]


def leaf_counts(table):
    return table.sum(Counts(table.schema, (tuple((name, None) for name in table.schema.names),)))


def random_table(seed, size):
    rng = plain_generator(seed)
    work = np.array(["Private", "State", "Unpaid", "Odd job", None], dtype=object)
    rows = {
        "age": pa.array(rng.integers(0, 16, size), mask=rng.random(size) < 0.2),
        "pay": pa.array(rng.random(size) * 100),
        "work": pa.array(work[rng.integers(0, 5, size)], pa.string()),
        "size": pa.array(np.array(["s", "m", "l"])[rng.integers(0, 3, size)]),
    }
    return open_table(pa.table(rows), SCHEMA)


@pytest.mark.parametrize("columns", COLUMNS)
def test_rows_lie_in_the_bins_that_were_counted(columns):
    bins = Bins.of(SCHEMA, columns)
    counts = plain_generator(1).integers(0, 4, bins.size)
    assert leaf_counts(rows_of(counts, bins)).tolist() == counts.tolist()


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_snapshot_and_its_rows_have_the_same_counts(columns):
    bins = Bins.of(SCHEMA, columns)
    reading = Snapshot.of(random_table(2, 200), bins, 1, b"key")
    assert reading.counts.sum() == 200
    assert leaf_counts(reading.rows).tolist() == reading.counts.tolist()
    assert isinstance(reading.rows.neighbors, AddRemoveRecord)


def test_what_has_an_order_keeps_it_and_what_has_none_gets_none():
    kinds = [each.kind for each in schema_of(Bins.of(SCHEMA, SCHEMA.names)).columns]
    assert kinds == ["ordinal", "ordinal", "category", "ordinal"]


@pytest.mark.parametrize(("columns", "special"), [("work", 2), ("age", 1), ("age@0", 0)])
def test_bins_of_missing_and_unlisted_values_stay_special(columns, special):
    (axis,) = (each.axis() for each in schema_of(Bins.of(SCHEMA, columns)).columns)
    assert axis.special == special


def test_negative_counts_give_no_rows():
    bins = Bins.of(SCHEMA, "size")
    assert leaf_counts(rows_of(np.array([-3, 2, 0]), bins)).tolist() == [0, 2, 0]


def test_nothing_is_read_before_it_is_asked_for():
    class Unreadable:
        schema = SCHEMA
        neighbors = AddRemoveRecord()

        def sum(self, kernel):
            raise AssertionError("read")

    reading = Snapshot.of(Unreadable(), Bins.of(SCHEMA, "size"), 1, b"key")
    with pytest.raises(AssertionError, match="read"):
        _ = reading.counts


def test_users_are_bounded_before_they_are_counted():
    schema = Schema((column("size", "ordinal", values=["s", "m", "l"]),), unit="who")
    rows = pa.table({"who": ["ann"] * 9 + ["bob"], "size": ["s", "m", "l"] * 3 + ["s"]})
    bins = Bins.of(schema, "size")
    for contribution, kept in [(1, 2), (2, 3), (100, 10)]:
        reading = Snapshot.of(open_table(rows, schema), bins, contribution, b"key")
        assert reading.counts.sum() == kept


@pytest.mark.parametrize("counts", [np.array([1, 2]), np.array([1.0, 2, 3]), np.ones((3, 1), int)])
def test_counts_that_do_not_fit_the_bins_are_refused(counts):
    with pytest.raises(InvalidParameter, match="3 integers"):
        Snapshot.of_counts(counts, Bins.of(SCHEMA, "size"))

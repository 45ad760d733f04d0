"""A user moves the counts of a snapshot by at most what he may contribute, in all (L1)."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.streams.snapshot import Bins, bounded, exact_counts
from dpublish.privacy.budget import Budget

SCHEMA = Schema(
    (
        column("zone", "category", values=["a", "b", "c"]),
        column("hour", "integer", bounds=[0, 3], branching=2, missing="drop"),
        column("fare", "numeric", bounds=[0, 9]),
    ),
    unit="car",
)
BINS = Bins.of(SCHEMA, ("zone", "hour@1"))


def trips(rows):
    cars, zones, hours = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "car": pa.array(cars, pa.string()),
        "zone": pa.array(zones, pa.string()),
        "hour": pa.array(hours, pa.int8()),
        "fare": pa.nulls(len(rows), pa.float64()),  # not counted by, so it leaves no row out
    }
    return open_table(pa.table(columns), SCHEMA)


def counts(rows, contribution, key=b"key"):
    return exact_counts(bounded(trips(rows), contribution, key, BINS.names), BINS)


CELL = (st.sampled_from(["a", "b", "c", "d"]), st.sampled_from([0, 1, 2, 3, None]))
ROWS = st.lists(st.tuples(st.sampled_from(["1", "2", "3"]), *CELL), max_size=10)
NEW_ROWS = st.lists(st.tuples(st.just("9"), *CELL), max_size=6)
CONTRIBUTION = st.sampled_from([1, 2, 3])


@given(rows=ROWS, new=NEW_ROWS, contribution=CONTRIBUTION, key=st.binary(max_size=3))
def test_a_user_raises_the_counts_by_at_most_the_bound(rows, new, contribution, key):
    change = counts(new + rows, contribution, key) - counts(rows, contribution, key)
    complete = sum(zone != "d" and hour is not None for _, zone, hour in new)
    assert change.min() >= 0
    assert change.sum() == min(complete, contribution)


def test_counts_without_a_bound_move_by_more_and_are_refused():
    new = [("9", "a", 0), ("9", "b", 0)]
    with pytest.raises(InvalidParameter, match="bound them first"):
        exact_counts(trips(new), BINS)
    assert counts(new, 1).sum() == 1
    assert counts(new, 2).tolist() == [1, 0, 1, 0, 0, 0]


def test_counts_are_flat_and_in_the_order_of_the_bins():
    rows = [(str(car), zone, hour) for car, (zone, hour) in enumerate([("a", 3), ("c", 1)] * 2)]
    answer = counts(rows, 1)
    assert answer.dtype == np.int64
    assert answer.tolist() == [0, 2, 0, 0, 2, 0]
    assert BINS.cells().take([1, 4])["zone"].to_pylist() == ["a", "c"]
    assert counts([], 1).tolist() == [0] * 6


def test_a_static_method_takes_a_bounded_snapshot_and_no_other(rng):
    rows = [("1", "a", 0)] * 5000 + [("2", "b", 3)] * 5000
    method = Histogram(columns=("zone", "hour@1"))
    snapshot = bounded(trips(rows), 2, b"key", BINS.names)
    release = method.release_part(snapshot, budget=Budget.seeded(Fraction(20)), rng=rng)
    assert release.counts.tolist() == pytest.approx([2, 0, 0, 2, 0, 0], abs=2)
    with pytest.raises(InvalidParameter, match="bounded by unit"):
        method.release(snapshot, budget=Budget.seeded(Fraction(20)), rng=rng)
    with pytest.raises(InvalidParameter, match="--contribution 4"):
        method.release(trips(rows), budget=Budget.seeded(Fraction(20)), rng=rng)

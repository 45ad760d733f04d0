"""A stream's filter, derived columns and lookups: fixed at its start, the same at every step."""

from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.folder import load_stream
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.privacy.budget import Budget
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.randomness import seeded
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows

DERIVED = Schema(
    (
        column("side", "category", values=["left", "right"], missing="category"),
        column("late", "category", values=["true", "false"]),
    ),
    unit="user",
)
COUNT = PerSnapshot(columns=("side", "late"), window=4)


@pytest.fixture
def steps(tmp_path):
    make_ledger(tmp_path)
    (tmp_path / "zones.csv").write_text("zone,side\nnorth,left\n")
    return {
        "where": "user != u3",
        "derive": ["late = hour >= 2"],
        "lookups": [Lookup(tmp_path / "zones.csv", on="zone")],
    }


def start(folder, method=COUNT, schema=DERIVED, **changes):
    return StreamOperator.start(
        folder / "rides.stream", method, schema, **arguments(folder, **changes)
    )


def test_steps_are_kept_with_the_stream_and_named_on_its_receipt(tmp_path, steps):
    with start(tmp_path, **steps) as operator:
        assert operator.next(rows(1), "t1") is not None
    with StreamOperator.open(tmp_path / "rides.stream") as operator:
        assert operator.next(rows(2), "t2") is not None
        receipt = operator.stream.receipt
    assert receipt.steps[0].startswith("lookup zones.csv on zone (sha256 ")
    assert receipt.steps[1:] == ("derive late = hour >= 2", "where user != u3")
    assert load_stream(tmp_path / "out").receipt.steps == receipt.steps
    assert str(tmp_path) not in "".join(receipt.steps)


def test_a_start_is_repeated_only_with_the_same_steps(tmp_path, steps):
    start(tmp_path, **steps).close()
    with start(tmp_path, **steps) as again:
        assert not again.is_new
    for changes in ({"where": None}, {"where": "user != u4"}, {"lookups": []}):
        with pytest.raises(InvalidParameter, match="its list of steps differs"):
            start(tmp_path, **(steps | changes))


def test_a_stream_without_steps_cannot_be_repeated_with_some(tmp_path):
    make_ledger(tmp_path)
    start(tmp_path, METHOD, SCHEMA).close()
    with pytest.raises(InvalidParameter, match="its list of steps differs"):
        start(tmp_path, METHOD, SCHEMA, where="user != u3")


def test_a_snapshot_of_other_steps_is_refused_before_the_stream_is_paid_for(tmp_path):
    make_ledger(tmp_path)
    filtered = open_table(rows(1), SCHEMA, where="user != u3")
    with pytest.raises(InvalidParameter, match="other steps"):
        start(tmp_path, METHOD, SCHEMA, try_table=filtered)
    assert not (tmp_path / "rides.stream").exists()
    with start(tmp_path, METHOD, SCHEMA, where="user != u3", try_table=filtered) as operator:
        assert operator.next(filtered, "t1") is not None


def test_a_lookup_that_changed_is_refused_before_a_row_is_read(tmp_path, steps):
    with start(tmp_path, **steps) as operator:
        operator.next(rows(1), "t1")
        (tmp_path / "zones.csv").write_text("zone,side\nnorth,right\n")
        with pytest.raises(InvalidParameter, match="a lookup file has changed since"):
            operator.next(rows(2), "t2")


def test_a_table_that_was_opened_with_other_steps_is_refused(tmp_path, steps):
    with start(tmp_path, **steps) as operator:
        operator.next(open_table(rows(1), DERIVED, **steps), "t1")
        other = open_table(rows(2), DERIVED, **(steps | {"where": None}))
        with pytest.raises(InvalidParameter, match="opened with other steps"):
            operator.next(other, "t2")


def test_a_stream_in_memory_is_started_with_the_steps_of_its_tables(steps):
    table = open_table(rows(1), SCHEMA, where="hour >= 1")
    options = {"budget": Budget.seeded(Fraction(1), "test"), "rng": seeded(1)}
    stream = METHOD.start(SCHEMA, steps=table.steps, **options)
    assert stream.next(table, rng=seeded(2)).number == 1
    with pytest.raises(InvalidParameter, match="opened with other steps"):
        stream.next(open_table(rows(2), SCHEMA), rng=seeded(3))


def test_a_lookup_in_memory_cannot_be_kept_with_a_stream(tmp_path):
    make_ledger(tmp_path)
    lookup = Lookup(pa.table({"zone": ["north"], "side": ["left"]}), on="zone")
    with pytest.raises(InvalidParameter, match="give the lookup by its path"):
        start(tmp_path, lookups=lookup, derive="late = hour >= 2")

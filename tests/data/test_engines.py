"""One suite for all engines: every kernel, units, missing rules and nasty values, bit by bit.

A further engine is one more line in `ENGINES`: a function that opens an Arrow table with a
schema, given a folder of the test's own and a way to ask for fixtures.
"""

import os
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from adbc_driver_postgresql import dbapi

from data.kernel_examples import ALL, EXAMPLES, same, shipped_kernels
from data.nasty_tables import SCHEMA, SHAPE, arrow, count_by_hand, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.engines import arrow_reader, shared, split_rows
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.randomness import plain_generator, seeded


def open_on_spark(rows, schema, folder, fixture):
    """Seven partitions, two of them empty at least."""
    session = fixture("spark_cluster").session
    inside = folder / f"spark-{len(list(folder.iterdir()))}"
    inside.mkdir()
    step = max(1, -(-rows.num_rows // 5))
    for number in range(7):
        part = rows.slice((number - 2) * step, step) if number >= 2 else rows.slice(0, 0)
        pq.write_table(part, inside / f"part-{number}.parquet")
    # A file is a partition, however small.
    session.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    return open_table(session.read.parquet(str(inside)), schema)


def open_with_workers(rows, schema, folder, fixture):
    """Several pieces of a file, read by three processes however few rows there are."""
    patch = fixture("monkeypatch")
    patch.setattr(shared, "LARGE", 1)
    patch.setattr(arrow_reader, "PIECE_ROWS", 100)
    patch.setattr(split_rows, "PIECE_ROWS", 100)
    path = folder / f"rows-{len(list(folder.iterdir()))}.parquet"
    pq.write_table(rows, path, row_group_size=100)
    return open_table(path, schema, threads=3)


def open_from_postgres(rows, schema, folder, fixture):
    """A table of a PostgreSQL server, filled by COPY."""
    address = fixture("postgres_database")
    name = f"rows_{os.urandom(4).hex()}"
    with dbapi.connect(address) as link, link.cursor() as cursor:
        cursor.adbc_ingest(name, rows, mode="create")
        link.commit()
    return open_table(address, schema, table=name)


ENGINES = {
    "local": lambda rows, schema, folder, fixture: open_table(rows, schema),
    "local, not cached": lambda rows, schema, folder, fixture: open_table(
        rows, schema, cache=False
    ),
    "local, three processes": open_with_workers,
    "postgresql": open_from_postgres,
    "spark": open_on_spark,
}
GROUPS = {"spark": pytest.mark.xdist_group("spark")}
WHOLE = Counts(SCHEMA, (ALL,))
OTHER = Schema((column("x", "integer", bounds=[0, 1]),))


@pytest.fixture(
    params=[pytest.param(name, marks=GROUPS.get(name, ()), id=name) for name in ENGINES]
)
def engine(request, tmp_path):
    """A function that opens rows with one of the engines."""
    make = ENGINES[request.param]
    return lambda rows, schema=SCHEMA: make(rows, schema, tmp_path, request.getfixturevalue)


def reference(rows, schema=SCHEMA):
    """The same rows in the plainest engine."""
    return open_table(rows, schema, cache=False)


def test_every_kernel_that_ships_has_an_example():
    assert set(EXAMPLES) == shipped_kernels()


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_counts_are_those_of_a_plain_loop(engine, size):
    rows = make_rows(size, seed=size)
    found = engine(arrow(rows)).sum(WHOLE).reshape(SHAPE)
    assert np.array_equal(found, count_by_hand(rows))


def test_every_kernel_has_the_same_answer_on_every_engine(engine):
    rows = arrow(make_rows(700, seed=3))
    table, plain = engine(rows), reference(rows)
    different = [
        name for name, kernel in EXAMPLES.items() if not same(table.sum(kernel), plain.sum(kernel))
    ]
    assert different == []


def test_every_kernel_can_be_summed_over_no_rows(engine):
    table = engine(arrow([]))
    for name in ("Counts", "SparseCounts", "CutCounts", "ClusterSums", "BlockMoments"):
        assert same(table.sum(EXAMPLES[name]), EXAMPLES[name].zero())


UNITS = {
    "numbers": pa.array([None, *range(40), 7, 7, 8] * 25, pa.int64()),
    "texts": pa.array(["u1", " u1 ", "12.0", "12", "", None, "ü", "x" * 300] * 137, pa.string()),
}


@pytest.mark.parametrize("kind", UNITS)
def test_units_count_once_per_combination_on_every_engine(engine, kind):
    rows = arrow(make_rows(1000, seed=5))
    rows = rows.append_column("who", UNITS[kind].slice(0, 1000))
    schema = Schema(SCHEMA.columns, unit="who")
    table, plain = engine(rows, schema), reference(rows, schema)
    kernels = [
        Counts(schema, ((("letter", None), ("sign", None)), (("count", None),))),
        Counts(schema, ((("letter", 0),),)),
        Counts(schema, ((),)),
    ]
    for kernel in kernels:
        assert np.array_equal(table.sum(kernel), plain.sum(kernel))


@pytest.mark.parametrize("kind", UNITS)
def test_the_same_rows_of_a_unit_are_kept_on_every_engine(engine, kind):
    rows = arrow(make_rows(1000, seed=6))
    rows = rows.append_column("who", UNITS[kind].slice(0, 1000))
    schema = Schema(SCHEMA.columns, unit="who")
    table = engine(rows, schema).bound(3, b"a key", ["letter", "count", "hours"])
    plain = reference(rows, schema).bound(3, b"a key", ["letter", "count", "hours"])
    kernel = Counts(table.schema, ((("letter", None), ("count", None), ("hours", None)),))
    assert table.is_bounded
    assert table.schema == plain.schema
    assert np.array_equal(table.sum(kernel), plain.sum(kernel))
    with pytest.raises(InvalidParameter, match="there is no column 'sign'"):
        table.sum(Counts(SCHEMA, ((("sign", None),),)))


class Lengths:
    """Kernel: list the letter and the hours of each row, which may have no hours."""

    codes = ("letter",)
    values = optional = ("hours",)

    def zero(self):
        return []

    def add(self, batch, out):
        out.extend(
            zip(batch.codes("letter").tolist(), map(str, batch.values("hours")), strict=True)
        )

    def merge(self, out, other):
        out.extend(other)


@pytest.mark.parametrize("kind", UNITS)
def test_rows_that_lack_what_they_may_lack_are_the_same_on_every_engine(engine, kind):
    rows = arrow(make_rows(1000, seed=6))
    rows = rows.append_column("who", UNITS[kind].slice(0, 1000))
    schema = Schema(SCHEMA.columns, unit="who")
    columns, complete = ["letter", "count", "hours"], ("letter",)
    table, plain = engine(rows, schema), reference(rows, schema)
    ours, theirs = (x.bound(3, b"a key", columns, complete=complete) for x in (table, plain))
    assert sorted(ours.sum(Lengths())) == sorted(theirs.sum(Lengths()))
    assert any(hours == "nan" for _, hours in ours.sum(Lengths()))
    ours, theirs = (x.rows_per_unit(400, columns, complete) for x in (table, plain))
    assert np.array_equal(ours, theirs)
    assert not np.array_equal(ours, plain.rows_per_unit(400, columns))


@pytest.mark.parametrize("kind", UNITS)
def test_the_smallest_code_and_the_rows_of_a_unit_are_the_same_on_every_engine(engine, kind):
    rows = arrow(make_rows(1000, seed=6))
    rows = rows.append_column("who", UNITS[kind].slice(0, 1000))
    schema = Schema(SCHEMA.columns, unit="who")
    table, plain = engine(rows, schema), reference(rows, schema)
    assert np.array_equal(table.rows_per_unit(40), plain.rows_per_unit(40))
    assert np.array_equal(table.rows_per_unit(3, ["count"]), plain.rows_per_unit(3, ["count"]))
    columns = ["letter", "count", "hours"]
    low, expected = (x.bound(3, b"a key", columns, lowest="letter") for x in (table, plain))
    kernel = Counts(low.schema, ((("letter", None), ("count", None), ("hours", None)),))
    assert np.array_equal(low.sum(kernel), expected.sum(kernel))
    assert low.sum(kernel).sum() > 0
    again, first = (x.only("letter", [0]).sample(Fraction(1), seeded(1)) for x in (low, expected))
    kernel = Counts(first.schema, ((("count", None),),))
    assert np.array_equal(again.sum(kernel), first.sum(kernel))


def dated_rows(size, seed):
    """Dates and times as files and databases hold them, with bad ones among the texts."""
    rng = plain_generator(seed)
    seconds = rng.integers(1_672_000_000, 1_736_000_000, size)
    gaps = rng.random(size) < 0.1
    days = (seconds // 86_400).astype(np.int32)
    micros = pa.array(seconds * 10**6 + 999_999, pa.int64(), mask=gaps)
    texts = np.datetime_as_string(seconds.astype("M8[s]")).tolist()
    bad = ["", "2024-02-30", "2024-13-01", "x", "9999-12-31", "2024-01-01T00:00:00+14:00"]
    return pa.table(
        {
            "admitted": pa.array(days, pa.int32(), mask=gaps).cast(pa.date32()),
            "seen": micros.cast(pa.timestamp("us")),
            "heard": micros.cast(pa.timestamp("us", "UTC")),
            "written": pa.array(
                [
                    bad[i % 6] if gap else text
                    for i, (gap, text) in enumerate(zip(gaps, texts, strict=True))
                ],
                pa.string(),
            ),
            "who": pa.array(rng.integers(0, size // 4 + 1, size)),
        }
    )


def dated_schema(unit=None):
    bounds = ["2023-01-01", "2024-12-31"]
    admitted = column("admitted", "date", bounds=bounds, bins="month", missing="category")
    seen = column("seen", "datetime", bounds=bounds, bins="week", missing="drop")
    heard = column("heard", "datetime", bounds=bounds, bins="quarter", time_zone="Asia/Tokyo")
    written = column("written", "datetime", bounds=bounds, time_zone="America/New_York")
    parts = [
        column("weekday", source=admitted, part="weekday"),
        column("hour", source=heard, part="hour"),
        column("month", source=written, part="month"),
    ]
    return Schema((admitted, seen, heard, written, *parts), unit=unit)


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_dates_and_their_parts_are_the_same_on_every_engine(engine, size):
    rows, schema = dated_rows(size, seed=size + 3), dated_schema()
    table, plain = engine(rows, schema), reference(rows, schema)
    sets = (
        (("admitted", None), ("weekday", None)),
        (("seen", None),),
        (("heard", None), ("hour", None)),
        (("written", None), ("month", None)),
    )
    for one in sets:
        kernel = Counts(schema, (one,))
        found = table.sum(kernel)
        assert np.array_equal(found, plain.sum(kernel))
        assert found.any() == (size == 1000) or size == 1
    chosen, wanted = (x.only("weekday", [0, 6]) for x in (table, plain))
    kernel = Counts(chosen.schema, ((("hour", None),),))
    assert np.array_equal(chosen.sum(kernel), wanted.sum(kernel))


def test_parts_of_dates_are_sampled_and_bounded_on_every_engine(engine):
    rows, schema = dated_rows(1000, seed=9), dated_schema()
    rates = [Fraction(1)] * 7 + [Fraction(0)]
    kept = engine(rows, schema).sample_by("weekday", rates, seeded(1), ["hour", "seen"])
    wanted = reference(rows, schema).sample_by("weekday", rates, seeded(1), ["hour", "seen"])
    kernel = Counts(kept.schema, ((("hour", None), ("seen", None)),))
    assert np.array_equal(kept.sum(kernel), wanted.sum(kernel))
    units = dated_schema(unit="who")
    bounded = engine(rows, units).bound(2, b"a key", ["weekday", "written"])
    expected = reference(rows, units).bound(2, b"a key", ["weekday", "written"])
    kernel = Counts(bounded.schema, ((("weekday", None), ("written", None)),))
    assert np.array_equal(bounded.sum(kernel), expected.sum(kernel))
    assert bounded.sum(kernel).any()
    distinct = Counts(units, ((("weekday", None),),))
    assert np.array_equal(engine(rows, units).sum(distinct), reference(rows, units).sum(distinct))


def test_numbers_of_codes_become_a_column_of_the_same_codes_on_every_engine(engine):
    rows = arrow(make_rows(1000, seed=6))
    rows = rows.append_column("who", UNITS[next(iter(UNITS))].slice(0, 1000))
    schema = Schema(SCHEMA.columns, unit="who")
    letter = schema["letter"]
    numbers = tuple(2 - code % 3 for code in range(letter.size))
    level = column("(level)", "integer", bounds=[0, 2])
    lowest = Lowest(letter, numbers, level)
    tables = (engine(rows, schema), reference(rows, schema))
    for columns in (["count"], ["letter", "count"]):
        low, expected = (x.bound(2, b"a key", columns, lowest=lowest) for x in tables)
        assert low.schema == expected.schema
        kernel = Counts(low.schema, ((("count", None), ("(level)", None)),))
        assert np.array_equal(low.sum(kernel), expected.sum(kernel))
        assert low.sum(Counts(low.schema, ((("(level)", None),),))).sum() > 0


def test_records_are_picked_by_their_leaf_on_every_engine(engine):
    rows = arrow(make_rows(600, seed=7))
    table, plain = engine(rows), reference(rows)
    kernel = Counts(SCHEMA, ((("count", None), ("letter", None)),))
    for one in (table, plain):
        assert one.only("sign", [1]).schema.names == ("hours", "slope", "count", "letter")
    picked = [x.only("sign", [1]).only("letter", [0, 3, 4], keep=True) for x in (table, plain)]
    assert np.array_equal(*(x.sum(kernel) for x in picked))


def test_a_sample_of_everything_is_everything_on_every_engine(engine):
    rows = arrow(make_rows(300, seed=8))
    table = engine(rows)
    whole = table.sample(Fraction(1), seeded(1))
    assert np.array_equal(whole.sum(WHOLE), reference(rows).sum(WHOLE))
    assert whole.neighbors == table.neighbors


def test_a_sample_stays_the_same_on_every_engine(engine):
    table = engine(arrow(make_rows(900, seed=9)))
    part = table.sample(Fraction(1, 2), seeded(2), ["hours", "letter"])
    kernel = Counts(part.schema, ((("hours", None), ("letter", None)),))
    first = part.sum(kernel)
    assert np.array_equal(part.sum(kernel), first)
    assert 0 < first.sum() < table.sum(Counts(SCHEMA, ((("hours", None),),))).sum()
    again = part.only("letter", [0]).sample(Fraction(1), seeded(1))
    assert np.array_equal(
        again.sum(Counts(again.schema, ((("hours", None),),))), first.reshape(16, 5)[:, 0]
    )


def test_blocks_share_the_records_out_on_every_engine(engine):
    rows = arrow(make_rows(500, seed=10))
    blocks = engine(rows).split(4, seeded(3))
    sums = [block.sum(WHOLE) for block in blocks]
    assert np.array_equal(sum(sums), reference(rows).sum(WHOLE))
    assert all(0 < one.sum() < sum(sums).sum() for one in sums)


def test_rows_of_one_unit_share_a_draw_on_every_engine(engine):
    schema = Schema((column("who", "integer", bounds=[0, 49]),), unit="person")
    rows = pa.table({"who": [n % 50 for n in range(400)], "person": [n % 50 for n in range(400)]})
    plain = Counts(Schema(schema.columns), ((("who", None),),))
    kept = engine(rows, schema).sample(Fraction(1, 2), seeded(4))
    found = kept.bound(100, b"key").sum(plain)
    assert set(found.tolist()) == {0, 8}
    blocks = engine(rows, schema).split(3, seeded(5))
    found = np.array([block.bound(100, b"key").sum(plain) for block in blocks])
    assert (np.sort(found, axis=0) == np.array([[0], [0], [8]])).all()


def test_records_are_sampled_by_their_leaf_on_every_engine(engine):
    rows = make_rows(800, seed=11)
    rates = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(0), Fraction(0)]
    part = engine(arrow(rows)).sample_by("letter", rates, seeded(6), ["letter", "count"])
    counts = part.sum(Counts(part.schema, ((("letter", None),),)))
    whole = reference(arrow(rows)).sum(Counts(SCHEMA, ((("letter", None),),)))
    assert counts[[0, 3, 4]].tolist() == [0, 0, 0]
    assert counts[1] == whole[1]
    assert 0 < counts[2] < whole[2]


def test_what_is_wrong_with_a_request_is_said_alike_on_every_engine(engine):
    rows = arrow(make_rows(5))
    by_letter = Schema(SCHEMA.columns, unit="letter")

    def refusals(open_rows):
        table, units = open_rows(rows), open_rows(rows, by_letter)
        actions = [
            lambda: table.sum(Counts(OTHER, ((("x", None),),))),
            lambda: table.sample(Fraction(2), seeded(1)),
            lambda: table.split(0, seeded(1)),
            lambda: table.sample(Fraction(1), seeded(1), ["sing"]),
            lambda: table.bound(2, b"key"),
            lambda: units.bound(0, b"key"),
            lambda: units.bound(1, b"key", ["sign"], lowest="count"),
            lambda: units.rows_per_unit(0),
            lambda: table.rows_per_unit(2),
            lambda: units.only("sign", [0]),
            lambda: table.only("sign", [2]),
            lambda: units.sample_by("sign", [Fraction(1)] * 2, seeded(1)),
            lambda: table.sample_by("sign", [Fraction(1)], seeded(1)),
        ]
        return [str(_refusal(action)) for action in actions]

    assert refusals(engine) == refusals(reference)


def _refusal(action):
    with pytest.raises(InvalidParameter) as caught:
        action()
    return caught.value

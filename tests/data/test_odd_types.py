"""Types and objects at the edge: read exactly, or refused by their type."""

from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.data import encoding
from dpublish.data.encoding import MISSING, UNKNOWN, plain_array, to_numbers, to_positions
from dpublish.data.engines.frame_reader import PandasSource
from dpublish.data.engines.units import to_units
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.randomness import plain_generator, seeded

WORDS = Schema((column("c", "category", values=["1", "2", "a"], other="o", missing="category"),))
COUNTS = Counts(WORDS, ((("c", None),),))
TEXT = pa.array(["1", None, "zz", "2"])
ENCODINGS = {
    "large": TEXT.cast(pa.large_string()),
    "view": TEXT.cast(pa.string_view()),
    "dictionary": TEXT.dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3]), TEXT.cast(pa.string_view())
    ),
    "run ends": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), TEXT),
    "json": pa.ExtensionArray.from_storage(pa.json_(), TEXT),
    "nulls": pa.nulls(4),
    "decimals": pa.array([Decimal(1), None, Decimal(3), Decimal(2)], pa.decimal256(76, 2)),
}


@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_can_be_sampled_and_split(name, unit):
    schema = Schema(WORDS.columns, unit=unit)
    kernel = Counts(schema, ((("c", None),),))
    units = pa.array(["p", "q", "r", "s"], pa.string_view())
    table = open_table(pa.table({"c": ENCODINGS[name], "u": units}), schema)
    expected = [0, 0, 0, 0, 4] if name == "nulls" else [1, 1, 0, 1, 1]
    assert table.sum(kernel).tolist() == expected
    assert table.sample(Fraction(1), seeded(1)).sum(kernel).tolist() == expected
    parts = table.split(2, seeded(1))
    assert sum(part.sum(kernel) for part in parts).tolist() == expected


def test_text_is_counted_in_64_bits_before_it_is_written_out():
    runs = ENCODINGS["run ends"].slice(1, 2)
    assert plain_array(runs).equals(pa.array([None, "zz"], pa.large_string()))
    assert to_units(ENCODINGS["dictionary"], "a table").type == pa.large_string()
    for kind in (object, pd.StringDtype("python"), pd.ArrowDtype(pa.string())):
        source = PandasSource(pd.DataFrame({"c": pd.Series(["1", "zz"], dtype=kind)}))
        assert source.header.types == [pa.large_string()]
        assert next(source.scan(["c"])).schema.types == [pa.large_string()]


@pytest.mark.parametrize(
    "kind", [object, pd.StringDtype("python"), pd.StringDtype("python", na_value=np.nan)]
)
def test_half_a_character_stops_no_one(kind):
    frame = pd.DataFrame({"c": pd.Series(["1", "\ud800", "a", None], dtype=kind)})
    assert open_table(frame, WORDS).sum(COUNTS).tolist() == [1, 0, 1, 1, 1]


def test_a_text_with_ideas_of_its_own_stops_no_one():
    class Odd(str):
        def encode(self, *_args, **_options):
            raise ValueError("4711")

        def isascii(self):
            raise ValueError("4711")

    frame = pd.DataFrame({"c": pd.Series([Odd("1"), Odd("é"), "a"], dtype=object)})
    assert open_table(frame, WORDS).sum(COUNTS).tolist() == [1, 0, 1, 1, 0]


@pytest.mark.parametrize("make", [pa.decimal128, pa.decimal256], ids=["128", "256"])
@pytest.mark.parametrize("scale", [1, 2, 4, 11, 18])
def test_a_decimal_is_the_float_nearest_to_it(make, scale):
    whole = plain_generator(1).integers(-(10**6), 10**6, 5000).tolist()
    exact = [Decimal(number).scaleb(-scale) for number in whole]
    read = to_numbers(pa.array([*exact, None], make(38, scale)), "c")
    assert read[:-1].tolist() == [float(number) for number in exact]
    assert np.isnan(read[-1])


@pytest.mark.parametrize("scale", [0, 2, 11, 20])
def test_whole_decimals_stay_whole(scale):
    schema = Schema((column("c", "integer", bounds=[0, 9]),))
    rows = pa.table(
        {"c": pa.array([Decimal(digit) for digit in range(10)], pa.decimal128(38, scale))}
    )
    assert open_table(rows, schema).sum(Counts(schema, ((("c", None),),))).tolist() == [1] * 10


def test_a_long_dictionary_is_looked_up_only_where_it_is_used(monkeypatch):
    seen = []
    monkeypatch.setattr(encoding, "_text", lambda value: seen.append(value) or value.decode())
    entries = pa.array([str(number) for number in range(10_000)])
    column_of = pa.DictionaryArray.from_arrays(pa.array([7, None, 9999, 7], pa.int32()), entries)
    assert to_positions(column_of, {"7": 0}, "c").tolist() == [0, -2, -1, 0]
    assert seen == [b"7", b"9999"]
    assert to_numbers(column_of, "c")[[0, 2, 3]].tolist() == [7, 9999, 7]
    assert np.isnan(to_numbers(column_of, "c")[1])


def test_types_whose_numbers_mean_something_else_are_refused():
    months = pd.DataFrame({"c": pd.period_range("2020-01", periods=2, freq="M")})
    huge = duckdb.connect().sql("SELECT 340282366920938463463374607431768211455::UHUGEINT AS c")
    for source in (months, huge):
        with pytest.raises(UnreadableData, match="column 'c'"):
            open_table(source, WORDS)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_polars_column_is_taken_by_its_name_not_as_a_pattern(lazy):
    schema = Schema((column("^c.*$", "integer", bounds=[0, 9]),))
    frame = pl.DataFrame({"c1": [1], "c2": [2], "^c.*$": [3]})
    table = open_table(frame.lazy() if lazy else frame, schema, cache=False)
    assert table.sum(Counts(schema, ((("^c.*$", None),),))).tolist()[3] == 1


def test_a_lazy_polars_table_is_read_in_batches(monkeypatch):
    schema = Schema((column("c", "integer", bounds=[0, 1]),))
    frame = pl.LazyFrame({"c": [0, 1] * 100_000})
    monkeypatch.setattr(pl.LazyFrame, "collect", None)  # it would hold all rows at once
    table = open_table(frame, schema, cache=False)
    assert table.sum(Counts(schema, ((("c", None),),))).tolist() == [100_000] * 2


def test_two_tables_of_one_spelling_are_told_apart(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS c")
        connection.sql('CREATE TABLE "s.t" AS SELECT 2 AS c; CREATE TABLE u AS SELECT 1 AS c')
    with pytest.raises(InvalidParameter, match=r"several tables are called 's\.t'"):
        open_table(path, WORDS, table="s.t")
    assert open_table(path, WORDS, table="u").sum(COUNTS)[0] == 1


def test_a_query_sees_no_variable_of_the_program():
    connection = names = pa.table({"c": ["1"]})  # what a replacement scan would find
    for name in ("connection", "names", "sql"):
        with pytest.raises(InvalidParameter, match="does not exist"):
            open_table(None, WORDS, sql=f"FROM {name}")
    assert connection is names


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+02:00", "No/Where"])
def test_points_in_time_are_categories_of_the_same_text_whatever_their_unit(unit, zone):
    noon = pa.array([1709208000, None], pa.int64()).cast(pa.timestamp("s"))
    array = noon.cast(pa.timestamp(unit)).cast(pa.timestamp(unit, "UTC"))
    array = array.cast(pa.int64()).cast(pa.timestamp(unit, zone))
    text = "2024-02-29 12:00:00" + ("Z" if zone else "")
    assert to_positions(array, {text: 5}, "c").tolist() == [5, MISSING]
    with pytest.raises(UnreadableData, match="numbers, or text that holds numbers, are needed"):
        to_numbers(array, "c")


def test_decimals_of_seconds_are_written_as_far_as_they_go():
    moments = pa.array([500_000, 250, 10**7, 10**18], pa.timestamp("us"))
    known = {"1970-01-01 00:00:00.5": 0, "1970-01-01 00:00:00.00025": 1, "1970-01-01 00:00:10": 2}
    assert to_positions(moments, known, "c").tolist() == [0, 1, 2, UNKNOWN]


def test_no_point_in_time_stops_anyone():
    edges = [-(2**63), -(2**62), 0, 2**62, 2**63 - 1]
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC"):
            array = pa.array(edges, pa.int64()).cast(pa.timestamp(unit, zone))
            assert len(to_positions(array, {}, "c")) == len(edges)

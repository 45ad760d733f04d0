"""Every source gives the same answer, and refuses what it cannot read before a row is read."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.nasty_tables import DISGUISES, SCHEMA, arrow, count_by_hand, make_rows, write_csv
from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table, source_columns
from dpublish.errors import InvalidParameter, InvalidType, UnreadableData

ALL = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
ONE = Schema((column("a", "integer", bounds=[0, 9]),))
ONE_COUNTS = Counts(ONE, ((("a", None),),))


@pytest.mark.parametrize("cache", [True, False], ids=["cached", "streamed"])
@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize("disguise", DISGUISES)
def test_every_source_counts_as_one_would_by_hand(disguise, size, cache, tmp_path):
    rows = make_rows(size)
    source, options = DISGUISES[disguise](rows, tmp_path)
    table = open_table(source, SCHEMA, cache=cache, **options)
    expected = count_by_hand(rows)
    for _ in range(2):  # the second time from the cache, or by a second scan
        assert np.array_equal(ALL.split(table.sum(ALL))[0], expected)


@pytest.mark.parametrize("disguise", DISGUISES)
def test_columns_read_at_different_times_fit_together(disguise, tmp_path):
    rows = make_rows(300)
    source, options = DISGUISES[disguise](rows, tmp_path)
    table = open_table(source, SCHEMA, **options)
    for name in SCHEMA.names:
        table.sum(Counts(SCHEMA, (((name, None),),)))
    assert np.array_equal(ALL.split(table.sum(ALL))[0], count_by_hand(rows))


@pytest.mark.parametrize("disguise", DISGUISES)
def test_names_and_types_are_found_without_rows(disguise, tmp_path):
    source, options = DISGUISES[disguise](make_rows(0), tmp_path)
    assert source_columns(source, **options).names == [*SCHEMA.names, "ignored"]


@pytest.mark.parametrize("cache", [True, False])
def test_only_columns_of_the_schema_are_read(cache):
    connection = duckdb.connect()
    relation = connection.sql("SELECT 3 AS a, error('this column was read') AS b")
    with pytest.raises(duckdb.Error, match="was read"):
        relation.fetchall()
    assert open_table(relation, ONE, cache=cache).sum(ONE_COUNTS)[3] == 1


def test_opening_reads_no_row(tmp_path):
    def explode(batches):
        raise AssertionError("a row was read")
        yield

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), explode(()))
    open_table(reader, ONE)
    lazy = pl.LazyFrame({"a": [1]}).map_batches(explode, schema={"a": pl.Int64})
    open_table(lazy, ONE)
    connection = duckdb.connect()
    open_table(connection.sql("SELECT error('a row was read')::INT AS a"), ONE)


ABSENT = "column 'a' of {} is not there; check its name in the schema and in the data"
TWICE = "column 'a' of {} is there several times; rename all but one"
LETTERS = (
    "column 'a' of {} is not there, only one in other letters (a, A); write the name as in the data"
)


def _two_named_a():
    frame = pd.DataFrame([[1, 2]], columns=["a", "b"])
    frame.columns = ["a", "a"]
    return frame


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: pa.table({"b": [1]}), ABSENT.format("the Arrow table")),
        (lambda: pd.DataFrame({"b": [1]}), ABSENT.format("the pandas table")),
        (lambda: pl.DataFrame({"b": [1]}), ABSENT.format("the Polars table")),
        (lambda: duckdb.sql("SELECT 1 AS b"), ABSENT.format("the DuckDB relation")),
        (lambda: pa.table([[1], [2]], names=["a", "a"]), TWICE.format("the Arrow table")),
        (_two_named_a, TWICE.format("the pandas table")),
        (lambda: duckdb.sql("SELECT 1 AS a, 2 AS a"), TWICE.format("the DuckDB relation")),
        (lambda: duckdb.sql("SELECT 1 AS a, 2 AS A"), TWICE.format("the DuckDB relation")),
        (lambda: pa.table({"A": [1]}), LETTERS.format("the Arrow table")),
        (lambda: pa.table({"a": [[1]]}), "column 'a' has the type list"),
        (lambda: pl.DataFrame({"a": [object()]}), "column 'a' has the type fixed_size_binary"),
        (lambda: 7, "rows cannot be read from an object of type int"),
        (lambda: None, "rows cannot be read from an object of type NoneType"),
        (lambda: duckdb.connect(), "rows cannot be read from an object of type DuckDBPyConnection"),
        (lambda: pd.Series([1], name="a"), "the Series does not hand out an Arrow stream"),
    ],
)
def test_what_cannot_be_read_is_refused_when_it_is_opened(source, message):
    kind = InvalidType if message.startswith("rows cannot be read") else UnreadableData
    with pytest.raises(kind) as refused:
        open_table(source(), ONE)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def _parquet_with_two_a(path):
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("t.parquet", None, "there is no file {}"),
        ("t.csv", None, "there is no file {}"),
        ("t.duckdb", None, "there is no file {}"),
        ("t-*.csv", None, "no file fits the pattern {}"),
        ("t.parquet", lambda path: path.write_text("a\n4711\n"), "{} is not a Parquet file"),
        ("t.feather", lambda path: path.write_text("a\n4711\n"), "{} is not an Arrow file"),
        ("t.duckdb", lambda path: path.write_text("a\n4711\n"), "{} cannot be opened"),
        ("t.csv.gz", lambda path: path.write_text("a\n4711\n"), "{} cannot be opened"),
        ("t.xlsx", lambda path: path.write_text("a\n4711\n"), "{} is of no known kind"),
        ("t", lambda path: path.mkdir(), "the folder {} holds no file of rows"),
        ("t.parquet", _parquet_with_two_a, TWICE),
        ("t.csv", lambda path: path.write_text(""), "{} has no header line"),
        ("t.csv", lambda path: path.write_text("\n\n"), "{} has no header line"),
        ("t.csv", lambda path: path.write_text("4711,x\n1,2\n"), ABSENT),
        ("t.csv", lambda path: path.write_text("a,b,a\n4711,1,2\n"), TWICE),
        ("t.csv", lambda path: path.write_text("A,b\n4711,1\n"), LETTERS),
        ("t.csv", lambda path: path.write_text("a\r4711\r1\r"), "{} has old line ends"),
        ("t.csv", lambda path: path.write_text('"a\n4711\n'), "the header of {} must be one line"),
        ("t.csv", lambda path: path.write_bytes("a\n4711".encode("utf-16")), "the header line of"),
        ("t.csv", lambda path: path.write_text("4711," * 30_000), "the first line of {} is too"),
        ("t.csv", lambda path: path.mkdir(), "the folder {} holds no file of rows"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_when_it_is_opened(name, make, message, tmp_path):
    path = tmp_path / name
    if make is not None:
        make(path)
    with pytest.raises(UnreadableData) as refused:
        open_table(path, ONE)
    assert str(refused.value).startswith(message.format(path))
    assert "4711" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("{}/t.duckdb", {"table": "persons"}, "it has no table 'persons'; tables: other, people"),
        ("{}/t.duckdb", {}, "name one of its tables; tables: other, people"),
        ("{}/t.duckdb", {"table": "people", "sql": "FROM people"}, "sql needs a database"),
        ("{}/t.csv", {"sql": "FROM people"}, "sql needs a database"),
        ("{}/t.csv", {"table": "people"}, "table needs a database"),
        (None, {"sql": "SELEC 1"}, "the query is not valid SQL"),
        (None, {"sql": "SELECT 1 AS a; SELECT 2 AS a"}, "the query must be a single SELECT"),
        (None, {"sql": "CREATE TABLE t (a INT)"}, "the query must be a single SELECT"),
        ("{}/t.duckdb", {"sql": "DELETE FROM people"}, "the query must be a single SELECT"),
        (None, {"sql": "FROM people"}, "the query cannot be run: a table or function in it"),
        (None, {"sql": "SELECT b FROM (SELECT 1 AS a)"}, "the query cannot be run: it fails"),
        (None, {"sql": "FROM 'nothing.parquet'"}, "the query cannot be run: it fails"),
    ],
)
def test_a_wrong_request_of_duckdb_is_refused(source, options, message, tmp_path):
    DISGUISES["duckdb file"](make_rows(3), tmp_path)
    write_csv(make_rows(3), tmp_path / "t.csv")
    with pytest.raises(InvalidParameter) as refused:
        open_table(source and source.format(tmp_path), SCHEMA, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_only_table_of_a_file_needs_no_name(tmp_path):
    path = tmp_path / "one.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql('CREATE SCHEMA "s.1"; CREATE TABLE "s.1"."odd ""name" AS SELECT 3 AS a')
    assert open_table(path, ONE).sum(ONE_COUNTS)[3] == 1
    named = open_table(path, ONE, table='s.1.odd "name')
    assert named.sum(ONE_COUNTS)[3] == 1


@pytest.mark.parametrize("name", ["[odd]*'t?.csv", "[odd]*'t?.parquet"])
def test_a_file_name_is_taken_literally(name, tmp_path):
    if name.endswith("csv"):
        (tmp_path / name).write_text("a\n3\n")
    else:
        pq.write_table(pa.table({"a": [3]}), tmp_path / name)
    assert open_table(tmp_path / name, ONE).sum(ONE_COUNTS).tolist()[3] == 1


FAILING = [
    "SELECT CAST(b AS INT) AS a FROM (VALUES ('1'), ('4711 secret')) t(b)",
    "SELECT CASE WHEN b = 4711 THEN error('secret 4711') ELSE 1 END::INT AS a "
    "FROM (VALUES (1), (4711)) t(b)",
]


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("sql", FAILING)
def test_a_failure_among_rows_is_reported_without_a_word_of_them(sql, cache):
    table = open_table(None, ONE, sql=sql, cache=cache)
    with pytest.raises(UnreadableData) as failed:
        table.sum(ONE_COUNTS)
    message = "the query's result could not be read to its end; check that all of it can be read"
    assert str(failed.value) == message
    assert failed.value.__context__ is None
    assert failed.value.__cause__ is None


def test_a_stream_that_breaks_off_is_reported_without_a_word_of_it():
    def rows():
        yield pa.record_batch({"a": [1]})
        raise ValueError("row 4711 is bad")

    def panic(frame):
        raise type("PanicException", (BaseException,), {})("row 4711 is bad")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), rows())
    lazy = pl.LazyFrame({"a": [1]}).map_batches(panic, schema={"a": pl.Int64})
    for source in (reader, lazy):
        with pytest.raises(UnreadableData) as failed:
            open_table(source, ONE).sum(ONE_COUNTS)
        assert "4711" not in str(failed.value)
        assert failed.value.__context__ is None


def test_a_file_that_changes_between_two_scans_is_noticed(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(arrow(make_rows(10)), path)
    table = open_table(path, SCHEMA)
    table.sum(Counts(SCHEMA, ((("letter", None),),)))
    pq.write_table(arrow(make_rows(11)), path)
    with pytest.raises(UnreadableData, match="was changed"):
        table.sum(Counts(SCHEMA, ((("hours", None),),)))


def test_an_interrupted_sum_leaves_the_callers_connection_free():
    class Interrupted(Counts):
        def add(self, batch, out):
            raise KeyboardInterrupt

    connection = duckdb.connect()
    table = open_table(connection.sql("SELECT 1 AS a FROM range(500000)"), ONE, cache=False)
    with pytest.raises(KeyboardInterrupt) as held:  # and with it all frames of the sum
        table.sum(Interrupted(ONE, ((("a", None),),)))
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    del held


def test_a_type_that_arrow_does_not_have_matters_only_if_it_is_wanted():
    frame = pd.DataFrame({"a": [3], "b": [1j]})
    assert open_table(frame, ONE).sum(ONE_COUNTS)[3] == 1
    with pytest.raises(UnreadableData, match="column 'a' has the type struct"):
        open_table(frame.rename(columns={"a": "b", "b": "a"}), ONE)


def test_mixed_python_objects_are_read_one_by_one():
    odd = type("Odd", (), {"__str__": lambda self: 1 / 0})
    frame = pd.DataFrame({"a": [3, "3", "3.0", None, float("nan"), pd.NA, odd(), "\ud800", b"3"]})
    assert open_table(frame, ONE).sum(ONE_COUNTS).tolist() == [0, 0, 0, 3, 0, 0, 0, 0, 0, 0]
    mixed = frame.iloc[:3].astype("category")
    assert open_table(mixed, ONE).sum(ONE_COUNTS).tolist()[3] == 3

"""A table is opened by the columns that will be read: the source may lack all others."""

import gc
import io
import sqlite3
from fractions import Fraction

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi
from pyarrow import csv, feather, parquet

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.randomness import seeded

SCHEMA = Schema(
    (
        column("school", "ordinal", values=["low", "high"]),
        column("age", "integer", bounds=[0, 99], bins=10, missing="drop"),
        column("sex", "category", values=["F", "M"]),
    )
)
UNITS = Schema(SCHEMA.columns, unit="who")
READ = ("age", "sex")
KERNEL = Counts(SCHEMA, ((("age", None), ("sex", None)),))
MARK = "zq-private-marker"
ROWS = pa.table(
    {
        "age": pa.array([3, 44, 45, None, 91, 44], pa.int64()),
        "sex": ["F", "M", "M", "F", "F", "M"],
        "who": ["a", "a", "b", "c", "c", "d"],
        "note": [MARK] * 6,
    }
)


def to_file(write, ending):
    def make(rows, folder, fixture):
        path = folder / f"rows{ending}"
        write(rows, path)
        return {"source": path}

    return make


def to_pipe(rows, folder, fixture):
    text = io.BytesIO()
    csv.write_csv(rows, text)
    text.seek(0)
    return {"source": io.BufferedReader(text)}


def to_duckdb(rows, folder, fixture):
    with duckdb.connect(folder / "rows.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return {"source": folder / "rows.duckdb"}


def to_query(rows, folder, fixture):
    parquet.write_table(rows, folder / "rows.parquet")
    return {"source": None, "sql": f"SELECT * FROM '{folder / 'rows.parquet'}'"}


def to_sqlite(rows, folder, fixture):
    names = rows.column_names
    connection = sqlite3.connect(folder / "rows.sqlite")
    connection.execute(f"CREATE TABLE people ({', '.join(names)})")
    marks = ", ".join("?" * len(names))
    connection.executemany(
        f"INSERT INTO people VALUES ({marks})", zip(*rows.to_pydict().values(), strict=True)
    )
    connection.commit()
    connection.close()
    return {"source": f"adbc:sqlite:{folder / 'rows.sqlite'}", "table": "people"}


def to_postgres(rows, folder, fixture):
    address = fixture("postgres_database")
    with dbapi.connect(address) as link, link.cursor() as cursor:
        cursor.adbc_ingest("people", rows, mode="create")
        link.commit()
    return {"source": address, "table": "people"}


def to_spark(rows, folder, fixture):
    (folder / "rows").mkdir()
    for number in range(2):
        parquet.write_table(rows.slice(number * 3, 3), folder / "rows" / f"{number}.parquet")
    return {"source": fixture("spark_cluster").session.read.parquet(str(folder / "rows"))}


SOURCES = {
    "csv": to_file(csv.write_csv, ".csv"),
    "parquet": to_file(parquet.write_table, ".parquet"),
    "feather": to_file(feather.write_feather, ".feather"),
    "pipe": to_pipe,
    "arrow": lambda rows, folder, fixture: {"source": rows},
    "reader": lambda rows, folder, fixture: {"source": rows.to_reader()},
    "pandas": lambda rows, folder, fixture: {"source": rows.to_pandas()},
    "polars": lambda rows, folder, fixture: {"source": pl.from_arrow(rows).lazy()},
    "duckdb": to_duckdb,
    "sql": to_query,
    "sqlite": to_sqlite,
    "postgresql": to_postgres,
    "spark": to_spark,
}
GROUPS = {"spark": pytest.mark.xdist_group("spark")}


@pytest.fixture(
    params=[pytest.param(name, marks=GROUPS.get(name, ()), id=name) for name in SOURCES]
)
def opened(request, tmp_path):
    """A function that opens rows from one kind of source; what it opened is closed at the end."""
    tables = []

    def open_rows(rows, schema=SCHEMA, columns=READ):
        kept = SOURCES[request.param](rows, tmp_path, request.getfixturevalue)
        tables.append(open_table(kept.pop("source"), schema, columns=columns, **kept))
        return tables[-1]

    yield open_rows
    for table in tables:
        table.close()
    gc.collect()


def test_a_source_may_lack_columns_that_are_not_read(opened):
    table = opened(ROWS)
    assert table.schema == SCHEMA
    assert table.opened == READ
    expected = open_table(ROWS, Schema(SCHEMA.columns[1:])).sum(KERNEL)
    assert np.array_equal(table.sum(KERNEL), expected)


def test_a_bound_by_unit_and_its_rows_touch_opened_columns_only(opened):
    table = opened(ROWS, UNITS)
    bounded = table.bound(1, b"key")
    assert bounded.opened == READ
    assert bounded.schema == SCHEMA
    assert bounded.sum(KERNEL).sum() == 4  # a row of each of a, b, d, and the one c has an age of


def test_draws_of_records_touch_opened_columns_only(opened):
    table = opened(ROWS.select(["age", "sex"]))
    kept = table.sample(Fraction(1), seeded(1))
    assert (kept.schema, kept.opened) == (SCHEMA, READ)
    assert np.array_equal(kept.sum(KERNEL), open_table(ROWS, SCHEMA, columns=READ).sum(KERNEL))


@pytest.mark.parametrize("name", ["csv", "arrow", "spark"])
def test_blocks_groups_and_rates_touch_opened_columns_only(name, tmp_path, request):
    made = SOURCES[name](ROWS, tmp_path, request.getfixturevalue)
    table = open_table(made["source"], SCHEMA, columns=READ)
    by_sex = [table.only("sex", [code], keep=True).sum(KERNEL) for code in (0, 1)]
    assert np.array_equal(sum(by_sex), table.sum(KERNEL))
    blocks = table.split(2, seeded(1))
    assert np.array_equal(sum(block.sum(KERNEL) for block in blocks), table.sum(KERNEL))
    rates = [Fraction(1), Fraction(0)]
    women = table.sample_by("sex", rates, seeded(1), ["age"])
    assert women.opened == ("age",)
    assert women.sum(Counts(SCHEMA, ((("age", None),),))).sum() == 2


def test_a_column_that_is_read_and_lacking_is_named_before_a_row_is_read(opened):
    rows = ROWS.rename_columns(["ages", "sex", "who", "note"])
    with pytest.raises(UnreadableData) as refused:
        opened(rows)
    assert "column 'age' of " in str(refused.value)
    if "Polars" not in str(refused.value):  # whose other columns are not even looked at
        assert "similar columns there: 'ages'" in str(refused.value)
    assert MARK not in str(refused.value)


def test_a_lacking_unit_is_named(opened):
    with pytest.raises(UnreadableData, match=r"column 'who' of .* is not "):
        opened(ROWS.drop_columns(["who"]), UNITS)


def test_a_column_of_another_type_is_refused_if_it_is_read(tmp_path):
    rows = ROWS.set_column(0, "age", pa.array([{"of": 1}] * 6))
    with pytest.raises(UnreadableData, match="column 'age' has the type struct"):
        open_table(rows, SCHEMA, columns=READ)
    assert open_table(rows, SCHEMA, columns=["sex"]).opened == ("sex",)


def test_the_first_line_of_a_file_without_a_header_is_not_quoted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age-of-Ann,F\n3,M\n")
    with pytest.raises(UnreadableData) as refused:
        open_table(path, SCHEMA, columns=READ)
    assert "Ann" not in str(refused.value)


def test_a_lacking_column_of_a_query_is_asked_for_in_the_query(tmp_path):
    parquet.write_table(ROWS, tmp_path / "rows.parquet")
    sql = f"SELECT sex FROM '{tmp_path / 'rows.parquet'}'"
    with pytest.raises(UnreadableData, match=r"column 'age' of the query.* add it to the SELECT"):
        open_table(None, SCHEMA, columns=READ, sql=sql)


def test_a_kernel_that_reads_an_unopened_column_is_refused():
    table = open_table(ROWS, SCHEMA, columns=["sex"])
    for read in (
        lambda: table.sum(KERNEL),
        lambda: table.only("age", [0]),
        lambda: table.sample_by("age", [Fraction(1)] * 10, seeded(1)),
    ):
        with pytest.raises(InvalidParameter, match="column 'age' was not opened"):
            read()


def test_columns_must_be_of_the_schema_and_some_column_counts_the_rows():
    with pytest.raises(InvalidParameter, match="there is no column 'agee'"):
        open_table(ROWS, SCHEMA, columns=["agee"])
    with pytest.raises(UnreadableData, match="column 'school' of the Arrow table is not there"):
        open_table(ROWS, SCHEMA, columns=[])
    whole = ROWS.append_column("school", pa.array(["low"] * 6))
    assert open_table(whole, SCHEMA, columns=[]).opened == ("school",)


def test_workers_read_opened_columns_only(tmp_path, monkeypatch):
    from dpublish.data.engines import arrow_reader, shared, split_rows

    monkeypatch.setattr(shared, "LARGE", 1)
    monkeypatch.setattr(arrow_reader, "PIECE_ROWS", 2)
    monkeypatch.setattr(split_rows, "PIECE_ROWS", 2)
    parquet.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=2)
    with open_table(tmp_path / "rows.parquet", SCHEMA, columns=READ, threads=3) as table:
        expected = open_table(ROWS, SCHEMA, columns=READ).sum(KERNEL)
        assert np.array_equal(table.sum(KERNEL), expected)

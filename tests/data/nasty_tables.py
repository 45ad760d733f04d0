"""A table of awkward rows, its schema, a plain oracle, and the same rows in every disguise."""

import csv
import gzip
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from dpublish.data.schema import Schema, column
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("hours", "numeric", bounds=[1, 99], bins=16),
        column("slope", "numeric", bounds=[-1, 1], bins=10, missing="category"),
        column("count", "integer", bounds=[0, 9], missing="drop"),
        column("letter", "category", values=["a", "b", "c"], other="else", missing="category"),
        column("sign", "category", values=["n", "p"], missing="drop"),
    )
)
SHAPE = (16, 11, 10, 5, 2)
_HOURS = [None, math.nan, math.inf, -math.inf, -5.0, 1e300, *(1 + 6.125 * np.arange(17)).tolist()]
_LETTERS = [None, "a", "b", "c", 'é,\n"x', "", "  ", " a "]


def make_rows(size, seed=1):
    """Make rows of nulls, NaN, infinities, exact edges and values that are not listed."""
    rng = plain_generator(seed)
    slopes = np.round(rng.uniform(-1.2, 1.2, size), 1).tolist()
    return [
        {
            "hours": _HOURS[rng.integers(len(_HOURS))],
            "slope": None if rng.random() < 0.1 else slopes[row],
            "count": None if rng.random() < 0.1 else int(rng.integers(-2, 13)),
            "letter": _LETTERS[rng.integers(len(_LETTERS))],
            "sign": ["n", "p", None][rng.choice(3, p=[0.5, 0.4, 0.1])],
            "ignored": "secret",
        }
        for row in range(size)
    ]


def cell_of(row):
    """Find the cell of a row, in plain Python; None if a column leaves the row out."""
    hours, slope, count = (row[name] for name in ("hours", "slope", "count"))
    if hours is None or math.isnan(hours) or count is None or row["sign"] is None:
        return None
    letter = (row["letter"] or "").strip()
    return (
        _bin(hours, 1.0, 99.0, 16),
        10 if slope is None else _bin(slope, -1.0, 1.0, 10),
        min(max(count, 0), 9),
        {"a": 0, "b": 1, "c": 2, "": 4}.get(letter, 3),
        {"n": 0, "p": 1}[row["sign"]],
    )


def _bin(value, low, high, bins):
    clipped = min(max(value, low), high)
    return sum(clipped >= low + (high - low) * cell / bins for cell in range(1, bins))


def count_by_hand(rows):
    counts = np.zeros(SHAPE, dtype=np.int64)
    for cell in filter(None, map(cell_of, rows)):
        counts[cell] += 1
    return counts


def arrow(rows):
    types = [pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.string(), pa.string()]
    names = [*SCHEMA.names, "ignored"]
    fields = zip(names, types, strict=True)
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in fields})


def write_csv(rows, path, delimiter=",", line_end="\n", opened=open):
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end)
        writer.writerow([*SCHEMA.names, "ignored"])
        for row in rows:
            writer.writerow(["" if row[n] is None else row[n] for n in (*SCHEMA.names, "ignored")])
    return path


class Stream:
    """Something unknown that hands out an Arrow stream, once."""

    def __init__(self, table):
        self._reader = table.to_reader(max_chunksize=7)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__(requested_schema)


def _duckdb_file(rows, path):
    data = arrow(rows)
    with duckdb.connect(str(path)) as connection:
        connection.register("source", data)
        connection.sql("CREATE TABLE people AS FROM source")
        connection.sql("CREATE TABLE other AS SELECT 1 AS a")
    return path


def _parts(rows, folder):
    folder.mkdir()
    third = len(rows) // 3
    for number, part in enumerate((rows[:third], rows[third : 2 * third], rows[2 * third :])):
        table = arrow(part)
        if number == 1:  # another type in one of the files
            index = table.column_names.index("count")
            table = table.set_column(index, "count", table["count"].cast(pa.float32()))
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=50)
    return folder


def _pandas_objects(rows):
    frame = pd.DataFrame(rows, columns=[*SCHEMA.names, "ignored"], dtype=object)
    frame["ignored"] = [object() for _ in rows]
    return frame


def _pandas_categories(rows):
    frame = arrow(rows).to_pandas()
    return frame.assign(letter=frame["letter"].astype("category"))


def _relation(rows):
    data = arrow(rows)
    connection = duckdb.connect()
    connection.register("source", data)
    return connection.sql("SELECT * FROM source")


def _ipc_stream(rows, path):
    data = arrow(rows)
    with pa.ipc.new_stream(str(path), data.schema) as writer:
        writer.write_table(data)
    return path


def _written(write, rows, path):
    write(arrow(rows), str(path))
    return path


DISGUISES = {
    "csv": lambda rows, folder: (write_csv(rows, folder / "t.csv"), {}),
    "csv of windows": lambda rows, folder: (
        write_csv(rows, folder / "t.csv", ";", "\r\n"),
        {},
    ),
    "tsv": lambda rows, folder: (write_csv(rows, folder / "t.tsv", "\t"), {}),
    "zipped csv": lambda rows, folder: (
        write_csv(rows, folder / "t.csv.gz", opened=gzip.open),
        {},
    ),
    "parquet": lambda rows, folder: (_written(pq.write_table, rows, folder / "t.parquet"), {}),
    "parquet folder": lambda rows, folder: (_parts(rows, folder / "parts"), {}),
    "parquet pattern": lambda rows, folder: (_parts(rows, folder / "parts") / "p*.parquet", {}),
    "feather": lambda rows, folder: (
        _written(pyarrow.feather.write_feather, rows, folder / "t.feather"),
        {},
    ),
    "arrow stream file": lambda rows, folder: (_ipc_stream(rows, folder / "t.arrows"), {}),
    "arrow": lambda rows, folder: (arrow(rows), {}),
    "arrow reader": lambda rows, folder: (arrow(rows).to_reader(max_chunksize=100), {}),
    "unknown stream": lambda rows, folder: (Stream(arrow(rows)), {}),
    "pandas": lambda rows, folder: (arrow(rows).to_pandas(), {}),
    "pandas objects": lambda rows, folder: (_pandas_objects(rows), {}),
    "pandas categories": lambda rows, folder: (_pandas_categories(rows), {}),
    "polars": lambda rows, folder: (pl.from_arrow(arrow(rows)), {}),
    "polars lazy": lambda rows, folder: (pl.from_arrow(arrow(rows)).lazy(), {}),
    "duckdb relation": lambda rows, folder: (_relation(rows), {}),
    "duckdb file": lambda rows, folder: (
        _duckdb_file(rows, folder / "t.duckdb"),
        {"table": "people"},
    ),
    "duckdb query": lambda rows, folder: (
        _duckdb_file(rows, folder / "t.duckdb"),
        {"sql": "SELECT * FROM people"},
    ),
    "sql over files": lambda rows, folder: (
        None,
        {"sql": f"FROM '{_written(pq.write_table, rows, folder / 't.parquet')}'"},
    ),
}

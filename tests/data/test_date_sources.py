"""The same dates, as every kind of source holds them, give the same counts."""

from datetime import date, datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table

BOUNDS = ["2023-01-01", "2024-12-31"]
ADMITTED = column("admitted", "date", bounds=BOUNDS, bins="day", missing="category")
SEEN = column("seen", "datetime", bounds=BOUNDS, bins="day", missing="category")
SCHEMA = Schema((ADMITTED, SEEN, column("hour", source=SEEN, part="hour")))
KERNEL = Counts(SCHEMA, ((("admitted", None),), (("seen", 2), ("hour", None))))
ROWS = {
    "admitted": [date(2023, 1, 1), date(2024, 2, 29), None, date(1999, 1, 1), date(2030, 1, 1)],
    "seen": [
        *(datetime(2024, 2, 29, 13, 59, 59, 999_999), None, datetime(2023, 1, 1)),
        *(datetime(1999, 1, 1, 5), datetime(2030, 1, 1)),
    ],
}


def frame():
    return pd.DataFrame({"admitted": ROWS["admitted"], "seen": pd.to_datetime(ROWS["seen"])})


def written_csv(folder):
    csv.write_csv(pa.table(ROWS), folder / "rows.csv")
    return folder / "rows.csv"


def written_parquet(folder):
    pq.write_table(pa.table(ROWS), folder / "rows.parquet")
    return folder / "rows.parquet"


def written_arrow(folder):
    feather.write_feather(pa.table(ROWS), str(folder / "rows.arrow"))
    return folder / "rows.arrow"


def relation(folder):
    rows = pa.table(ROWS)
    return duckdb.from_arrow(rows)


SOURCES = {
    "arrow": lambda folder: pa.table(ROWS),
    "nanoseconds": lambda folder: pa.table(ROWS).set_column(
        1, "seen", pa.array(ROWS["seen"], pa.timestamp("ns"))
    ),
    "dictionaries": lambda folder: pa.table(
        {
            name: pa.array([x and str(x) for x in values]).dictionary_encode()
            for name, values in ROWS.items()
        }
    ),
    "csv": written_csv,
    "parquet": written_parquet,
    "feather": written_arrow,
    "pandas": lambda folder: frame(),
    "pandas objects": lambda folder: frame().astype(object),
    "pandas categories": lambda folder: frame().astype("category"),
    "pandas arrow": lambda folder: pa.table(ROWS).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda folder: pl.DataFrame(ROWS),
    "polars, lazy": lambda folder: pl.DataFrame(ROWS).lazy(),
    "duckdb": relation,
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_counts(name, tmp_path):
    table = open_table(SOURCES[name](tmp_path), SCHEMA)
    dates, times = KERNEL.split(table.sum(KERNEL))
    wanted = np.zeros(ADMITTED.size, np.int64)
    wanted[[0, 424, 731, 0, 730]] += 1
    wanted[0] = 2  # the first day, and what lies before it
    assert np.array_equal(dates, wanted)
    assert times[:, 13].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]  # the first quarter of 2024
    assert times.sum() == 5
    assert times[8, 24] == 1  # missing is missing in both


def test_a_database_of_duckdb_is_read_with_its_own_types(tmp_path):
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute("CREATE TABLE rows (admitted DATE, seen TIMESTAMPTZ)")
        link.execute(
            "INSERT INTO rows VALUES ('2024-02-29', '2024-02-29 23:30:00+00'), "
            "('infinity', 'infinity'), (NULL, '-infinity')"
        )
    tokyo = column("seen", "datetime", bounds=BOUNDS, bins="day", time_zone="Asia/Tokyo")
    schema = Schema((ADMITTED, tokyo, column("hour", source=tokyo, part="hour")))
    with open_table(path, schema) as table:
        years, hours = (
            table.sum(Counts(schema, (one,))).tolist()
            for one in ((("admitted", 1),), (("hour", None),))
        )
    assert years == [0, 1, 2]
    assert np.flatnonzero(hours).tolist() == [8]  # half past eight in Tokyo

"""Time a histogram of a million rows and four columns from Parquet, ours against DuckDB's.

DuckDB groups by the same cells with SQL: the same bins, the same list of values.  Times are
processor seconds of this process, all threads together; each is the best of several runs.

Run: .venv/bin/python benchmarks/speed/counts.py
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dpublish.aggregates.counts import Counts
from dpublish.aggregates.sparse_counts import SparseCounts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.randomness import plain_generator

ROWS = 1_000_000
BASKETS = 200_000
REPEATS = 5
JOBS = tuple(f"job {number}" for number in range(40))
COLUMNS = (("age", None), ("hours", None), ("job", None), ("sex", None))
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[17, 90]),
        column("hours", "numeric", bounds=[1, 99], bins=16),
        column("job", "category", values=JOBS),
        column("sex", "category", values=["Female", "Male"]),
    )
)
BY_BASKET = Schema(SCHEMA.columns, unit="basket")
GROUP_BY = """
    SELECT least(greatest(floor(age), 17), 90) AS age,
           least(floor((least(greatest(hours, 1), 99) - 1) * (16 / 98)), 15) AS hours,
           job, sex, count(*) AS n
    FROM '{}' GROUP BY ALL
"""


def make_rows() -> Any:
    rng = plain_generator(1)
    return pa.table(
        {
            "age": rng.integers(15, 95, ROWS),
            "hours": rng.normal(40, 15, ROWS),
            "job": pa.array(np.array(JOBS)[rng.integers(0, len(JOBS), ROWS)]),
            "sex": pa.array(np.array(["Female", "Male"])[rng.integers(0, 2, ROWS)]),
            "basket": rng.integers(0, BASKETS, ROWS),
        }
    )


def seconds(work: Callable[[], object]) -> float:
    """Time `work` and keep the best of several runs."""
    times = []
    for _ in range(REPEATS):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)


def main() -> None:
    dense, sparse = Counts(SCHEMA, (COLUMNS,)), SparseCounts(SCHEMA, COLUMNS)
    levels = Counts(BY_BASKET, ((("job", None),),))
    pairs = [(one, two) for i, one in enumerate(COLUMNS) for two in COLUMNS[i + 1 :]]
    marginals = Counts(SCHEMA, (*((one,) for one in COLUMNS), *pairs))
    with tempfile.TemporaryDirectory() as folder:
        parquet, text = str(Path(folder, "rows.parquet")), str(Path(folder, "rows.csv"))
        rows = make_rows()
        pq.write_table(rows, parquet)
        pa.csv.write_csv(rows, text)
        kept = open_table(parquet, SCHEMA)
        connection = duckdb.connect()
        query = GROUP_BY.format(parquet)
        groups = connection.sql(query).fetchnumpy()
        ours = kept.sum(dense)
        if ours.sum() != groups["n"].sum() or np.count_nonzero(ours) != len(groups["n"]):
            raise SystemExit("the two histograms differ")
        times = {
            "from Parquet": seconds(lambda: open_table(parquet, SCHEMA).sum(dense)),
            "from Parquet, streamed": seconds(
                lambda: open_table(parquet, SCHEMA, cache=False).sum(dense)
            ),
            "from CSV": seconds(lambda: open_table(text, SCHEMA).sum(dense)),
            "second histogram": seconds(lambda: kept.sum(dense)),
            "second, sparse": seconds(lambda: kept.sum(sparse)),
            "all marginals of one and two": seconds(lambda: kept.sum(marginals)),
            "jobs per basket, distinct": seconds(
                lambda: open_table(parquet, BY_BASKET).sum(levels)
            ),
            "DuckDB GROUP BY, from Parquet": seconds(lambda: connection.sql(query).fetchnumpy()),
        }
    table = Table(title=f"{ROWS:,} rows, 4 columns, {dense.size:,} cells")
    table.add_column("what")
    table.add_column("CPU seconds", justify="right")
    for name, time in times.items():
        table.add_row(name, f"{time:.3f}")
    Console().print(table)
    theirs = times["DuckDB GROUP BY, from Parquet"]
    print(
        f"RESULT ratio={times['from Parquet'] / theirs:.2f} "
        f"seconds={times['from Parquet']:.3f} duckdb_seconds={theirs:.3f} "
        f"second_ratio={times['second histogram'] / theirs:.3f}"
    )


if __name__ == "__main__":
    main()

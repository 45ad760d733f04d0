"""Publish the same releases locally, on Spark with two workers, and from PostgreSQL.

Five million simulated rows; the noise comes from a seed, so the releases must be equal, number by
number.  Times are wall seconds of a whole release on a table that is opened anew, session start
apart; ratios are against the embedded engine with all cores.  PostgreSQL runs on loopback in a
temporary folder, and its programs must be on this machine, as Java must be for Spark.

Run: PYTHONPATH=tests .venv/bin/python benchmarks/speed/engines.py [--rows N]
"""

import argparse
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dpublish.data.engines.spark_session import open_spark
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.kmeans.kmeans import KMeans
from dpublish.methods.privpfc.privpfc import PrivPfC
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from postgres_server import programs, running_server

ROWS = 5_000_000
JOBS = tuple(f"job {number}" for number in range(14))
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[17, 90], bins=16),
        column("hours", "numeric", bounds=[1, 99], bins=16),
        column("wage", "numeric", bounds=[0, 100], bins=16),
        column("job", "category", values=JOBS),
        column("sex", "category", values=["Female", "Male"]),
        column("rich", "category", values=["no", "yes"]),
    )
)
TYPES = "age int, hours float8, wage float8, job text, sex text, rich text"
METHODS = {
    "histogram": Histogram(columns=("age", "job", "sex")),
    "privpfc": PrivPfC(target="rich"),
    "kmeans": KMeans(columns=("hours", "wage"), n_clusters=5),
}
KEYS = {
    "local, all cores": "local",
    "local, one core": "one_core",
    "Spark, two workers": "spark",
    "PostgreSQL": "postgresql",
}


def make_rows(count: int) -> Any:
    """Draw people whose wage follows from age and job."""
    rng = plain_generator(1)
    ages = rng.integers(15, 95, count)
    jobs = rng.integers(0, len(JOBS), count)
    wages = np.abs(rng.normal(10 + 3 * jobs + ages / 8, 10))
    return pa.table(
        {
            "age": pa.array(ages, pa.int32()),
            "hours": rng.normal(40, 15, count),
            "wage": wages,
            "job": pa.array(np.array(JOBS)[jobs]),
            "sex": pa.array(np.array(["Female", "Male"])[rng.integers(0, 2, count)]),
            "rich": pa.array(np.array(["no", "yes"])[(wages > 40).astype(int)]),
        }
    )


def load_rows(address: str, rows: Any) -> None:
    """Copy the rows into a new table of the database."""
    import adbc_driver_postgresql.dbapi

    with adbc_driver_postgresql.dbapi.connect(address) as link, link.cursor() as cursor:
        cursor.execute(f"CREATE TABLE people ({TYPES})")
        cursor.adbc_ingest("people", rows, mode="append")
        link.commit()


def release(method: Any, make: Callable[[], Any]) -> tuple[Any, float]:
    """Publish with seeded noise; return the release, and how long it took."""
    start = perf_counter()
    table = make()
    made = method.release(table, budget=Budget.seeded(1), rng=seeded(7), progress=None)
    return made, perf_counter() - start


def plain(released: Any) -> dict[str, Any]:
    """Return what a release says, without its receipt, which names the time."""
    return {
        name: table.to_pydict() if hasattr(table, "to_pydict") else table
        for name, table in released.tables().items()
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args()
    if programs() is None:
        raise SystemExit("PostgreSQL (initdb, pg_ctl) is not installed on this machine")
    shown = Table("method", "engine", "wall seconds", "times the local one", "equal")
    results = {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = str(Path(folder, "people.parquet"))
        rows = make_rows(asked.rows)
        pq.write_table(rows, path, row_group_size=500_000)
        server = stack.enter_context(running_server())
        load_rows(server.uri(), rows)
        del rows
        on_spark = open_spark(path, SCHEMA, master="local-cluster[2,1,2048]")
        stack.callback(on_spark.close)
        engines: dict[str, Callable[[], Any]] = {
            "local, all cores": lambda: open_table(path, SCHEMA),
            "local, one core": lambda: open_table(path, SCHEMA, threads=1),
            "Spark, two workers": lambda: on_spark,
            "PostgreSQL": lambda: open_table(server.uri(), SCHEMA, table="people"),
        }
        for name, method in METHODS.items():
            reference, base = None, 0.0
            for engine, make in engines.items():
                made, time = release(method, make)
                if reference is None:
                    reference, base = plain(made), time
                is_equal = plain(made) == reference
                ratio = f"{time / base:.2f}"
                shown.add_row(name, engine, f"{time:.2f}", ratio, "yes" if is_equal else "NO")
                results[f"{name}_{KEYS[engine]}"] = ratio
                if not is_equal:
                    raise SystemExit(f"{name} differs on {engine}")
    Console().print(shown)
    print("RESULT " + " ".join(f"{key}={value}" for key, value in results.items()))


if __name__ == "__main__":
    main()

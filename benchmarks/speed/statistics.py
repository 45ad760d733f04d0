"""Publish six measures by three columns, against DuckDB's plain GROUP BY of the same measures.

Ten million simulated visits in a Parquet file.  Both sides read the file and compute count, sum,
mean, variance, median and a quantile of the same groups; only ours is private.  Times are wall
seconds with all cores, each side `--runs` times in turns, the least of each counts.

Run: .venv/bin/python benchmarks/speed/statistics.py [--rows N] [--runs N]
"""

import sys

if __name__ == "statistics":
    # Another script of this folder, or a library, wants Python's own module of this name.
    own = sys.path.pop(0)
    del sys.modules["statistics"]
    import statistics  # noqa: F401 - it takes the place of this one

    sys.path.insert(0, own)
else:
    import argparse
    import tempfile
    from pathlib import Path
    from time import perf_counter

    import duckdb
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dpublish.data.schema import Schema, column
    from dpublish.data.sources import open_table
    from dpublish.methods.statistics.statistics import Statistics
    from dpublish.privacy.budget import Budget
    from dpublish.randomness import plain_generator, seeded

ROWS, BATCH = 10_000_000, 1_000_000
WARDS = tuple(f"ward {number}" for number in range(12))
MEASURES = "count, sum(cost), mean(age), variance(age), median(stay), quantile(cost, 0.9)"
QUERY = """
    SELECT ward, sex, year, count(*), sum(cost), avg(age), var_pop(age),
        quantile_disc(stay, 0.5), quantile_disc(cost, 0.9)
    FROM read_parquet('{path}') GROUP BY ALL ORDER BY ALL
"""


def make_schema() -> "Schema":
    """Describe the visits."""
    return Schema(
        (
            column("ward", "category", values=WARDS),
            column("sex", "category", values=["Female", "Male"]),
            column("year", "integer", bounds=[2020, 2024]),
            column("age", "integer", bounds=[0, 99]),
            column("cost", "numeric", bounds=[0, 50_000]),
            column("stay", "integer", bounds=[0, 60]),
        )
    )


def write_rows(path: "Path", count: int) -> None:
    """Write simulated visits, a million at a time."""
    rng, writer = plain_generator(1), None
    for start in range(0, count, BATCH):
        some = min(BATCH, count - start)
        table = pa.table(
            {
                "ward": pa.array(np.array(WARDS)[rng.integers(0, 12, some)]),
                "sex": pa.array(np.array(["Female", "Male"])[rng.integers(0, 2, some)]),
                "year": pa.array(rng.integers(2020, 2025, some), pa.int32()),
                "age": pa.array(rng.integers(0, 100, some), pa.int32()),
                "cost": np.minimum(rng.lognormal(7, 1, some), 50_000),
                "stay": pa.array(np.minimum(rng.geometric(0.2, some), 60), pa.int32()),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def ours(path: "Path") -> float:
    """Publish the statistics, from the file to every interval."""
    start = perf_counter()
    with open_table(str(path), make_schema(), cache=False) as table:
        method = Statistics(measures=(MEASURES,), by=("ward", "sex", "year"))
        release = method.release(table, budget=Budget.seeded("1"), rng=seeded(1))
    if len(release.statistics()) != 6 * 120:
        raise SystemExit("statistics of some groups are missing")
    return perf_counter() - start


def plain(path: "Path") -> float:
    """Group by in DuckDB."""
    start = perf_counter()
    with duckdb.connect() as connection:
        found = connection.sql(QUERY.format(path=path)).fetchall()
    if len(found) != 120:
        raise SystemExit("groups are missing")
    return perf_counter() - start


def main() -> None:
    """Compare the two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        write_rows(path, asked.rows)
        times = [(ours(path), plain(path)) for _ in range(asked.runs)]
    best, group_by = (min(side) for side in zip(*times, strict=True))
    print(f"{asked.rows:,} rows, 6 measures, 120 groups")
    print(f"statistics {best:.2f} s, DuckDB GROUP BY {group_by:.2f} s")
    print(f"RESULT ratio={best / group_by:.2f} seconds={best:.2f} duckdb={group_by:.2f}")


if __name__ == "__main__":
    main()

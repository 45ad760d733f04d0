"""Measure how the cost of sums grows: with rows, columns, cells, candidates and partitions.

Each part changes one number and keeps the others; times are wall seconds of the embedded engine
on one core, from Parquet, best of several runs.  The exponent is the slope of log(time) against
log(number) between the last two sizes: 1 is linear, 0 does not grow.  With `--spark`, the
number of partitions of a Spark table is changed, too, on two local cores.

Run: .venv/bin/python benchmarks/speed/growth.py [--spark] [--rows N]
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from math import log
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dpublish.aggregates.counts import Counts
from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.engines.spark_session import open_spark
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.methods.privpfc.candidate_grids import enumerate_grids
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.grid_scores import score_grids
from dpublish.privacy.epsilon import read_exact
from dpublish.randomness import plain_generator, seeded

ROWS = 4_000_000
MOST_COLUMNS = 16
VALUES = 16
REPEATS = 3
QUALITY = GridQuality(read_exact("0.6"))
SCHEMA = Schema(
    (
        *(
            column(f"c{number:02}", "integer", bounds=[0, VALUES - 1], branching=2)
            for number in range(MOST_COLUMNS)
        ),
        column("class", "category", values=["no", "yes"]),
    )
)


def write_rows(path: str, count: int) -> None:
    """Write simulated rows, a million at a time."""
    rng = plain_generator(1)
    kinds = [(name, pa.uint8()) for name in SCHEMA.names[:-1]]
    header = pa.schema([*kinds, ("class", pa.string())])
    with pq.ParquetWriter(path, header) as writer:
        for start in range(0, count, 1_000_000):
            rows = min(1_000_000, count - start)
            columns = [rng.integers(0, VALUES, rows, dtype=np.uint8) for _ in kinds]
            classes = pa.array(np.array(["no", "yes"])[rng.integers(0, 2, rows)])
            arrays = [*map(pa.array, columns), classes]
            writer.write_table(pa.Table.from_arrays(arrays, schema=header))


def seconds(work: Callable[[], object]) -> float:
    """Time `work` and keep the best of several runs."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def count_cells(columns: int) -> Counts:
    """Count by single columns, as many as are asked for."""
    return Counts(SCHEMA, tuple(((name, None),) for name in SCHEMA.names[:columns]))


def read(path: str, kernel: Counts) -> Callable[[], object]:
    """Sum a kernel over a table that is opened anew."""
    return lambda: open_table(path, SCHEMA, threads=1).sum(kernel)


def by_rows(folder: str, rows: int) -> Iterator[tuple[int, float]]:
    for count in (rows // 4, rows // 2, rows):
        path = str(Path(folder, f"{count}.parquet"))
        write_rows(path, count)
        yield count, seconds(read(path, count_cells(4)))


def by_columns(path: str) -> Iterator[tuple[int, float]]:
    for columns in (4, 8, MOST_COLUMNS):
        yield columns, seconds(read(path, count_cells(columns)))


def by_cells(path: str) -> Iterator[tuple[int, float]]:
    table = open_table(path, SCHEMA, threads=1)
    for columns in (2, 4, 6):
        kernel = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names[:columns]),))
        table.sum(kernel)  # encoded from here on
        yield kernel.size, seconds(lambda kernel=kernel: table.sum(kernel))


def by_candidates(path: str, rows: int) -> Iterator[tuple[int, float]]:
    task = Task.of(SCHEMA, target="class")
    sizes = [[len(level.starts) for level in x.taxonomy.levels] for x in task.predictors]
    run = Run(open_table(path, SCHEMA, threads=1), rng=seeded(1))
    for limit in (500, 5_000, 20_000):
        grids = enumerate_grids(
            sizes,
            max_cells=4096,
            limit=limit,
            uniform=partial(uniform_below, rng=seeded(1)),
        )
        start = perf_counter()
        score_grids(run, task, grids, QUALITY, rows_hint=rows)
        yield len(grids), perf_counter() - start


def by_partitions(folder: str, path: str) -> Iterator[tuple[int, float]]:
    """Sum the same rows in more and more files, each of which is a partition."""
    rows = pq.ParquetFile(path)
    kernel = count_cells(4)
    for partitions in (8, 32, 128):
        inside = Path(folder, f"parts-{partitions}")
        inside.mkdir()
        size = -(-rows.metadata.num_rows // partitions)
        for number, part in enumerate(rows.iter_batches(size)):
            pq.write_table(pa.Table.from_batches([part]), inside / f"{number}.parquet")
        settings = {"spark.sql.files.openCostInBytes": str(1 << 30)}
        table = open_spark(str(inside), SCHEMA, master="local[2]", settings=settings)
        table.sum(kernel)  # Java is warm from here on
        yield partitions, seconds(lambda table=table: table.sum(kernel))
        table.close()


def report(title: str, measured: Iterator[tuple[int, float]], shown: Table) -> float:
    """Add what was measured to the table; return the exponent of growth."""
    points = list(measured)
    (before, fast), (after, slow) = points[-2:]
    exponent = log(slow / fast) / log(after / before)
    for number, time in points:
        shown.add_row(title, f"{number:,}", f"{time:.3f}")
    shown.add_row("", "exponent", f"{exponent:.2f}", end_section=True)
    return exponent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    shown = Table("what grows", "number", "wall seconds")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        found["rows"] = report("rows", by_rows(folder, asked.rows), shown)
        path = str(Path(folder, f"{asked.rows}.parquet"))
        found["columns"] = report("columns read", by_columns(path), shown)
        found["cells"] = report("cells of one count", by_cells(path), shown)
        found["candidates"] = report("candidate grids", by_candidates(path, asked.rows), shown)
        if asked.spark:
            found["partitions"] = report("partitions in Spark", by_partitions(folder, path), shown)
    Console().print(shown)
    print("RESULT " + " ".join(f"{name}_exponent={x:.2f}" for name, x in found.items()))


if __name__ == "__main__":
    main()

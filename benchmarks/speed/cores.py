"""Time the sums of four methods on two cores against one, on 20 million rows of Parquet.

A histogram of four columns, PrivPfC's scores of its pool of grids, a round of Lloyd's around
eight centers, and the tables from which DPCopula finds Kendall's tau of six columns.  Each is
timed in a process of its own, from opening the table to the answer, so that reading, encoding
and the start of worker processes count; best of several runs, one and two threads in turn.  The
answers are compared, too.  Needs two idle cores: others that are busy spoil the ratios.

Run: .venv/bin/python benchmarks/speed/cores.py [--rows 20000000] [--repeats 3]
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dpublish.aggregates.counts import Counts
from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.methods.dpcopula.kernels import PairTables
from dpublish.methods.kmeans.kernels import ClusterSums
from dpublish.methods.privpfc.candidate_grids import enumerate_grids
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.grid_scores import score_grids
from dpublish.randomness import plain_generator, seeded

ROWS = 20_000_000
GROUP = 1 << 20  # rows of a row group
GRIDS = 10_000  # PrivPfC's default
CLUSTERS = 8
JOBS = tuple(f"job {number}" for number in range(40))
NUMBERS = ("x0", "x1", "x2", "x3")
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[15, 94], bins=20, branching=2),
        column("hours", "numeric", bounds=[1, 99], bins=16, branching=2),
        column("job", "ordinal", values=JOBS, branching=4),
        column("sex", "category", values=["Female", "Male"]),
        *(column(name, "numeric", bounds=[-4, 4], bins=16, branching=2) for name in NUMBERS),
        column("class", "category", values=["no", "yes"]),
    )
)
TASK = Task.of(SCHEMA, target="class")


def text(values: tuple[str, ...], codes: Any) -> Any:
    """Write codes as the text that they stand for."""
    indices = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(values)).dictionary_decode()


def make_group(rows: int, rng: Any) -> Any:
    """Draw some rows; most columns depend on how rich a person is."""
    wealth = rng.normal(size=rows)
    columns = {
        "age": rng.integers(15, 95, rows),
        "hours": np.round(rng.normal(40, 15, rows) + 3 * wealth, 1),
        "job": text(JOBS, rng.integers(0, len(JOBS), rows)),
        "sex": text(("Female", "Male"), rng.integers(0, 2, rows)),
    }
    for name in NUMBERS:
        columns[name] = np.round(wealth / 2 + rng.normal(size=rows), 3)
    columns["class"] = text(("no", "yes"), wealth + rng.normal(size=rows) > 0.5)
    return pa.table(columns)


def write_rows(path: str, rows: int) -> None:
    """Write the rows, some at a time."""
    rng = plain_generator(1)
    with pq.ParquetWriter(path, make_group(0, rng).schema) as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(make_group(min(GROUP, rows - start), rng))


def histogram(table: Any, _: int) -> Any:
    columns = tuple((name, None) for name in ("age", "hours", "job", "sex"))
    return table.sum(Counts(SCHEMA, (columns,)))


def privpfc(table: Any, rows: int) -> Any:
    sizes = [[len(level.starts) for level in x.taxonomy.levels] for x in TASK.predictors]
    most = min(Fraction(rows * 3, 25), 1 << 20)
    uniform = partial(uniform_below, rng=seeded(1))
    grids = enumerate_grids(sizes, max_cells=most, limit=GRIDS, uniform=uniform)
    run = Run(table, rng=seeded(1))
    return score_grids(run, TASK, grids, GridQuality(Fraction(3, 5)), rows_hint=rows)


def kmeans(table: Any, _: int) -> Any:
    box = Box.of(SCHEMA, NUMBERS)
    centers = plain_generator(2).uniform(-1, 1, (CLUSTERS, len(NUMBERS)))
    return table.sum(ClusterSums(box, centers))


def copula(table: Any, _: int) -> Any:
    columns = ("age", "hours", *NUMBERS)
    classes = tuple(np.arange(SCHEMA[name].size) for name in columns)
    return table.sum(PairTables(SCHEMA, columns, classes))


WORK: dict[str, Callable[[Any, int], Any]] = {
    "histogram": histogram,
    "privpfc": privpfc,
    "kmeans": kmeans,
    "copula": copula,
}


def measure(name: str, path: str, rows: int, threads: int) -> None:
    """Time one sum on a fresh table, and print its time and a digest of its answer."""
    start = perf_counter()
    answer = WORK[name](open_table(path, SCHEMA, threads=threads), rows)
    seconds = perf_counter() - start
    print(seconds, hashlib.sha256(np.ascontiguousarray(answer).tobytes()).hexdigest())


def run_apart(name: str, path: str, rows: int, threads: int) -> tuple[float, str]:
    """Measure in a process of its own, whose memory no one used before."""
    command = [sys.executable, __file__, "--measure", name, path, str(rows), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, digest = done.stdout.split()
    return float(seconds), digest


def compare(name: str, path: str, rows: int, repeats: int) -> dict[int, float]:
    """Time one and two threads in turn; return the best of each."""
    found = [(n, *run_apart(name, path, rows, n)) for _ in range(repeats) for n in (1, 2)]
    if len({digest for _, _, digest in found}) > 1:
        raise SystemExit(f"{name}: the answers of one and of two threads differ")
    return {n: min(seconds for threads, seconds, _ in found if threads == n) for n in (1, 2)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", nargs=4, metavar=("NAME", "PATH", "ROWS", "THREADS"))
    options = parser.parse_args()
    if options.measure:
        name, path, rows, threads = options.measure
        measure(name, path, int(rows), int(threads))
        return
    ratios = {}
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "rows.parquet"))
        write_rows(path, options.rows)
        table = Table("sum", "1 thread (s)", "2 threads (s)", "ratio")
        for name in WORK:
            times = compare(name, path, options.rows, options.repeats)
            ratios[name] = times[1] / times[2]
            table.add_row(name, f"{times[1]:.2f}", f"{times[2]:.2f}", f"{ratios[name]:.2f}")
    Console().print(f"{options.rows:,} rows; load average before: {before:.1f}")
    Console().print(table)
    print("RESULT " + " ".join(f"{name}={ratio:.2f}" for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()

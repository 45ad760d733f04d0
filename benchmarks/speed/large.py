"""Release from 100 million rows and ten columns of Parquet, and watch the memory it takes.

The rows are written in row groups to a temporary folder.  `dpublish release` then runs as a user
would run it, once with PrivPfC and once with a histogram, on all cores of this machine.  Every
tenth of a second the memory of the program and of all processes that it started is added up:
the proportional share (PSS) where the system tells it, which counts shared pages once, else
what is resident.

Run: .venv/bin/python benchmarks/speed/large.py [--rows 100000000]
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dpublish.randomness import plain_generator

ROWS = 100_000_000
GROUP = 1 << 20  # rows of a row group
REGIONS = tuple(f"region {number}" for number in range(12))
SCHEMA = """
[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 20
branching = 2

[columns.hours]
kind = "numeric"
bounds = [0, 80]
bins = 16
branching = 2

[columns.children]
kind = "integer"
bounds = [0, 9]

[columns.rooms]
kind = "integer"
bounds = [1, 12]

[columns.height]
kind = "numeric"
bounds = [140, 210]
bins = 14
branching = 2

[columns.rent]
kind = "numeric"
bounds = [0, 4000]
bins = 16
branching = 4

[columns.region]
kind = "ordinal"
values = [{regions}]
branching = 3

[columns.sex]
kind = "category"
values = ["Female", "Male"]

[columns.works]
kind = "category"
values = ["no", "part", "full"]

[columns.owner]
kind = "category"
values = ["no", "yes"]
""".format(regions=", ".join(f'"{name}"' for name in REGIONS))
METHODS = {
    "privpfc": ["--target", "owner"],
    "histogram": ["--columns", "age,region,sex,works,owner"],
}


def text(values: tuple[str, ...], codes: Any) -> Any:
    """Write codes as the text that they stand for."""
    indices = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(values)).dictionary_decode()


def make_group(rows: int, rng: Any) -> Any:
    """Draw some rows; most columns depend on how rich a person is."""
    wealth = rng.normal(size=rows)
    return pa.table(
        {
            "age": rng.integers(0, 100, rows),
            "hours": np.round(35 + 4 * wealth + 8 * rng.normal(size=rows), 1),
            "children": rng.poisson(1.4, rows),
            "rooms": np.rint(4 + wealth + rng.normal(size=rows)).astype(np.int64),
            "height": np.round(rng.normal(174, 9, rows), 1),
            "rent": np.rint(900 + 300 * wealth + 150 * rng.normal(size=rows)),
            "region": text(REGIONS, rng.integers(0, len(REGIONS), rows)),
            "sex": text(("Female", "Male"), rng.integers(0, 2, rows)),
            "works": text(("no", "part", "full"), rng.integers(0, 3, rows)),
            "owner": text(("no", "yes"), wealth + rng.normal(size=rows) > 0.4),
        }
    )


def write_rows(path: Path, rows: int) -> None:
    """Write the rows, some at a time."""
    rng = plain_generator(1)
    with pq.ParquetWriter(path, make_group(0, rng).schema) as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(make_group(min(GROUP, rows - start), rng))


def family(process: int) -> list[int]:
    """List a process and all that it started."""
    try:
        lists = Path(f"/proc/{process}/task").glob("*/children")
        children = [int(child) for one in lists for child in one.read_text().split()]
    except OSError:
        return [process]
    return [process, *(member for child in children for member in family(child))]


def kilobytes(process: int) -> int:
    """Find the memory of one process; 0 if it is gone."""
    for name, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            lines = Path(f"/proc/{process}/{name}").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(field):
                return int(line.split()[1])
    return 0


def watch(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a program; return its seconds, and the most megabytes of all its processes at once."""
    start = perf_counter()
    most = 0
    with open(folder / "output", "wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output)
    while running.poll() is None:
        most = max(most, sum(map(kilobytes, family(running.pid))))
        sleep(0.1)
    if running.returncode:
        raise SystemExit((folder / "output").read_text())
    return perf_counter() - start, most / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    program = [sys.executable, "-m", "dpublish"]
    table = Table("method", "seconds", "peak memory (MB)")
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.parquet", options.rows)
        (folder / "schema.toml").write_text(SCHEMA)
        books = str(folder / "books.db")
        for entry in (["create", books], ["add", books, "people", "--cap", "10"]):
            subprocess.run([*program, "ledger", *entry], check=True, capture_output=True)
        for method, settings in METHODS.items():
            what = ["release", "--method", method, *settings, "--epsilon", "1"]
            rows = ["--data", f"{folder}/rows.parquet", "--schema", f"{folder}/schema.toml"]
            pays = ["--ledger", books, "--dataset", "people", "-o", f"{folder}/{method}"]
            command = [*program, *what, *rows, *pays]
            seconds, peak = watch(command, folder)
            table.add_row(method, f"{seconds:.1f}", f"{peak:,.0f}")
            found.append(f"{method}_seconds={seconds:.1f} {method}_peak_mb={peak:.0f}")
    Console().print(f"{options.rows:,} rows, 10 columns")
    Console().print(table)
    print("RESULT " + " ".join(found))


if __name__ == "__main__":
    main()

"""Start many programs at once and count those that do not exit with code 0.

    python benchmarks/reliability/clean_exits.py --runs 1000 --at-once 12

Each program is a Python process of its own that opens a release and counts (`load`), or reads a
table from Parquet or CSV (`parquet`, `csv`).  A native thread that outlives the interpreter aborts
a process only now and then, and only on a busy machine: so there are many, more at once than cores.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from pyarrow import csv

from dpublish import Histogram, load_schema, open_table, publish
from dpublish.datasets.census import SCHEMA, census
from dpublish.ledger.ledger import Ledger

PROGRAMS = {
    "load": "import dpublish; dpublish.load('ages').count('age in 31..45')",
    "parquet": (
        "from dpublish.evaluation.true_rows import read_rows; read_rows('people.parquet').num_rows"
    ),
    "csv": "from dpublish.evaluation.true_rows import read_rows; read_rows('people.csv').num_rows",
}


def prepare(folder: Path) -> None:
    """Write a simulated table as CSV and Parquet, and publish a histogram of it."""
    rows = census(2_000)
    csv.write_csv(rows, folder / "people.csv")
    pq.write_table(rows, folder / "people.parquet")
    (folder / "people.toml").write_text(SCHEMA, "utf-8")
    with Ledger.create(folder / "books.db") as ledger:
        ledger.add("census", cap="1")
        publish(
            Histogram(columns=("age", "sex")),
            open_table(str(folder / "people.csv"), load_schema(folder / "people.toml")),
            folder / "ages",
            ledger=ledger,
            dataset="census",
            epsilon="0.5",
        )


def storm(program: str, folder: Path, runs: int, at_once: int) -> Counter[int]:
    """Run a program `runs` times, `at_once` at a time, and count the exit codes."""
    codes: Counter[int] = Counter()
    alive: list[subprocess.Popen[bytes]] = []
    started = 0
    while started < runs or alive:
        while len(alive) < at_once and started < runs:
            alive.append(subprocess.Popen([sys.executable, "-c", program], cwd=folder))
            started += 1
        codes.update(process.poll() for process in alive if process.poll() is not None)
        alive = [process for process in alive if process.returncode is None]
        time.sleep(0.01)
    return codes


def main() -> None:
    """Run one kind of program many times and print how many exited cleanly."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1_000)
    options.add_argument("--at-once", type=int, default=12)
    options.add_argument("--program", choices=PROGRAMS, default="load")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        start = time.monotonic()
        codes = storm(PROGRAMS[given.program], Path(name), given.runs, given.at_once)
    passed = codes.pop(0, 0)
    print(f"{given.program}: {time.monotonic() - start:.0f} s; other exit codes: {dict(codes)}")
    print(f"{passed} passed, {codes.total()} failed")
    print(f"RESULT clean_exits_{given.program}={passed} failed={codes.total()}")
    sys.exit(1 if codes else 0)


if __name__ == "__main__":
    main()

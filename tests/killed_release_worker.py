"""Release from a table in child processes and kill each at a random moment.

Run as a script: folder, number of kills, seed.  Everything heavy is imported once, then each
release runs in a fork, as it would in a process of its own.
"""

import os
import random  # noqa: TID251 - chooses moments, not noise
import signal
import sys
import time
from pathlib import Path

import duckdb  # noqa: F401 - what a release imports late is imported before the forks
import jinja2  # noqa: F401
import pyarrow.parquet  # noqa: F401

from dpublish import Histogram, load_schema, open_table, publish
from dpublish.ledger.ledger import Ledger
from dpublish.report import page

EPSILON = "0.01"


def release(folder: Path, name: str) -> None:
    table = open_table(str(folder / "people.csv"), load_schema(folder / "people.toml"))
    with Ledger(folder / "books.db") as ledger:
        publish(
            Histogram(columns=("age", "sex")),
            table,
            folder / "out" / name,
            ledger=ledger,
            dataset="people",
            epsilon=EPSILON,
        )


def main() -> None:
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    # Drawing would take most of the time and touches neither rows, ledger nor disk: kills
    # should fall where it matters.
    page.can_draw = lambda: False
    moments = random.Random(seed)
    durations = []
    for trial in range(kills + 3):
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                release(folder, f"r{trial}")
                code = 0
            finally:
                os._exit(code)
        if trial < 3:  # learn how long a release takes
            _, status = os.waitpid(child, 0)
            if status:
                sys.exit("an undisturbed release failed")
            durations.append(time.monotonic() - start)
            continue
        time.sleep(moments.uniform(0, 1.1 * max(durations)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()

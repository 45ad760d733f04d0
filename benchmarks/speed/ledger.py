"""Time grants of a ledger in a file and on a PostgreSQL server, by one writer and by eight.

Every grant waits for the disk, and one writer is at work at a time.  Both ledgers are on this
machine, so the server has no network before it; times are seconds on the clock.  The server is
started for the purpose, in a temporary folder.

Run: PYTHONPATH=tests .venv/bin/python benchmarks/speed/ledger.py [--grants N]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from postgres_server import running_server

GRANTS = 400
WRITERS = (1, 8)


def write(location: str, count: int) -> None:
    """Grant `count` times."""
    with Ledger(location, wait_seconds=120) as ledger:
        for _ in range(count):
            ledger.grant(
                "census",
                epsilon="0.001",
                purpose="speed",
                hides=AddRemoveRecord(),
                rng=secure(),
            )


def grants_per_second(location: str, writers: int, grants: int) -> float:
    """Time `writers` processes that grant at the same time."""
    with Ledger.create(location) as ledger:
        ledger.add("census", cap="1000")
    start = time.perf_counter()
    children = []
    for _ in range(writers):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                write(location, grants // writers)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        raise RuntimeError("a writer failed")
    seconds = time.perf_counter() - start
    with Ledger(location) as ledger:
        made = len(ledger.status("census").grants)
    return made / seconds


def main() -> None:
    """Print grants per second, and how many times slower the server is."""
    parser = argparse.ArgumentParser(description="Speed of the ledger")
    parser.add_argument("--grants", type=int, default=GRANTS)
    grants = parser.parse_args().grants
    table = Table("writers", "file, grants/s", "server, grants/s", "file / server")
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        ratios = []
        for writers in WRITERS:
            file = grants_per_second(str(Path(folder) / f"{writers}.db"), writers, grants)
            shared = grants_per_second(f"{server.uri()}#w{writers}", writers, grants)
            ratios.append(f"{writers}_writers={file / shared:.2f}")
            table.add_row(str(writers), f"{file:,.0f}", f"{shared:,.0f}", f"{file / shared:.2f}")
    console = Console()
    console.print(table)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    console.print(f"load average {load}")
    console.print(f"RESULT {' '.join(ratios)}")


if __name__ == "__main__":
    main()

"""Several processes against one ledger and one output folder at the same time."""

import os
import random  # noqa: TID251 - chooses moments, not noise
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from campaign.world import Clock, Result, check_books, release_words, run, write_inputs
from dpublish.ledger.ledger import Ledger

PROCESSES = 5


def races(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Let processes race for a cap that carries three of five, or for one folder's name."""
    for trial in range(40):
        if clock.is_over:
            return
        same_name = trial % 2 == 1
        write_inputs(folder, records=50)
        with Ledger(folder / "books.db") as ledger:
            ledger.add("few", cap="0.03")
        codes = _race(folder, same_name=same_name)
        _, problems = check_books(folder)
        published = [path.name for path in (folder / "out").iterdir() if path.name[0] != "."]
        with Ledger(folder / "books.db") as ledger:
            spent = ledger.status("few").spent
        if spent > Fraction(3, 100):
            problems.append(f"spent {spent} of 0.03")
        if len(published) != (1 if same_name else 3) or codes.count(0) != len(published):
            problems.append(f"published {published}, exit codes {codes}")
        what = "for one name" if same_name else "for a cap of three"
        yield Result(f"{PROCESSES} processes race {what}, {trial}", "; ".join(problems))


def _race(folder: Path, *, same_name: bool) -> list[int]:
    start = time.time() + 0.3
    racers = []
    for number in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                words = release_words("out/r" if same_name else f"out/r{number}")
                words[words.index("people", words.index("--dataset"))] = "few"
                time.sleep(max(0, start - time.time()))
                code = run(words, folder).code
            finally:
                os._exit(code if 0 <= code < 256 else 99)
        racers.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in racers]

"""Let every n-th file operation fail or be interrupted, and check that the message is true."""

import errno
import random  # noqa: TID251 - chooses cases, not noise
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from campaign.kills import STREAM_START
from campaign.world import (
    FAIL,
    FAIL_FROM_HERE_ON,
    SIGNAL,
    Clock,
    Outcome,
    Result,
    armed,
    check_books,
    operations_seen,
    receipt_of,
    release_words,
    run,
    write_inputs,
)

MOST_OPERATIONS = 400
FAULTS = (
    ("input/output error", FAIL, errno.EIO),
    ("no space", FAIL, errno.ENOSPC),
    ("full disk", FAIL_FROM_HERE_ON, errno.ENOSPC),
    ("SIGINT", SIGNAL, signal.SIGINT),
    ("SIGTERM", SIGNAL, signal.SIGTERM),
    ("SIGHUP", SIGNAL, signal.SIGHUP),
)
CODES = {0, 1, 2, 3, 128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP}


def releases(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Every fault at every file operation of a release, round by round until time is up."""
    folders = {name: folder / name.split("/")[0].replace(" ", "-") for name, _, _ in FAULTS}
    for each in folders.values():
        write_inputs(each)
    unfinished = list(FAULTS)
    for at in range(1, MOST_OPERATIONS):
        for fault in list(unfinished):
            if clock.is_over:
                return
            name, action, detail = fault
            problem = _try(folders[name], at, action, int(detail))
            yield Result(f"{name} at operation {at} of a release", problem)
            seen = operations_seen(folders[name])
            if seen is not None and seen < at:
                unfinished.remove(fault)


def _try(folder: Path, at: int, action: int, detail: int) -> str:
    before, _ = check_books(folder)
    out = folder / "out" / f"r{at}"
    done = run(release_words(f"out/r{at}"), folder, first=armed(folder, at, action, detail))
    after, problems = check_books(folder)
    stands = receipt_of(out) is not None
    for rescued in re.findall(r"\S+/dpublish-rescued-\w+", done.text):
        if not Path(rescued).is_relative_to(folder):  # where the disk was not full
            shutil.rmtree(rescued, ignore_errors=True)
    problems += _untrue(done, stands=stands, debited=after.granted > before.granted, name=out.name)
    left = [path.name for path in (folder / "out").glob(".*")]
    if action == SIGNAL and left:
        problems.append(f"left behind: {left}")
    left = [path.name for path in (folder / "tmp").rglob("*") if _holds_rows(path)]
    if left:
        problems.append(f"rows left in the temporary folder: {left}")
    return "; ".join(problems)


def _holds_rows(path: Path) -> bool:
    return path.is_file() and b"Female" in path.read_bytes() and path.suffix == ".csv"


def _untrue(done: Outcome, *, stands: bool, debited: bool, name: str) -> Iterator[str]:
    """Compare what the command said with what is there."""
    if done.code not in CODES or "Traceback" in done.text:
        yield f"exit {done.code}: {done.text[-300:]}"
    if (done.code == 0) != stands and not (stands and name in done.text):
        yield f"exit {done.code}, release {'stands' if stands else 'is not there'}: {done.text}"
    if (
        done.code != 0
        and debited
        and not re.search("debited|published|entered|ledger show", done.text)
    ):
        yield f"debited, and not said: {done.text}"
    if not debited and re.search(r"entry \d+ stays debited", done.text):
        yield f"nothing was debited: {done.text}"
    if debited and re.search("nothing was (granted|debited)", done.text):
        yield f"something was granted: {done.text}"


def stream_steps(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """A fault at every file operation of a stream's step; the same command again finishes it."""
    write_inputs(folder)
    begun = run(STREAM_START, folder)
    yield Result("stream start", "" if begun.code == 0 else begun.text[-300:])
    for number in range(1, 110):
        if clock.is_over:
            return
        name, action, detail = FAULTS[number % len(FAULTS)]
        words = ["stream", "next", "s.stream", f"hour-{number:03d}.csv"]
        done = run(words, folder, first=armed(folder, number, action, int(detail)))
        problems = []
        if done.code not in CODES or "Traceback" in done.text:
            problems.append(f"exit {done.code}: {done.text[-200:]}")
        again = run(words, folder)
        if again.code != 0:
            problems.append(f"repeated with {again.code}: {again.text[-200:]}")
        yield Result(f"{name} at operation {number} of a step", "; ".join(problems))

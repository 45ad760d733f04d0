"""A small world for campaigns: inputs, a ledger, and commands that run in limited forks."""

import ctypes
import json
import os
import random  # noqa: TID251 - chooses cases, not noise
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path

from dpublish.core.folder.folder import load
from dpublish.datasets.census import census
from dpublish.errors import DPublishError
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.receipt import Receipt

HERE = Path(__file__).parent
HANG = 1000
"""Stands for the exit code of a command that had to be ended."""

PEOPLE = """
[columns.age]
kind = "integer"
bounds = [16, 95]
bins = 16

[columns.sex]
kind = "category"
values = ["Female", "Male"]

[columns.hours]
kind = "numeric"
bounds = [0, 80]
bins = 8

[columns.income]
kind = "category"
values = ["<=50K", ">50K"]
"""
TAXIS = """
unit = "driver"

[columns.zone]
kind = "category"
values = ["north", "south", "harbor", "airport"]
other = "elsewhere"
"""
SNAPSHOTS = 120


@dataclass(frozen=True)
class Result:
    """One case of a campaign: what was tried, and what is wrong, if anything."""

    case: str
    problem: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (negative: a signal), what it said, its peak memory."""

    code: int
    text: str
    peak_megabytes: int


class Clock:
    """Says when a campaign's share of the time is used up."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.end


Campaign = Callable[[Path, random.Random, Clock], Iterator[Result]]


def import_commands() -> None:
    """Import what commands import late, so that a fork begins at once."""
    for name in ("duckdb", "jinja2", "pyarrow.parquet", "scipy.special", "scipy.stats"):
        import_module(name)
    for location, _ in import_module("dpublish.cli.main").COMMANDS.values():
        import_module(location.partition(":")[0])
    # Drawing takes most of the time of a small release and touches neither ledger nor folder.
    import_module("dpublish.report.page").can_draw = lambda: False


def write_inputs(folder: Path, records: int = 500) -> None:
    """Lay out a fresh folder: a table, two schemas, snapshots, a ledger."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    (folder / "tmp").mkdir()
    rows = census(records, seed=5).select(["age", "sex", "hours", "income"]).to_pylist()
    lines = [",".join(str(value) for value in row.values()) for row in rows]
    (folder / "people.csv").write_text("\n".join(["age,sex,hours,income", *lines, ""]))
    (folder / "people.toml").write_text(PEOPLE)
    (folder / "taxis.toml").write_text(TAXIS)
    for number in range(SNAPSHOTS):
        zones = ("north", "south", "harbor")
        drivers = "".join(f"D{k},{zones[(k + number) % 3]}\n" for k in range(50))
        (folder / f"hour-{number:03d}.csv").write_text("driver,zone\n" + drivers)
    with Ledger.create(folder / "books.db") as ledger:
        ledger.add("people", cap="100")
        ledger.add("taxis", cap="100")


def release_words(name: str, epsilon: str = "0.01", data: str = "people.csv") -> list[str]:
    """Return the command that publishes a small histogram."""
    paid = ["--epsilon", epsilon, "--ledger", "books.db", "--dataset", "people", "-o", name]
    what = ["--method", "histogram", "--columns", "age,sex"]
    return ["release", *what, "--data", data, "--schema", "people.toml", *paid]


def run(
    words: Sequence[str],
    folder: Path,
    *,
    first: Callable[[], object] = lambda: None,
    seconds: float = 60,
    kill_after: float | None = None,
    megabytes: int | None = None,
) -> Outcome:
    """Run a command in a fork inside `folder`, and wait for it.

    Args:
        words: What would be typed after `dpublish`.
        folder: Its working folder; temporary files go to `tmp` in it.
        first: Called in the fork before the command.
        seconds: A command that runs longer is ended and counts as hanging.
        kill_after: End it by SIGKILL after so many seconds, on purpose.
        megabytes: Limit of its address space.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _be_a_command(words, folder, writer, first, megabytes)
    os.close(writer)
    limit = seconds if kill_after is None else kill_after
    text, in_time = _read_all(reader, limit)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    os.close(reader)
    _, status, usage = os.wait4(pid, 0)
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    if not in_time and kill_after is None:
        code = HANG
    return Outcome(code, text, usage.ru_maxrss >> 10)


def _be_a_command(
    words: Sequence[str],
    folder: Path,
    writer: int,
    first: Callable[[], object],
    megabytes: int | None,
) -> None:
    """Be the child: never returns."""
    code = 99
    try:
        for stream in (1, 2):
            os.dup2(writer, stream)
        os.chdir(folder)
        os.environ["TMPDIR"] = str(folder / "tmp")
        import_module("tempfile").tempdir = None
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if megabytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        sys.argv = ["dpublish", *map(str, words)]
        first()
        try:
            import_module("dpublish.cli.main").run()
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 0
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def _read_all(reader: int, seconds: float) -> tuple[str, bool]:
    """Read until the other side closes, or time is up."""
    text, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            piece = os.read(reader, 1 << 16)
            if not piece:
                return text.decode("utf-8", "replace"), True
            text += piece
    return text.decode("utf-8", "replace"), False


@dataclass(frozen=True)
class Books:
    """What ledger and output folder say after a campaign."""

    granted: int
    published: int


def check_books(folder: Path) -> tuple[Books, list[str]]:
    """Check all that must hold of a ledger and its releases, whatever happened to them."""
    problems = []
    with Ledger(folder / "books.db") as ledger:
        problems += [f"verify: {problem}" for problem in ledger.verify().problems]
        accounts = [ledger.status(dataset) for dataset in ledger.datasets()]
    for account in accounts:
        if account.spent > account.cap:
            problems.append(f"spent {account.spent} of {account.cap}")
    grants = [grant for account in accounts for grant in account.grants]
    receipts, odd = _published([*(folder / "out").iterdir(), *(folder / "tmp").glob("*/release")])
    problems += odd
    entries = [receipt.ledger_entry for receipt in receipts]
    recorded = {grant.release_id for grant in grants if grant.release_id}
    spent = sum((account.spent for account in accounts), Fraction(0))
    claims = {
        "more was published than debited": sum((r.epsilon for r in receipts), Fraction(0)) > spent,
        "two releases name one grant": len(set(entries)) != len(entries),
        "a release names no grant": not set(entries) <= {grant.entry for grant in grants},
        "a recorded release is not there": not recorded <= {r.release_id for r in receipts},
    }
    problems += [claim for claim, holds in claims.items() if holds]
    return Books(len(grants), len(receipts)), problems


def _published(paths: list[Path]) -> tuple[list[Receipt], list[str]]:
    """Return the receipts of what was published or rescued, and what is odd there."""
    receipts, problems = [], []
    for path in sorted(paths):
        receipt = receipt_of(path)
        if path.name.startswith(".") and receipt is not None:
            problems.append(f"{path.name} was interrupted and loads")
        elif not path.name.startswith(".") and receipt is None:
            problems.append(f"{path.name} has its name and does not load")
        elif receipt is not None:
            receipts.append(receipt)
    return receipts, problems


def receipt_of(path: Path) -> Receipt | None:
    """Return the receipt of a release that loads."""
    try:
        return load(path).receipt
    except (DPublishError, OSError):
        return None


@cache
def fault_library() -> ctypes.CDLL | None:
    """Return the preloaded library that counts file operations, if it could be built."""
    path = os.environ.get("DPUBLISH_FAULT_LIBRARY")
    if not path:
        return None
    library = ctypes.CDLL(path)
    library.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    library.operations.restype = ctypes.c_long
    return library


def build_fault_library(folder: Path) -> Path | None:
    """Compile the library; without a C compiler or Linux there is none."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    target = folder / "fault.so"
    source = str(HERE / "fault.c")
    done = subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(target), source, "-ldl"], check=False
    )
    return target if done.returncode == 0 else None


KILL_BEFORE, KILL_AFTER, TORN_WRITE, FAIL, FAIL_FROM_HERE_ON, SIGNAL = range(1, 7)
_SEEN = ".operations"


def armed(folder: Path, at: int, action: int, detail: int = 0) -> Callable[[], object]:
    """Return what arms the library in a fork, and leaves behind how many operations it saw."""

    def first() -> None:
        library = fault_library()
        if library is None:
            raise RuntimeError("the fault library is not preloaded")
        main = import_module("dpublish.cli.main")
        command = main.main

        def counted() -> None:
            try:
                command()
            finally:
                seen = library.operations()
                library.arm(b"", -1, 0, 0)
                (folder / _SEEN).write_text(json.dumps(seen))

        main.main = counted
        (folder / _SEEN).unlink(missing_ok=True)
        library.arm(os.fsencode(folder), at, action, detail)

    return first


def operations_seen(folder: Path) -> int | None:
    """Return how many operations the last armed command made, if it lived to tell."""
    try:
        return int((folder / _SEEN).read_text())
    except OSError:
        return None

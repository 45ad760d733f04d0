"""A team against one ledger on a server: writers are killed, and the server crashes under them.

Each writer grants again and again.  It notes a budget on the disk only once it has it, under a
purpose that no other call has.  So the ledger must have every note once, no purpose twice, and no
account above its cap.
"""

import os
import random  # noqa: TID251 - chooses moments, not noise
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from campaign.world import Clock, Result
from dpublish.errors import BudgetExhausted, LedgerUnavailable
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from postgres_server import PostgresServer, running_server

WRITERS, KILLS, RESTARTS = 8, 200, 20
EPSILON = Fraction(1, 1000)
CAPS = {"narrow": Fraction(3, 100), "wide": Fraction(10**6)}
"""One cap is used up in the course of it, so that the last grants are raced for."""


@dataclass
class Books:
    """What stands in the ledger after an attack, and what the writers have."""

    handed_out: int
    debited: int
    published: int
    narrow_left: Fraction
    problems: list[str]

    def lacks(self, attacks: int) -> str:
        """Say what keeps this from being a test: too few grants, or no race for the last ones."""
        if self.handed_out <= attacks or self.narrow_left:
            return f"too few grants: {self}"
        return ""


def kills(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Kill writers at random moments, and start others."""
    with _server() as server, _team(server, folder, rng) as team:
        killed = 0
        while killed < KILLS and not clock.is_over:
            team.wait_for(rng.randrange(40))
            time.sleep(rng.uniform(0, 0.05))
            # All at once hits the one that is just granting; one alone, most likely one that waits.
            count = rng.choice((1, WRITERS))
            team.kill(count)
            killed += count
            yield Result(f"{killed} writers killed", "")
    books = team.books
    yield Result("after all kills of writers", "; ".join(books.problems))
    yield Result(f"{killed} kills: {books}", books.lacks(killed // WRITERS))


def restarts(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Let the server crash and start again under its writers."""
    with _server() as server, _team(server, folder, rng) as team:
        for number in range(RESTARTS):
            if clock.is_over:
                break
            team.wait_for(rng.randrange(1, 30))
            time.sleep(rng.uniform(0, 0.1))
            server.restart("immediate")
            yield Result(f"server crashed, {number}", "")
        team.wait_for(20)
    books = team.books
    yield Result("after all crashes of the server", "; ".join(books.problems))
    yield Result(f"{number + 1} restarts: {books}", books.lacks(number))


class Team:
    """Writers of one ledger, each a process."""

    def __init__(self, address: str, folder: Path, rng: random.Random, writers: int) -> None:
        self._address, self._rng = address, rng
        self._notes = folder / "handed-out"
        self._notes.touch()
        self._running: list[int] = []
        self._started = 0
        self.books = Books(0, 0, 0, Fraction(0), ["never looked at"])
        with Ledger.create(address, anchor=folder / "anchor") as ledger:
            for dataset, cap in CAPS.items():
                ledger.add(dataset, cap=cap)
        for _ in range(writers):
            self._start()

    def kill(self, count: int) -> None:
        """Kill writers at one moment, wherever they are, and start others."""
        victims = self._rng.sample(self._running, count)
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        for victim in victims:
            self._await_end(victim)
        for _ in range(count):
            self._start()

    def wait_for(self, count: int, seconds: float = 120) -> None:
        """Wait until so many budgets more were handed out."""
        wanted = self._notes.read_text().count("\n") + count
        deadline = time.monotonic() + seconds
        while self._notes.read_text().count("\n") < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError("the writers do not get on")
            time.sleep(0.02)

    def end(self) -> None:
        """Kill all writers, and compare what they have with the ledger."""
        for writer in list(self._running):
            os.kill(writer, signal.SIGKILL)
            self._await_end(writer)
        self.books = audit(self._address, self._notes)

    def _start(self) -> None:
        self._started += 1
        writer = os.fork()
        if writer == 0:
            with suppress(BaseException):
                _write(self._address, self._notes, self._started)
            os._exit(7)  # a writer goes on until it is killed
        self._running.append(writer)

    def _await_end(self, writer: int) -> None:
        _, status = os.waitpid(writer, 0)
        self._running.remove(writer)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            raise RuntimeError("a writer gave up by itself")


@contextmanager
def attacked(address: str, folder: Path, rng: random.Random, writers: int) -> Iterator[Team]:
    """Let a team write to a new ledger; at the end its `books` are audited."""
    team = Team(address, folder, rng, writers)
    try:
        yield team
    finally:
        team.end()


@contextmanager
def _server() -> Iterator[PostgresServer]:
    os.environ.pop("LD_PRELOAD", None)  # faults are for our own files, not for the server's
    with running_server() as server:
        yield server


@contextmanager
def _team(server: PostgresServer, folder: Path, rng: random.Random) -> Iterator[Team]:
    folder.mkdir(parents=True)
    with attacked(server.uri(), folder, rng, WRITERS) as team:
        yield team


def _write(address: str, notes: Path, writer: int) -> None:
    """Grant and publish until killed; whatever the server does, try again."""
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)
    call = 0
    while True:
        with suppress(LedgerUnavailable), Ledger(address, wait_seconds=10) as ledger:
            for _ in range(20):
                call += 1
                dataset = "narrow" if (writer + call) % 3 == 0 else "wide"
                purpose = f"writer {writer}, call {call}"
                with suppress(BudgetExhausted, LedgerUnavailable):
                    budget = ledger.grant(
                        dataset,
                        epsilon=EPSILON,
                        purpose=purpose,
                        hides=AddRemoveRecord(),
                        rng=secure(),
                    )
                    grant = budget.grant
                    line = f"{grant.entry} {grant.entry_hash} {purpose}\n"
                    os.write(file, line.encode())
                    os.fsync(file)
                    if (writer + call) % 2 == 0:
                        ledger.publish(grant, f"release-{writer}-{call}", "hash")


def audit(address: str, notes: Path) -> Books:
    """Look every budget that was in someone's hand up in the ledger."""
    noted = [line.split(" ", 2) for line in notes.read_text().splitlines()]
    with Ledger(address) as ledger:
        found = ledger.verify(anchors=[(int(entry), known) for entry, known, _ in noted])
        status = {name: ledger.status(name) for name in CAPS}
    problems = list(found.problems)
    purposes = Counter(grant.purpose for each in status.values() for grant in each.grants)
    debited = {grant.entry: grant for each in status.values() for grant in each.grants}
    problems += [f"debited twice: {purpose}" for purpose, n in purposes.items() if n > 1]
    for entry, _, purpose in noted:
        if int(entry) not in debited or debited[int(entry)].purpose != purpose:
            problems.append(f"handed out, and not debited: {purpose}")
    if len({entry for entry, _, _ in noted}) != len(noted):
        problems.append("one entry was handed out twice")
    for name, each in status.items():
        if each.spent != len(each.grants) * EPSILON or each.spent > CAPS[name]:
            problems.append(f"{name} has spent {each.spent} of {CAPS[name]}")
    published = sum(grant.release_id is not None for grant in debited.values())
    return Books(len(noted), len(debited), published, status["narrow"].left, problems)

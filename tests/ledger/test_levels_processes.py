"""Levels are debited together or not at all, whoever else is granting and whoever is killed.

This file is also the script that the processes run.  In units of the smallest debit, a grant by
level costs the three levels 1, 10 and 100, and an ordinary one costs them 1 each.  What the
levels have spent therefore tells how many of each kind were made, twice over.
"""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dpublish.errors import BudgetExhausted
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord, PersonalRecord
from dpublish.randomness import plain_generator, secure

LEVELS = (Fraction(1, 100), Fraction(1, 10), Fraction(1))
UNITS = (1, 10, 100)
KILLS = 80
PAUSE = 0.004  # seconds: lets the other one in, or the killer

needs_kills = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


UNIT = Fraction(1, 10**9)


def make_books(books):
    with Ledger.create(books) as ledger:
        ledger.add("survey", levels=LEVELS)
    return books


def take(ledger, kind, unit):
    if kind == "ordinary":
        asked = {"purpose": "p", "hides": AddRemoveRecord(), "all_have_levels": True}
        return ledger.grant("survey", epsilon=unit, rng=secure(), **asked)
    amounts = {level: units * unit for level, units in zip(LEVELS, UNITS, strict=True)}
    hides = PersonalRecord("own", tuple(map(str, LEVELS)), "levels")
    return ledger.grant_levels("survey", amounts, purpose="p", hides=hides, rng=secure())


def read_units(books, unit):
    with Ledger(books) as ledger:
        return [level.spent / unit for level in ledger.status("survey").levels]


# Two at once


def test_two_processes_at_once_use_the_tightest_level_up_and_overdraw_none(path):
    books = make_books(path)
    by_level, ordinary = race(books, "ledger")
    assert min(by_level, ordinary) > 0  # they did run at the same time
    assert by_level + ordinary == 100  # the first level has 100 units of a ten-thousandth
    assert read_units(books, Fraction(1, 10_000)) == told(by_level, ordinary)
    with Ledger(books) as ledger:
        assert ledger.verify().is_intact


def test_the_same_race_overdraws_levels_that_are_looked_up_before_the_lock(tmp_path):
    account = tmp_path / "account.json"
    account.write_text("[0, 0, 0]")
    assert sum(race(account, "naive")) > 100


def told(by_level, ordinary):
    return [by_level * units + ordinary for units in UNITS]


def race(path, account):
    """Start a process of each kind at one moment and say how many grants each got."""
    racers = [
        subprocess.Popen(
            [sys.executable, __file__, "race", str(path), account, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in ("by level", "ordinary")
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate()[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    return [int(answer) for answer in answers]


def race_on_ledger(path, kind):
    taken = 0
    with Ledger(path) as ledger:
        try:
            while True:
                take(ledger, kind, Fraction(1, 10_000))
                taken += 1
                time.sleep(PAUSE)
        except BudgetExhausted:
            return taken


def race_naively(path, kind):
    """Read what the levels have spent, and only then write it: what a ledger must not do."""
    path = Path(path)
    taken, draft = 0, path.with_name(f"draft-{os.getpid()}")
    costs = UNITS if kind == "by level" else (1, 1, 1)
    while True:
        sums = [s + c for s, c in zip(json.loads(path.read_text()), costs, strict=True)]
        if any(s > 100 * units for s, units in zip(sums, UNITS, strict=True)):
            return taken
        time.sleep(PAUSE)
        draft.write_text(json.dumps(sums))
        os.replace(draft, path)
        taken += 1


# Kills


@needs_kills
def test_a_kill_leaves_every_levels_debit_whole_or_absent(tmp_path, locate):
    result = kill_children(tmp_path, locate(), locate("trial"), "ledger")
    assert result["problems"] == []
    assert result["is whole"]
    assert result["handed out"] > 20  # they lived long enough to matter
    assert result["handed out"] <= result["debited"] <= result["handed out"] + KILLS


@needs_kills
def test_the_same_kills_catch_levels_that_are_debited_one_after_the_other(tmp_path):
    books, trial = tmp_path / "books.db", tmp_path / "trial.db"
    assert not kill_children(tmp_path, books, trial, "one by one")["is whole"]


def kill_children(folder, books, trial, account):
    done = subprocess.run(
        [sys.executable, __file__, "kill", str(folder), str(books), str(trial), account],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a fork copies one thread only
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def supervise(folder, books, trial, account):
    """Fork and kill children one after the other, then compare what they got with the books."""
    make_books(books)
    log = folder / "handed-out"
    log.touch()
    for level in range(3):
        (folder / f"level-{level}").write_text("0")
    longest = max(0.05, 5 * grant_seconds(trial))  # disks differ
    for life in plain_generator(11).uniform(0, longest, size=KILLS):
        child = os.fork()
        if child == 0:
            live(folder, books, account)
        time.sleep(life)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if account == "ledger":
        units = [int(units) for units in read_units(books, UNIT)]
    else:
        units = [int((folder / f"level-{level}").read_text()) for level in range(3)]
    by_level = (units[1] - units[0]) / 9
    ordinary = units[0] - by_level
    notes = [line.split() for line in log.read_text().splitlines()]
    with Ledger(books) as ledger:
        problems = ledger.verify(anchors=[(int(entry), seal) for entry, seal in notes]).problems
    return {
        "problems": list(problems),
        "is whole": by_level.is_integer() and units == told(by_level, ordinary),
        "handed out": len(notes),
        "debited": by_level + ordinary,
    }


def grant_seconds(trial):
    with Ledger(make_books(trial)) as ledger:
        begun = time.perf_counter()
        for _ in range(9):
            take(ledger, "by level", UNIT)
        return (time.perf_counter() - begun) / 9


def live(folder, books, account):
    """Grant until killed, noting every budget once it is in hand."""
    notes = os.open(folder / "handed-out", os.O_WRONLY | os.O_APPEND)
    while account == "one by one":
        debit_one_by_one(folder)
    while True:
        with Ledger(books) as ledger:
            for kind in ("by level", "ordinary", "by level"):
                grant = take(ledger, kind, UNIT).grant
                os.write(notes, f"{grant.entry} {grant.entry_hash}\n".encode())


def debit_one_by_one(folder):
    """Write each level's sum by itself: what a ledger must not do."""
    for level, units in enumerate(UNITS):
        file, draft = folder / f"level-{level}", folder / "draft"
        draft.write_text(str(int(file.read_text()) + units))
        time.sleep(PAUSE)
        os.replace(draft, file)


if __name__ == "__main__":
    task, folder, *rest = sys.argv[1:]
    if task == "kill":
        sys.stdout.write(json.dumps(supervise(Path(folder), *rest)))
    else:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        racing = race_on_ledger if rest[0] == "ledger" else race_naively
        sys.stdout.write(str(racing(folder, rest[1])))

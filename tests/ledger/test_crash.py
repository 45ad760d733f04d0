"""A process that is killed at any moment never holds a budget that was not debited.

This file is also the script that the test runs: it forks children that grant and publish in a
loop, and kills each without warning.
"""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from statistics import median

import pytest

from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import plain_generator, secure

EPSILON = Fraction(1, 1000)
LONGEST_LIFE = 5  # grants, each with its publication

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


def test_whatever_was_handed_out_before_a_kill_is_debited(tmp_path, path, backend):
    kills = 200 if backend == "sqlite" else 40  # 200 on a server are in the campaign
    result = kill_children(tmp_path, path, kills=kills, order="debit first")
    assert result["problems"] == []
    assert result["handed out"] > kills / 10  # they lived long enough to matter
    assert result["debited"] >= result["handed out"]
    assert result["debited"] <= result["handed out"] + kills  # a kill wastes one grant at most


def test_kills_are_not_taken_for_tampering_where_there_is_an_anchor(tmp_path, path, backend):
    kills = 80 if backend == "sqlite" else 30
    result = kill_children(tmp_path, path, kills=kills, order="debit first, with an anchor")
    assert result["problems"] == []
    assert result["handed out"] > kills / 10
    assert result["handed out"] <= result["debited"] <= result["handed out"] + kills


def test_the_same_kills_catch_a_release_that_is_paid_for_afterward(tmp_path, path, backend):
    kills = 60 if backend == "sqlite" else 20
    result = kill_children(tmp_path, path, kills=kills, order="hand out first")
    assert result["debited"] < result["handed out"]


def kill_children(folder, books, *, kills, order):
    done = subprocess.run(
        [sys.executable, __file__, str(folder), str(books), str(kills), order],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a fork copies one thread only
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def supervise(folder, books, kills, order):
    """Fork and kill children one after the other, then compare what they got with the books."""
    log = folder / "handed-out"
    log.touch()
    anchor = folder / "anchor" if "anchor" in order else None
    with Ledger.create(books, anchor=anchor) as ledger:
        ledger.add("census", cap="1000")
        ledger.add("trial")
        longest = LONGEST_LIFE * median(cycle_seconds(ledger) for _ in range(9))  # disks differ
    lives = plain_generator(7).uniform(0, max(0.02, longest), size=kills)
    problems = []
    for index, life in enumerate(lives):
        child = os.fork()
        if child == 0:
            live(books, log, order)
        time.sleep(life)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if index % 10 == 9:  # not always: a child must also find what the last one left behind
            problems += audit(books, log)
    with Ledger(books) as ledger:
        debited = ledger.status("census").spent / EPSILON
    handed_out = len(log.read_text().splitlines())
    return {"problems": problems, "handed out": handed_out, "debited": int(debited)}


def live(books, log, order):
    """Grant and publish until killed, noting every budget once it is in hand."""
    notes = os.open(log, os.O_WRONLY | os.O_APPEND)

    def note(budget):
        if order.startswith("debit first"):
            os.write(notes, f"{budget.grant.entry} {budget.grant.entry_hash}\n".encode())

    while True:
        with Ledger(books) as ledger:  # closing now and then also puts kills into clean-up
            for _ in range(3):
                if order == "hand out first":
                    os.write(notes, b"too early\n")
                    time.sleep(0.01)  # the release itself, not yet paid for
                grant_and_publish(ledger, "census", note)


def cycle_seconds(ledger):
    begun = time.perf_counter()
    grant_and_publish(ledger, "trial", lambda budget: None)
    return time.perf_counter() - begun


def grant_and_publish(ledger, dataset, note):
    budget = ledger.grant(
        dataset, epsilon=EPSILON, purpose="p", hides=AddRemoveRecord(), rng=secure()
    )
    note(budget)
    ledger.publish(budget.grant, f"release-{budget.grant.entry}", "hash")


def audit(books, log):
    """Look every budget that was in someone's hand up in the books."""
    notes = [line.split() for line in log.read_text().splitlines() if line != "too early"]
    with Ledger(books) as ledger:
        anchors = [(int(entry), entry_hash) for entry, entry_hash in notes]
        return list(ledger.verify(anchors=anchors).problems)


if __name__ == "__main__":
    outcome = supervise(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
    sys.stdout.write(json.dumps(outcome))

"""Two processes that grant against one cap together get what one alone would have got.

This file is also the script that the processes run.
"""

import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

from dpublish.errors import BudgetExhausted
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure

CAP, EPSILON = Fraction(2), Fraction(3, 200)
PAUSE = 0.005  # seconds: lets the other one in
MOST = CAP // EPSILON  # 133, and a remainder that no one gets


def test_two_processes_share_a_cap_exactly(locate):
    books = locate()
    with Ledger.create(books) as ledger:
        ledger.add("census", cap=CAP)
    taken = race(books, "ledger")
    assert sum(taken) == MOST
    assert min(taken) > 0  # they did run at the same time
    with Ledger(books) as ledger:
        assert ledger.verify().is_intact
        assert ledger.status("census").spent == MOST * EPSILON
        assert len(ledger.status("census").grants) == MOST


def test_the_same_race_overspends_an_account_that_looks_before_it_locks(tmp_path):
    account = tmp_path / "account"
    account.write_text("0")
    assert sum(race(account, "naive")) > MOST


def race(path, kind):
    """Start two processes at one moment and say how many grants each got."""
    racers = [
        subprocess.Popen(
            [sys.executable, __file__, str(path), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate()[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    return [int(answer) for answer in answers]


def take_from_ledger(path):
    with Ledger(path) as ledger:
        taken = 0
        try:
            while True:
                ledger.grant(
                    "census", epsilon=EPSILON, purpose="race", hides=AddRemoveRecord(), rng=secure()
                )
                taken += 1
                time.sleep(PAUSE)
        except BudgetExhausted:
            return taken


def take_naively(path):
    """Read the balance, and only then write it: what a ledger must not do."""
    path = Path(path)
    taken, draft = 0, path.with_name(f"draft-{os.getpid()}")
    while (spent := Fraction(path.read_text())) + EPSILON <= CAP:
        time.sleep(PAUSE)
        draft.write_text(str(spent + EPSILON))
        os.replace(draft, path)
        taken += 1
    return taken


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    take = take_from_ledger if sys.argv[2] == "ledger" else take_naively
    sys.stdout.write(str(take(sys.argv[1])))

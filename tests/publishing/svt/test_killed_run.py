"""An interactive run that is killed at any moment keeps its threshold, its answers, its budget."""

import json
import math
import subprocess
import sys
from itertools import pairwise

import pytest

import killed_svt_worker
from dpublish.ledger.ledger import Ledger
from dpublish.publishing.svt.run import InteractiveRun
from dpublish.publishing.svt.state import RunFile
from killed_svt_worker import POINTS, operate
from svt_world import QUERIES, make_world, start


def run_worker(folder, *words):
    make_world(folder)
    done = subprocess.run(
        [sys.executable, killed_svt_worker.__file__, str(folder), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in (folder / "notes").read_text().splitlines()]


def require_one_threshold(notes):
    kept = [noise for noise, _ in notes if noise is not None]
    assert kept
    assert set(kept) == {kept[0]}


def require_whole(folder, notes):
    """What was told once stays told, nothing twice, and the ledger was debited once."""
    for (_, before), (_, after) in pairwise(notes):
        assert after.startswith(before)
    transcript = (folder / "run" / "public" / "transcript.jsonl").read_text()
    assert transcript == notes[-1][1]
    lines = [json.loads(line) for line in transcript.splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["query"] for line in lines] == QUERIES[: len(lines)]
    positives = sum(line["above"] for line in lines)
    assert positives == 3 or len(lines) == len(QUERIES)
    with InteractiveRun.open(folder / "run") as run:
        assert run.positives_left == 3 - positives
    with Ledger(folder / "books.db") as ledger:
        assert ledger.verify().problems == ()
        grants = [(grant.epsilon, grant.state) for grant in ledger.status("visits").grants]
    assert grants == [(1, "published")]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_named_point_a_run_goes_on_as_if_nothing_had_been(tmp_path, point):
    notes = run_worker(tmp_path, point)
    require_one_threshold(notes)
    require_whole(tmp_path, notes)


def test_killed_at_random_moments_a_run_goes_on_as_if_nothing_had_been(tmp_path):
    notes = run_worker(tmp_path, 25, 7)
    require_one_threshold(notes)
    require_whole(tmp_path, notes)


def test_what_would_leave_before_the_commit_would_be_told_several_times(tmp_path, monkeypatch):
    """The broken twin: an outcome that leaves before it is kept is drawn again with other noise."""
    make_world(tmp_path)
    with start(tmp_path, epsilon="0.01") as run:
        secret = run._file.vector()
    # Where the query's own noise decides: above and below are as likely as each other.
    threshold = 600 + round(math.log(2) / secret.answer_rate) - secret.threshold_noise
    seen = []

    def leak_then_die(self, vector, outcome):
        seen.append(outcome.above)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFile, "commit", leak_then_die)
    for _ in range(40):
        with pytest.raises(KeyboardInterrupt), InteractiveRun.open(tmp_path / "run") as run:
            run.ask("age >= 70", threshold=threshold)
    assert set(seen) == {False, True}  # both answers to one query, of which one may be told
    monkeypatch.undo()
    with InteractiveRun.open(tmp_path / "run") as run:
        assert not run.outcomes
        assert run.positives_left == 3


def test_a_threshold_that_moved_at_a_restart_would_be_seen(tmp_path, monkeypatch):
    make_world(tmp_path)
    operate(tmp_path)
    killed_svt_worker.note(tmp_path)
    file = RunFile(tmp_path / "run" / "state.db")
    file.put(vector=file.metadata("vector") | {"threshold_noise": 10**9})
    file.close()
    killed_svt_worker.note(tmp_path)
    notes = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    with pytest.raises(AssertionError):
        require_one_threshold(notes)

"""A stream whose operators are killed at any moment ends as if none had been."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import killed_stream_worker
from dpublish.ledger.ledger import Ledger
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.methods.streams.folder import load_stream
from dpublish.methods.streams.snapshot import Bins
from dpublish.privacy.epsilon import format_epsilon
from dpublish.publishing.streams.locations import open_state
from dpublish.publishing.streams.state import StreamFile
from killed_stream_worker import POINTS, location, operate
from stream_world import SCHEMA, THRESHOLD, make_ledger

ON_A_SERVER = ("after the grant", "before the commit", "after the commit", "before the mark")
AT_START = ("before the grant", "after the grant", "before the folder", "after the folder")


def run_worker(folder, *words):
    make_ledger(folder)
    done = subprocess.run(
        [sys.executable, killed_stream_worker.__file__, str(folder), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def account(folder):
    """All that a stream has cost and done, but for the noise and what was drawn from it."""
    with Ledger(folder / "books.db") as ledger:
        assert ledger.verify().problems == ()
        status = ledger.status("rides")
    file = open_state(location(folder))
    try:
        assert file.undelivered() is None
        stream = file.stream()
        public = dict(file.metadata("public"))
    finally:
        file.close()
    grants = [(grant.epsilon, grant.state) for grant in status.grants]
    kept = ("number", "published", "positives", "last", "spent", "recent")
    history = {name: public["history"][name] for name in kept}
    steps = [
        (step.number, step.time, step.action, step.epsilon, step.noise, step.spent)
        for step in load_stream(folder / "out").records
    ]
    return status.spent, grants, stream.worst, public["account"], history, steps


def undisturbed(folder, steps):
    folder.mkdir()
    make_ledger(folder)
    operate(folder, steps)
    return account(folder)


def require_whole(folder, steps):
    """Every step loads, none is missing or doubled, and nothing else lies about."""
    stream = load_stream(folder / "out")
    assert stream.times == tuple(f"t{number}" for number in range(1, steps + 1))
    for time in stream.times:
        assert stream.at(time).shape == (2, 4)
    parts = sorted(path.name for path in (folder / "out" / "data").iterdir())
    assert parts == sorted(f"time=t{number}" for number in range(1, steps + 1))
    for part in (folder / "out" / "data").iterdir():
        assert [path.name for path in part.iterdir()] == ["counts.parquet"]


@pytest.mark.parametrize(
    ("kills", "steps"), [(20, 40), pytest.param(100, 200, marks=pytest.mark.audit)]
)
def test_killed_at_random_moments_a_stream_ends_as_an_undisturbed_one(tmp_path, kills, steps):
    run_worker(tmp_path, "per-snapshot", kills, steps, 2)
    assert int((tmp_path / "done").read_text()) > kills // 5  # kills came early and late
    require_whole(tmp_path, steps)
    assert account(tmp_path) == undisturbed(tmp_path / "calm", steps)


def test_killed_while_it_asks_before_it_publishes_a_stream_keeps_its_account(tmp_path):
    run_worker(tmp_path, "bd", 10, 20, 3)
    require_whole(tmp_path, 20)
    spent, grants, worst, kept, history, steps = account(tmp_path)
    assert (spent, grants) == (2, [(2, "published")])
    published = [(number, epsilon) for number, _, action, epsilon, *_ in steps if epsilon]
    assert history["published"] == len(published)
    assert history["last"] == (published[-1][0] if published else 0)
    # Every window holds its comparisons, half of epsilon, and the publications in it.
    for number, *_, seen in steps:
        asked = Fraction(min(number, 4), 4)
        within = sum(epsilon for step, epsilon in published if number - 4 < step <= number)
        assert seen == asked + within <= worst <= 2
    assert kept["spent"] == format_epsilon(steps[-1][-1])


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_named_point_a_stream_ends_as_an_undisturbed_one(tmp_path, point):
    run_worker(tmp_path, "per-snapshot", point, 4)
    require_whole(tmp_path, 4)
    assert account(tmp_path) == undisturbed(tmp_path / "calm", 4)


@pytest.fixture
def served(tmp_path, postgres_database):
    """A folder whose stream has its state on a server."""
    (tmp_path / "address").write_text(f"{postgres_database}#rides")
    return tmp_path


@pytest.mark.parametrize(
    "point",
    [
        name if name in ON_A_SERVER else pytest.param(name, marks=pytest.mark.audit)
        for name in POINTS
    ],
)
def test_killed_at_every_named_point_a_stream_on_a_server_goes_on_at_once(served, point):
    run_worker(served, "per-snapshot", point, 4)
    require_whole(served, 4)
    assert account(served) == undisturbed(served / "calm", 4)


@pytest.mark.parametrize("point", ["before the commit", "after the commit", "within the line"])
def test_killed_on_one_machine_a_stream_goes_on_on_another(served, point):
    (served / "elsewhere").touch()
    run_worker(served, "dsft", point, 5)
    require_whole(served, 5)
    require_one_threshold(thresholds(served))
    require_consistent(served, 5)


@pytest.mark.parametrize(
    ("kills", "steps"), [(15, 30), pytest.param(100, 200, marks=pytest.mark.audit)]
)
def test_killed_at_random_moments_a_stream_on_a_server_ends_as_an_undisturbed_one(
    served, kills, steps
):
    run_worker(served, "per-snapshot", kills, steps, 6)
    assert int((served / "done").read_text()) > kills // 5
    require_whole(served, steps)
    assert account(served) == undisturbed(served / "calm", steps)


def thresholds(folder):
    return [json.loads(line) for line in (folder / "thresholds").read_text().splitlines()]


def require_one_threshold(seen):
    """Once drawn and stored, the threshold is there at every later look, and the same."""
    kept = seen[seen.index(next(each for each in seen if each is not None)) :]
    assert len(kept) > 1
    assert set(kept) == {kept[0]}


def require_consistent(folder, steps):
    """What a stream with a stored threshold has spent is one run of comparisons and its histograms.

    The first histogram is not asked for, and the comparison at step 2 opens the run.
    """
    spent, grants, worst, kept, history, listed = account(folder)
    assert (spent, grants) == (2, [(2, "published")])
    terms = THRESHOLD.comparisons(Bins.of(SCHEMA, THRESHOLD.columns), Fraction(2))
    total = Fraction(0)
    for number, _, _, epsilon, _, seen in listed:
        total += epsilon
        assert seen == total + (terms.epsilon if number > 1 else 0) <= 2
    published = [number for number, _, _, epsilon, *_ in listed if epsilon]
    assert published[0] == 1
    assert (history["published"], history["last"]) == (len(published), published[-1])
    assert kept["spent"] == format_epsilon(worst) == format_epsilon(listed[-1][-1])
    file = open_state(location(folder))
    asked = len([number for number in published if 1 < number < THRESHOLD.horizon])
    assert file.metadata("secret")["vector"]["positives_left"] == terms.positives - asked
    file.close()
    assert len(listed) == steps


@pytest.mark.parametrize("seed", [4, 5])
def test_killed_at_random_moments_a_stream_keeps_the_threshold_that_it_drew(tmp_path, seed):
    run_worker(tmp_path, "dsft", 10, 20, seed)
    require_whole(tmp_path, 20)
    require_one_threshold(thresholds(tmp_path))
    require_consistent(tmp_path, 20)


@pytest.mark.parametrize("point", [name for name in POINTS if name not in AT_START])
def test_killed_at_named_points_a_stream_keeps_the_threshold_that_it_drew(tmp_path, point):
    run_worker(tmp_path, "dsft", point, 5)
    require_whole(tmp_path, 5)
    require_one_threshold(thresholds(tmp_path))
    require_consistent(tmp_path, 5)


def test_a_threshold_that_moved_with_every_restart_would_be_seen(tmp_path, monkeypatch):
    make_ledger(tmp_path)
    operate(tmp_path, 2, THRESHOLD)
    killed_stream_worker.note_threshold(tmp_path)
    original = StoredVector.from_dict
    moved = classmethod(
        lambda cls, plain: replace(original(plain), threshold_noise=plain["threshold_noise"] + 1)
    )
    monkeypatch.setattr(StoredVector, "from_dict", moved)
    operate(tmp_path, 3)
    killed_stream_worker.note_threshold(tmp_path)
    with pytest.raises(AssertionError):
        require_one_threshold(thresholds(tmp_path))


def test_what_would_leave_before_the_commit_would_be_given_out_several_times(tmp_path, monkeypatch):
    # The broken twin: what leaves before the commit is given out again, with other noise.
    make_ledger(tmp_path)
    operate(tmp_path, 1)
    seen = []

    def leak_then_die(self, state, *, content, **named):
        seen.append(content)
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamFile, "commit_step", leak_then_die)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            operate(tmp_path, 2)
        assert [path.name for path in (tmp_path / "out" / "data").iterdir()] == ["time=t1"]
    monkeypatch.undo()
    operate(tmp_path, 2)
    kept = (tmp_path / "out" / "data" / "time=t2" / "counts.parquet").read_bytes()
    assert len({*seen, kept}) == 3  # three draws of one step: only the last may ever be seen
    assert [path.name for path in Path(tmp_path / "out" / "data").iterdir()].count("time=t2") == 1

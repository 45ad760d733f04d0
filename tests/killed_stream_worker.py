"""Run a stream in child processes and kill each, at random moments or at a named point.

Run as a script: folder, method, number of kills, number of steps and seed; or folder, method,
point and number of steps.  After every kill the secret threshold is noted.  All that is heavy
is imported once, then each operator runs in a fork, as in a process of its own.

A folder with a file `address` keeps the state on a server, and one with a file `elsewhere` lets
every operator run as if on a machine of its own, so that a lease has to run out.
"""

import json
import os
import random  # noqa: TID251 - chooses moments, not noise
import secrets
import signal
import sys
import time
from pathlib import Path

import duckdb  # noqa: F401 - what a step imports late is imported before the forks
import jinja2  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent))

from dpublish.errors import InputError
from dpublish.publishing.streams import delivery as stream_delivery
from dpublish.publishing.streams import grant as stream_grant
from dpublish.publishing.streams import lease as stream_lease
from dpublish.publishing.streams import operator as stream_operator
from dpublish.publishing.streams.locations import open_state
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.state import StreamStore
from dpublish.publishing.streams.status import stream_status
from stream_world import ASKING, METHOD, SCHEMA, THRESHOLD, arguments, rows

POINTS = {
    "before the grant": (stream_grant, "obtain_budget", "before"),
    "after the grant": (stream_grant, "obtain_budget", "after"),
    "before the folder": (stream_delivery, "create_folder", "before"),
    "after the folder": (stream_delivery, "create_folder", "after"),
    "after the ledger's entry": (stream_operator, "record_stream", "after"),
    "before the commit": (StreamStore, "commit_step", "before"),
    "after the commit": (StreamStore, "commit_step", "after"),
    "within the counts": (os, "replace", "counts"),
    "before the line": (stream_delivery, "put_line", "before"),
    "within the line": (stream_delivery, "put_line", "torn"),
    "after the line": (stream_delivery, "put_line", "after"),
    "before the mark": (StreamStore, "mark_delivered", "before"),
    "after the mark": (StreamStore, "mark_delivered", "after"),
}

LATE = 3  # kills that come only when some steps are done


def location(folder):
    """Where the state of the folder's stream is kept."""
    address = folder / "address"
    return address.read_text() if address.exists() else str(folder / "rides.stream")


def operate(folder, steps, method=METHOD):
    """Do what an operator does after whatever happened: repeat the last command."""
    state, claim = location(folder), {}
    if (folder / "elsewhere").exists():
        stream_lease._machine = lambda host: secrets.token_hex(4)
        claim = {"lease_seconds": 1, "wait_seconds": 60}
    try:
        operator = StreamOperator.open(state, **claim)
    except Exception:  # noqa: BLE001 - not started, or not to the end
        operator = StreamOperator.start(state, method, SCHEMA, **arguments(folder), **claim)
    with operator:
        for number in range(1, steps + 1):
            operator.next(rows(number), f"t{number}")


def forked(folder, steps, prepare=lambda: None, *, method=METHOD, wait=False):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            prepare()
            operate(folder, steps, method)
            if wait:
                signal.pause()
            code = 0
        finally:
            os._exit(code)
    return child


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point, countdown):
    """Kill this process when `point` is reached for the `countdown`-th time."""
    owner, name, when = POINTS[point]
    original = getattr(owner, name)
    left = [countdown]

    def deadly(*given, **named):
        if when == "counts" and not str(given[1]).endswith(".parquet"):
            return original(*given, **named)
        left[0] -= 1
        if left[0] == 0 and when in ("before", "counts"):
            die()
        if left[0] == 0 and when == "torn":
            folder, start, line, *rest = given
            original(folder, start, line[:7], *rest)
            die()
        result = original(*given, **named)
        if left[0] == 0:
            die()
        return result

    setattr(owner, name, deadly)


def done_steps(folder):
    try:
        return (folder / "out" / "steps.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def note_threshold(folder):
    """Add to the notes what threshold noise the state file holds, None if it holds none."""
    try:
        file = open_state(location(folder))
    except InputError:
        return
    vector = (file.metadata("secret") or {}).get("vector")
    file.close()
    with (folder / "thresholds").open("a") as notes:
        notes.write(json.dumps(None if vector is None else vector["threshold_noise"]) + "\n")


def trial(folder):
    """Learn how long an operator takes to open a stream and to make two steps."""
    apart = folder / "trial"
    apart.mkdir()
    (apart / "books.db").write_bytes((folder / "books.db").read_bytes())
    if os.waitpid(forked(apart, 1), 0)[1]:
        sys.exit("an undisturbed run failed")
    begun = time.monotonic()
    os.waitpid(forked(apart, 3), 0)
    return time.monotonic() - begun


def wait_for_steps(folder, steps):
    """Wait until some steps are done, so that the last kills find a stream on a slow machine."""
    until = time.monotonic() + 60
    while done_steps(folder) < steps and time.monotonic() < until:
        time.sleep(0.01)


def kill_at_random(folder, method, kills, steps, seed):
    moments = random.Random(seed)
    opening = trial(folder)
    for kill in range(kills):
        # An operator that is ahead of its time waits for its end, so that every kill counts.
        quota = steps * (kill + 1) // kills
        child = forked(folder, quota, method=method, wait=True)
        if kill >= kills - LATE:
            wait_for_steps(folder, min(quota, kills // 5 + 1))
        time.sleep(moments.uniform(0, 1.5 * opening))
        os.kill(child, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            sys.exit("an operator failed by itself")
        note_threshold(folder)
    (folder / "done").write_text(str(done_steps(folder)))


def kill_at_point(folder, method, point, steps):
    """Kill the first operator at the point's first time, the next at its second, and so on.

    Whatever happens once in a run has no second time; then the operator must end well.
    """
    for countdown in (1, 2, 3, 4):
        child = forked(folder, steps, lambda c=countdown: arm(point, c), method=method)
        status = os.waitpid(child, 0)[1]
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not was_killed and (countdown == 1 or status != 0):
            sys.exit(f"the operator was not killed {point}, at time {countdown}")
        note_threshold(folder)


def main():
    folder = Path(sys.argv[1])
    method = {each.name: each for each in (METHOD, ASKING, THRESHOLD)}[sys.argv[2]]
    if sys.argv[3] in POINTS:
        steps = int(sys.argv[4])
        kill_at_point(folder, method, sys.argv[3], steps)
    else:
        kills, steps, seed = map(int, sys.argv[3:6])
        kill_at_random(folder, method, kills, steps, seed)
    if os.waitpid(forked(folder, steps, method=method), 0)[1]:
        sys.exit("the last run failed")
    note_threshold(folder)
    if stream_status(location(folder)).folder_problem is not None:
        sys.exit("the folder is not whole")


if __name__ == "__main__":
    main()

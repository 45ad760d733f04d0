"""Run an interactive run in child processes and kill each, at a named point or at random moments.

Run as a script: folder and point; or folder, number of kills and seed.  After every kill the
secret threshold and the number of answers are noted.
"""

import json
import os
import random  # noqa: TID251 - chooses moments, not noise
import signal
import sys
import time
from pathlib import Path

import duckdb  # noqa: F401 - what a query imports late is imported before the forks

sys.path.insert(0, str(Path(__file__).parent))

from dpublish.publishing.svt import run as module
from dpublish.publishing.svt.run import InteractiveRun
from dpublish.publishing.svt.state import RunFile
from svt_world import QUERIES, start

POINTS = {
    "before the state file": (RunFile, "create", "before"),
    "before the grant": (module, "obtain_budget", "before"),
    "after the grant": (module, "obtain_budget", "after"),
    "before the start is kept": (RunFile, "begin", "before"),
    "after the start is kept": (RunFile, "begin", "after"),
    "before a public file": (module, "_write", "before"),
    "after a public file": (module, "_write", "after"),
    "after the ledger's entry": (module, "record_stream", "after"),
    "after the count": (InteractiveRun, "_count", "after"),
    "before the commit": (RunFile, "commit", "before"),
    "after the commit": (RunFile, "commit", "after"),
    "within the transcript": (os, "replace", "before"),
}


def operate(folder):
    """Do what an owner does after whatever happened: repeat the last command."""
    try:
        run = InteractiveRun.open(folder / "run")
    except Exception:  # noqa: BLE001 - not started, or not to the end
        run = start(folder)
    with run:
        for query in QUERIES:
            if not run.positives_left:
                break
            run.ask(query)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point, countdown):
    """Kill this process when `point` is reached for the `countdown`-th time."""
    owner, name, when = POINTS[point]
    original = getattr(owner, name)
    left = [countdown]

    def deadly(*given, **named):
        left[0] -= 1
        if left[0] == 0 and when == "before":
            die()
        result = original(*given, **named)
        if left[0] == 0:
            die()
        return result

    setattr(owner, name, deadly)


def forked(folder, prepare=lambda: None):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            prepare()
            operate(folder)
            code = 0
        finally:
            os._exit(code)
    return child


def note(folder):
    """Add to the notes the threshold's noise in the state file, if any, and the transcript."""
    if not (folder / "run" / "state.db").exists():
        return
    file = RunFile(folder / "run" / "state.db")
    vector = file.metadata("vector")
    lines = b"".join(file.lines()).decode()
    file.close()
    with (folder / "notes").open("a") as notes:
        kept = None if vector is None else vector["threshold_noise"]
        notes.write(json.dumps([kept, lines]) + "\n")


def kill_at_point(folder, point):
    for countdown in (1, 2, 3):
        child = forked(folder, lambda c=countdown: arm(point, c))
        status = os.waitpid(child, 0)[1]
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not was_killed and (countdown == 1 or status != 0):
            sys.exit(f"the process was not killed {point}, at time {countdown}")
        note(folder)


def kill_at_random(folder, kills, seed):
    moments = random.Random(seed)
    for _ in range(kills):
        child = forked(folder)
        time.sleep(moments.uniform(0, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        note(folder)


def main():
    folder = Path(sys.argv[1])
    if sys.argv[2] in POINTS:
        kill_at_point(folder, sys.argv[2])
    else:
        kill_at_random(folder, int(sys.argv[2]), int(sys.argv[3]))
    if os.waitpid(forked(folder), 0)[1]:
        sys.exit("the last run failed")
    note(folder)


if __name__ == "__main__":
    main()

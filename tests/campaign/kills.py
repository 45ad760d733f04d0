"""Kill releases and stream steps: at every n-th file operation, and at random moments."""

import random  # noqa: TID251 - chooses moments, not noise
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from campaign.world import (
    KILL_AFTER,
    KILL_BEFORE,
    TORN_WRITE,
    Clock,
    Result,
    armed,
    check_books,
    operations_seen,
    receipt_of,
    release_words,
    run,
    write_inputs,
)
from dpublish.core.folder.folder import load

MOST_OPERATIONS = 400
STREAM = ["--method", "dsat", "--columns", "zone", "--horizon", "120", "--schema", "taxis.toml"]
STREAM_PAID = ["--epsilon", "0.5", "--ledger", "books.db", "--dataset", "taxis", "-o", "steps"]

STREAM_START = ["stream", "start", "s.stream", *STREAM, *STREAM_PAID]


def every_operation(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Kill a release before, after and in the middle of every file operation in its folder."""
    for action, word in ((KILL_BEFORE, "before"), (KILL_AFTER, "after"), (TORN_WRITE, "within")):
        write_inputs(folder)
        for at in range(1, MOST_OPERATIONS):
            if clock.is_over:
                return
            words = release_words(f"out/r{at}")
            run(words, folder, first=armed(folder, at, action))
            _, problems = check_books(folder)
            yield Result(f"release killed {word} operation {at}", "; ".join(problems))
            seen = operations_seen(folder)
            if seen is not None and seen < at:
                break


def random_moments(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Kill releases at random moments; undisturbed ones in between must succeed."""
    write_inputs(folder)
    start = time.monotonic()
    usual = run(release_words("out/first"), folder)
    duration = time.monotonic() - start
    yield Result("undisturbed release", "" if usual.code == 0 else usual.text[-300:])
    for trial in range(300):
        if clock.is_over:
            break
        words = release_words(f"out/r{trial}")
        run(words, folder, kill_after=rng.uniform(0, 1.1 * duration))
        _, problems = check_books(folder)
        yield Result(f"release killed at a random moment, {trial}", "; ".join(problems))
    books, problems = check_books(folder)
    if not 0 < books.published < books.granted:
        problems.append(f"kills fell badly: {books}")
    yield Result("after all random kills", "; ".join(problems))


def stream_operations(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Kill stream steps at every file operation; the same command again finishes the step."""
    write_inputs(folder)
    begun = run(STREAM_START, folder)
    yield Result("stream start", "" if begun.code == 0 else begun.text[-300:])
    for number in range(1, 110):
        if clock.is_over:
            return
        words = ["stream", "next", "s.stream", f"hour-{number:03d}.csv"]
        killed = run(words, folder, first=armed(folder, number, KILL_BEFORE))
        again = run(words, folder)
        problems = [] if again.code == 0 else [f"repeated with {again.code}: {again.text[-200:]}"]
        published = len(load(folder / "steps").times)
        if published != number:
            problems.append(f"{published} steps after {number}")
        yield Result(f"stream step killed at operation {number}", "; ".join(problems))
        if killed.code != -signal.SIGKILL:
            return


def stream_starts(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Kill `stream start` at every file operation; the same request again succeeds, paid once."""
    write_inputs(folder)
    for at in range(1, MOST_OPERATIONS):
        if clock.is_over:
            return
        files = [f"s{at}.stream", *STREAM, *STREAM_PAID[:-1], f"steps{at}"]
        words = ["stream", "start", *files]
        killed = run(words, folder, first=armed(folder, at, KILL_BEFORE))
        again = run(words, folder)
        problem = "" if again.code == 0 else f"repeated with {again.code}: {again.text[-250:]}"
        if again.code == 0 and receipt_of(folder / f"steps{at}") is None:
            step = run(["stream", "next", f"s{at}.stream", "hour-001.csv"], folder)
            problem = "" if step.code == 0 else f"next step: {step.text[-250:]}"
        yield Result(f"stream start killed at operation {at}", problem)
        if killed.code != -signal.SIGKILL:
            return

"""Time 10,000 steps of 100 x 100 bins, and watch the memory that they take.

The counts drift: at each step some people move.  The reference is a plain NumPy loop that adds
Laplace noise in floating point to every snapshot, without accounts, exactness or state.  Times
are processor seconds of this process; memory is what Python and NumPy hold at the most, above
the start (tracemalloc), measured in runs of their own because watching costs time.

Run: .venv/bin/python benchmarks/speed/streams.py [METHOD,METHOD]
"""

import sys
import tracemalloc
from collections.abc import Iterator
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from dpublish.data.schema import Schema, column
from dpublish.experiments.streams_competitors import METHODS
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SIDE = 100
STEPS = 10_000
FEW = 1_000
PEOPLE = 1_000_000
MOVING = 1_000
EPSILON = 1
USUAL = ("dsat", "dsat-w", "dsft", "fixed-sampling", "per-snapshot", "bd", "ba")
SCHEMA = Schema(
    tuple(column(name, "integer", bounds=[0, SIDE - 1]) for name in "xy"), unit="person"
)


def snapshots(steps: int) -> Iterator[np.ndarray]:
    """Let a few people move at each step; only the last counts are kept."""
    rng = plain_generator(1)
    counts = rng.multinomial(PEOPLE, np.full(SIDE * SIDE, 1 / SIDE**2))
    for _ in range(steps):
        left = np.minimum(
            np.bincount(rng.integers(SIDE**2, size=MOVING), minlength=SIDE**2), counts
        )
        came = np.bincount(rng.integers(SIDE**2 // 2, size=int(left.sum())), minlength=SIDE**2)
        counts = counts - left + came
        yield counts


def ours(name: str, steps: int) -> float:
    """Publish a stream; give the seconds that it took, without making the counts."""
    competitor = METHODS[name]
    settings = {"columns": ("x", "y"), **competitor.settings(steps, {})}
    rng = seeded(1)
    stream = make_stream_method(competitor.method, settings).start(
        SCHEMA, budget=Budget.seeded(EPSILON), rng=rng
    )
    seconds = 0.0
    for counts in snapshots(steps):
        start = process_time()
        stream.next_counts(counts, rng=rng)
        seconds += process_time() - start
    return seconds


def plainly(steps: int) -> float:
    """Add floating-point noise to every snapshot; give the seconds that it took."""
    rng = plain_generator(2)
    seconds = 0.0
    for counts in snapshots(steps):
        start = process_time()
        _ = counts + rng.laplace(0.0, steps / EPSILON, counts.size)
        seconds += process_time() - start
    return seconds


def peak_memory(name: str, steps: int) -> float:
    """Give the most memory held at once, in MB."""
    tracemalloc.start()
    ours(name, steps)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else USUAL
    plain = plainly(STEPS)
    table = Table(title=f"{STEPS:,} steps of {SIDE} x {SIDE} bins", box=None)
    table.add_column("method")
    headers = ("CPU s", "times plain NumPy", f"MB, {FEW:,} steps", f"MB, {STEPS:,} steps")
    for header in headers:
        table.add_column(header, justify="right")
    figures = []
    for name in names:
        seconds = ours(name, STEPS)
        few, many = peak_memory(name, FEW), peak_memory(name, STEPS)
        table.add_row(name, f"{seconds:.1f}", f"{seconds / plain:.1f}", f"{few:.1f}", f"{many:.1f}")
        label = name.replace("-", "_")
        figures.append(f"{label}_seconds={seconds:.1f} {label}_memory_ratio={many / few:.2f}")
    table.add_row("(plain NumPy)", f"{plain:.1f}", "1.0", "", "")
    Console(width=120).print(table)
    print("RESULT " + " ".join(figures) + f" plain_seconds={plain:.1f}")


if __name__ == "__main__":
    main()

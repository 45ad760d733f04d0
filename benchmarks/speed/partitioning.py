"""Time the grouping of 1,000 levels and ten million people, and the plain double loop.

Times are processor seconds of one call.  The reference fills the same dynamic program with
two plain loops, and reads a group's size from running sums.

Run: .venv/bin/python benchmarks/speed/partitioning.py
"""

from collections.abc import Callable
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from dpublish.methods.personalized.groups.optimizer import (
    GroupVariance,
    People,
    best_privacy_aware,
    drawing_table,
    precision_table,
    privacy_aware,
    utility_based,
)
from dpublish.randomness import plain_generator

LEVELS = 1_000
PEOPLE = 10_000_000
LEAST = 500
VARIANCE = GroupVariance()
DRAWING = "utility-based, drawing"


def plainly(levels: list[float], sizes: list[int]) -> float:
    """Find the best precision with two loops; groups may be as small as one level."""
    sums = [0]
    for size in sizes:
        sums.append(sums[-1] + size)
    best = [0.0]
    for end in range(1, len(levels) + 1):
        found = 0.0
        for start in range(end):
            shown = (sums[end] - sums[start]) * levels[start] ** 2
            gain = (sums[end] - sums[start]) * shown / (2.0 + 0.25 * shown)
            found = max(found, best[start] + gain)
        best.append(found)
    return best[-1]


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Give the seconds of one call, and what it gave."""
    start = process_time()
    given = call()
    return process_time() - start, given


def main() -> None:
    """Print the times and the last line for machines."""
    levels = np.linspace(0.001, 1, LEVELS)
    sizes = plain_generator(1).multinomial(PEOPLE, np.full(LEVELS, 1 / LEVELS))
    people = People.at(levels, sizes)
    calls = {
        "utility-based": lambda: utility_based(levels, sizes, VARIANCE, LEAST),
        DRAWING: lambda: utility_based(levels, sizes, VARIANCE, LEAST, None, drawing_table),
        "privacy-aware, 10 groups": lambda: privacy_aware(levels, sizes, 10, LEAST),
        "privacy-aware, number chosen": lambda: best_privacy_aware(levels, sizes, VARIANCE, LEAST),
    }
    table = Table(title=f"{LEVELS:,} levels, {PEOPLE:,} people")
    for heading in ("optimizer", "seconds", "groups", "precision"):
        table.add_column(heading)
    seconds = {}
    for name, call in calls.items():
        seconds[name], starts = timed(call)
        table_of = drawing_table if name == DRAWING else precision_table
        lasts = [*(start - 1 for start in starts[1:]), LEVELS - 1]
        shown = table_of(people, VARIANCE)[list(starts), lasts].sum()
        table.add_row(name, f"{seconds[name]:.2f}", f"{len(starts)}", f"{shown:,.0f}")
    slow, shown = timed(lambda: plainly(levels.tolist(), sizes.tolist()))
    table.add_row("plain double loop", f"{slow:.2f}", "", f"{shown:,.0f}")
    Console().print(table)
    print(
        f"RESULT utility_s={seconds['utility-based']:.3f} "
        f"drawing_s={seconds[DRAWING]:.3f} "
        f"chosen_s={seconds['privacy-aware, number chosen']:.3f} "
        f"times_faster_than_loop={slow / seconds['utility-based']:.1f}"
    )


if __name__ == "__main__":
    main()

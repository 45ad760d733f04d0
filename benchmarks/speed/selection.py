"""Time a private choice among 200,000 candidates, and a quantile of a million values.

CPU time of one call: the median of several, and the first (which builds the tables of its
rate).  OpenDP's noisy max (permute-and-flip on 64-bit integers) runs on the same scores.

Run: .venv/bin/python benchmarks/speed/selection.py
"""

from collections.abc import Callable
from fractions import Fraction
from statistics import median
from time import process_time

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.table import Table

from dpublish.mechanisms.quantile import quantile
from dpublish.mechanisms.selection import select
from dpublish.mechanisms.top_k import top_k
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, secure

CANDIDATES = 200_000
RANGE = 20
WINNERS = 100
REPEATS = 9
METHODS = ("permute-and-flip", "exponential")
TOP = f"top {WINNERS}, one-shot"
ORACLE = "OpenDP noisy max"


def milliseconds(call: Callable[[], object]) -> tuple[float, float]:
    """Measure the first call, and the median of those after it."""
    times = []
    for _ in range(1 + REPEATS):
        start = process_time()
        call()
        times.append(1000 * (process_time() - start))
    return times[0], median(times[1:])


def cases() -> dict[str, np.ndarray]:
    generator = plain_generator(1)
    one_winner = np.zeros(CANDIDATES, dtype=np.int64)
    one_winner[CANDIDATES // 3] = 10**6
    return {
        "flat": np.zeros(CANDIDATES, dtype=np.int64),
        "sd 50": np.rint(generator.normal(0, 50, CANDIDATES)).astype(np.int64),
        "one winner": one_winner,
        "wide": generator.integers(0, 10**9, CANDIDATES),
    }


def methods(scores: np.ndarray) -> dict[str, Callable[[], object]]:
    public = {"sensitivity_range": RANGE, "rng": secure()}
    fine = {"sensitivity_range": RANGE << 20, "rng": secure()}  # a lattice a million times finer
    return {
        "permute-and-flip": lambda: select(scores, **public, budget=Budget.seeded(1)),
        "exponential": lambda: select(
            scores, **public, method="exponential", budget=Budget.seeded(1)
        ),
        "exponential, fine lattice": lambda: select(
            scores << 20, **fine, method="exponential", budget=Budget.seeded(1)
        ),
        TOP: lambda: top_k(scores, **public, count=WINNERS, budget=Budget.seeded(1)),
    }


def oracle(scores: np.ndarray) -> Callable[[], object]:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    mechanism = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=float(RANGE))
    return lambda: mechanism(scores)


def main() -> None:
    dp.enable_features("contrib")
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for case, scores in cases().items():
        for method, call in (methods(scores) | {ORACLE: oracle(scores)}).items():
            rows.setdefault(method, {})[case] = milliseconds(call)
    table = Table("CPU ms (first call)", *cases(), title=f"one choice among {CANDIDATES:,}")
    for method, found in rows.items():
        table.add_row(method, *(f"{ms:.1f} ({first:.1f})" for first, ms in found.values()))
    values = plain_generator(2).normal(50, 10, 10**6)
    settings = {"probability": Fraction(1, 2), "lower": 0, "upper": 100, "rng": secure()}
    for cells in (1000, 1 << 20, 1 << 50):
        ms = milliseconds(
            lambda n=cells: quantile(values, **settings, cells=n, budget=Budget.seeded(1))
        )[1]
        table.add_row(f"median of 10^6, {cells:,} cells", f"{ms:.1f}")
    Console(width=120).print(table)

    ours = [rows[name] for name in rows if name.split(",")[0] in METHODS]
    worst = max(ms for found in ours for _, ms in found.values())
    first = max(ms for found in ours for ms, _ in found.values())
    top = max(ms for _, ms in rows[TOP].values())
    theirs = max(ms for _, ms in rows[ORACLE].values())
    # The ratio compares the worst case of each: the time of a choice should not depend on luck.
    print(
        f"RESULT worst_select_ms={worst:.1f} ratio={theirs / worst:.1f} "
        f"worst_first_select_ms={first:.1f} worst_top_c_ms={top:.1f}"
    )


if __name__ == "__main__":
    main()

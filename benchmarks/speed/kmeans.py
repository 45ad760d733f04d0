"""Time EUGkM on a table in memory, against Lloyd's rounds over the points with as many starts.

The reference is plain NumPy without noise: distances by one matrix product, `argmin`,
`bincount`, until nothing changes, at most 100 rounds; both start from centers far apart.  It is
timed on some of the starts and scaled up.  Times are processor seconds of this process, with
one thread for matrix products: several would spin, and make the reference look worse.

Run: .venv/bin/python benchmarks/speed/kmeans.py [--large]
"""

import resource
import sys
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.kmeans.eugkm import EUGkM
from dpublish.methods.kmeans.starting_centers import separated_centers
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

ROWS = 100_000
SIZES = (5_000, ROWS, 1_000_000)
LARGE_ROWS = 10_000_000
CLUSTERS = 15
STARTS = 30
SAMPLE = 3  # starts of the reference that are timed
ROUNDS = 100
SCHEMA = Schema(tuple(column(name, "numeric", bounds=[-1, 1]) for name in "xy"))


def make_points(count: int) -> np.ndarray:
    """Draw points around fifteen points."""
    rng = plain_generator(1)
    middles = rng.uniform(-0.9, 0.9, (CLUSTERS, 2))
    points = middles[rng.integers(CLUSTERS, size=count)] + rng.normal(0, 0.06, (count, 2))
    return np.clip(points, -1, 1)


def mean_square(points: np.ndarray, centers: np.ndarray) -> float:
    """Compute the mean squared distance from the nearest center."""
    return float(np.mean((points**2).sum(axis=1) + _relative(points, centers).min(axis=1)))


def _relative(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return (centers**2).sum(axis=1) - 2 * points @ centers.T


def plain_lloyd(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    for _ in range(ROUNDS):
        nearest = _relative(points, centers).argmin(axis=1)
        counts = np.bincount(nearest, minlength=len(centers))
        sums = np.stack([np.bincount(nearest, x, len(centers)) for x in points.T], axis=1)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def plainly(points: np.ndarray) -> tuple[float, float]:
    """Time the reference and give its least mean squared distance."""
    rng = plain_generator(2)
    start = process_time()
    found = [plain_lloyd(points, separated_centers(CLUSTERS, 2, rng)) for _ in range(SAMPLE)]
    seconds = (process_time() - start) * STARTS / SAMPLE
    return seconds, min(mean_square(points, centers) for centers in found)


def ours(rows: Any) -> tuple[float, np.ndarray]:
    """Time the method, from a table in memory to the release."""
    table = open_table(rows, SCHEMA)
    method = EUGkM(n_clusters=CLUSTERS, n_init=STARTS)
    start = process_time()
    release = method.release(table, budget=Budget.seeded(1), rng=seeded(1))
    return process_time() - start, release.centers


def main() -> None:
    table = Table("points", "method", "CPU s", "mean squared distance", "peak memory (MB)")
    times: dict[int, float] = {}
    plain = 0.0
    for count in (*SIZES, LARGE_ROWS) if "--large" in sys.argv else SIZES:
        points = make_points(count)
        times[count], centers = ours(pa.table(dict(zip("xy", points.T.copy(), strict=True))))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        score = f"{mean_square(points, centers):.5f}"
        table.add_row(f"{count:,}", "eugkm", f"{times[count]:.2f}", score, f"{peak:.0f}")
        if count == ROWS:
            plain, least = plainly(points)
            table.add_row(f"{count:,}", "plain Lloyd", f"{plain:.1f}", f"{least:.5f}", "")
    Console().print(table)
    last = f"RESULT ratio={plain / times[ROWS]:.0f} seconds={times[ROWS]:.2f}"
    if LARGE_ROWS in times:
        last += f" large_seconds={times[LARGE_ROWS]:.1f}"
    print(f"{last} plain_seconds={plain:.1f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

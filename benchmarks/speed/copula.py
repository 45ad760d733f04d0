"""Time DPCopula on a million rows of twenty columns, on fewer rows, and on fewer columns.

With m columns there are m (m - 1) / 2 pairs.

The reference is Kendall's rank correlation of SciPy, without noise, timed on a few of the
pairs of columns and scaled up to all of them: that is the part of the paper's method which
grows with rows.  Times are processor seconds of this process, with one thread for matrix
products.

Run: .venv/bin/python benchmarks/speed/copula.py [--rows N]
"""

import argparse
import resource
from itertools import combinations
from time import process_time

from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.datasets.gaussian_copula import gaussian_copula, gaussian_copula_schema
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

COLUMNS = 20
ROWS = 1_000_000
PARTS = (0.25, 0.5, 1.0)
FEWER_COLUMNS = (5, 10, 20)
SAMPLE = 3  # pairs of the reference that are timed
METHODS = ("spearman", "kendall", "mle")


def ours(rows, method: str, draw: bool) -> tuple[float, float]:
    """Time a release from a table in memory, and drawing as many rows from it."""
    table = open_table(rows, gaussian_copula_schema(rows.num_columns))
    chosen = make_method("dpcopula", {"correlation": method})
    start = process_time()
    release = chosen.release(table, budget=Budget.seeded(1), rng=seeded(1))
    seconds = process_time() - start
    start = process_time()
    if draw:
        release.rows(seed=1)
    return seconds, process_time() - start


def plainly(rows) -> float:
    """Time the reference on some pairs, and scale it up."""
    pairs = list(combinations(rows.column_names, 2))
    start = process_time()
    for first, second in pairs[:SAMPLE]:
        kendalltau(rows[first].to_numpy(), rows[second].to_numpy())
    return (process_time() - start) * len(pairs) / SAMPLE


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of DPCopula")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the largest table")
    most = parser.parse_args().rows
    table = Table("rows", "correlation", "release, CPU s", "rows, CPU s", "peak memory (MB)")
    times: dict[tuple[str, float], float] = {}
    plain = 0.0
    for part in PARTS:
        rows = gaussian_copula(int(most * part), COLUMNS)
        for method in METHODS:
            draw = method == METHODS[0]
            times[method, part], drawing = ours(rows, method, draw)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            shown = f"{drawing:.1f}" if draw else ""
            seconds = f"{times[method, part]:.1f}"
            table.add_row(f"{rows.num_rows:,}", method, seconds, shown, f"{peak:.0f}")
        if part == PARTS[-1]:
            plain = plainly(rows)
            table.add_row(f"{rows.num_rows:,}", "SciPy's Kendall alone", f"{plain:.0f}", "", "")
    by_columns: dict[tuple[str, int], float] = {}
    for columns in FEWER_COLUMNS:
        rows = gaussian_copula(most // 4, columns)
        for method in METHODS:
            by_columns[method, columns], _ = ours(rows, method, draw=False)
            shown = f"{rows.num_rows:,} x {columns}"
            table.add_row(shown, method, f"{by_columns[method, columns]:.2f}", "", "")
    Console().print(table)
    figures = [f"{method}_seconds={times[method, 1.0]:.1f}" for method in METHODS]
    # In proportion to rows, four times the rows take four times as long.
    growth = [f"{m}_growth={times[m, 1.0] / times[m, 0.25]:.2f}" for m in METHODS]
    first, last = FEWER_COLUMNS[0], FEWER_COLUMNS[-1]
    # Pairs grow with the square of the columns: four times the columns, sixteen times the pairs.
    growth += [
        f"{m}_columns_growth={by_columns[m, last] / by_columns[m, first]:.1f}" for m in METHODS
    ]
    ratio = f"ratio={plain / times['kendall', 1.0]:.1f}"
    print(" ".join(["RESULT", *figures, *growth, ratio, f"plain_seconds={plain:.0f}"]))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

"""Time the scores of ten thousand grids on a million rows, against counting grid by grid.

The reference counts each grid from the coded rows by one `bincount`; it is timed on some of
the grids, evenly chosen, and scaled up.  Times are processor seconds of this process.

Run: .venv/bin/python benchmarks/speed/grids.py [--large]
"""

import resource
import sys
import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.methods.privpfc.candidate_grids import enumerate_grids
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.grid_scores import score_grids
from dpublish.randomness import plain_generator, seeded

ROWS = 1_000_000
SMALL_ROWS = 45_222
LARGE_ROWS = 5_000_000
GRIDS = 10_000
MANY_GRIDS = 200_000
SAMPLE = 40
KINDS = 24  # of people; what they are decides all columns, so that these depend on each other
SIZES = (16, 8, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41)
BRANCHING = (2, 2, 4, 3, 2, 3, 4, 2, 5, 2, 4, 2, 3, 4)
QUALITY = GridQuality(Fraction(3, 5))
SCHEMA = Schema(
    (
        *(
            column(f"p{number:02}", "integer", bounds=[0, size - 1], branching=branching)
            for number, (size, branching) in enumerate(zip(SIZES, BRANCHING, strict=True))
        ),
        column("class", "category", values=["no", "yes"]),
    )
)
TASK = Task.of(SCHEMA, target="class")


def make_rows(count: int) -> Any:
    """Draw rows whose columns are skewed and depend on each other."""
    rng = plain_generator(1)
    kinds = rng.choice(KINDS, count, p=rng.dirichlet(np.full(KINDS, 0.7)))
    columns: dict[str, Any] = {}
    for predictor, size in zip(TASK.predictors, SIZES, strict=True):
        odds = rng.dirichlet(np.full(size, 0.3), KINDS)
        values = np.empty(count, dtype=np.uint8)
        for kind in range(KINDS):
            members = np.flatnonzero(kinds == kind)
            values[members] = rng.choice(size, len(members), p=odds[kind])
        columns[predictor.name] = values
    classes = rng.random(count) < rng.beta(0.5, 1, KINDS)[kinds]
    columns["class"] = pa.array(np.array(["no", "yes"])[classes.astype(np.int64)])
    return pa.table(columns)


def choose_grids(rows: int, limit: int) -> np.ndarray:
    sizes = [[len(level.starts) for level in x.taxonomy.levels] for x in TASK.predictors]
    most = Fraction(rows * 3, 25)  # a fifth of the rows times the epsilon of the counts
    return enumerate_grids(
        sizes, max_cells=most, limit=limit, uniform=partial(uniform_below, rng=seeded(1))
    )


def score_plainly(rows: Any, grids: np.ndarray) -> tuple[list[int], float]:
    """Score each grid from the coded rows; the codes are made before the clock starts."""
    codes = [x.encode(rows[x.name].combine_chunks())[0] for x in TASK.predictors]
    classes = TASK.target.encode(rows["class"].combine_chunks())[0].astype(np.int64)
    start = process_time()
    scores = []
    for grid in grids.tolist():
        keys, size = classes.copy(), 1
        for predictor, leaves, level in zip(TASK.predictors, codes, grid, strict=True):
            if level:
                axis = predictor.axis(level)
                keys = keys * axis.size + axis.leaf_to_cell[leaves]
                size *= axis.size
        counts = np.bincount(keys, minlength=2 * size).reshape(2, size)
        scores.append(int(QUALITY.score_cells(counts).sum()))
    return scores, process_time() - start


def seconds(path: str, rows: int, grids: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Score from Parquet; measure all of it, and what a table read before would take."""
    start = process_time()
    run = Run(open_table(path, SCHEMA), rng=seeded(1))
    score_grids(run, TASK, grids[:1], QUALITY)
    read = process_time() - start
    start = process_time()
    scores = score_grids(run, TASK, grids, QUALITY, rows_hint=rows)
    return scores, read, process_time() - start


def main() -> None:
    table = Table("rows", "grids", "reading (CPU s)", "scoring (CPU s)", "peak memory (MB)")
    cases = [(SMALL_ROWS, GRIDS), (SMALL_ROWS, MANY_GRIDS), (ROWS, GRIDS)]
    if "--large" in sys.argv:
        cases.append((LARGE_ROWS, GRIDS))
    ratio = ours = plain = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for count, limit in cases:
            path = str(Path(folder, f"{count}.parquet"))
            rows = make_rows(count)
            pq.write_table(rows, path)
            grids = choose_grids(count, limit)
            scores, read, spent = seconds(path, count, grids)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.add_row(
                f"{count:,}", f"{len(grids):,}", f"{read:.2f}", f"{spent:.2f}", f"{peak:.0f}"
            )
            if count == ROWS:
                some = np.linspace(0, len(grids) - 1, SAMPLE).astype(np.int64)
                plainly, time = score_plainly(rows, grids[some])
                if plainly != scores[some].tolist():
                    raise SystemExit("the two ways of scoring differ")
                ours, plain = spent, time * len(grids) / SAMPLE
                ratio = plain / ours
                table.add_row(f"{count:,}", f"{len(grids):,}", "", f"{plain:.0f} one by one", "")
    Console().print(table)
    print(f"RESULT ratio={ratio:.0f} seconds={ours:.2f} plain_seconds={plain:.0f}")


if __name__ == "__main__":
    main()

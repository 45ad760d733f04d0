"""Time one round of PrivGene and whole fits on a table like Adult, against a plain loop.

A round scores 200 candidate models on all rows.  The reference is the plain loop over the
candidates and, for each, over the rows, in Python with NumPy for the sum over features; it is
timed on some of the rows and candidates and scaled up.  Adult is used if a data folder is
named by DPUBLISH_DATA, simulated rows of the same size otherwise.  Times are processor seconds
of this process, with one thread for matrix products.

Run: .venv/bin/python benchmarks/speed/models.py
"""

from math import exp, log1p
from time import process_time

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from dpublish.core.method import Run
from dpublish.core.prediction import encode_rows
from dpublish.data.features import FEATURE_UNIT
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS, find_data_folder
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT, LinearLosses
from dpublish.methods.linear_models.privgene import PrivGene, first_models
from dpublish.methods.linear_models.privlocal import PrivLocal
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

ROWS = 45_222
CANDIDATES = 200
SAMPLE_ROWS, SAMPLE_CANDIDATES = 2_000, 4  # of the reference
REPEATS = 3
WIDTHS = (8, 17, 7, 14, 6, 5, 2, 41)  # values of the simulated categories, like Adult's


def adult() -> tuple[Schema, pa.Table]:
    """Read Adult, or make up rows of its size."""
    benchmark, folder = BENCHMARKS["adult"], find_data_folder()
    if benchmark.missing_file(folder) is None:
        schema = benchmark.schema(folder)
        return schema, benchmark.rows(folder).select(list(schema.names))
    rng = plain_generator(1)
    columns, rows = [], {}
    for number in range(6):
        name = f"number_{number}"
        columns.append(column(name, "numeric", bounds=[0, 1], bins=16))
        rows[name] = rng.random(ROWS)
    for number, width in enumerate(WIDTHS):
        name, values = f"category_{number}", [f"value {value}" for value in range(width)]
        columns.append(column(name, "category", values=values))
        rows[name] = np.array(values)[rng.integers(width, size=ROWS)]
    columns.append(column("income", "category", values=["low", "high"]))
    rows["income"] = np.array(["low", "high"])[(rng.random(ROWS) < rows["number_0"]).astype(int)]
    return Schema(tuple(columns)), pa.table(rows)


def plain_losses(features: np.ndarray, signs: np.ndarray, models: np.ndarray) -> list[float]:
    """Add up the losses by the loop that the papers' listings describe."""
    found = []
    for model in models:
        total = 0.0
        for record, sign in zip(features, signs, strict=True):
            margin = sign * float(record @ model)
            total += log1p(exp(-margin)) if margin > 0 else log1p(exp(margin)) - margin
        found.append(total)
    return found


def main() -> None:
    schema, rows = adult()
    task = ModelTask.of(schema, "income")
    table = open_table(rows, schema)
    models = first_models(Run(table, rng=seeded(1)), CANDIDATES, task.features.size)
    kernel = LinearLosses(task.schema, task.features, "income", (1,), models)
    start = process_time()
    for _ in range(REPEATS):
        kernel.range_sensitivity(table.neighbors)
        table.sum(kernel)
    round_seconds = (process_time() - start) / REPEATS

    few = rows.slice(0, SAMPLE_ROWS)
    codes = encode_rows(few, schema, schema.names)
    features = task.features.matrix(codes) / FEATURE_UNIT
    signs = 2.0 * codes["income"] - 1
    start = process_time()
    plain = plain_losses(features, signs, models[:SAMPLE_CANDIDATES] / WEIGHT_UNIT)
    seconds = process_time() - start
    plain_seconds = seconds * rows.num_rows / len(signs) * CANDIDATES / SAMPLE_CANDIDATES
    ours = open_table(few, schema).sum(kernel)[:SAMPLE_CANDIDATES] / LOSS_UNIT
    np.testing.assert_allclose(ours, plain, atol=len(signs) * 1.5 / LOSS_UNIT)

    shown = Table(
        "what", "CPU s", "", title=f"{rows.num_rows:,} rows, {task.features.size} features"
    )
    shown.add_row("one round, 200 candidates", f"{round_seconds:.2f}", "")
    shown.add_row("the same by the plain loop", f"{plain_seconds:.1f}", "scaled up")
    fits = {}
    for method in (PrivGene(target="income"), PrivLocal(target="income")):
        start = process_time()
        release = method.release(table, budget=Budget.seeded(1), rng=seeded(1))
        fits[method.name] = process_time() - start
        shown.add_row(f"{method.name}, epsilon 1", f"{fits[method.name]:.1f}", release.notes[0])
    Console().print(shown)
    print(
        f"RESULT ratio={plain_seconds / round_seconds:.0f} seconds={max(fits.values()):.1f} "
        f"round_seconds={round_seconds:.2f} plain_seconds={plain_seconds:.0f}"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

"""How good are synthetic rows of whole tables, numbers and categories together?

UCI Adult (15 columns) and UCI Census-Income (40 columns), each with its numbers cut finely: the
distance of every column's marginal from the true one (largest gap of the cumulative counts for
numbers, total variation for categories), of every two columns' association, the
relative error of random range counts, and the misclassification of a boosted classifier that
is trained on synthetic rows and tested on true ones.  `privbayes` goes along with the same
columns, and `marginals`, which knows nothing of dependence.

Run: .venv/bin/python benchmarks/accuracy/mixed_tables.py [--data-folder DATA] [--repeats 3]
"""

import argparse
from dataclasses import replace
from statistics import fmean
from time import process_time

import pyarrow as pa
from rich.console import Console
from rich.table import Table as RichTable

from dpublish.core.registry import make_method
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS, find_data_folder
from dpublish.evaluation.classification import HeldOut, evaluate_release
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

TABLES = ("adult", "census")
METHODS = {
    "dpcopula-hybrid, network": ("dpcopula-hybrid", {"design": "network"}),
    "dpcopula-hybrid, numbers-first": ("dpcopula-hybrid", {"design": "numbers-first"}),
    "privbayes": ("privbayes", {}),
    "marginals": ("marginals", {}),
}
EPSILONS = ("0.2", "1")
BINS = 1000


def fine_numbers(schema: Schema) -> Schema:
    """Cut every number of a schema finely: into integers, or into 1,000 bins."""
    columns = []
    for one in schema.columns:
        if isinstance(one, NumberColumn):
            low, high = one.bounds
            settings = {"bounds": [int(low), int(high)], "missing": one.missing}
            if high - low >= BINS:
                settings["bins"] = BINS
            columns.append(column(one.name, "integer", **settings))
        else:
            columns.append(one)
    return replace(schema, columns=tuple(columns))


def measure(method: str, rows: pa.Table, schema: Schema, target: str, epsilon: str, seed: int):
    """Release once, draw rows, and compare them with the true ones."""
    chosen, settings = METHODS[method]
    table = open_table(rows, schema)
    start = process_time()
    release = make_method(chosen, settings).release(
        table, budget=Budget.seeded(epsilon), rng=seeded(1000 + seed)
    )
    release_seconds = process_time() - start
    start = process_time()
    release.rows(rows.num_rows, seed=seed)
    draw_seconds = process_time() - start
    compared = Comparison.of(release, rows, seed=seed)
    held_out = HeldOut.of(rows, schema, target)
    scores = evaluate_release(
        release, held_out, target=target, classifiers=("boosting",), seed=seed
    )
    distances = [
        marginal.total_variation if marginal.cdf_gap is None else marginal.cdf_gap
        for marginal in compared.marginals
    ]
    return {
        "marginals, mean": fmean(distances),
        "marginals, worst": max(distances),
        "association": fmean(pair.difference for pair in compared.associations),
        "counts": fmean(float(answer.errors.mean_relative) for answer in compared.answered),
        "boosting": scores[0].misclassification,
        "release s": release_seconds,
        "draw s": draw_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy of synthetic rows of whole tables")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--repeats", type=int, default=3, help="fresh runs at each budget")
    options = parser.parse_args()
    folder = find_data_folder(options.data_folder)
    console = Console(width=160)
    results = []
    for name in TABLES:
        benchmark = BENCHMARKS[name]
        if benchmark.missing_file(folder) is not None:
            console.print(f"{name} is left out: its file is not in the data folder")
            continue
        schema = fine_numbers(benchmark.schema(folder))
        rows = benchmark.rows(folder).select(schema.names)
        for epsilon in EPSILONS:
            shown = RichTable(title=f"{name}, {len(schema.columns)} columns, ε = {epsilon}")
            shown.add_column("method")
            for method in METHODS:
                runs = [
                    measure(method, rows, schema, benchmark.target, epsilon, seed)
                    for seed in range(options.repeats)
                ]
                means = {key: fmean(run[key] for run in runs) for key in runs[0]}
                if not shown.rows:
                    for key in means:
                        shown.add_column(key, justify="right")
                shown.add_row(method, *(f"{value:.4f}" for value in means.values()))
                if method == "dpcopula-hybrid, network":
                    label = f"{name}_{epsilon}".replace("-", "_")
                    results.append(f"{label}_margins={means['marginals, mean']:.4f}")
                    results.append(f"{label}_seconds={means['release s']:.1f}")
            console.print(shown)
    print("RESULT", *results)


if __name__ == "__main__":
    main()

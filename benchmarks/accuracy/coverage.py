"""How often do intervals of counts hold the truth?  Every kind of release, on real tables.

UCI Adult (age, hours_per_week, education_num, sex, income) and NIST's excerpt of the American
Community Survey (AGEP, PINCP, POVPIP, SEX, EDU).  Numbers are declared with few bins and asked for
by ranges that cut them, of one to three columns.  Each line: the kind of the intervals, the share
that holds the truth (95 % is wanted), the median width in percent of all records, and the share
of queries without an interval.  Rows "bounds" are the confidence intervals beside those of a model.

Run: .venv/bin/python benchmarks/accuracy/coverage.py --data-folder DATA [--queries 60]
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as RichTable

from dpublish.core.query.rows import ClearRows
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidQuery
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SOURCES = {
    "adult": (
        "adult.parquet",
        (
            column("age", "integer", bounds=[17, 90], bins=8),
            column("hours_per_week", "integer", bounds=[1, 99], bins=10),
            column("education_num", "integer", bounds=[1, 16]),
            column("sex", "category", values=["Female", "Male"]),
            column("income", "category", values=["<=50K", ">50K"]),
        ),
    ),
    "acs": (
        "nist_acs_national2019.parquet",
        (
            column("AGEP", "integer", bounds=[0, 99], bins=10),
            column("PINCP", "numeric", bounds=[0, 100_000], bins=10, missing="drop"),
            column("POVPIP", "integer", bounds=[0, 501], bins=8, missing="drop"),
            column("SEX", "category", values=["1", "2"]),
        ),
    ),
}
METHODS = {
    "histogram": lambda n, c: {"columns": (*n[:2], c)},
    "histogram, threshold": lambda n, c: {"columns": (*n, c), "threshold": "auto"},
    "statistics": lambda n, c: {"measures": ("count",), "by": (n[0], c)},
    "marginals": lambda n, c: {},
    "ug": lambda n, c: {"columns": n[:2]},
    "ag": lambda n, c: {"columns": n[:2]},
    "psd": lambda n, c: {"columns": n[:2]},
    "p-hp": lambda n, c: {"columns": n[:2]},
    "privelet": lambda n, c: {"columns": (*n[:2], c)},
    "eugkm": lambda n, c: {"columns": n[:2], "n_clusters": 3},
    "diffpid3": lambda n, c: {"target": c},
    "privpfc": lambda n, c: {"target": c},
    "privbayes": lambda n, c: {},
    "dpcopula": lambda n, c: {},
    "dpcopula-hybrid": lambda n, c: {},
    "synth": lambda n, c: {},
}


def random_queries(columns, number):
    """Make up ranges of one to three columns that seldom end where bins do."""
    rng = plain_generator(7)
    numbers = [each for each in columns if each.kind != "category"]
    found = []
    for _ in range(number):
        chosen = rng.permutation(len(numbers))[: rng.integers(1, 4)]
        conditions = []
        for each in (numbers[i] for i in chosen):
            low, high = each.bounds
            ends = np.sort(rng.uniform(low, high, 2))
            conditions.append(f"{each.name} in {round(ends[0])}..{round(ends[1])}")
        if rng.random() < 0.3:
            last = columns[-1]
            conditions.append(f'{last.name} = "{last.axis().labels[0]}"')
        found.append(" and ".join(conditions))
    return found


def measure(release, queries, truths, seen):
    for query in queries:
        try:
            answer = release.count(query)
        except InvalidQuery:
            continue
        truth = truths[query]
        if answer.low is None:
            seen["none"].append((0, 0))
            continue
        seen[answer.kind].append((answer.low <= truth <= answer.high, answer.high - answer.low))
        if (bounds := getattr(answer, "bounds", None)) is not None:
            seen["bounds"].append((bounds[0] <= truth <= bounds[1], bounds[1] - bounds[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-folder", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--datasets", nargs="*", default=[*SOURCES])
    parser.add_argument("--methods", nargs="*", default=[*METHODS])
    wanted = parser.parse_args()
    shown = RichTable("table", "method", "kind", "answers", "holds", "median width")
    for dataset in wanted.datasets:
        file, columns = SOURCES[dataset]
        schema = Schema(columns)
        rows = pq.read_table(wanted.data_folder / file, columns=list(schema.names)).drop_null()
        for each in columns:
            if each.kind == "category":
                at = rows.column_names.index(each.name)
                rows = rows.set_column(at, each.name, rows[each.name].cast("string"))
        queries = random_queries(columns, wanted.queries)
        clear = ClearRows(rows, schema)
        truths = {query: int(clear.matches(query).sum()) for query in queries}
        names = tuple(each.name for each in columns if each.kind != "category")
        for label in wanted.methods:
            settings = METHODS[label](names, columns[-1].name)
            seen = defaultdict(list)
            for seed in range(wanted.releases):
                release = make_method(label.split(",")[0], settings).release(
                    open_table(rows, schema),
                    budget=Budget.seeded(wanted.epsilon),
                    rng=seeded(seed),
                )
                measure(release, queries, truths, seen)
            for kind, each in seen.items():
                holds, widths = np.array(each, dtype=float).T
                told = (
                    ("-", "-")
                    if kind == "none"
                    else (
                        f"{100 * holds.mean():.0f} %",
                        f"{100 * np.median(widths) / rows.num_rows:.1f} %",
                    )
                )
                shown.add_row(dataset, label, kind, f"{len(each)}", *told)
                print(dataset, label, kind, len(each), *told, sep=" | ", flush=True)
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()

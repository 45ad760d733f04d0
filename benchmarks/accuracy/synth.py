"""How good are rows for any use?  `synth` beside our other methods for whole tables.

UCI Adult (15 columns) and NIST's excerpt of the American Community Survey (21 columns); on
demand the National Long Term Care Survey (nltcs, 16 binary columns) and UCI Census-Income
(census, 41 columns).  Rows are released from 80 % of each table and compared with them, and a
classifier that learns from them is tested on the rest (`synth_measures.py` says how).  Numbers
are released with the 20 bins on which rows are compared, which is what peers get
(`benchmarks/peers`): these figures have plain names.  They are also released with up to 100 cells,
as an owner may declare them; those names end in `_100cells`.

The rows "bootstrap" (true rows drawn with replacement) and "independent" (true marginals, no
dependence) bound what can be hoped for and what costs nothing but the marginals.

Run: .venv/bin/python benchmarks/accuracy/synth.py [--releases 3] [--datasets adult acs]
"""

import argparse
import secrets
import sys
from collections.abc import Iterator
from statistics import fmean
from time import process_time
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as RichTable
from synth_measures import (
    BINS,
    FINE_BINS,
    SOURCES,
    Reference,
    auc,
    bootstrap,
    cut_numbers,
    independent,
    load,
    measures,
)

from dpublish.core.registry import list_methods, make_method
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

METHODS = ("marginals", "privbayes", "dpcopula-hybrid", "synth")
HEADINGS = {
    "tv1": "TV 1",
    "tv2": "TV 2",
    "tv3": "TV 3",
    "dv": "ΔV",
    "auc": "AUC",
    "seconds": "CPU s",
}
DIGITS = {"dv": 3, "auc": 3, "seconds": 1}


class Setup(NamedTuple):
    """One line of a table: who releases, with what budget, and how finely numbers are cut."""

    method: str
    epsilon: str
    bins: int


def measure(reference: Reference, setup: Setup, seed: int, with_auc: bool) -> dict[str, float]:
    """Release once, draw as many rows as were released, and compare them with the true ones."""
    table = open_table(reference.train, cut_numbers(reference.schema, setup.bins))
    start = process_time()
    release = make_method(setup.method, {}).release(
        table, budget=Budget.seeded(setup.epsilon), rng=seeded(seed)
    )
    rows = release.rows(reference.train.num_rows, seed=seed)
    seconds = process_time() - start
    found = measures(reference, rows)
    if with_auc:
        found["auc"] = auc(reference, rows, seed=seed % 2**32)
    return {**found, "seconds": seconds}


def bounds(reference: Reference, with_auc: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """Measure what true rows, and true marginals alone, would give."""
    for make in (bootstrap, independent):
        codes = make(reference)
        found = measures(reference, codes)
        if with_auc:
            found["auc"] = auc(reference, codes)
        yield make.__name__, found


def show_dataset(
    reference: Reference, options: argparse.Namespace, console: Console, first_seed: int
) -> list[str]:
    """Print the table of one dataset, and return what goes into the last line."""
    columns, records = len(reference.sizes), reference.train.num_rows
    shown = RichTable(title=f"{reference.name}: {records:,} rows, {columns} columns")
    for heading in ("method", "ε", "bins"):
        shown.add_column(heading)
    keys = [key for key in HEADINGS if key != "auc" or options.auc]
    for key in keys:
        shown.add_column(HEADINGS[key], justify="right")
    for name, found in bounds(reference, options.auc):
        shown.add_row(name, "", "", *(_show(key, found.get(key)) for key in keys))
    results = []
    for epsilon in options.epsilons:
        shown.add_section()
        for bins in options.bins:
            for method in options.methods:
                setup = Setup(method, epsilon, bins)
                try:
                    runs = [
                        measure(reference, setup, first_seed + k, options.auc)
                        for k in range(options.releases)
                    ]
                except InvalidParameter:  # a table that the method is not for
                    shown.add_row(method, epsilon, str(bins), "refused")
                    continue
                means = {key: fmean(run[key] for run in runs) for key in keys}
                shown.add_row(method, epsilon, str(bins), *(_show(key, means[key]) for key in keys))
                results += _name_results(reference.name, setup, means)
    console.print(shown)
    return results


def _show(key: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.{DIGITS.get(key, 4)}f}"


def _name_results(dataset: str, setup: Setup, means: dict[str, float]) -> list[str]:
    """Name the figures that are watched: those of `synth` plainly, others with their method."""
    ending = f"eps{setup.epsilon}"
    if setup.bins != BINS:
        ending += f"_{setup.bins}cells"
    if setup.method != "synth":
        ending += "_" + setup.method.replace("-", "_")
    watched = [key for key in ("tv2", "auc") if key in means]
    return [f"{dataset}_{key}_{ending}={means[key]:.4f}" for key in watched]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of synthetic rows for any use")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--releases", type=int, default=3, help="releases for each line")
    parser.add_argument("--datasets", nargs="+", choices=SOURCES, default=["adult", "acs"])
    parser.add_argument("--epsilons", nargs="+", default=["1", "0.1"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument(
        "--bins", nargs="+", type=int, default=[BINS, FINE_BINS], help="cells of a number, at most"
    )
    parser.add_argument("--no-auc", dest="auc", action="store_false", help="train no classifier")
    parser.add_argument("--seed", type=int, help="repeat a run; noise is fresh without it")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    console = Console(width=120)
    known = {method.name for method in list_methods()}
    for method in options.methods:
        if method not in known:
            console.print(f"{method} is left out: there is no such method")
    options.methods = [method for method in options.methods if method in known]
    first_seed = secrets.randbits(62) if options.seed is None else options.seed
    results = []
    for name in options.datasets:
        try:
            reference = load(name, options.data_folder)
        except UnreadableData as error:
            sys.exit(str(error))
        results += show_dataset(reference, options, console, first_seed)
    print("RESULT", *results)


if __name__ == "__main__":
    main()

"""How good are range counts from synthetic tables?  Adult's numbers and simulated tables.

First four numbers of UCI Adult: the mean relative error of 1,000 random range counts about all
four columns, beside what other tools reach.  Then tables of eight columns with 1,000 values
each, 50,000 rows, Gaussian dependence and marginals of three shapes, with every method that can
run there.  The sanity bound is 0.05 % of the rows.  The ends of ranges are drawn evenly from
all values (by the release's own estimates, and "by rows" from its synthetic rows), and once
more from the values of records ("near records", also as absolute errors): ranges drawn evenly
hold next to no records where marginals are steep.  Two references go along, the true marginals as
if columns were independent, and to answer 0 to everything.
An interrupted run goes on where it stopped, if it is given the same folder.

Run: .venv/bin/python benchmarks/accuracy/copula.py [--data-folder DATA] [-o FOLDER]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console
from rich.table import Table

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.number_tables import NUMBER_TABLES
from dpublish.experiments.copula import SIMULATED, STUDY
from dpublish.experiments.copula_runner import (
    ABSOLUTE_BETWEEN_RECORDS,
    ANSWER_SECONDS,
    BETWEEN_RECORDS,
    FROM_ROWS,
    REFERENCES,
    RELATIVE,
)
from dpublish.experiments.trials import REFUSED, SECONDS, Result

ADULT = "adult-numbers"
EPSILONS = ("0.1", "1")
DEFAULT = "dpcopula"
MEASURES = {
    RELATIVE: "relative",
    FROM_ROWS: "by rows",
    BETWEEN_RECORDS: "near records",
    ABSOLUTE_BETWEEN_RECORDS: "absolute",
}
TIMES = {SECONDS: "release\nCPU s", ANSWER_SECONDS: "1,000 answers\nCPU s"}
# Measured with the tools of the day, on the same rows, with queries of the same kind.
PEERS = {ADULT: ("(best of other tools)", ("0.69", "0.23"), "16 to 50")}


def main() -> None:
    options = _options()
    folder = find_data_folder(options.data_folder)
    present = [
        name for name in (ADULT, *SIMULATED) if NUMBER_TABLES[name].missing_file(folder) is None
    ]
    if ADULT not in present:
        print(f"skipped {ADULT}: adult.parquet is not there; name its folder with --data-folder")
    planned = STUDY.plan(
        options.repeats,
        figure="comparators",
        data_folder=folder,
        datasets=present,
        methods=options.methods.split(",") if options.methods else None,
        epsilons=EPSILONS,
    )
    for note in planned.notes:
        print(note)
    folder = Path(options.output or tempfile.mkdtemp(prefix="dpublish-accuracy-"))
    folder.mkdir(parents=True, exist_ok=True)
    with Console(stderr=True).status("") as status:

        def show(done: int, total: int, label: str) -> None:
            status.update(f"{done} of {total}: {label}")

        results = planned.run(folder / "accuracy.jsonl", show)
    report(results, present, options.repeats)


def report(results: list[Result], datasets: list[str], repeats: int) -> None:
    """Print a table for each dataset, and the figures in one line."""
    lines = []
    for dataset in datasets:
        table = Table(title=f"{dataset}: mean of {repeats} fresh runs", box=None)
        table.add_column("method", no_wrap=True)
        for name in MEASURES.values():
            for epsilon in EPSILONS:
                table.add_column(f"{name}\nε = {epsilon}", justify="right")
        for name in TIMES.values():
            table.add_column(name, justify="right")
        own = [result for result in results if result.trial.setting["dataset"] == dataset]
        methods = list(dict.fromkeys(trial.method for trial, _ in own))
        for method in sorted(methods, key=lambda method: method in REFERENCES):
            shown = f"({method})" if method in REFERENCES else method
            table.add_row(shown, *_cells(own, method), *_times(own, method))
        if dataset in PEERS:
            peer, numbers, seconds = PEERS[dataset]
            table.add_row(peer, "", "", *numbers, "", "", "", "", seconds)
        Console(width=170).print(table)
        lines += _line(own, dataset)
    print("RESULT " + " ".join(lines))


def _cells(results: list[Result], method: str) -> list[str]:
    cells = []
    for name in MEASURES:
        for epsilon in EPSILONS:
            found = [
                figures
                for trial, figures in results
                if trial.method == method and trial.epsilon in (epsilon, "none")
            ]
            if any(REFUSED in figures for figures in found):
                cells.append("cannot run" if name == RELATIVE else "")
            else:
                cells.append(_mean([figures[name] for figures in found if name in figures]))
    return cells


def _times(results: list[Result], method: str) -> list[str]:
    told = []
    for name in TIMES:
        own = [figures[name] for trial, figures in results if trial.method == method
               and name in figures]  # fmt: skip
        told.append(f"{fmean(own):.2f}" if own else "")
    return told


def _line(results: list[Result], dataset: str) -> list[str]:
    """Give the default method's figures, with its slowest run, for programs."""
    own = [(trial, f) for trial, f in results if trial.method == DEFAULT and RELATIVE in f]
    if not own:
        return []
    label = f"{DEFAULT}_{dataset}".replace("-", "_")
    found = []
    for epsilon in EPSILONS:
        values = [figures[RELATIVE] for trial, figures in own if trial.epsilon == epsilon]
        found.append(f"{label}_{epsilon}={fmean(values):.3f}")
    slowest = max(figures[SECONDS] + figures[ANSWER_SECONDS] for _, figures in own)
    return [*found, f"{label}_seconds={slowest:.2f}"]


def _mean(values: list[float]) -> str:
    if not values:
        return ""
    digits = 3 if fmean(values) < 10 else 1
    deviation = f" ±{stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of synthetic tables")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--methods", help="some of the methods, such as dpcopula,psd")
    parser.add_argument("--repeats", type=int, default=5, help="fresh runs at each budget")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""How often are private models wrong on Adult?  Ten folds, fresh noise in each, five budgets.

Prints the mean misclassification and area under the curve of the methods given (by default of
`model`, with nothing tuned to a budget), beside what direct private classifiers of other tools
reach when tuned on the data at each budget, what they reach as they come, and the goal.
An interrupted run goes on where it stopped, if it is given the same folder.

Run: .venv/bin/python benchmarks/accuracy/models.py [--data-folder DATA] [--methods model,privgene]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console
from rich.table import Table

from dpublish.core.method import Progress
from dpublish.core.registry import CATALOG
from dpublish.datasets.benchmarks import BENCHMARKS, find_data_folder
from dpublish.experiments.folds import FOLDS
from dpublish.experiments.models import ANY, CURVE, METHODS, MODELS, REFERENCES, STUDY, WRONG
from dpublish.experiments.trials import SECONDS, Result

EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1")
# Measured with the tools of the day on the same folds; the goal is what was asked for.
PEERS = {
    "other tools, tuned": (0.235, 0.221, 0.197, 0.179, 0.173),
    "other tools, default": (0.337, 0.300, 0.266, 0.224, 0.197),
    "goal": (0.18, 0.17, 0.165, 0.16, 0.157),
}


def main() -> None:
    options = _options()
    folder = find_data_folder(options.data_folder)
    missing = BENCHMARKS["adult"].missing_file(folder)
    if missing is not None:
        print(f"skipped: {missing} is not there; name its folder with --data-folder")
        return
    methods = options.methods.split(",")
    absent = [name for name in methods if name in METHODS and name not in CATALOG]
    if len(absent) == len(methods):
        print(f"skipped: this version has no method {', '.join(absent)}")
        return
    planned = STUDY.plan(
        1,
        data_folder=folder,
        datasets=("adult",),
        methods=methods,
        epsilons=EPSILONS,
        classifiers=options.models.split(","),
        folds=options.folds,
    )
    for note in planned.notes:
        print(note)
    folder = Path(options.output or tempfile.mkdtemp(prefix="dpublish-accuracy-"))
    folder.mkdir(parents=True, exist_ok=True)
    with Console(stderr=True).status("") as status:

        def show(done: int, total: int, label: str) -> None:
            status.update(f"{done} of {total}: {label}")

        progress: Progress = show
        results = planned.run(folder / "accuracy.jsonl", progress)
    report(results, options.folds)


def report(results: list[Result], folds: int) -> None:
    """Print a table for each measure, and the figures of each method in one line."""
    lines = list(dict.fromkeys((r.trial.method, str(r.trial.setting["model"])) for r in results))
    for measure in (WRONG, CURVE):
        table = Table(title=f"Adult, {measure}, mean of {folds} folds", box=None)
        for name in ("method", "model"):
            table.add_column(name)
        for name in (*(f"ε = {epsilon}" for epsilon in EPSILONS), "seconds"):
            table.add_column(name, justify="right")
        for line in lines:
            table.add_row(*line, *_cells(results, *line, measure))
        for peer, numbers in PEERS.items() if measure == WRONG else ():
            table.add_row(f"({peer})", "", *(f"{number:.4f}" for number in numbers), "")
        Console(width=130).print(table)
    for method, model in lines:
        if method not in REFERENCES:
            name = method if model == ANY else f"{method}_{model}"
            _print_result(results, name.replace("-", "_"), method, model)


def _cells(results: list[Result], method: str, model: str, measure: str) -> list[str]:
    cells = [_cell(_values(results, method, model, e, measure)) for e in EPSILONS]
    times = [time for e in EPSILONS for time in _values(results, method, model, e, SECONDS)]
    return [*cells, f"{fmean(times):.1f}" if times else ""]


def _print_result(results: list[Result], name: str, method: str, model: str) -> None:
    means = {e: fmean(_values(results, method, model, e, WRONG)) for e in EPSILONS}
    figures = [f"{name}_{float(epsilon)}={mean:.4f}" for epsilon, mean in means.items()]
    pairs = zip(means.values(), PEERS["other tools, tuned"], strict=True)
    figures.append(f"{name}_at_or_below_tuned={sum(mean <= peer for mean, peer in pairs)}")
    print("RESULT " + " ".join(figures))


def _values(
    results: list[Result], method: str, model: str, epsilon: str, measure: str
) -> list[float]:
    wanted = (method, model, "none" if method in REFERENCES else epsilon)
    return [
        figures[measure]
        for trial, figures in results
        if (trial.method, trial.setting["model"], trial.epsilon) == wanted and measure in figures
    ]


def _cell(values: list[float]) -> str:
    return f"{fmean(values):.4f}" + (f" ±{stdev(values):.4f}" if len(values) > 1 else "")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of private models on Adult")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--methods", default="model", help=f"some of {','.join(METHODS)}")
    parser.add_argument("--models", default="logistic", help=f"some of {','.join(MODELS)}")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many to measure on")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

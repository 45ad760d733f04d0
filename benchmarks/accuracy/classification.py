"""How often is PrivPfC wrong on Adult?  Ten folds, fresh noise in each, five budgets.

Prints the mean misclassification of the release's own classifier, and of the best of the
classifiers trained on its synthetic rows; which one that is, is chosen once for all budgets.
An interrupted run goes on where it stopped, if it is given the same folder.

Run: .venv/bin/python benchmarks/accuracy/classification.py [--data-folder DATA] [-o FOLDER]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from dpublish.core.method import Progress
from dpublish.datasets.benchmarks import BENCHMARKS, find_data_folder
from dpublish.evaluation.classification import DIRECT, MAJORITY
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS
from dpublish.experiments.classification import EPSILONS, STUDY
from dpublish.experiments.study import NOISE_FREE
from dpublish.experiments.trials import Result

METHOD = "privpfc"


def main() -> None:
    options = _options()
    folder = find_data_folder(options.data_folder)
    missing = BENCHMARKS["adult"].missing_file(folder)
    if missing is not None:
        print(f"skipped: {missing} is not there; name its folder with --data-folder")
        return
    planned = STUDY.plan(
        1,
        data_folder=folder,
        datasets=("adult",),
        methods=(METHOD,),
        classifiers=(DIRECT, *options.classifiers.split(",")),
    )
    folder = Path(options.output or tempfile.mkdtemp(prefix="dpublish-accuracy-"))
    folder.mkdir(parents=True, exist_ok=True)
    with Console(stderr=True).status("") as status:

        def show(done: int, total: int, label: str) -> None:
            status.update(f"{done} of {total}: {label}")

        progress: Progress = show
        results = planned.run(folder / "accuracy.jsonl", progress)
    report(results)


def report(results: list[Result]) -> None:
    """Print the table, and the figures in one line."""
    means = {
        (epsilon, name): fmean(figures[name] for figures in found)
        for epsilon in (*EPSILONS, "none")
        if (found := [r.measured for r in results if r.trial.epsilon == epsilon])
        for name in found[0]
    }
    trained = [name for name in CLASSIFIERS if (EPSILONS[0], name) in means]
    best = min(trained, key=lambda name: fmean(means[epsilon, name] for epsilon in EPSILONS))
    table = Table(title=f"Adult, misclassification of {METHOD}, mean of ten folds", box=None)
    table.add_column("from")
    for epsilon in EPSILONS:
        table.add_column(f"ε = {epsilon}", justify="right")
    table.add_column("no privacy", justify="right")
    for name in (DIRECT, *trained):
        row = [f"{means[epsilon, name]:.4f}" for epsilon in EPSILONS]
        free = means.get(("none", name))
        table.add_row(
            name + (" (best)" if name == best else ""), *row, f"{free:.4f}" if free else ""
        )
    Console(width=120).print(table)
    print(f"always the majority class: {means['none', MAJORITY]:.4f} ({NOISE_FREE})")
    figures = [
        f"direct_{float(e)}={means[e, DIRECT]:.4f} best_{float(e)}={means[e, best]:.4f}"
        for e in EPSILONS
    ]
    print("RESULT " + " ".join(figures))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of PrivPfC on Adult")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--classifiers", default=",".join(CLASSIFIERS), help="trained on rows")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

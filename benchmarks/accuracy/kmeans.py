"""How far are points from privately found centers?  S1 and Adult's numbers, four budgets.

Prints the mean NICV (normalized intra-cluster variance) over fresh runs of every method that
publishes k centers, beside what other tools reach and what k-means reaches without privacy.
An interrupted run goes on where it stopped, if it is given the same folder.

Run: .venv/bin/python benchmarks/accuracy/kmeans.py [--data-folder DATA] [-o FOLDER]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console
from rich.table import Table

from dpublish.core.method import Progress
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.point_clouds import POINT_SETS
from dpublish.experiments.kmeans import NICV, STUDY, kmeans_methods
from dpublish.experiments.study import NOISE_FREE
from dpublish.experiments.trials import SECONDS, Result

DATASETS = ("s1", "adult-num")
EPSILONS = ("0.05", "0.1", "0.5", "1")
DEFAULT = "kmeans"
# Measured with the tools of the day, on the same points and bounds.
PEERS = {
    ("best of other tools", "s1"): (0.039, 0.030, 0.0084, 0.0078),
    ("best of other tools", "adult-num"): (0.246, 0.235, 0.230, 0.229),
    ("diffprivlib", "s1"): (0.090, 0.082, 0.053, 0.036),
    ("diffprivlib", "adult-num"): (0.383, 0.352, 0.288, 0.265),
}


def main() -> None:
    options = _options()
    folder = find_data_folder(options.data_folder)
    for name in DATASETS:
        missing = POINT_SETS[name].missing_file(folder)
        if missing is not None:
            print(f"skipped: {missing} is not there; name its folder with --data-folder")
            return
    planned = STUDY.plan(
        options.repeats,
        data_folder=folder,
        datasets=DATASETS,
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

        progress: Progress = show
        results = planned.run(folder / "accuracy.jsonl", progress)
    report(results, options.repeats)


def report(results: list[Result], repeats: int) -> None:
    """Print a table for each dataset, and the figures in one line."""
    methods = list(dict.fromkeys(r.trial.method for r in results if r.trial.method != NOISE_FREE))
    lines = []
    for dataset in DATASETS:
        table = Table(title=f"{dataset}: NICV, mean of {repeats} fresh runs", box=None)
        table.add_column("method")
        for epsilon in EPSILONS:
            table.add_column(f"ε = {epsilon}", justify="right")
        table.add_column("seconds", justify="right")
        for method in methods:
            found = [_values(results, dataset, method, epsilon) for epsilon in EPSILONS]
            if not found[0]:
                continue  # too slow there, as the notes said
            times = _times(results, dataset, method)
            cells = [f"{fmean(values):.4f}{_deviation(values)}" for values in found]
            table.add_row(method, *cells, f"{fmean(times):.2f}")
            if method == DEFAULT or DEFAULT not in methods:
                label = dataset.replace("-", "_")
                lines += [
                    f"{method}_{label}_{float(epsilon)}={fmean(values):.4f}"
                    for epsilon, values in zip(EPSILONS, found, strict=True)
                ]
        for (peer, data), numbers in PEERS.items():
            if data == dataset:
                table.add_row(f"({peer})", *(f"{number:.4f}" for number in numbers), "")
        free = _values(results, dataset, NOISE_FREE, "none")[0]
        table.add_row("(no privacy)", *([f"{free:.4f}"] * len(EPSILONS)), "")
        Console(width=120).print(table)
    print("RESULT " + " ".join(lines))


def _values(results: list[Result], dataset: str, method: str, epsilon: str) -> list[float]:
    return [
        figures[NICV]
        for trial, figures in results
        if (trial.setting["dataset"], trial.method, trial.epsilon) == (dataset, method, epsilon)
    ]


def _times(results: list[Result], dataset: str, method: str) -> list[float]:
    return [
        figures[SECONDS]
        for trial, figures in results
        if (trial.setting["dataset"], trial.method) == (dataset, method)
    ]


def _deviation(values: list[float]) -> str:
    return f" ±{stdev(values):.4f}" if len(values) > 1 else ""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of private k-means")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--methods", help=f"some of {','.join(kmeans_methods())}")
    parser.add_argument("--repeats", type=int, default=20, help="fresh runs at each budget")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

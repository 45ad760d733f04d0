"""How much do counts and models gain when each person brings their own epsilon?

Prints, for counts, logistic regression and support vector machines, the errors of all personal
methods; of `threshold` and `sampling` those with the best threshold in hindsight.  Utility-based
partitioning must be as good as the best threshold of `sampling`, and for counts with uniform
preferences at least 3 times better than `minimum`.  All methods see the same people, the same
preferences and the same queries, so partitioning is compared with the best threshold repeat
by repeat; what is told beside a difference is its standard error.  An interrupted run goes on
where it stopped, if it is given the same folder.

Run: .venv/bin/python benchmarks/accuracy/personalized.py [--data-folder DATA] [-o FOLDER]
"""

import argparse
import tempfile
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console
from rich.table import Table

from dpublish.core.method import Progress
from dpublish.experiments.personalized import (
    CURVE,
    MEASURES,
    MINIMUM,
    STUDY,
    best_point,
    times_better,
)
from dpublish.experiments.trials import Cells, Key, Result

FIGURES = ("count", "logistic", "svm")
OURS = "partitioning"
RIVALS = ("sampling", "threshold")


def main() -> None:
    options = _options()
    folder = Path(options.output or tempfile.mkdtemp(prefix="dpublish-accuracy-"))
    folder.mkdir(parents=True, exist_ok=True)
    for figure in options.figures.split(","):
        planned = STUDY.plan(
            options.repeats if figure == "count" else options.fits,
            figure=figure,
            data_folder=options.data_folder,
            datasets=options.datasets.split(",") if options.datasets else None,
        )
        for note in planned.notes:
            print(note)
        with Console(stderr=True).status("") as status:

            def show(done: int, total: int, label: str, figure: str = figure) -> None:
                status.update(f"{figure}: {done} of {total}: {label}")

            progress: Progress = show
            results = planned.run(folder / f"accuracy-{figure}.jsonl", progress)
        report(figure, results, is_markdown=options.markdown)


def report(figure: str, results: list[Result], *, is_markdown: bool) -> None:
    """Print a table of one figure, and in one line how partitioning does beside its rivals."""
    tabled = STUDY.table(results)
    repeats = len({trial.seed for trial, _ in results})
    _print(f"{figure}: mean of {repeats} repeats", tabled.headers, tabled.rows, is_markdown)
    found = []
    for cells in STUDY.groups(STUDY.summarize(results)):
        found += _findings(figure, results, cells)
    print("RESULT " + " ".join(found))


def _findings(figure: str, results: Sequence[Result], cells: Cells) -> list[str]:
    ours = next(key for key in cells if key.method == OURS)
    names = (figure, ours.dataset, ours.variant[0], ours.measure)
    label = "_".join(names).replace("-", "_")
    found = []
    if figure == "count":
        ratio = times_better(cells, ours, next(iter(cells[ours]))) or 0.0
        found.append(f"{label}_times_below_{MINIMUM}={ratio:.2f}")
    for rival in RIVALS:
        key = ours._replace(method=rival)
        best = best_point(cells[key], key.measure)
        gap = [
            mine - other
            for mine, other in zip(
                _values(results, ours, None), _values(results, key, best), strict=True
            )
        ]
        # A part of the rival's error for counts; models are compared as they are.
        unit = cells[key][best].mean if figure == "count" else 1.0
        error = stdev(gap) / sqrt(len(gap)) if len(gap) > 1 else 0.0
        found.append(f"{label}_less_best_{rival}={fmean(gap) / unit:+.4f}±{error / unit:.4f}")
    return found


def _values(results: Sequence[Result], key: Key, point: float | None) -> list[float]:
    """List what was measured of a method by repeat, at one threshold if it has one."""
    figure = STUDY.figure_of(results)
    return [
        measured[key.measure]
        for trial, measured in results
        if STUDY.key(trial, figure, key.measure) == key and STUDY.point(trial, figure) == point
    ]


def _print(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], is_markdown: bool
) -> None:
    if is_markdown:
        for row in (headers, ["---"] * len(headers), *rows):
            print("| " + " | ".join(row) + " |")
        return
    shown = Table(title=title, box=None)
    for number, header in enumerate(headers):
        shown.add_column(header, justify="left" if number < 4 else "right")
    for row in rows:
        shown.add_row(*row)
    Console(width=160).print(shown)


def _options() -> argparse.Namespace:
    measures = f"{MEASURES[CURVE]} and wrong predictions"
    parser = argparse.ArgumentParser(description="Accuracy of personal methods")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--datasets", help="some of simulated,adult,census,bank")
    parser.add_argument("--figures", default=",".join(FIGURES), help="some of count,logistic,svm")
    parser.add_argument("--repeats", type=int, default=20, help="repeats of counts")
    parser.add_argument("--fits", type=int, default=5, help=f"repeats of fits ({measures})")
    parser.add_argument("--markdown", action="store_true", help="print the tables for the docs")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

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

from dpublish.experiments.experiment import Experiment, Progress, Result
from dpublish.experiments.personalized import plan
from dpublish.experiments.personalized_parts import CURVE, MEASURES, MINIMUM, NAME
from dpublish.experiments.personalized_summary import (
    Cells,
    Key,
    best_place,
    groups_of,
    part_of,
    place_of,
    summarize,
    table,
    times_better,
)

PARTS = ("count", "logistic", "svm")
OURS = "partitioning"
RIVALS = ("sampling", "threshold")
Group = tuple[str, str, str, str]


def main() -> None:
    options = _options()
    folder = Path(options.output or tempfile.mkdtemp(prefix="dpublish-accuracy-"))
    folder.mkdir(parents=True, exist_ok=True)
    for part in options.parts.split(","):
        planned = plan(
            options.repeats if part == "count" else options.fits,
            part=part,
            data_folder=options.data_folder,
            datasets=options.datasets.split(",") if options.datasets else None,
        )
        for note in planned.notes:
            print(note)
        with Console(stderr=True).status("") as status:

            def show(done: int, total: int, label: str, part: str = part) -> None:
                status.update(f"{part}: {done} of {total}: {label}")

            progress: Progress = show
            results = Experiment(NAME, planned.trials).run(
                planned.run_trial, folder / f"accuracy-{part}.jsonl", progress
            )
        report(part, results, is_markdown=options.markdown)


def report(part: str, results: list[Result], *, is_markdown: bool) -> None:
    """Print a table of one part, and in one line how partitioning does beside its rivals."""
    tabled = table(results)
    repeats = len({trial.seed for trial, _ in results})
    _print(f"{part}: mean of {repeats} repeats", tabled.headers, tabled.rows, is_markdown)
    figures = []
    for group, cells in groups_of(summarize(results)).items():
        figures += _findings(part, results, group, cells)
    print("RESULT " + " ".join(figures))


def _findings(part: str, results: Sequence[Result], group: Group, cells: Cells) -> list[str]:
    dataset, preferences, measure, _ = group
    label = "_".join((part, dataset, preferences, measure)).replace("-", "_")
    ours = Key(*group, OURS)
    place = next(iter(cells[ours]))
    found = []
    if part == "count":
        ratio = times_better(cells, ours, place) or 0.0
        found.append(f"{label}_times_below_{MINIMUM}={ratio:.2f}")
    for rival in RIVALS:
        key = Key(*group, rival)
        best = best_place(cells[key], measure)
        gap = [
            mine - other
            for mine, other in zip(
                _values(results, ours, None), _values(results, key, best), strict=True
            )
        ]
        # A part of the rival's error for counts; models are compared as they are.
        unit = cells[key][best].mean if part == "count" else 1.0
        doubt = stdev(gap) / sqrt(len(gap)) if len(gap) > 1 else 0.0
        found.append(f"{label}_less_best_{rival}={fmean(gap) / unit:+.4f}±{doubt / unit:.4f}")
    return found


def _values(results: Sequence[Result], key: Key, place: float | None) -> list[float]:
    """List the figures of a method by repeat, at one threshold if it has one."""
    part = part_of(results)
    return [
        figures[key.measure]
        for trial, figures in results
        if (trial.setting["dataset"], trial.setting["preferences"], trial.method)
        == (key.dataset, key.preferences, key.method)
        and trial.setting.get("inner", "") == key.inner
        and place_of(trial, part) == place
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
    told = f"{MEASURES[CURVE]} and wrong predictions"
    parser = argparse.ArgumentParser(description="Accuracy of personal methods")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--datasets", help="some of simulated,adult,census,bank")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of count,logistic,svm")
    parser.add_argument("--repeats", type=int, default=20, help="repeats of counts")
    parser.add_argument("--fits", type=int, default=5, help=f"repeats of fits ({told})")
    parser.add_argument("--markdown", action="store_true", help="print the tables for the docs")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

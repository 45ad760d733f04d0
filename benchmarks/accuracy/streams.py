"""How far are counts from the truth when a changing histogram is published again and again?

Prints the mean absolute error of 1,000 random range counts over all steps, for every method and
stream at two budgets; simulated streams are simulated afresh at each repeat.  DSAT's default should
be on average at most 10 %, and nowhere more than 30 %, above the best in hindsight of fixed
sampling with 5, 10 and 20 publications, BA, BD and its own other controllers; the lines RESULT
say by how much it is, and where that is missed.  An interrupted run goes on where it stopped, if
it is given the same folder.

Run: .venv/bin/python benchmarks/accuracy/streams.py [--data-folder DATA] [-o FOLDER]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from dpublish.core.method import Progress
from dpublish.datasets.stream_sets import STREAM_SETS
from dpublish.experiments.streams import STUDY, SUMMARY
from dpublish.experiments.streams_competitors import (
    DEFAULTS,
    METHODS,
    PRIVATE,
    RELEASES,
    Level,
    of_level,
)
from dpublish.experiments.streams_hindsight import GOAL_MOST, is_rival, look_back, verdict
from dpublish.experiments.study import BEST
from dpublish.experiments.trials import Result

EPSILONS = ("0.1", "1")
RIVALS = ("fixed-sampling", "bd", "ba")


def main() -> None:
    options = _options()
    planned = STUDY.plan(
        options.repeats,
        figure=SUMMARY,
        data_folder=options.data_folder,
        datasets=options.datasets.split(",") if options.datasets else None,
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
    report(results, options.repeats, is_markdown=options.markdown)


def report(results: list[Result], repeats: int, *, is_markdown: bool) -> None:
    """Print a table for each guarantee, and in one line how DSAT does beside the best rival."""
    groups = STUDY.groups(STUDY.summarize(results))
    figures = []
    for level, default in DEFAULTS.items():
        names = of_level(PRIVATE, level)
        rows = []
        for group in groups:
            dataset, own = next(iter(group)).dataset, METHODS[next(iter(group)).method].level
            for epsilon in EPSILONS if own == level else ():
                means = {key.method: line[float(epsilon)].mean for key, line in group.items()}
                usual, best = (_ratio(means, default, rivals) for rivals in _rivals(level))
                lowest = min(means.values())
                cells = [_cell(means.get(name), lowest) for name in names]
                rows.append([dataset, STREAM_SETS[dataset].kind, epsilon, *cells, usual, best])
                label = f"{default}_{dataset}_{epsilon}".replace("-", "_")
                figures.append(f"{label}={best or 'none'}")
        headers = ["stream", "kind", "ε", *names, "beside usual rivals", "beside all"]
        title = f"hidden in the {level}: mean absolute error, mean of {repeats} runs"
        _print(title, headers, rows, is_markdown)
    print("RESULT " + " ".join(figures))
    rows = look_back(STUDY.summarize(results))
    if rows:
        ratios = [row.ratio for row in rows]
        above = sum(ratio > GOAL_MOST for ratio in ratios)
        print(
            f"RESULT hindsight_mean={fmean(ratios):.2f} hindsight_most={max(ratios):.2f} "
            f"hindsight_above_{GOAL_MOST:g}={above} hindsight_cells={len(ratios)}"
        )
        print(verdict(rows))


def _rivals(level: Level) -> tuple[list[str], list[str]]:
    """Name fixed sampling, BA and BD as they come, and all rivals of the default."""
    names = of_level(PRIVATE, level)
    usual = [name for name in names if METHODS[name].method in RIVALS]
    return (
        [name for name in usual if METHODS[name].releases in (None, RELEASES)],
        [name for name in names if is_rival(name, level)],
    )


def _ratio(means: dict[str, float], default: str, rivals: list[str]) -> str:
    """Divide the error of the default by the lowest of its rivals."""
    others = [means[name] for name in rivals if name in means]
    return f"{means[default] / min(others):.2f}" if default in means and others else ""


def _cell(mean: float | None, lowest: float) -> str:
    if mean is None:
        return ""
    shown = f"{mean:,.0f}" if mean >= 100 else f"{mean:.1f}"
    return f"{shown}{BEST}" if mean == lowest else shown


def _bold(cell: str) -> str:
    return f"**{cell.removesuffix(BEST)}**" if cell.endswith(BEST) else cell


def _print(title: str, headers: list[str], rows: list[list[str]], is_markdown: bool) -> None:
    if is_markdown:
        for row in (headers, ["---"] * len(headers), *rows):
            print("| " + " | ".join(map(_bold, row)) + " |")
        return
    table = Table(title=title, box=None)
    for number, header in enumerate(headers):
        table.add_column(header, justify="left" if number < 2 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=240).print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of published streams")
    parser.add_argument("--data-folder", help="where the streams are; DPUBLISH_DATA if absent")
    parser.add_argument("--datasets", help=f"some of {','.join(STREAM_SETS)}")
    parser.add_argument("--methods", help=f"some of {','.join(METHODS)}")
    parser.add_argument("--repeats", type=int, default=20, help="fresh runs at each budget")
    parser.add_argument("--markdown", action="store_true", help="print the tables for the docs")
    parser.add_argument("-o", "--output", help="folder that keeps results")
    return parser.parse_args()


if __name__ == "__main__":
    main()

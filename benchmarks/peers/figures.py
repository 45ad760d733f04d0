"""Figures of peers and of ours: kept as JSON, shown as tables, put into pages between markers.

A figure is never typed: pages show what the file holds, and the file holds what was measured.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from environments import HERE

STORE = HERE / "measured.json"
OURS = "dpublish"
ADD_REMOVE, NOT_STATED, NO_GUARANTEE = "add/remove", "not stated", "none"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What one method of one package reached on one table with one budget.

    Attributes:
        task: What was done; a name of `SHEETS`.
        table: The table.
        epsilon: The budget that was asked for; "none" without privacy.
        who: Package and version.
        method: What of the package.
        delta: The δ of its guarantee.
        neighbors: Which tables its guarantee makes alike.
        measures: By measure, one value for each run.
        date: When it was measured.
        note: What must be known before the figure is quoted.
    """

    task: str
    table: str
    epsilon: str
    who: str
    method: str
    delta: str
    neighbors: str
    measures: dict[str, list[float]]
    date: str
    note: str = field(default="")

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it another figure; a newer one with the same key replaces it."""
        return (self.task, self.table, self.epsilon, self.who.partition(" ")[0], self.method)

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return max(len(values) for values in self.measures.values())


class Measure(NamedTuple):
    """How a measure is shown: its heading, its digits, and by what it is multiplied."""

    heading: str
    digits: int = 3
    factor: float = 1.0


class Sheet(NamedTuple):
    """The table of a task: what its measures are called, the one that is watched first."""

    title: str
    measures: dict[str, Measure]


SECONDS = Measure("CPU s", 1)
SHEETS = {
    "classes": Sheet("Classification", {"wrong": Measure("errors, %", 1, 100.0)}),
    "centers": Sheet("k-means", {"nicv": Measure("NICV", 4)}),
    "synthesis": Sheet(
        "Synthetic rows",
        {
            "tv2": Measure("TV 2", 4),
            "tv1": Measure("TV 1", 4),
            "tv3": Measure("TV 3", 4),
            "dv": Measure("ΔV"),
            "auc": Measure("AUC"),
            "seconds": Measure("CPU s", 1),
        },
    ),
    "means": Sheet(
        "Counts and means by group",
        {
            "mean": Measure("error of a mean"),
            "count": Measure("error of a count", 1),
            "seconds": Measure("CPU s", 2),
        },
    ),
    "histogram": Sheet("A histogram of a million cells", {"seconds": Measure("CPU s", 3)}),
    "topk": Sheet(
        "Top k", {"missed": Measure("missed, %", 2, 100.0), "seconds": Measure("CPU s", 4)}
    ),
}


def load(path: Path = STORE) -> list[Figure]:
    """Read all figures."""
    if not path.is_file():
        return []
    return [Figure(**stored) for stored in json.loads(path.read_text("utf-8"))]


def save(figures: Iterable[Figure], path: Path = STORE) -> None:
    """Write all figures, the newest of equal keys, in the order of the tables."""
    newest = {figure.key: figure for figure in figures}
    stored = [asdict(newest[key]) for key in sorted(newest)]
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")


def show_values(values: Sequence[float], measure: Measure) -> str:
    """Show a mean, and the standard deviation of single runs if there are several."""
    scaled = [value * measure.factor for value in values]
    mean = f"{fmean(scaled):,.{measure.digits}f}"
    if len(scaled) < 2 or measure.heading == SECONDS.heading:
        return mean
    return f"{mean} ± {stdev(scaled):,.{measure.digits}f}"


def first_measure(figure: Figure) -> str:
    """Name the measure by which a figure is judged; of all of them, less is better."""
    return next(name for name in SHEETS[figure.task].measures if name in figure.measures)


def _order(figure: Figure) -> tuple[object, ...]:
    mean = fmean(figure.measures[first_measure(figure)])
    return (figure.table, figure.epsilon == "none", figure.epsilon, mean, figure.key)


def _cells(figure: Figure) -> dict[str, str]:
    sheet = SHEETS[figure.task]
    cells = {
        "Table": figure.table,
        "ε": figure.epsilon,
        "Package": figure.who,
        "Method": figure.method,
        "δ": figure.delta,
        "Neighbors": figure.neighbors,
    }
    for name, measure in sheet.measures.items():
        values = figure.measures.get(name)
        cells[measure.heading] = "" if values is None else show_values(values, measure)
    return cells | {"Runs": str(figure.runs), "Date": figure.date, "Note": figure.note}


def markdown(task: str, figures: Iterable[Figure]) -> str:
    """Make the table of a task, the best of each table and budget first.

    Columns that say nothing are left out: empty ones, and a date that is the same for all.
    """
    chosen = sorted((figure for figure in figures if figure.task == task), key=_order)
    rows = [_cells(figure) for figure in chosen]
    if not rows:
        return "Not measured yet."
    headings = [name for name in rows[0] if any(row[name] for row in rows)]
    if len({row["Date"] for row in rows}) == 1:
        headings.remove("Date")
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row[name] for name in headings) + " |" for row in rows]
    return "\n".join(lines)


def fill_page(page: Path, figures: Sequence[Figure]) -> None:
    """Put the table of every task between its markers in a page."""
    text = page.read_text("utf-8")
    for task in SHEETS:
        start, end = f"<!-- measured: {task} -->", f"<!-- end of {task} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        table = markdown(task, figures)
        text = pattern.sub(lambda _, t=table, a=start, z=end: f"{a}\n\n{t}\n\n{z}", text)
    page.write_text(text, "utf-8")


def result_line(figures: Iterable[Figure]) -> str:
    """Name the first measure of every figure in one line."""
    named = []
    for figure in sorted(figures, key=_order):
        first = first_measure(figure)
        words = (figure.table, figure.who.partition(" ")[0], figure.method, f"eps{figure.epsilon}")
        name = re.sub(r"[^A-Za-z0-9.]+", "_", "_".join((figure.task, *words))).strip("_")
        named.append(f"{name}_{first}={fmean(figure.measures[first]):.5g}")
    return "RESULT " + " ".join(named)

"""The results of the comparison of streams as lines, as a table, and over time."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.streams_parts import (
    ERROR,
    LEVELS,
    METHODS,
    PARTS,
    PUBLISHED,
    SECONDS,
    SLOT,
    Level,
    Part,
)

BEST = "*"


class Key(NamedTuple):
    """A line of a panel: on which stream, by which method, with which budget (if not the axis)."""

    dataset: str
    method: str
    epsilon: str

    @property
    def level(self) -> Level:
        """What the method guarantees."""
        return METHODS[self.method].level

    def __str__(self) -> str:
        return f"{self.method}, ε = {self.epsilon}" if self.epsilon else self.method


class Cell(NamedTuple):
    """Mean and standard deviation over the repeats."""

    mean: float
    spread: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Cell":
        """Summarize the values of one place."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0)

    def __str__(self) -> str:
        digits = 2 if self.mean < 10 else 1 if self.mean < 1_000 else 0
        return f"{self.mean:,.{digits}f} ±{self.spread:,.{digits}f}"


Cells = dict[Key, dict[float, Cell]]


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def summarize(results: Sequence[Result]) -> Cells:
    """Average the errors at every place of every line."""
    part = part_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        line = found.setdefault(_key(trial, part), {})
        line.setdefault(_place(trial, part), []).append(figures[ERROR])
    return {
        key: {place: Cell.of(values) for place, values in sorted(line.items())}
        for key, line in found.items()
    }


def places_of(results: Sequence[Result]) -> list[float]:
    """List the places on the axis."""
    return sorted({_place(trial, part_of(results)) for trial, _ in results})


def groups_of(cells: Cells) -> dict[tuple[str, Level], Cells]:
    """Put lines of the same stream and guarantee together: only these can be compared."""
    found: dict[tuple[str, Level], Cells] = {}
    for dataset in dict.fromkeys(key.dataset for key in cells):
        for level in LEVELS:
            group = {
                k: line for k, line in cells.items() if (k.dataset, k.level) == (dataset, level)
            }
            if group:
                found[dataset, level] = group
    return found


def best_at(group: Cells, place: float, epsilon: str) -> Key:
    """Find the method with the lowest mean error at a place."""
    here = {key: line for key, line in group.items() if key.epsilon == epsilon and place in line}
    return min(here, key=lambda key: here[key][place].mean)


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the errors out: a row for each line; a star marks the best with the same guarantee."""
    places = places_of(results)
    axis = part_of(results).key or "epsilon"
    rows = []
    for (dataset, level), group in groups_of(summarize(results)).items():
        for key, line in group.items():
            cells = []
            for place in places:
                is_best = place in line and best_at(group, place, key.epsilon) == key
                mark = BEST if is_best and len(group) > 1 else ""
                cells.append(f"{line[place]}{mark}" if place in line else "")
            rows.append([dataset, level, str(key), *cells])
    headers = ["stream", "hidden in", "method", *(f"{axis} {place:g}" for place in places)]
    return ResultTable(headers, rows)


def over_time(results: Sequence[Result], dataset: str, epsilon: str) -> dict[str, list[float]]:
    """Average the errors of each method within each part of a stream, over the repeats."""
    found: dict[str, list[list[float]]] = {}
    for trial, figures in results:
        if (trial.setting["dataset"], trial.epsilon) == (dataset, epsilon):
            slots = [value for name, value in figures.items() if name.startswith(SLOT)]
            found.setdefault(trial.method, []).append(slots)
    return {
        method: [fmean(column) for column in zip(*lines, strict=True)]
        for method, lines in found.items()
    }


def costs(results: Sequence[Result]) -> Iterator[list[str]]:
    """List the mean number of publications and the mean time by stream and method."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for trial, figures in results:
        key = (str(trial.setting["dataset"]), trial.method)
        found.setdefault(key, []).append((figures[PUBLISHED], figures[SECONDS]))
    for (dataset, method), pairs in found.items():
        published, times = (fmean(values) for values in zip(*pairs, strict=True))
        yield [dataset, method, f"{published:.1f}", f"{times:.2f}"]


def _key(trial: Trial, part: Part) -> Key:
    epsilon = "" if part.key is None else trial.epsilon
    return Key(str(trial.setting["dataset"]), trial.method, epsilon)


def _place(trial: Trial, part: Part) -> float:
    return float(trial.epsilon) if part.key is None else float(trial.setting[part.key])

"""The results of the comparison of private WaveClusters as lines: means at places on an axis."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.evaluation.metrics.cells import NONE
from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.wavecluster_parts import MEASURES, PARTS, PLAIN, TITLES, Part

SIDES = ("cells across", "cells up")
CELL = "cell "  # and its two places: the label of a cell, for pictures


class Key(NamedTuple):
    """A line of a panel: on which data, of which figure, by which method with which budget."""

    dataset: str
    measure: str
    method: str
    epsilon: str


class Cell(NamedTuple):
    """Mean and standard deviation over the repeats."""

    mean: float
    spread: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Cell":
        """Summarize the values of one place."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0)

    def __str__(self) -> str:
        digits = 3 if self.mean < 10 else 1
        return f"{self.mean:.{digits}f} ±{self.spread:.{digits}f}"


Cells = dict[Key, dict[float, Cell]]


def summarize(results: Sequence[Result], *, others: Sequence[str] = ()) -> Cells:
    """Average every measure, and the `others` asked for, at every place of every line.

    The plain algorithm has no epsilon: over epsilon it has the same value at every place.
    """
    part = part_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        for place in _every_place(trial, part, results):
            for name in (*MEASURES, *others):
                if name in figures:
                    line = found.setdefault(_key(trial, part, name), {})
                    line.setdefault(place, []).append(figures[name])
    return {
        key: {place: Cell.of(values) for place, values in sorted(line.items())}
        for key, line in sorted(found.items(), key=lambda item: _order(item[0]))
    }


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out: a row for each dataset, measure and method, mean ± deviation."""
    part, cells = part_of(results), summarize(results)
    places = places_of(part, results)
    rows = [
        [
            key.dataset,
            MEASURES[key.measure].title,
            short_name(key),
            *(str(line[place]) if place in line else "" for place in places),
        ]
        for key, line in cells.items()
    ]
    axis = part.key or "epsilon"
    return ResultTable(
        ["dataset", "measure", "method", *(f"{axis} {place:g}" for place in places)], rows
    )


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def places_of(part: Part, results: Sequence[Result]) -> list[float]:
    """List the places on the axis."""
    found = {place_of(trial, part) for trial, _ in results}
    return sorted(place for place in found if place is not None)


def place_of(trial: Trial, part: Part) -> float | None:
    """Find a trial's place on the axis; None if it stands for all of them."""
    if part.key is not None:
        return float(trial.setting[part.key])
    return None if trial.method == PLAIN else float(trial.epsilon)


def short_name(key: Key) -> str:
    """Name a line as briefly as its page allows."""
    return f"{key.method}, ε = {key.epsilon}" if key.epsilon else key.method


def store_labels(labels: NDArray[np.int64]) -> dict[str, float]:
    """Write the labels of cells as figures, so that pictures can be drawn from results alone."""
    sides = dict(zip(SIDES, map(float, labels.shape), strict=True))
    places = np.argwhere(labels != NONE).tolist()
    return sides | {f"{CELL}{x} {y}": float(labels[x, y]) for x, y in places}


def stored_labels(figures: dict[str, float]) -> NDArray[np.int64] | None:
    """Read the labels of cells from figures, if they hold any."""
    if SIDES[0] not in figures:
        return None
    labels = np.full([int(figures[side]) for side in SIDES], NONE, dtype=np.int64)
    for name, value in figures.items():
        if name.startswith(CELL):
            x, y = map(int, name.removeprefix(CELL).split())
            labels[x, y] = int(value)
    return labels


def _every_place(trial: Trial, part: Part, results: Sequence[Result]) -> Iterator[float]:
    place = place_of(trial, part)
    yield from places_of(part, results) if place is None else [place]


def _key(trial: Trial, part: Part, measure: str) -> Key:
    is_line_of_its_own = part.key is not None and trial.method != PLAIN
    epsilon = trial.epsilon if is_line_of_its_own else ""
    return Key(str(trial.setting["dataset"]), measure, trial.method, epsilon)


def _order(key: Key) -> tuple[str, int, int, float]:
    measures, methods = list(MEASURES), list(TITLES)
    measure = measures.index(key.measure) if key.measure in MEASURES else len(measures)
    return key.dataset, measure, methods.index(key.method), float(key.epsilon or 0)

"""The results of the comparison of classifiers as lines: mean errors at places on an axis."""

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from dpublish.evaluation.classification import DIRECT, MAJORITY
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS
from dpublish.experiments.classification_laboratory import SECONDS
from dpublish.experiments.classification_parts import NOISE_FREE, PARTS, TITLES, Part
from dpublish.experiments.experiment import Result, ResultTable, Trial


class Key(NamedTuple):
    """A line of a panel: on which data, predicted how, by which method with which budget."""

    dataset: str
    classifier: str
    method: str
    epsilon: str


class Cell(NamedTuple):
    """Mean and standard deviation over folds and repeats."""

    mean: float
    spread: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Cell":
        """Summarize the values of one place."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0)

    def __str__(self) -> str:
        return f"{self.mean:.4f} ±{self.spread:.4f}"


Cells = dict[Key, dict[float, Cell]]


def summarize(results: Sequence[Result]) -> Cells:
    """Average every classifier's error at every place of every line.

    A reference that the axis does not move has the same value at every place.
    """
    part = part_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        for place in _every_place(trial, part, results):
            for name, value in figures.items():
                line = found.setdefault(_key(trial, part, name), {})
                line.setdefault(place, []).append(value)
    return {
        key: {place: Cell.of(values) for place, values in sorted(line.items())}
        for key, line in found.items()
    }


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the errors out: a row for each dataset, classifier and method."""
    part, cells = part_of(results), summarize(results)
    places = places_of(part, results)
    rows = [
        [*_names(key), *(_text(line, place) for place in places)]
        for key, line in ordered(cells)
        if key.classifier != SECONDS
    ]
    axis = part.key or "epsilon"
    return ResultTable(
        ["dataset", "classifier", "method", *(f"{axis} {place:g}" for place in places)], rows
    )


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def _key(trial: Trial, part: Part, classifier: str) -> Key:
    is_line_of_its_own = part.key is not None and trial.method != NOISE_FREE
    epsilon = trial.epsilon if is_line_of_its_own else ""
    return Key(str(trial.setting["dataset"]), classifier, trial.method, epsilon)


def _place(trial: Trial, part: Part) -> float | None:
    if part.key is not None:
        return float(trial.setting[part.key]) if part.key in trial.setting else None
    return None if trial.method == NOISE_FREE else float(trial.epsilon)


def places_of(part: Part, results: Sequence[Result]) -> list[float]:
    """List the places on the axis."""
    found = {_place(trial, part) for trial, _ in results}
    return sorted(place for place in found if place is not None)


def _every_place(trial: Trial, part: Part, results: Sequence[Result]) -> list[float]:
    place = _place(trial, part)
    return places_of(part, results) if place is None else [place]


def ordered(cells: Cells) -> list[tuple[Key, dict[float, Cell]]]:
    """Put lines in the order of datasets, classifiers and methods; references come last."""
    datasets = list(dict.fromkeys(key.dataset for key in cells))
    classifiers = [DIRECT, *CLASSIFIERS, MAJORITY, SECONDS]
    methods = [*TITLES, NOISE_FREE]

    def order(item: tuple[Key, dict[float, Cell]]) -> tuple[int, int, int]:
        key = item[0]
        return (
            datasets.index(key.dataset),
            classifiers.index(key.classifier),
            methods.index(key.method),
        )

    return sorted(cells.items(), key=order)


def short_name(key: Key) -> str:
    """Name a line as briefly as its page allows."""
    return f"{key.method}, ε = {key.epsilon}" if key.epsilon else key.method


def _names(key: Key) -> list[str]:
    if key.classifier == MAJORITY:
        return [key.dataset, "none", "majority class"]
    return [key.dataset, key.classifier, short_name(key)]


def _text(line: dict[float, Cell], place: float) -> str:
    return str(line[place]) if place in line else ""

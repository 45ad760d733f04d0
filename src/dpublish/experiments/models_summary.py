"""The results of the comparison of private models as lines: mean figures at places on an axis."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from dpublish.experiments.classification_summary import Cell
from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.models_parts import (
    ANY,
    COMMONEST,
    MODELS,
    NOISE_FREE,
    PARTS,
    SECONDS,
    TITLES,
    Part,
)

REFERENCES = (NOISE_FREE, COMMONEST)


class Key(NamedTuple):
    """A line: on which data, measured how, which model, fitted how, with which budget."""

    dataset: str
    measure: str
    model: str
    method: str
    epsilon: str


Cells = dict[Key, dict[float, Cell]]


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def summarize(results: Sequence[Result]) -> Cells:
    """Average every figure at every place of every line, in the order of a table.

    A reference that the axis does not move has the same value at every place.
    """
    part, places = part_of(results), places_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        place = _place(trial, part)
        for one in places if place is None else [place]:
            for measure in part.measures:
                if measure in figures:
                    line = found.setdefault(_key(trial, part, measure), {})
                    line.setdefault(one, []).append(figures[measure])
    return {
        key: {place: Cell.of(values) for place, values in sorted(found[key].items())}
        for key in _ordered(found, part)
    }


def places_of(results: Sequence[Result]) -> list[float]:
    """List the places on the axis."""
    found = {_place(trial, part_of(results)) for trial, _ in results}
    return sorted(place for place in found if place is not None)


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out: a row for each dataset, measure, model and method."""
    places = places_of(results)
    rows = [
        [*key[:3], short_name(key), *(str(line[p]) if p in line else "" for p in places)]
        for key, line in summarize(results).items()
    ]
    axis = (part_of(results).key or "epsilon").replace("_", " ")
    headers = ["dataset", "measure", "model", "method", *(f"{axis} {p:g}" for p in places)]
    return ResultTable(headers, rows)


def mean_seconds(results: Sequence[Result]) -> list[list[str]]:
    """List the mean time of a fit by dataset, model and method."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for trial, figures in results:
        if SECONDS in figures:
            given = trial.setting
            key = (str(given["dataset"]), str(given["model"]), trial.method)
            found.setdefault(key, []).append(figures[SECONDS])
    return [[*key, f"{fmean(times):.2f}"] for key, times in found.items()]


def short_name(key: Key) -> str:
    """Name a line as briefly as its page allows."""
    return f"{key.method}, ε = {key.epsilon}" if key.epsilon else key.method


def _key(trial: Trial, part: Part, measure: str) -> Key:
    is_line_of_its_own = part.key is not None and trial.method not in REFERENCES
    given = trial.setting
    return Key(
        str(given["dataset"]),
        measure,
        str(given["model"]),
        trial.method,
        trial.epsilon if is_line_of_its_own else "",
    )


def _place(trial: Trial, part: Part) -> float | None:
    if part.key is not None:
        return float(trial.setting[part.key]) if part.key in trial.setting else None
    return None if trial.method in REFERENCES else float(trial.epsilon)


def _ordered(found: dict[Key, dict[float, list[float]]], part: Part) -> list[Key]:
    """Put lines in the order of datasets, measures, models and methods; references come last."""
    datasets = list(dict.fromkeys(key.dataset for key in found))
    models, methods = [*MODELS, ANY], [*TITLES, *REFERENCES]
    return sorted(
        found,
        key=lambda key: (
            datasets.index(key.dataset),
            part.measures.index(key.measure),
            models.index(key.model),
            methods.index(key.method),
            float(key.epsilon or 0),
        ),
    )

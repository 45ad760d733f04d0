"""The results of the comparison of synthetic tables as lines: means at places on an axis."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from dpublish.experiments.copula_parts import (
    BETWEEN_RECORDS,
    FROM_ROWS,
    PARTS,
    REFERENCES,
    REFUSED,
    RELATIVE,
    SECONDS,
    Part,
)
from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.kmeans_summary import Cell

CANNOT_RUN = "cannot run"


class Key(NamedTuple):
    """A line of a panel: on which data, by which method, with which budget (if not the axis)."""

    dataset: str
    method: str
    epsilon: str


Cells = dict[Key, dict[float, Cell]]


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def places_of(results: Sequence[Result]) -> list[float]:
    """List the places on the axis."""
    part = part_of(results)
    found = {_place(trial, part) for trial, _ in results}
    return sorted(place for place in found if place is not None)


def summarize(results: Sequence[Result]) -> Cells:
    """Average the part's measure at every place of every line; a method that cannot run has none.

    A reference that does not depend on the axis is the same everywhere.
    """
    part, places = part_of(results), places_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        line = found.setdefault(_key(trial, part), {})
        place = _place(trial, part)
        for one in places if place is None else [place]:
            if part.measure in figures:
                line.setdefault(one, []).append(figures[part.measure])
    ordered = sorted(found.items(), key=lambda item: item[0].method in REFERENCES)
    return {
        key: {place: Cell.of(values) for place, values in sorted(line.items())}
        for key, line in ordered
    }


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the errors out: a row for each dataset and method."""
    places, part, cells = places_of(results), part_of(results), summarize(results)
    refused = {
        (_key(trial, part), _place(trial, part)) for trial, found in results if REFUSED in found
    }
    rows = []
    for dataset in dict.fromkeys(key.dataset for key in cells):
        for key, line in cells.items():
            if key.dataset == dataset:
                told = [
                    CANNOT_RUN if (key, place) in refused else str(line.get(place, ""))
                    for place in places
                ]
                rows.append([dataset, short_name(key), *told])
    axis = part.key or "epsilon"
    return ResultTable(["dataset", "method", *(f"{axis} {place:g}" for place in places)], rows)


def short_name(key: Key) -> str:
    """Name a line as briefly as its page allows."""
    return f"{key.method}, ε = {key.epsilon}" if key.epsilon else key.method


def details(results: Sequence[Result]) -> Iterator[list[str]]:
    """List the mean errors and the mean time of a release by dataset, method and budget."""
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for trial, figures in results:
        if SECONDS in figures:
            key = (str(trial.setting["dataset"]), trial.method, trial.epsilon)
            found.setdefault(key, []).append(figures)
    for key, several in found.items():
        numbers = (_mean(several, name) for name in (RELATIVE, FROM_ROWS, BETWEEN_RECORDS, SECONDS))
        yield [*key, *("" if number is None else f"{number:.3f}" for number in numbers)]


def _mean(several: Sequence[dict[str, float]], name: str) -> float | None:
    values = [figures[name] for figures in several if name in figures]
    return fmean(values) if values else None


def _key(trial: Trial, part: Part) -> Key:
    is_line_of_its_own = part.key is not None and trial.method not in REFERENCES
    epsilon = trial.epsilon if is_line_of_its_own else ""
    return Key(str(trial.setting["dataset"]), trial.method, epsilon)


def _place(trial: Trial, part: Part) -> float | None:
    if part.key is None:
        return None if trial.method in REFERENCES else float(trial.epsilon)
    return float(trial.setting[part.key]) if part.key in trial.setting else None

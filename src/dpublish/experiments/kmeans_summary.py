"""The results of the comparison of private k-means as lines and as heat maps."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.kmeans_parts import (
    CLOUDS,
    NICV,
    NOISE_FREE,
    PARTS,
    SECONDS,
    Part,
)

Place = tuple[int, int]
"""Numbers of clusters and of dimensions of a cloud."""


class Key(NamedTuple):
    """A line of a panel: on which data, by which method, with which budget (if not the axis)."""

    dataset: str
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
        return f"{self.mean:.4f} ±{self.spread:.4f}"


Cells = dict[Key, dict[float, Cell]]


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def is_heat_map(results: Sequence[Result]) -> bool:
    """Tell whether the results are of clouds with different k and d."""
    return results[0].trial.setting["dataset"] == CLOUDS


def summarize(results: Sequence[Result]) -> Cells:
    """Average the distances at every place of every line; a reference is the same everywhere."""
    part = part_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        place = _place(trial, part)
        for one in places_of(results) if place is None else [place]:
            found.setdefault(_key(trial, part), {}).setdefault(one, []).append(figures[NICV])
    return {
        key: {place: Cell.of(values) for place, values in sorted(line.items())}
        for key, line in sorted(found.items(), key=lambda item: item[0].method == NOISE_FREE)
    }


def places_of(results: Sequence[Result]) -> list[float]:
    """List the places on the axis."""
    found = {_place(trial, part_of(results)) for trial, _ in results}
    return sorted(place for place in found if place is not None)


def excesses(results: Sequence[Result]) -> dict[tuple[str, str], dict[Place, float]]:
    """Say by how much clouds lie farther from private centers than from the best ones.

    For every method and budget, the mean over the repeats at each k and d.
    """
    best = {_cloud(r.trial): r.figures[NICV] for r in results if r.trial.method == NOISE_FREE}
    found: dict[tuple[str, str], dict[Place, list[float]]] = {}
    for trial, figures in results:
        if trial.method != NOISE_FREE:
            line = found.setdefault((trial.method, trial.epsilon), {})
            cloud = _cloud(trial)
            line.setdefault(cloud, []).append(figures[NICV] - best[cloud])
    return {
        key: {place: fmean(values) for place, values in line.items()} for key, line in found.items()
    }


def seconds(results: Sequence[Result]) -> Iterator[list[str]]:
    """List the mean time of a release by dataset and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for trial, figures in results:
        if SECONDS in figures:
            key = (str(trial.setting["dataset"]), trial.method)
            found.setdefault(key, []).append(figures[SECONDS])
    for (dataset, method), times in found.items():
        yield [dataset, method, f"{fmean(times):.2f}"]


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the distances out: a row for each line, or for each row of a heat map."""
    if is_heat_map(results):
        return _heat_table(results)
    places = places_of(results)
    axis = part_of(results).key or "epsilon"
    cells = summarize(results)
    rows = [
        [key.dataset, short_name(key), *(str(line[p]) if p in line else "" for p in places)]
        for dataset in dict.fromkeys(key.dataset for key in cells)
        for key, line in cells.items()
        if key.dataset == dataset
    ]
    return ResultTable(["dataset", "method", *(f"{axis} {place:g}" for place in places)], rows)


def short_name(key: Key) -> str:
    """Name a line as briefly as its page allows."""
    return f"{key.method}, ε = {key.epsilon}" if key.epsilon else key.method


def _heat_table(results: Sequence[Result]) -> ResultTable:
    found = excesses(results)
    across = sorted({place[0] for line in found.values() for place in line})
    rows = []
    for (method, epsilon), line in found.items():
        for dimensions in sorted({place[1] for place in line}):
            numbers = [f"{line[clusters, dimensions]:.4f}" for clusters in across]
            rows.append([short_name(Key(CLOUDS, method, epsilon)), f"d = {dimensions}", *numbers])
    return ResultTable(["method", "columns", *(f"k = {clusters}" for clusters in across)], rows)


def _key(trial: Trial, part: Part) -> Key:
    is_line_of_its_own = part.key is not None and trial.method != NOISE_FREE
    epsilon = trial.epsilon if is_line_of_its_own else ""
    return Key(str(trial.setting["dataset"]), trial.method, epsilon)


def _place(trial: Trial, part: Part) -> float | None:
    if trial.method == NOISE_FREE:
        return None
    return float(trial.epsilon) if part.key is None else float(trial.setting[part.key])


def _cloud(trial: Trial) -> Place:
    return int(trial.setting["clusters"]), int(trial.setting["dimensions"])

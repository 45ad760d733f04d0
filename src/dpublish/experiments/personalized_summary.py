"""The results of the comparison of personal methods as lines and as a table."""

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.personalized_crowd import DISTRIBUTIONS
from dpublish.experiments.personalized_parts import (
    CURVE,
    LEVELS,
    MEASURES,
    METHODS,
    MINIMUM,
    NOISE_FREE,
    PARTS,
    SECONDS,
    Part,
)

ANY = "any"
"""The preferences of a part that has them on its axis."""


class Key(NamedTuple):
    """A line of a panel: on which data, what was measured, and by which method."""

    dataset: str
    preferences: str
    measure: str
    inner: str
    method: str


class Cell(NamedTuple):
    """Mean and standard deviation over the repeats, and their number."""

    mean: float
    spread: float
    repeats: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Cell":
        """Summarize the values of one place."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))

    @property
    def doubt(self) -> float:
        """Standard error of the mean."""
        return self.spread / sqrt(self.repeats)

    def __str__(self) -> str:
        return f"{self.mean:.5f} ±{self.spread:.5f}"


Line = dict[float, Cell]
Cells = dict[Key, Line]


def part_of(results: Sequence[Result]) -> Part:
    """Tell which part the results are of."""
    return PARTS[str(results[0].trial.setting["part"])]


def summarize(results: Sequence[Result]) -> Cells:
    """Average every figure at every place of every line.

    A method that the axis does not move has the same value at every place.
    """
    part, places = part_of(results), places_of(results)
    found: dict[Key, dict[float, list[float]]] = {}
    for trial, figures in results:
        place = place_of(trial, part)
        for one in places if place is None else [place]:
            for measure in part.measures:
                line = found.setdefault(_key(trial, part, measure), {})
                line.setdefault(one, []).append(figures[measure])
    return {
        key: {place: Cell.of(values) for place, values in sorted(line.items())}
        for key, line in _ordered(found, part)
    }


def place_of(trial: Trial, part: Part) -> float | None:
    """Find where on the axis a trial is; None if it is the same everywhere."""
    if not part.moves(trial.method):
        return None
    given = trial.setting
    chosen = DISTRIBUTIONS[str(given["preferences"])]
    if part.key == "preferences":
        return float(chosen.high)
    value = int(given[part.key])
    if part.key == "threshold":
        levels = chosen.levels(LEVELS)
        return round(float(levels[value] / levels[-1]), 4)
    return float(value)


def places_of(results: Sequence[Result]) -> list[float]:
    """List the places on the axis; if nothing moves along it, one."""
    found = {place_of(trial, part_of(results)) for trial, _ in results}
    return sorted(place for place in found if place is not None) or [1.0]


def best_place(line: Line, measure: str) -> float:
    """Find where a line is best: highest for the area under the curve, else lowest."""
    sign = -1 if measure == CURVE else 1
    return min(line, key=lambda place: sign * line[place].mean)


def groups_of(cells: Cells) -> dict[tuple[str, str, str, str], Cells]:
    """Put lines together that are compared: same data, same measure."""
    found: dict[tuple[str, str, str, str], Cells] = {}
    for key, line in cells.items():
        if key.method != NOISE_FREE:
            found.setdefault(key[:4], {})[key] = line
    for group in found.values():
        first = next(iter(group))
        plain = first._replace(inner="", method=NOISE_FREE)
        if plain in cells:
            group[plain] = cells[plain]
    return found


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out; of thresholds the best and the worst in hindsight are told."""
    is_scan = part_of(results).key == "threshold"
    return _scan_table(results) if is_scan else _axis_table(results)


def times_better(group: Cells, key: Key, place: float) -> float | None:
    """Divide the error of `minimum` by that of a method, if both were run."""
    floor = group.get(key._replace(method=MINIMUM))
    if floor is None or key.measure == CURVE or key.method == NOISE_FREE:
        return None
    mean = group[key][place].mean
    return floor[place].mean / mean if mean > 0 and place in floor else None


def seconds(results: Sequence[Result]) -> Iterator[list[str]]:
    """List the mean time of a release by dataset and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for trial, figures in results:
        key = (str(trial.setting["dataset"]), trial.method)
        found.setdefault(key, []).append(figures[SECONDS])
    for (dataset, method), times in found.items():
        yield [dataset, method, f"{fmean(times):.3f}"]


def named_level(preferences: str, place: float) -> str:
    """Write the threshold at a place of the axis as the level that it is."""
    levels = [float(level) for level in DISTRIBUTIONS[preferences].levels(LEVELS)]
    nearest = min(levels, key=lambda level: abs(level - place * levels[-1]))
    return f"{nearest:.4g}"


def _scan_table(results: Sequence[Result]) -> ResultTable:
    rows = []
    for group in groups_of(summarize(results)).values():
        for key, line in group.items():
            best = best_place(line, key.measure)
            for place, words in _told(key, line, best):
                ratio = times_better(group, key, place)
                rows.append(
                    [
                        key.dataset,
                        key.preferences,
                        MEASURES[key.measure],
                        _name(key) + words,
                        str(line[place]),
                        "" if ratio is None else f"{ratio:.2f}",
                    ]
                )
    headers = ["dataset", "preferences", "measure", "method", "mean", "times below minimum"]
    return ResultTable(headers, rows)


def _told(key: Key, line: Line, best: float) -> Iterator[tuple[float, str]]:
    if key.method not in METHODS or not METHODS[key.method].has_threshold:
        yield best, ""
        return
    yield best, f", best: {named_level(key.preferences, best)}"
    if len(line) > 1:
        sign = 1 if key.measure == CURVE else -1
        worst = min(line, key=lambda place: sign * line[place].mean)
        yield worst, f", worst: {named_level(key.preferences, worst)}"


def _axis_table(results: Sequence[Result]) -> ResultTable:
    places = places_of(results)
    rows = [
        [key.dataset, key.preferences, _name(key), *(str(line[place]) for place in places)]
        for key, line in summarize(results).items()
    ]
    axis = {"preferences": "up to"}.get(part_of(results).key, part_of(results).key)
    headers = ["dataset", "preferences", "method", *(f"{axis} {place:g}" for place in places)]
    return ResultTable(headers, rows)


def _name(key: Key) -> str:
    return f"{key.method} ({key.inner})" if key.inner else key.method


def _key(trial: Trial, part: Part, measure: str) -> Key:
    given = trial.setting
    preferences = ANY if part.key == "preferences" else str(given["preferences"])
    inner = str(given.get("inner", ""))
    return Key(str(given["dataset"]), preferences, measure, inner, trial.method)


def _ordered(
    found: dict[Key, dict[float, list[float]]], part: Part
) -> list[tuple[Key, dict[float, list[float]]]]:
    """Keep the order in which data was taken; measures and methods as they are listed."""
    datasets = list(dict.fromkeys(key[:2] for key in found))
    methods = [*METHODS, NOISE_FREE]
    return sorted(
        found.items(),
        key=lambda item: (
            datasets.index(item[0][:2]),
            part.measures.index(item[0].measure),
            item[0].inner,
            methods.index(item[0].method),
        ),
    )

"""Watch a method from outside, many times over, and bound what it gives away from below.

A method is run on two neighboring inputs.  On a third of the runs an event is searched for that
tells them apart best; on the others its probabilities are bounded (Clopper-Pearson).
What the bounds prove is a loss that the method has for sure: more than it may have is a bug,
less is no proof of anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from scipy.stats import beta

from dpublish.types import FloatArray

DOUBT = 1e-6
"""Probability with which a bound may be wrong."""
_SEARCH_DOUBT = 0.05  # of bounds that only choose the event
_FEATURES, _NUMBERS = 24, 3_000
_CUTS = 9
_NAMED = ("created", "release_id")

Outcomes = FloatArray
"""One row for each run, one column for each published number."""
Event = Callable[[Outcomes], np.ndarray]


@dataclass(frozen=True)
class Measured:
    """What so many runs on each of two neighbors show."""

    loss: float
    """The method loses at least this, but for one case in a million."""
    runs: int
    """Runs on each of the two, those that chose the event included."""


def least_loss(
    here: Mapping[Any, int], there: Mapping[Any, int], runs: int, doubt: float = DOUBT
) -> float:
    """Bound the loss from below by how often each outcome was seen in so many runs of each.

    >>> round(least_loss({"a": 7_000, "b": 3_000}, {"a": 3_000, "b": 7_000}, 10_000), 2)
    0.74
    """
    share = doubt / (4 * len(here.keys() | there.keys()))
    bounds = [0.0]
    for seen, other in ((here, there), (there, here)):
        for outcome in seen:
            first, second = seen[outcome], other.get(outcome, 0)
            low = beta.ppf(share, first, runs - first + 1) if first else 0.0
            high = beta.ppf(1 - share, second + 1, runs - second) if second < runs else 1.0
            bounds.append(log(low / high) if low > 0 else 0.0)
    return max(bounds)


def measure(here: Callable[[], Any], there: Callable[[], Any], runs: int) -> Measured:
    """Publish so many times from each of two neighboring inputs, and bound the loss."""
    chosen_on = runs // 3
    published = [[_numbers(publish()) for _ in range(runs)] for publish in (here, there)]
    length = min(max(len(one) for side in published for one in side), _NUMBERS)
    first, second = (_as_array(side, length) for side in published)
    event = _best_event(first[:chosen_on], second[:chosen_on])
    if event is None:
        return Measured(0.0, runs)
    tested = runs - chosen_on
    counts = [
        {True: int(found.sum()), False: int(tested - found.sum())}
        for found in (event(first[chosen_on:]), event(second[chosen_on:]))
    ]
    return Measured(least_loss(counts[0], counts[1], tested), runs)


# --- From a release to numbers ----------------------------------------------------------------


def _numbers(published: Any) -> list[float]:
    """List what was published as numbers; texts become numbers by which they can be told apart."""
    found: list[float] = []
    for leaf in _leaves(published):
        found += leaf if isinstance(leaf, list) else [_number(leaf)]
        if len(found) >= _NUMBERS:
            break
    return found[:_NUMBERS]


def _leaves(value: Any) -> Iterator[Any]:
    """Walk through tables, metadata and steps; whole arrays of numbers come at once."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        yield np.nan_to_num(value.astype(np.float64)).ravel()[:_NUMBERS].tolist()
    elif isinstance(value, Mapping | pa.Table | list | tuple | np.ndarray):
        for item in _parts(value):
            yield from _leaves(item)
    else:
        yield value


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [item for name, item in value.items() if name not in _NAMED]
    if isinstance(value, pa.Table):
        return [
            column.to_numpy() if pa.types.is_primitive(column.type) else column.to_pylist()
            for column in value.columns
        ]
    return list(value)


def _number(leaf: Any) -> float:
    try:
        found = float(leaf)
    except (TypeError, ValueError):
        found = float(crc32(str(leaf).encode()))
    return found if np.isfinite(found) else 0.0


def _as_array(side: Sequence[Sequence[float]], length: int) -> Outcomes:
    """Fill up what is shorter, and add how long each was."""
    found = np.zeros((len(side), length + 1))
    for row, numbers in enumerate(side):
        found[row, : min(len(numbers), length)] = numbers[:length]
        found[row, length] = len(numbers)
    return found


# --- The event that tells the two apart -------------------------------------------------------


def _best_event(first: Outcomes, second: Outcomes) -> Event | None:
    """Find events on half of these runs, and choose the one with the largest bound on the rest.

    A weighted sum of many numbers fits the runs from which its weights come.
    """
    best, best_loss = None, -1.0
    half = len(first) // 2
    events = list(_events(first[:half], second[:half]))
    first, second = first[half:], second[half:]
    for event in events:
        counts = [
            {True: int(found.sum()), False: int(found.size - found.sum())}
            for found in (event(first), event(second))
        ]
        loss = least_loss(counts[0], counts[1], len(first), _SEARCH_DOUBT)
        if loss > best_loss:
            best, best_loss = event, loss
    return best


def _events(first: Outcomes, second: Outcomes) -> Iterator[Event]:
    """Cut single numbers, and a weighted sum of all, at their quantiles."""
    both = np.concatenate([first, second])
    deviation = both.std(axis=0)
    moving = np.flatnonzero(deviation > 0)
    if not moving.size:
        return
    shift = (first.mean(axis=0) - second.mean(axis=0))[moving] / deviation[moving]
    weights = np.zeros(both.shape[1])
    usual = 2 * (2 / len(first)) ** 0.5  # shifts as small as this are mostly noise
    weights[moving] = np.sign(shift) * np.maximum(np.abs(shift) - usual, 0) / deviation[moving]
    yield from _cuts(lambda runs: runs @ weights, both)
    for feature in moving[np.argsort(-np.abs(shift))][:_FEATURES].tolist():
        yield from _cuts(_column(feature), both)


def _column(feature: int) -> Callable[[Outcomes], FloatArray]:
    return lambda runs: runs[:, feature]


def _cuts(score: Callable[[Outcomes], FloatArray], both: Outcomes) -> Iterator[Event]:
    levels = np.unique(np.quantile(score(both), np.linspace(0, 1, _CUTS + 2)[:-1]))
    yield from (_at_most(score, level) for level in levels.tolist())


def _at_most(score: Callable[[Outcomes], FloatArray], level: float) -> Event:
    return lambda runs: score(runs) <= level

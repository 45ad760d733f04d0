"""Compare two releases from what they publish alone: receipts, schemas, shared marginals; free.

The distance of two marginals is half the sum of the absolute differences of their shares: 0 if
they are alike, 1 if they have no value in common.  Counts have confidence intervals, all of which
hold together with the stated confidence (Bonferroni), so the shares lie between ends that follow
from them, and so does the distance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.query.language import Condition
from dpublish.data.schema import Schema
from dpublish.errors import DPublishError
from dpublish.privacy.epsilon import format_rounded
from dpublish.types import FloatArray

_MOST_CELLS = 60
_MOST_COLUMNS = 40


class Pair(NamedTuple):
    """The same thing said of both releases."""

    name: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        """Whether the two are not the same."""
        return self.first != self.second


@dataclass(frozen=True)
class Distance:
    """How far apart the marginals of one column are.

    Attributes:
        column: The column.
        cells: Into how many values or bins it is divided.
        value: The estimated distance; None where a release does not count it.
        low: Where the interval begins; None where no honest one is known.
        high: Where it ends.
        note: Why there is no distance, or no interval.
    """

    column: str
    cells: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """Two releases side by side.

    Attributes:
        receipts: What was done, at what price, and what is hidden.
        columns: What the schemas say of each column that is not the same in both.
        distances: How far apart shared marginals are.
        confidence: That of the intervals, of one column each.
    """

    receipts: tuple[Pair, ...]
    columns: tuple[Pair, ...]
    distances: tuple[Distance, ...]
    confidence: float


def compare_releases(first: Release, second: Release, *, confidence: float = 0.95) -> Comparison:
    """Compare two releases, of the same kind or not."""
    require_confidence(confidence)
    return Comparison(
        receipts=tuple(_receipts(first, second)),
        columns=tuple(_columns(first.schema, second.schema)),
        distances=tuple(_distances(first, second, confidence)),
        confidence=confidence,
    )


def _receipts(first: Release, second: Release) -> Iterator[Pair]:
    told = [_told(first), _told(second)]
    for name in dict.fromkeys([*told[0], *told[1]]):
        yield Pair(name, told[0].get(name, ""), told[1].get(name, ""))


def _told(release: Release) -> dict[str, str]:
    receipt = release.receipt
    entry = "" if receipt.ledger_entry is None else f"{receipt.ledger_entry:,}"
    found = {
        "kind": release.kind,
        "dataset": receipt.dataset or "",
        "method": receipt.method,
        "epsilon": format_rounded(receipt.epsilon),
        "hidden": receipt.neighbors.brief(),
        "begun": f"{receipt.created[:16].replace('T', ' ')} UTC",
        "ledger entry": entry,
        "records": "; ".join(receipt.steps),
        "stamps": "; ".join(receipt.stamps),
        "version": receipt.package_version,
    }
    found |= {f"set: {name}": _words(value) for name, value in receipt.settings.items()}
    return found | {name: text for name, text in release.summary().items() if name not in found}


def _words(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _columns(first: Schema, second: Schema) -> Iterator[Pair]:
    for name in dict.fromkeys([*first.names, *second.names]):
        told = [_described(each, name) for each in (first, second)]
        is_same = name in first.names and name in second.names and first[name] == second[name]
        if not is_same:
            yield Pair(name, *told)


def _described(schema: Schema, name: str) -> str:
    if name not in schema.names:
        return "not there"
    axis = schema[name].axis()
    shown = ", ".join(axis.labels[:3]) + (", ..." if axis.size > 3 else "")
    return f"{axis.kind}, {axis.size:,} values or bins: {shown}"


def _distances(first: Release, second: Release, confidence: float) -> Iterator[Distance]:
    shared = [name for name in first.schema.names if name in second.schema.names]
    for name in shared[:_MOST_COLUMNS]:
        axis = _coarse(first, name)
        if axis is None or axis != _coarse(second, name):
            yield Distance(name, 0, note="the schemas divide it differently")
        else:
            yield _distance(first, second, axis, confidence)


def _coarse(release: Release, name: str) -> Axis | None:
    """Take the finest level that has few enough cells; None if even the coarsest has many."""
    column = release.schema[name]
    levels = range(column.taxonomy.height, 0, -1)
    found = (column.axis(level) for level in levels)
    return next((axis for axis in found if 1 < axis.size <= _MOST_CELLS), None)


def _distance(first: Release, second: Release, axis: Axis, confidence: float) -> Distance:
    each = 1 - (1 - confidence) / (2 * axis.size)
    try:
        counts = [_counts(release, axis, each) for release in (first, second)]
    except DPublishError:
        return Distance(axis.column, axis.size, note="one of them does not count it")
    values = [np.array([max(one.value, 0.0) for one in answers]) for answers in counts]
    if not all(value.sum() > 0 for value in values):
        return Distance(axis.column, axis.size, note="one of them counts no record")
    one, other = (value / value.sum() for value in values)
    middle = float(np.abs(one - other).sum() / 2)
    ends = [_share_ends(answers) for answers in counts]
    if ends[0] is None or ends[1] is None:
        note = "no interval: one of them has none for its counts that holds whatever the records"
        return Distance(axis.column, axis.size, middle, note=note)
    low, high = _distance_ends(*ends[0], *ends[1])
    return Distance(axis.column, axis.size, middle, min(low, middle), max(high, middle))


def _counts(release: Release, axis: Axis, confidence: float) -> list[Answer]:
    queries = [str(Condition(axis.column, "=", (label,))) for label in axis.labels]
    return [release.count(query, confidence=confidence) for query in queries]


def _share_ends(answers: Sequence[Answer]) -> tuple[FloatArray, FloatArray] | None:
    """Bound the shares by the intervals of the counts, if all of these rest on noise alone."""
    ends = [_ends(answer) for answer in answers]
    known = [each for each in ends if each is not None]
    if len(known) < len(ends):
        return None
    low, high = (
        np.maximum(np.array(each, dtype=np.float64), 0.0) for each in zip(*known, strict=True)
    )
    most, least = high.sum() - high, low.sum() - low  # of all the others
    with np.errstate(invalid="ignore"):
        from_below = np.where(low > 0, low / (low + most), 0.0)
        from_above = np.where(least > 0, high / (high + least), 1.0)
    return from_below, from_above


def _ends(answer: Answer) -> tuple[float, float] | None:
    if answer.interval == "confidence" and answer.low is not None and answer.high is not None:
        return answer.low, answer.high
    return answer.bounds


def _distance_ends(
    low: FloatArray, high: FloatArray, other_low: FloatArray, other_high: FloatArray
) -> tuple[float, float]:
    """Bound half the sum of absolute differences of shares that lie between these ends.

    As shares add up to 1, it is also the sum of what the one has more than the other.
    """
    more, less = np.maximum(low - other_high, 0.0), np.maximum(other_low - high, 0.0)
    least = max(more.sum(), less.sum(), (more + less).sum() / 2)
    over, under = np.maximum(high - other_low, 0.0), np.maximum(other_high - low, 0.0)
    most = min(over.sum(), under.sum(), np.maximum(over, under).sum() / 2, 1.0)
    return float(least), float(most)

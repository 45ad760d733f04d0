"""Count and predict with all parts of a personalized release together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.prediction import label_rows
from dpublish.data.axis import Axis
from dpublish.errors import InvalidQuery
from dpublish.methods.personalized.released_parts import Part, shared_pairs, shares
from dpublish.types import FloatArray

# --- Counts ---------------------------------------------------------------------------------------


EXCHANGEABLE = "people's levels are taken to say nothing about their records"
NOISY_SIZES = "the numbers of people are noisy themselves, so there is no confidence interval"
_NOISE_ALONE = frozenset({"histogram", "labeled-histogram", "grid-classifier", "marginals"})
"""Kinds whose intervals hold independent noise alone, unless a threshold hides cells."""
_LEAST = 0.95  # from here on the root of squares is no narrower than the distribution of the sum


@dataclass(frozen=True)
class PersonalCount:
    """A weighted sum of the parts' counts.

    Attributes:
        parts: The parts.
        weighted: Whether each part estimates the share of all people, or they are added up.
        people: Number of all people, if it is known.
        sizes_are_public: Whether the numbers of people carry no noise.
        rows_each: How many records of a person are counted at most.
    """

    parts: tuple[Part, ...]
    weighted: bool
    people: float | None
    sizes_are_public: bool
    rows_each: int = 1

    @cached_property
    def factors(self) -> FloatArray:
        """By what each part's count is multiplied."""
        scales = np.array([part.scale for part in self.parts], dtype=np.float64)
        if not self.weighted:
            return scales
        if self.people is None or any(part.size is None for part in self.parts):
            raise InvalidQuery(
                "how many people each part stands for is not known, so their counts cannot be "
                "combined; query the parts one by one"
            )
        sizes = np.array([part.people for part in self.parts])
        each = np.divide(scales, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        return np.asarray(self.people * shares(self.parts, sizes) * each)

    def boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> FloatArray:
        """Estimate how many records lie in each of many boxes."""
        found = np.zeros(len(lows))
        for factor, part in zip(self.factors, self.parts, strict=True):
            if factor > 0:
                found += factor * part.release.count_boxes(columns, lows, highs)
        return found

    def answer(self, query: str, confidence: float) -> Answer:
        """Count the records that satisfy `query`."""
        require_confidence(confidence)
        asked = np.flatnonzero(self.factors > 0).tolist()
        in_squares = self._adds_in_squares
        answers = self._ask(query, asked, confidence, in_squares)
        if in_squares and any(answer.assumption for answer in answers):
            in_squares = False  # an interval that allows for more than noise is no deviation
            answers = self._ask(query, asked, confidence, in_squares)
        factors = self.factors[asked]
        if len(asked) == 1 and factors[0] == 1 and not self.weighted:
            return answers[0]
        value = float(sum(f * a.value for f, a in zip(factors, answers, strict=True)))
        widths = _half_widths(factors, answers)
        if widths is None or not asked or (self.weighted and not self.sizes_are_public):
            why = None if widths is None else NOISY_SIZES
            return Answer(value, None, None, confidence, self._assumption(answers, why))
        deviation = self._deviation(answers, widths, asked)
        whole = self._join(widths, deviation, confidence, in_squares)
        on_model = self.is_scaled or any(answer.kind == "model" for answer in answers)
        return Answer(
            value,
            max(value - whole, 0.0),
            max(value + whole, 0.0),
            confidence,
            self._assumption(answers, None),
            kind="model" if on_model else "confidence",
        )

    def _ask(
        self, query: str, asked: Sequence[int], confidence: float, in_squares: bool
    ) -> list[Answer]:
        inner = self._inner_confidence(len(asked), confidence, in_squares)
        return [self.parts[i].release.count(query, confidence=inner) for i in asked]

    @property
    def is_scaled(self) -> bool:
        """Whether the people who were counted stand for others too."""
        return self.weighted or any(part.scale != 1 for part in self.parts)

    @cached_property
    def _adds_in_squares(self) -> bool:
        return all(
            part.release.kind in _NOISE_ALONE and getattr(part.release, "threshold", None) is None
            for part in self.parts
        )

    def _inner_confidence(self, asked: int, confidence: float, in_squares: bool) -> float:
        """Choose how sure each part must be.

        One part that stands for itself has the confidence that the user wants.  Independent
        noise is added in squares.  Else every part and the sample itself may fail, each with
        its share of the risk, and half-widths are added.
        """
        if asked == 1 and self.factors.max() == 1 and not self.weighted:
            return confidence
        if in_squares:
            return max(confidence, _LEAST)
        return 1 - (1 - confidence) / (asked + self.is_scaled)

    def _join(
        self, widths: FloatArray, deviation: float, confidence: float, in_squares: bool
    ) -> float:
        """Bound noise and sampling error together."""
        inner = self._inner_confidence(widths.size, confidence, in_squares)
        deviations = NormalDist().inv_cdf((1 + inner) / 2)
        if not in_squares:
            return float(widths.sum()) + deviations * deviation
        whole = sqrt(float(widths @ widths) + (deviations * deviation) ** 2)
        return whole * NormalDist().inv_cdf((1 + confidence) / 2) / deviations

    def _deviation(self, answers: Sequence[Answer], widths: FloatArray, asked: list[int]) -> float:
        """Bound the standard deviation of whose records happen to be counted.

        If a count stands for `scale` times as many people, each of whom was counted or not at
        random, its variance is at most the scaled count times (scale - 1).  If parts estimate
        a share q of all N people, that of the share is q (1 - q) (sum of u^2 - 1/N), where u
        is how much each person counts: weight / size for each part that they are in.

        A person who adds up to m records instead of one has a square of up to m times as much:
        the first variance is m times as large.  The second is that of numbers from 0 to m with
        the mean q, at most q (m - q) instead of q (1 - q).
        """
        most_each = self.rows_each
        factors = self.factors[asked]
        scaled = factors * np.array([answer.value for answer in answers])
        scales = np.array([self.parts[i].scale for i in asked])
        more = np.maximum(scales - 1, 0.0)
        variance = most_each * float(np.maximum(scaled + widths, 0.0) @ (factors / scales * more))
        if self.weighted and self.people:
            value, most = float(scaled.sum()), float(widths.sum())
            ends = np.array([value - most, value + most]) / self.people
            low, high = np.clip(ends, 0, most_each)
            mean = min(max(most_each / 2, low), high)
            variance += self.people**2 * mean * (most_each - mean) * self._unevenness(asked)
        return sqrt(variance)

    def _unevenness(self, asked: list[int]) -> float:
        parts = [self.parts[i] for i in asked]
        sizes = np.array([part.people for part in parts])
        weights = shares(parts)
        total = float((weights**2 / sizes).sum())
        for i, j in shared_pairs(parts):  # they have at most the people of the smaller
            total += 2 * float(weights[i] * weights[j] / max(sizes[i], sizes[j]))
        return max(total - 1 / (self.people or 1.0), 0.0)

    def _assumption(self, answers: Sequence[Answer], why: str | None) -> str | None:
        assumed = dict.fromkeys(a.assumption for a in answers if a.assumption)
        if self.is_scaled:
            assumed[EXCHANGEABLE] = None
        if why:
            assumed[why] = None
        return "; ".join(assumed) or None


def _half_widths(factors: FloatArray, answers: Sequence[Answer]) -> FloatArray | None:
    """Find the half-width of each part's scaled interval; None if a part has no interval.

    An interval is cut off at 0, so its longer side is the one to believe.
    """
    found = []
    for factor, answer in zip(factors, answers, strict=True):
        if answer.low is None or answer.high is None:
            return None
        found.append(factor * max(answer.high - answer.value, answer.value - answer.low, 0.0))
    return np.array(found, dtype=np.float64)


# --- Predictions ----------------------------------------------------------------------------------


_LINEAR_MODEL, _GRID_CLASSIFIER = "linear-model", "grid-classifier"
"""Kinds of releases that can be averaged."""


class LinearModel(Protocol):
    """A released linear model, or the mean of several."""

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class, or the number, of each of `rows`."""
        ...

    def predict_proba(self, rows: Any) -> pa.Table:
        """Predict the probability of each class: a column a class."""
        ...

    def coefficients(self) -> pa.Table:
        """List the weights."""
        ...


class GridClassifier(Protocol):
    """A released classifier that gives probabilities."""

    @property
    def classes(self) -> Axis:
        """The classes."""
        ...

    def predict_proba(self, rows: Any) -> FloatArray:
        """Predict the probability of each class, a row for each of `rows`."""
        ...


def predict(parts: Sequence[Part], rows: Any) -> pa.Array:
    """Predict the class (or the number) of each of `rows`.

    Linear models of one kind are averaged; probabilities are averaged where every part gives some;
    else parts vote with their weights, and of equals the first class in order wins.
    """
    if not parts:
        raise InvalidQuery("a release without parts does not classify")
    model = mean_model(parts)
    if model is not None:
        return model.predict(rows)
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    grids = _grids(parts)
    if grids is not None:
        return label_rows(grids[0].classes, _mean_probabilities(parts, grids, table).argmax(axis=1))
    predicted = [part.release.predict(table) for part in parts]
    if all(pa.types.is_floating(each.type) for each in predicted):
        numbers = np.stack([each.to_numpy(zero_copy_only=False) for each in predicted])
        return pa.array(shares(parts) @ numbers)
    return _vote(predicted, shares(parts))


def predict_proba(parts: Sequence[Part], rows: Any) -> pa.Table:
    """Return the probability of each class for each of `rows`, a column a class."""
    model = mean_model(parts)
    if model is not None:
        return model.predict_proba(rows)
    grids = _grids(parts)
    if grids is None:
        raise InvalidQuery("the parts of this release give no probabilities, only classes")
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    probabilities = _mean_probabilities(parts, grids, table)
    return pa.table(dict(zip(grids[0].classes.labels, probabilities.T, strict=True)))


def mean_model(parts: Sequence[Part]) -> LinearModel | None:
    """Average linear models of one kind and the same features; None if they are not such."""
    models: Sequence[Any] = [part.release for part in parts]
    if not models or any(model.kind != _LINEAR_MODEL for model in models):
        return None
    if any(not _alike(models[0], model) for model in models):
        return None
    first, weights = models[0], shares(parts)
    deviations = [m.standard_deviation for m in models if m.standard_deviation is not None]
    mean = np.tensordot(weights, np.stack([model.weights for model in models]), 1)
    deviation = None
    if len(deviations) == len(models):
        deviation = np.sqrt(np.tensordot(weights**2, np.square(np.stack(deviations)), 1))
    found: LinearModel = replace(
        first,
        weights=np.asarray(mean, dtype=np.float64),
        expected={},
        notes=(),
        standard_deviation=deviation,
    )
    return found


def _alike(one: Any, other: Any) -> bool:
    names = ("schema", "model", "target", "by_cell")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _grids(parts: Sequence[Part]) -> Sequence[GridClassifier] | None:
    """Take the grid classifiers out of their parts, if all are such and of the same classes."""
    grids: Sequence[Any] = [part.release for part in parts]
    if not grids or any(grid.kind != _GRID_CLASSIFIER for grid in grids):
        return None
    return grids if len({grid.classes.labels for grid in grids}) == 1 else None


def _mean_probabilities(
    parts: Sequence[Part], grids: Sequence[GridClassifier], rows: pa.Table
) -> FloatArray:
    probabilities = np.stack([grid.predict_proba(rows) for grid in grids])
    return np.asarray(np.tensordot(shares(parts), probabilities, 1))


def _vote(predicted: Sequence[pa.Array], weights: FloatArray) -> pa.Array:
    """Take the label with the most weight in each row; a missing label is one, too.

    >>> _vote([pa.array(["a", "b"]), pa.array(["b", None])], np.array([0.4, 0.6])).to_pylist()
    ['b', None]
    """
    labels = sorted({label for each in predicted for label in each.to_pylist()}, key=_missing_last)
    positions = {label: position for position, label in enumerate(labels)}
    votes = np.zeros((len(predicted[0]), len(labels)))
    for each, weight in zip(predicted, weights, strict=True):
        codes = [positions[label] for label in each.to_pylist()]
        votes[np.arange(len(codes)), codes] += weight
    winners = votes.argmax(axis=1) if labels else np.empty(0, dtype=np.int64)
    return pa.array(labels, predicted[0].type).take(pa.array(winners))


def _missing_last(label: Any) -> tuple[bool, Any]:
    return (label is None, label)

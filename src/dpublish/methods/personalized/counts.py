"""Count in all parts of a personalized release together, with an interval if there is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.errors import InvalidQuery
from dpublish.methods.personalized.parts import Part, shared_pairs, shares
from dpublish.types import FloatArray

EXCHANGEABLE = "people's levels are taken to say nothing about their records"
NOISY_SIZES = "the numbers of people are noisy themselves, so there is no confidence interval"
_NOISE_ALONE = frozenset({"histogram", "labeled-histogram", "grid-classifier", "marginals"})
"""Kinds whose bars hold independent noise and nothing else, unless a threshold hides cells."""
_LEAST = 0.95  # from here on the root of squares is no narrower than the distribution of the sum


@dataclass(frozen=True)
class PersonalCount:
    """A weighted sum of the parts' counts.

    Attributes:
        parts: The parts.
        weighted: Whether each part estimates the share of all people, or they are added up.
        people: Number of all people, if it is known.
        sizes_are_public: Whether the numbers of people carry no noise.
    """

    parts: tuple[Part, ...]
    weighted: bool
    people: float | None
    sizes_are_public: bool

    @cached_property
    def factors(self) -> FloatArray:
        """By what each part's count is multiplied."""
        scales = np.array([part.scale for part in self.parts], dtype=np.float64)
        if not self.weighted:
            return scales
        if self.people is None or any(part.size is None for part in self.parts):
            raise InvalidQuery(
                "how many people each part stands for is not known, so their counts cannot be "
                "brought together; ask the parts one by one"
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
        inner = self._inner_confidence(len(asked), confidence)
        answers = [self.parts[i].release.count(query, confidence=inner) for i in asked]
        factors = self.factors[asked]
        if len(asked) == 1 and factors[0] == 1 and not self.weighted:
            return answers[0]
        value = float(sum(f * a.value for f, a in zip(factors, answers, strict=True)))
        reach = _reaches(factors, answers)
        if reach is None or not asked or (self.weighted and not self.sizes_are_public):
            why = None if reach is None else NOISY_SIZES
            return Answer(value, None, None, confidence, self._assumption(answers, why))
        whole = self._join(reach, self._spread(answers, reach, asked), confidence)
        low, high = max(value - whole, 0.0), max(value + whole, 0.0)
        return Answer(value, low, high, confidence, self._assumption(answers, None))

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

    def _inner_confidence(self, asked: int, confidence: float) -> float:
        """Choose how sure each part must be.

        One part that stands for itself is asked as the user asks.  Independent noise is added
        in squares.  Else every part and probability itself may fail, each with its share of the
        risk, and reaches are added.
        """
        if asked == 1 and self.factors.max() == 1 and not self.weighted:
            return confidence
        if self._adds_in_squares:
            return max(confidence, _LEAST)
        return 1 - (1 - confidence) / (asked + self.is_scaled)

    def _join(self, reach: FloatArray, spread: float, confidence: float) -> float:
        """Bound noise and probability together."""
        inner = self._inner_confidence(reach.size, confidence)
        deviations = NormalDist().inv_cdf((1 + inner) / 2)
        if not self._adds_in_squares:
            return float(reach.sum()) + deviations * spread
        whole = sqrt(float(reach @ reach) + (deviations * spread) ** 2)
        return whole * NormalDist().inv_cdf((1 + confidence) / 2) / deviations

    def _spread(self, answers: Sequence[Answer], reach: FloatArray, asked: list[int]) -> float:
        """Bound the standard deviation of whose records happen to be counted.

        If a count stands for `scale` times as many people, of whom each was counted or not by
        probability, its variance is at most the scaled count times (scale - 1).  If parts estimate
        a share q of all N people, that of the share is q (1 - q) (sum of u^2 - 1/N), where u
        is how much each person counts: weight / size for each part that she is in.
        """
        factors = self.factors[asked]
        scaled = factors * np.array([answer.value for answer in answers])
        scales = np.array([self.parts[i].scale for i in asked])
        more = np.maximum(scales - 1, 0.0)
        variance = float(np.maximum(scaled + reach, 0.0) @ (factors / scales * more))
        if self.weighted and self.people:
            value, most = float(scaled.sum()), float(reach.sum())
            low, high = np.clip([value - most, value + most], 0, self.people) / self.people
            share = min(max(0.5, low), high)
            variance += self.people**2 * share * (1 - share) * self._unevenness(asked)
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
        told = dict.fromkeys(a.assumption for a in answers if a.assumption)
        if self.is_scaled:
            told[EXCHANGEABLE] = None
        if why:
            told[why] = None
        return "; ".join(told) or None


def _reaches(factors: FloatArray, answers: Sequence[Answer]) -> FloatArray | None:
    """Find how far each part's scaled count may be off to either side; None if one cannot say.

    A bar is cut off at 0, so its longer side is the one to believe.
    """
    found = []
    for factor, answer in zip(factors, answers, strict=True):
        if answer.low is None or answer.high is None:
            return None
        found.append(factor * max(answer.high - answer.value, answer.value - answer.low, 0.0))
    return np.array(found, dtype=np.float64)

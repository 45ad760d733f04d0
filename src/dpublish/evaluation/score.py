"""The scale of a verdict: what was measured, between a reference and knowing nothing.

A score of 100 is as good as a fresh sample of as many rows, or as a method without privacy on
true rows.  A score of 0 is no better than a guess that knows no row.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from statistics import fmean
from typing import Any, Literal

Grade = Literal["good", "rough", "poor"]
GOOD, ROUGH = 85.0, 60.0
"""Scores from which on a part is good enough, or a rough guide at least."""
WORDS: dict[Grade, str] = {
    "good": "good enough for",
    "rough": "a rough guide for",
    "poor": "not good enough for",
}


def scaled(measured: float, reference: float, baseline: float) -> float:
    """Compute the score of an error: 100 at the reference or below, 0 at the baseline or above.

    >>> scaled(0.02, 0.01, 0.41), scaled(0.5, 0.01, 0.41), scaled(0.0, 0.01, 0.41)
    (97.5, 0.0, 100.0)
    """
    if not isfinite(measured):
        return 0.0
    if baseline <= reference:
        return 100.0 if measured <= reference else 0.0
    return 100 * min(max(1 - (measured - reference) / (baseline - reference), 0.0), 1.0)


def grade_of(score: float) -> Grade:
    """Find the grade of a score.

    >>> grade_of(85), grade_of(84.9), grade_of(12)
    ('good', 'rough', 'poor')
    """
    if score >= GOOD:
        return "good"
    return "rough" if score >= ROUGH else "poor"


@dataclass(frozen=True)
class Part:
    """One part of a verdict.

    Attributes:
        name: What it is called, such as "pairs".
        purpose: What a good score makes the release good for.
        measure: What was measured; less is better.
        measured: The figure of the release.
        reference: The figure that scores 100.
        baseline: The figure that scores 0.
        score: From 0 to 100.
        references: What the reference is, in words.
        baselines: What the baseline is, in words.
    """

    name: str
    purpose: str
    measure: str
    measured: float
    reference: float
    baseline: float
    score: float
    references: str
    baselines: str

    @classmethod
    def of(
        cls,
        name: str,
        purpose: str,
        measure: str,
        measured: float,
        *,
        reference: tuple[str, float],
        baseline: tuple[str, float],
        least_gap: float,
    ) -> "Part":
        """Score a figure between a reference and a baseline, each with what it is in words.

        A baseline nearer than `least_gap` to the reference is moved away from it.
        """
        references, best = reference
        baselines, worst = baseline
        if worst < best + least_gap:
            baselines, worst = f"{figure(least_gap)} more", best + least_gap
        score = scaled(measured, best, worst)
        return cls(name, purpose, measure, measured, best, worst, score, references, baselines)

    @property
    def grade(self) -> Grade:
        """Whether it is good enough, a rough guide, or neither."""
        return grade_of(self.score)

    @property
    def sentence(self) -> str:
        """What the score means, in plain words."""
        words = WORDS[self.grade]
        return (
            f"{words[0].upper()}{words[1:]} {self.purpose}: {self.measure} is "
            f"{figure(self.measured)} ({self.references}: {figure(self.reference)}, "
            f"{self.baselines}: {figure(self.baseline)})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "grade": self.grade, "sentence": self.sentence}


def overall(parts: Sequence[Part]) -> float | None:
    """Average the scores of the parts that apply, all of them alike; None without any."""
    return fmean(part.score for part in parts) if parts else None


def verdict_of(parts: Sequence[Part]) -> str:
    """Say in a sentence what a release is good for, and what not."""
    score = overall(parts)
    if score is None:
        return "Nothing could be scored."
    said = []
    for grade, words in WORDS.items():
        purposes = list(dict.fromkeys(part.purpose for part in parts if part.grade == grade))
        if purposes:
            said.append(f"{words} {_listed(purposes)}")
    return f"{round(score)} of 100: {'; '.join(said)}."


def figure(number: float) -> str:
    """Write a figure with three digits, and never with an exponent.

    >>> figure(0.01234), figure(1234.5), figure(0.0)
    ('0.0123', '1,234', '0')
    """
    if not isfinite(number):
        return "unlimited"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    if abs(number) >= 1e-4:
        return f"{number:.3g}"
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _listed(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} and {words[-1]}"

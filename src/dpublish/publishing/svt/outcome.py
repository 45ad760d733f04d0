"""What is published of an interactive run: its settings, and one line for each query."""

import json
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from dpublish.accuracy.intervals import half_width
from dpublish.core.answer import Answer
from dpublish.data.query.language import parse_query
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate, plan
from dpublish.mechanisms.sparse_vector.vector import MAX_THRESHOLD
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_epsilon, read_exact

SENSITIVITY = 1
"""The most by which one record changes a count."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public settings of an interactive run.

    Attributes:
        max_positives: How many queries may be answered with "above".
        threshold: What queries are compared with unless they name a threshold of their own.
        monotonic: Whether only counts are compared.  They all move the same way when a record is
            added or removed, which halves the noise.  The errors of estimates do not.
        numeric_share: The part of epsilon that pays for noisy counts of queries found above.
    """

    max_positives: int
    threshold: int | None = None
    monotonic: bool = True
    numeric_share: Fraction | None = None

    def check(self, epsilon: Fraction) -> None:
        """Refuse settings that do not fit, before anything is paid for."""
        require_count(max_positives=self.max_positives)
        if self.threshold is not None:
            require_number("threshold", self.threshold)
        plan(
            sensitivity=SENSITIVITY,
            max_positives=self.max_positives,
            monotonic=self.monotonic,
            values_share=self.numeric_share,
            epsilon=epsilon,
        )

    def calibration(self, epsilon: Fraction) -> Calibration:
        """Compute how wide the noise of a run is; spends nothing."""
        return calibrate(
            sensitivity=SENSITIVITY,
            max_positives=self.max_positives,
            monotonic=self.monotonic,
            values_share=self.numeric_share,
            budget=Budget.seeded(epsilon),
        )

    def to_dict(self) -> dict[str, Any]:
        """Turn the settings into plain values for a file."""
        share = self.numeric_share
        return asdict(self) | {"numeric_share": None if share is None else format_epsilon(share)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Terms":
        """Read back what `to_dict` wrote."""
        share = plain["numeric_share"]
        return cls(**plain | {"numeric_share": None if share is None else read_exact(share)})


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was told about one query; a line of the transcript.

    Attributes:
        number: Which query of the run it was, from 1.
        query: Its conditions, sorted.
        threshold: What it was compared with.
        estimate: If given, the error of this estimate was compared, not the count.
        above: Whether the noisy count (or error) was at least the noisy threshold.
        value: The noisy count, if it was above and values are paid for.
        positives_left: How many more queries may be above.
    """

    number: int
    query: str
    threshold: int
    estimate: int | None
    above: bool
    value: int | None
    positives_left: int

    @property
    def asked(self) -> tuple[str, int, int | None]:
        """What was compared with what: the same again is answered from the transcript."""
        return self.query, self.threshold, self.estimate

    def answer(self, calibration: Calibration, confidence: float = 0.95) -> Answer | None:
        """Return the noisy count with its confidence interval, if there is one.

        Its noise was drawn apart from that of the comparison: the interval holds although
        queries found above were picked by theirs.
        """
        if self.value is None or calibration.value_rate is None:
            return None
        width = half_width(calibration.value_rate, np.ones(1), confidence)
        low, high = max(self.value - width, 0.0), max(self.value + width, 0.0)
        return Answer(float(self.value), low, high, confidence)

    def to_dict(self) -> dict[str, Any]:
        """Turn the outcome into plain values."""
        return msgspec.structs.asdict(self)

    def to_line(self) -> bytes:
        """Write the line of the transcript."""
        return json.dumps(self.to_dict(), ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Outcome":
        """Read a line back."""
        return msgspec.json.decode(line, type=cls)


def canonical(query: str) -> str:
    """Write a query with its conditions sorted, each once, so that it is recognized.

    >>> canonical("sex = Female and age>=65")
    'age >= 65 and sex = Female'
    """
    parsed = parse_query(query)
    return str(replace(parsed, conditions=tuple(sorted(set(parsed.conditions), key=str))))


def require_number(name: str, number: int) -> None:
    """Refuse thresholds and estimates that are not integers, or too large."""
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) > MAX_THRESHOLD:
        raise InvalidParameter(f"{name} ({number}) must be an integer of at most 2^60 in size")

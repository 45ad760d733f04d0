"""An answer with a confidence interval."""

from dataclasses import asdict, dataclass, field
from typing import Any

from dpublish.accuracy.rounding import format_number


@dataclass(frozen=True)
class Answer:
    """An estimate, and an interval that holds the truth with probability `confidence`.

    >>> print(Answer(12.25, 10, 1234.5, 0.95))
    12.2 (95 % confidence interval 10 to 1,234.5)

    Without an interval (`low` and `high` are None) no honest one is known.
    The interval covers the noise.  What it does not cover, such as records assumed to lie
    evenly within a cell, is stated in `assumption`; `counts` says which records were counted.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    assumption: str | None = None
    counts: str | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Turn the answer into plain values for a file."""
        return asdict(self)

    def __str__(self) -> str:
        value = _written(max(self.value, 0.0))  # no count is negative, though an estimate may be
        if self.low is None or self.high is None:
            return f"{value} (no confidence interval is offered)"
        interval = f"{_written(self.low)} to {_written(self.high)}"
        percent = format_number(100 * self.confidence, 14)
        return f"{value} ({percent} % confidence interval {interval})"


def _written(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")

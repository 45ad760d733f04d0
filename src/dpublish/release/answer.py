"""An answer with an error bar."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """An estimate, and an interval that holds the truth with probability `confidence`.

    >>> print(Answer(12.25, 10, 1234.5, 0.95))
    12.2  (0.95 confidence: 10 to 1,234.5)

    The interval covers the noise.  What it does not cover, such as records assumed to be
    spread evenly within a cell, is said in `assumption`.
    """

    value: float
    low: float
    high: float
    confidence: float
    assumption: str | None = None

    def __str__(self) -> str:
        value, low, high = (
            f"{number:,.1f}".removesuffix(".0") for number in (self.value, self.low, self.high)
        )
        return f"{value}  ({self.confidence:.10g} confidence: {low} to {high})"

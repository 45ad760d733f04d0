"""An answer with an error bar."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """An estimate, and an interval that holds the truth with probability `confidence`.

    The interval covers the noise.  What it does not cover, such as records assumed to be
    spread evenly within a cell, is said in `assumption`.
    """

    value: float
    low: float
    high: float
    confidence: float
    assumption: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.value:,.10g}  ({self.confidence:.10g} confidence: "
            f"{self.low:,.10g} to {self.high:,.10g})"
        )

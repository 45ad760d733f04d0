"""What an evaluation returns: a score, a verdict, its parts, and the tables behind them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, overload

import pyarrow as pa

from dpublish.display import arrow_to_pandas, arrow_to_polars, draw
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.score import GOOD, ROUGH, Part, figure, overall, verdict_of
from dpublish.plots.scores import draw_scores

STAMP = "NOT PRIVATE: measured on true rows; for the owner's eyes only"
_LATER = {"queries": 1, "prediction": 2, "ranking": 3}
HEADERS = ("part", "score", "release", "scores 100", "scores 0")


@dataclass(frozen=True)
class EvaluationReport(Sequence[Finding]):
    """A verdict on a release, and a sequence of what was found.  NOT PRIVATE.

    Attributes:
        findings: Tables of figures, one for each thing that was measured.
    """

    findings: tuple[Finding, ...]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the score; of tables, from single columns to queries and predictions."""
        found = [part for finding in self.findings for part in finding.parts]
        return tuple(sorted(found, key=lambda part: _LATER.get(part.name, 0)))

    @property
    def score(self) -> float | None:
        """The mean score of the parts, from 0 to 100; None if no part could be scored."""
        return overall(self.parts)

    @property
    def verdict(self) -> str:
        """What the release is good for, in a sentence."""
        return verdict_of(self.parts)

    @property
    def stamp(self) -> str:
        """That nothing of this may be published."""
        return STAMP

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def bars(self) -> list[tuple[str, float, str]]:
        """Name, score and grade of each part, to draw."""
        return [(part.name, part.score, part.grade) for part in self.parts]

    def rows(self) -> list[list[str]]:
        """Return the parts as rows of a table with `HEADERS`."""
        return [
            [
                part.name,
                f"{part.score:.0f}",
                *map(figure, (part.measured, part.reference, part.baseline)),
            ]
            for part in self.parts
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as `dpublish evaluate --json` prints it."""
        return {
            "stamp": STAMP,
            "score": self.score,
            "verdict": self.verdict,
            "parts": [part.to_dict() for part in self.parts],
            "evaluations": [{"name": one.name, **one.figures} for one in self.findings],
        }

    def to_pandas(self) -> Any:
        """Return the parts as a pandas frame, one row each; the stamp stays with each of them."""
        return arrow_to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the same as a Polars frame."""
        return arrow_to_polars(self.to_arrow())

    def to_arrow(self) -> pa.Table:
        """Return the same as an Arrow table."""
        listed = [{**part.to_dict(), "stamp": STAMP} for part in self.parts]
        return pa.Table.from_pylist(listed)

    def plot(self) -> Any:
        """Draw the score of each part; returns a Matplotlib figure."""
        names = [part.name for part in self.parts]
        scores = [part.score for part in self.parts]
        return draw("bars", names, scores, title=f"{self!r}", unit="score, 100 at most")

    def __str__(self) -> str:
        lines = [STAMP, self.verdict, ""]
        lines += [f"{part.score:4.0f}  {part.name}: {part.sentence}" for part in self.parts]
        return "\n".join(lines)

    def __repr__(self) -> str:
        score = "none" if self.score is None else f"{self.score:.0f}"
        return f"EvaluationReport(score {score}, {len(self.parts)} parts; NOT PRIVATE)"

    def _repr_html_(self) -> str:
        bars = draw_scores(self.bars, (ROUGH, GOOD)) if self.parts else ""
        points = "".join(f"<li>{escape(p.name)}: {escape(p.sentence)}</li>" for p in self.parts)
        return (
            f'<p style="color:#b3261e"><b>{escape(STAMP)}</b></p>'
            f"<p><b>{escape(self.verdict)}</b></p>{bars}<ul>{points}</ul>"
        )

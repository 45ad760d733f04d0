"""What the values of a table look like.  NOT PRIVATE: for the owner's eyes only.

An owner who fills in a schema wants to know how dates are written, or whether sexes are letters
or words.  What is found here is shown and forgotten: nothing may be written to a file, and nothing
may be taken over into a schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from dpublish.data.engines.source import read_quietly, scan
from dpublish.data.sources import find_source
from dpublish.data.taxonomy import canonical_text

PEEK_STAMP = (
    "NOT PRIVATE: for the owner's eyes only; do not copy bounds from here unless they are public "
    "knowledge"
)
_VALUES = 5
_LONGEST = 24


@dataclass
class Glimpse:
    """A few values of one column.  NOT PRIVATE.

    Attributes:
        values: The first few different values, shortened.
        low: The least number, if any value is one.
        high: The greatest number.
        has_missing: Whether a value is missing.
    """

    values: list[str] = field(default_factory=list)
    low: float = inf
    high: float = -inf
    has_missing: bool = False

    def add(self, value: object) -> None:
        """Take another value into account."""
        text = "" if value is None else canonical_text(value)
        if not text:
            self.has_missing = True
            return
        shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        if len(self.values) < _VALUES and shown not in self.values:
            self.values.append(shown)
        number = _number(text)
        if number is not None:
            self.low, self.high = min(self.low, number), max(self.high, number)

    def describe(self) -> str:
        """Write it in one line."""
        parts = [", ".join(self.values) or "no value"]
        if self.low <= self.high:
            parts.append(f"numbers from {self.low:g} to {self.high:g}")
        if self.has_missing:
            parts.append("some are missing")
        return "; ".join(parts)


def peek(
    source: Any, columns: Sequence[str], *, table: str | None = None, sql: str | None = None
) -> dict[str, Glimpse]:
    """Look at all values of some columns.  NOT PRIVATE: show it to the owner and forget it."""
    found = {name: Glimpse() for name in columns}
    for part in find_source(source, columns, table=table, sql=sql):
        for batch in read_quietly(scan(part, columns), part.label) if columns else ():
            for name, values in zip(columns, batch.columns, strict=True):
                for value in values.unique().to_pylist():
                    found[name].add(value)
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None

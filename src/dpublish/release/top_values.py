"""A published ranking: the most frequent values of a column, in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.release.answer import Answer
from dpublish.release.axis_weights import axis_weights
from dpublish.release.error_bars import half_width, require_confidence
from dpublish.release.query import parse_query
from dpublish.release.release import Release


@dataclass(frozen=True, eq=False)
class TopValues(Release):
    """Chosen cells of one axis, most frequent first, with noisy counts where they were bought."""

    kind: ClassVar[str] = "top-values"

    receipt: Receipt
    schema: Schema
    axis: Axis
    chosen: NDArray[np.int64]
    counts: NDArray[np.int64] | None = None
    noise_rate: Fraction | None = None
    expected: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.counts is None) != (self.noise_rate is None):
            raise InvalidParameter("counts come with the rate of their noise")
        if self.counts is not None and self.counts.shape != self.chosen.shape:
            raise InvalidParameter("there must be one count for each chosen value")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TopValues)
            and self.facts() == other.facts()
            and self.receipt == other.receipt
            and self.tables()["values"].equals(other.tables()["values"])
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def values(self) -> tuple[str, ...]:
        """The chosen values, most frequent first."""
        return tuple(self.axis.labels[index] for index in self.chosen)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records with a chosen value, such as `item = bread`."""
        require_confidence(confidence)
        if self.counts is None or self.noise_rate is None:
            raise InvalidQuery("this release has no counts; release it with --with-counts")
        parsed = parse_query(query)
        if parsed.columns != (self.axis.column,):
            raise InvalidQuery(f"ask about one value of {self.axis.column!r}")
        weights = axis_weights(self.axis, parsed.about(self.axis.column))
        asked = np.flatnonzero(weights)
        if len(asked) != 1 or weights[asked[0]] != 1 or asked[0] not in self.chosen:
            raise InvalidQuery(f"ask about one of the {len(self.chosen)} published values")
        value = float(self.counts[int(np.flatnonzero(self.chosen == asked[0])[0])])
        reach = half_width(self.noise_rate, np.ones(1), confidence)
        return Answer(value, max(value - reach, 0.0), max(value + reach, 0.0), confidence)

    def tables(self) -> dict[str, pa.Table]:
        """Give rank, value and, where bought, the noisy count."""
        columns: dict[str, Any] = {
            "rank": np.arange(1, len(self.chosen) + 1),
            "cell_number": self.chosen,
            "value": pa.array(self.values, pa.string()),
        }
        if self.counts is not None:
            columns["noisy_count"] = self.counts
        return {"values": pa.table(columns)}

    def facts(self) -> dict[str, Any]:
        """Give the axis and the rate of the counts' noise."""
        return {
            "axis": {"column": self.axis.column, "level": self.axis.level},
            "noise_rate": None if self.noise_rate is None else format_epsilon(self.noise_rate),
            "expected": dict(self.expected),
        }

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        facts: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the ranking of a release folder."""
        table = tables["values"]
        rate = facts["noise_rate"]
        counted = "noisy_count" in table.column_names
        return cls(
            receipt=receipt,
            schema=schema,
            axis=schema[facts["axis"]["column"]].axis(facts["axis"]["level"]),
            chosen=table["cell_number"].to_numpy().astype(np.int64),
            counts=table["noisy_count"].to_numpy().astype(np.int64) if counted else None,
            noise_rate=None if rate is None else parse_epsilon(rate),
            expected=facts["expected"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the error foretold from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe what was chosen in a few words."""
        shown = ", ".join(self.values[:5]) + (", ..." if len(self.values) > 5 else "")
        lines = {
            "most frequent": f"{len(self.values)} of {self.axis.size:,} values of "
            f"{self.axis.column}: {shown}",
            "error": "no omitted value is more frequent than a chosen one by more than "
            f"{self.expected.get('omitted_excess_95', float('nan')):,.0f} with probability 95 %",
        }
        if self.noise_rate is not None:
            reach = half_width(self.noise_rate, np.ones(1), 0.95)
            lines["counts"] = f"each within {reach:,.0f} of the truth with probability 95 %"
        return lines

"""One published answer, a count or a median, chosen at each person's own price."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.query.language import parse_query, require_columns
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.privacy.receipt import Receipt

LARGEST_COUNT = 1 << 63
BAR_CONFIDENCE = 0.95
"""The one confidence at which the confidence interval is known beforehand."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalizedAnswer(Release):
    """A chosen count, or the leaf of a column that was chosen as its median.

    `value` is the count or the number of the leaf; `most` is the largest that it could be.
    """

    kind: ClassVar[str] = "personal-answer"

    receipt: Receipt
    schema: Schema
    question: Literal["count", "median"]
    query: str = ""
    column: str | None = None
    value: int
    most: int
    expected: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_known("question", self.question, ("count", "median"))
        require_count(at_least=0, value=self.value, most=self.most)
        if not self.value <= self.most < LARGEST_COUNT:
            raise InvalidParameter("an answer is at most the largest one that could be chosen")
        if (self.question == "median") != (self.column is not None):
            raise InvalidParameter("a median is that of a column, and a count is not")
        if not all(isinstance(x, float) and 0 <= x < inf for x in dict(self.expected).values()):
            raise InvalidParameter("expected errors must be finite numbers, at least 0")
        if self.column is None:
            require_columns(parse_query(self.query), self.schema.names)
        elif self.most != self._axis.ordinary_leaves - 1:
            raise InvalidParameter("a median is one of the leaves of its column")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PersonalizedAnswer)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.value == other.value
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def _axis(self) -> Axis:
        column = self.schema[str(self.column)]
        if not isinstance(column, NumberColumn):
            raise InvalidParameter("a median is that of a column of numbers")
        return column.axis()

    @property
    def label(self) -> str:
        """The answer as text: a count, or the name of the leaf in which the median lies."""
        if self.question == "count":
            return f"{self.value:,}"
        return self._axis.labels[self.value]

    @property
    def number(self) -> float:
        """The answer as a number: a count, or the middle of the leaf in which the median lies."""
        if self.question == "count":
            return float(self.value)
        edges = self._axis.edges or ()
        low, high = edges[self.value], edges[self.value + 1]
        if self._axis.holds_integers:
            high -= 1  # a leaf of integers ends with the last one in it
        return (low + high) / 2

    def count(self, query: str = "", *, confidence: float = BAR_CONFIDENCE) -> Answer:
        """Return the one count that was published; its interval is known for 95 % alone."""
        require_confidence(confidence)
        if self.question != "count":
            raise InvalidQuery(f"this release holds the median of {self.column!r}, and no count")
        if parse_query(query) != parse_query(self.query):
            raise InvalidQuery(f"this release answers one question only: {self.query!r}")
        if confidence != BAR_CONFIDENCE or "count_95" not in self.expected:
            return Answer(self.number, None, None, confidence)
        reach = self.expected["count_95"]
        low, high = max(self.number - reach, 0.0), min(self.number + reach, float(self.most))
        return Answer(self.number, low, high, confidence)

    def tables(self) -> dict[str, pa.Table]:
        """Give the answer as one row."""
        answer = {"value": pa.array([self.value], pa.int64()), "label": pa.array([self.label])}
        return {"answer": pa.table(answer)}

    def metadata(self) -> dict[str, Any]:
        """Give the question and the error predicted."""
        return {
            "question": self.question,
            "query": self.query,
            "column": self.column,
            "most": self.most,
            "expected": dict(self.expected),
        }

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the answer of a release folder."""
        [value] = whole_column(tables["answer"], "value").tolist()
        return cls(
            receipt=receipt,
            schema=schema,
            question=metadata["question"],
            query=str(metadata["query"]),
            column=None if metadata["column"] is None else str(metadata["column"]),
            value=value,
            most=metadata["most"],
            expected={str(name): float(figure) for name, figure in metadata["expected"].items()},
        )

    def expected_error(self) -> dict[str, float]:
        """Give the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Say the question, the answer and its error in a few words."""
        if self.question == "count":
            lines = {"records that satisfy": self.query or "(all)", "count": self.label}
        else:
            lines = {"median of": str(self.column), "lies in": self.label}
        if "count_95" in self.expected:
            reach = self.expected["count_95"]
            lines["error"] = f"within {reach:,.0f} of the truth with probability 95 %"
        if "sides_differ_95" in self.expected:
            reach = self.expected["sides_differ_95"]
            lines["error"] = (
                f"the people below it and above it differ by at most {reach:,.0f} more than "
                "those in it, with probability 95 %"
            )
        return lines

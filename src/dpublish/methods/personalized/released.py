"""What personalized methods publish: releases from people of different levels, or one answer."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.beside_labels import Ends, insert_interval, with_ends
from dpublish.core.codecs import FIGURES, Codec
from dpublish.core.released import Metadata, Release, Tables, in_metadata, whole_column
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.query.language import parse_query, require_columns
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.methods.personalized.released_combined import (
    EXCHANGEABLE,
    PersonalCount,
    mean_model,
    predict,
    predict_proba,
)
from dpublish.methods.personalized.released_parts import (
    Part,
    are_disjoint,
    nested_tables,
    read_parts,
    require_number,
    shares,
)
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.levels import tell_amounts
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.privacy.receipt import Receipt

Combine = Literal["sum", "weighted"]
COMBINATIONS: tuple[Combine, ...] = ("sum", "weighted")
KEPT_ROWS = (
    "one record is one of the rows that were kept of each person, at most {most:,}; all records "
    "of a person are hidden by the release that this is a part of"
)
"""What the receipt of a part takes for granted, where people have several rows."""
DRAWN = "answers are about the people who were drawn"
"""How the note of a release begins, where only a sample was counted and not scaled up."""
ALL_USED = "all people were used"
"""The note of a release for whose sample everyone was drawn."""
OF_THE_DRAWN = "count and interval are those of the people who were drawn, not of all"
OF_LEVELS = "count and interval are those of the people of the levels used, not of all"
_LARGEST_ERROR = 1e300  # an integer beyond it is no float any more
_LISTED = 4  # parts that a summary lists one by one
_TEXTS = Codec(list, lambda plain, _: tuple(plain))
_FIGURES = Codec(
    lambda figures: {name: float(figure) for name, figure in figures.items()},
    lambda plain, _: dict(plain),
)
"""Figures by name, read as they are: the released value refuses what is no number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalizedRelease(Release):
    """Releases from parts of the people, grouped by level, and how to combine them.

    Attributes:
        receipt: What was guaranteed and paid, also by each level.
        schema: What is published of each record.
        combine: "sum" adds the parts' counts up; "weighted" takes each part for an estimate of
            all people, which holds if levels say nothing about records.
        parts: The parts.
        notes: What was assumed, and what a user should know.
        expected: Error predicted from public facts, by name.
        total: Number of people that weighted parts stand for, if it is not that of all parts
            together: some people may be in several parts, or in none.
    """

    kind: ClassVar[str] = "personal"
    report: ClassVar[str] = "dpublish.methods.personalized.report:section"

    receipt: Receipt
    schema: Schema
    combine: Combine = in_metadata()
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = in_metadata(_TEXTS, default=())
    expected: Mapping[str, float] = in_metadata(_FIGURES)
    total: float | None = in_metadata(default=None)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_known("combination", self.combine, COMBINATIONS)
        if not self.parts:
            raise InvalidParameter("a personalized release has at least one part")
        if self.combine == "sum" and not are_disjoint(self.parts):
            raise InvalidParameter("parts that are added up must not have levels in common")
        if not isinstance(self.receipt.neighbors, PersonalRecord) or not self.receipt.personal:
            raise InvalidParameter("the receipt must say what each level paid")
        self._check_parts()
        require_number("the total", 0 if self.total is None else self.total)
        for number in self.expected.values():
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise InvalidParameter("expected errors must be numbers")
            if not -_LARGEST_ERROR <= number <= _LARGEST_ERROR:
                raise InvalidParameter("expected errors must be finite")
        if not all(isinstance(note, str) for note in self.notes):
            raise InvalidParameter("notes must be texts")

    def _check_parts(self) -> None:
        paid = dict(self.receipt.personal)
        for part in self.parts:
            if not set(part.levels) <= paid.keys():
                raise InvalidParameter("a part has levels that the receipt does not know")
            if part.epsilon > max(paid[level] for level in part.levels):
                raise InvalidParameter("a part spends more than any of its levels paid")
            if not set(part.release.receipt.stamps) <= set(self.receipt.stamps):
                raise InvalidParameter("a release cannot guarantee more than its parts do")
            if part.units != 1 and self.people is None:
                raise InvalidParameter("sums of weights need the number of people they stand for")

    def with_receipt(self, receipt: Receipt) -> Self:
        """Return the same value with another receipt, and say in its parts' what one row is.

        A part hides one of the rows that were kept.  One row more in the table may displace
        another that was kept, or lower the level of all of them, so that what a part states
        would not hold for it.
        """
        if receipt.contribution is None:
            return replace(self, receipt=receipt)
        said = KEPT_ROWS.format(most=receipt.contribution)
        return replace(
            self, receipt=receipt, parts=tuple(part.assuming(said) for part in self.parts)
        )

    @property
    def people(self) -> float | None:
        """Number of people that the parts stand for together, if it is known."""
        if self.total is not None:
            return max(self.total, 0.0)
        if not are_disjoint(self.parts) or any(part.size is None for part in self.parts):
            return None
        return sum(part.people for part in self.parts)

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns whose missing rules decide which records are in the parts."""
        asked = {name for part in self.parts for name in part.release.complete}
        return tuple(name for name in self.schema.names if name in asked)

    @property
    def needs_numbers(self) -> bool:
        """Whether a record without a number is left out of a part."""
        return any(part.release.needs_numbers for part in self.parts)

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """Names of columns of which the parts have numbers."""
        asked = {name for part in self.parts for name in part.release.measured_columns}
        return tuple(name for name in self.schema.names if name in asked)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, of the people that the parts stand for.

        There is a confidence interval where every part has one: independent noise is added in
        squares, other errors are added up.  Where people stand for others, the sampling error
        is part of it, and the interval rests on the model that levels say nothing about records.
        """
        found = self._counter.answer(query, confidence)
        told = [found.assumption, *self._not_of_all()]
        return replace(found, assumption="; ".join(filter(None, told)) or None)

    def _not_of_all(self) -> list[str]:
        """Say of whom the counts are, where not all people were counted or stand for others."""
        if ALL_USED in self.notes:
            return []
        if any(note.startswith(DRAWN) for note in self.notes):
            return [OF_THE_DRAWN]
        used = {level for part in self.parts for level in part.levels}
        are_all = len(used) >= len(self.receipt.settings.get("levels", ()))
        return [] if are_all or self._counter.is_scaled else [OF_LEVELS]

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self._counter.boxes(columns, lows, highs)

    @cached_property
    def records_each(self) -> tuple[float, ...]:
        """Number of records that a unit of each part's counts stands for; 1 if it is a record."""
        if all(part.units == 1 for part in self.parts):
            return (1.0,) * len(self.parts)
        factors = self._counter.factors.tolist()
        return tuple(
            1.0 if part.units == 1 else factor
            for part, factor in zip(self.parts, factors, strict=True)
        )

    @cached_property
    def _counter(self) -> PersonalCount:
        neighbors = self.receipt.neighbors
        public = isinstance(neighbors, PersonalRecord) and neighbors.mode != "levels"
        rows = self.receipt.contribution or 1
        return PersonalCount(self.parts, self.combine == "weighted", self.people, public, rows)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class, or the number, of each of `rows` from all parts."""
        return predict(self.parts, rows)

    def predict_proba(self, rows: Any) -> pa.Table:
        """Return the probability of each class for each of `rows`: a column a class."""
        return predict_proba(self.parts, rows)

    @cached_property
    def model(self) -> Any:
        """The mean of the parts' linear models, by their weights: a linear model itself."""
        found = mean_model(self.parts)
        if found is None:
            raise InvalidQuery("the parts of this release are not linear models of one kind")
        return found

    def coefficients(self) -> pa.Table:
        """List the weights of the mean model, as each of the parts does."""
        listed: pa.Table = self.model.coefficients()
        return listed

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the parts, mixed, with the columns that all of them have.

        A part gives rows in proportion to its estimated number of records if parts are added
        up, and to its weight if each stands for all people.
        """
        numbers = self._records
        count = round(float(numbers.sum())) if n is None else n
        rng = self.row_generator(n, seed, counted=count)
        is_weighted = self.combine == "weighted" or not numbers.any()
        probabilities = shares(self.parts) if is_weighted else numbers / numbers.sum()
        drawn = [
            part.release.rows(int(number), seed=int(rng.integers(1 << 62)))
            for part, number in zip(self.parts, rng.multinomial(count, probabilities), strict=True)
            if number or not count
        ]
        names = [n for n in drawn[0].column_names if all(n in each.column_names for each in drawn)]
        mixed = pa.concat_tables(
            [each.select(names) for each in drawn], promote_options="permissive"
        )
        return mixed.take(pa.array(rng.permutation(mixed.num_rows)))

    @cached_property
    def _records(self) -> NDArray[np.float64]:
        """Estimated number of records that each part stands for."""
        if self.combine == "sum":
            return np.array([part.scale * _records(part) for part in self.parts])
        whole = self.people or 0.0
        with suppress(InvalidQuery):  # parts may give rows but no counts
            whole = max(self.count().value, 0.0)
        return shares(self.parts) * whole

    def tables(self) -> dict[str, pa.Table]:
        """Return a list of the parts, and the tables of each under its number."""
        return nested_tables(self.parts, self.records_each)

    def metadata(self) -> dict[str, Any]:
        """Return the declared fields, and all about each part but its tables."""
        return {**super().metadata(), "parts": [part.metadata() for part in self.parts]}

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields and the parts."""
        declared = super().read_parts(schema, metadata, tables)
        return {**declared, "parts": read_parts(metadata["parts"], tables)}

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts, as figures by name."""
        return {name: float(figure) for name, figure in self.expected.items()}

    def summary(self) -> dict[str, str]:
        """Describe parts, levels and assumptions in a few words."""
        each = "" if self.receipt.contribution is None else " for each record"
        listed = [
            f"{p.level_names} (epsilon {format_short(p.epsilon)}{each})"
            for p in self.parts[:_LISTED]
        ]
        more = len(self.parts) - len(listed)
        described = {
            "parts": "; ".join(listed) + (f"; and {more:,} more" if more > 0 else ""),
            "each part": self.parts[0].release.kind.replace("-", " "),
            "cost": tell_amounts(self.receipt.personal),
        }
        if len(self.parts) > 1:
            described["together"] = (
                "counts are added up"
                if self.combine == "sum"
                else f"each part stands for all people, by its weight: {EXCHANGEABLE}"
            )
        if self.notes:
            described["note"] = "; ".join(self.notes)
        return described


def _records(part: Part) -> float:
    """Estimate how many records a part has: by its own count, else by its public size."""
    try:
        return max(part.release.count().value, 0.0)
    except InvalidQuery:
        return part.people if part.size is not None else part.weight


# --- One answer -----------------------------------------------------------------------------------


LARGEST_COUNT = 1 << 63
KNOWN_CONFIDENCE = 0.95
"""The one confidence at which the confidence interval is known beforehand."""
Statistic = Literal["count", "median"]
STATISTICS: tuple[Statistic, ...] = ("count", "median")


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalizedAnswer(Release):
    """A chosen count, or the bin of a column that was chosen as its median.

    `value` is the count or the number of the bin; `most` is the largest that it could be.
    """

    kind: ClassVar[str] = "personal-answer"
    report: ClassVar[str] = "dpublish.methods.personalized.report:answer_section"

    receipt: Receipt
    schema: Schema
    statistic: Statistic = in_metadata()
    query: str = in_metadata(default="")
    column: str | None = in_metadata(default=None)
    value: int
    most: int = in_metadata()
    expected: Mapping[str, float] = in_metadata(FIGURES, default=dict)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_known("statistic", self.statistic, STATISTICS)
        require_count(at_least=0, value=self.value, most=self.most)
        if not self.value <= self.most < LARGEST_COUNT:
            raise InvalidParameter("an answer is at most the largest one that could be chosen")
        if (self.statistic == "median") != (self.column is not None):
            raise InvalidParameter("a median is that of a column, and a count is not")
        if not all(isinstance(x, float) and 0 <= x < inf for x in dict(self.expected).values()):
            raise InvalidParameter("expected errors must be finite numbers, at least 0")
        if self.column is None:
            require_columns(parse_query(self.query), self.schema.names)
        elif self.most != self._axis.ordinary_leaves - 1:
            raise InvalidParameter("a median is one of the bins of its column")

    @property
    def _axis(self) -> Axis:
        column = self.schema[str(self.column)]
        if not isinstance(column, NumberColumn):
            raise InvalidParameter("a median is that of a column of numbers")
        return column.axis()

    @property
    def label(self) -> str:
        """The answer as text: a count, or the name of the bin in which the median lies."""
        if self.statistic == "count":
            return f"{self.value:,}"
        return self._axis.labels[self.value]

    @property
    def number(self) -> float:
        """The answer as a number: a count, or the middle of the bin in which the median lies."""
        if self.statistic == "count":
            return float(self.value)
        edges = self._axis.edges or ()
        low, high = edges[self.value], edges[self.value + 1]
        if self._axis.holds_integers:
            high -= 1  # a bin of integers ends with the last one in it
        return (low + high) / 2

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns that the answer is about."""
        return parse_query(self.query).columns if self.column is None else (self.column,)

    @property
    def needs_numbers(self) -> bool:
        """Whether a record without a number is left out: it is in no median."""
        return self.statistic == "median"

    def count(self, query: str = "", *, confidence: float = KNOWN_CONFIDENCE) -> Answer:
        """Return the one count that was published; its interval is known for 95 % alone."""
        require_confidence(confidence)
        if self.statistic != "count":
            raise InvalidQuery(f"this release holds the median of {self.column!r}, and no count")
        if parse_query(query) != parse_query(self.query):
            raise InvalidQuery(f"this release answers one query only: {self.query!r}")
        if confidence != KNOWN_CONFIDENCE or "count_95" not in self.expected:
            return Answer(self.number, None, None, confidence)
        width = self.expected["count_95"]
        low, high = max(self.number - width, 0.0), min(self.number + width, float(self.most))
        if "eligible_people" in self.expected:  # no more than the public number of people
            return Answer(self.number, low, high, confidence)
        note = f"at most {self.most:,} records satisfy the query, as was said before the release"
        return Answer(self.number, low, high, confidence, note, kind="model")

    def tables(self) -> dict[str, pa.Table]:
        """Return the answer as one row."""
        answer = {"value": pa.array([self.value], pa.int64()), "label": pa.array([self.label])}
        table = pa.table(answer)
        if self.statistic == "median":
            cells = np.array([self.value])
            return {"answer": with_ends(table, "label", self._axis, cells, cells)}
        known = self.count(self.query)
        if known.low is None or known.high is None:
            return {"answer": table}
        ends = Ends(*(pa.array([end], pa.float64()) for end in (known.low, known.high)))
        return {"answer": insert_interval(table, "label", ends)}

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields and the one row."""
        [value] = whole_column(tables["answer"], "value").tolist()
        return {**super().read_parts(schema, metadata, tables), "value": value}

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe the statistic, the answer and its error in a few words."""
        if self.statistic == "count":
            lines = {"records that satisfy": self.query or "(all)", "count": self.label}
        else:
            lines = {"median of": str(self.column), "lies in": self.label}
        if "count_95" in self.expected:
            width = self.expected["count_95"]
            lines["error"] = f"within {width:,.0f} of the truth with probability 95 %"
        if "sides_differ_95" in self.expected:
            width = self.expected["sides_differ_95"]
            lines["error"] = (
                f"the records below it and above it differ by at most {width:,.0f} more than "
                "those in it, with probability 95 %"
            )
        return lines

"""A personalized release: ordinary releases from people of different levels, taken together."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.answer import Answer
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.personalized.counts import EXCHANGEABLE, PersonalCount
from dpublish.methods.personalized.parts import (
    Part,
    are_disjoint,
    nested_tables,
    read_parts,
    require_number,
    shares,
)
from dpublish.methods.personalized.prediction import mean_model, predict, predict_proba
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.levels import tell_amounts
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

__all__ = ["COMBINATIONS", "Combine", "Part", "PersonalizedRelease"]

Combine = Literal["sum", "weighted"]
COMBINATIONS: tuple[Combine, ...] = ("sum", "weighted")
_LARGEST_ERROR = 1e300  # an integer beyond it is no float any more
_TOLD = 4  # parts that a summary lists one by one


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalizedRelease(Release):
    """Releases from parts of the people, grouped by level, and how to bring them together.

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

    receipt: Receipt
    schema: Schema
    combine: Combine
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    expected: Mapping[str, float]
    total: float | None = None

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PersonalizedRelease) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> tuple[Any, ...]:
        own = (self.receipt, self.schema, self.combine, self.parts, self.notes)
        return (*own, dict(self.expected), self.total)

    @property
    def people(self) -> float | None:
        """Number of people that the parts stand for together, if it is known."""
        if self.total is not None:
            return max(self.total, 0.0)
        if not are_disjoint(self.parts) or any(part.size is None for part in self.parts):
            return None
        return sum(part.people for part in self.parts)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, of the people that the parts stand for.

        There is a confidence interval where every part has one: independent noise is added in
        squares, other errors are added up.  Where people stand for others, probability is part of
        it.
        """
        return self._counter.answer(query, confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of leaves at once."""
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
        return PersonalCount(self.parts, self.combine == "weighted", self.people, public)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class, or the number, of each of `rows` from all parts."""
        return predict(self.parts, rows)

    def predict_proba(self, rows: Any) -> pa.Table:
        """Give the probability of each class for each of `rows`: a column a class."""
        return predict_proba(self.parts, rows)

    @cached_property
    def model(self) -> LinearModelRelease:
        """The mean of the parts' linear models, by their weights."""
        found = mean_model(self.parts)
        if found is None:
            raise InvalidQuery("the parts of this release are not linear models of one kind")
        return found

    def coefficients(self) -> pa.Table:
        """List the weights of the mean model, as `LinearModelRelease.coefficients` does."""
        return self.model.coefficients()

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the parts, mixed, with the columns that all of them have.

        A part gives rows in proportion to its estimated number of records if parts are added
        up, and to its weight if each stands for all people.
        """
        numbers = self._records
        count = round(float(numbers.sum())) if n is None else n
        require_count(seed=0 if seed is None else seed, n=count, at_least=0)
        if count > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
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
        """Give a list of the parts, and the tables of each under its number."""
        return nested_tables(self.parts, self.records_each)

    def metadata(self) -> dict[str, Any]:
        """Give how parts are brought together, and all about each but its tables."""
        return {
            "combine": self.combine,
            "total": None if self.total is None else float(self.total),
            "notes": list(self.notes),
            "expected": {name: float(figure) for name, figure in self.expected.items()},
            "parts": [part.metadata() for part in self.parts],
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
        """Rebuild the release and its parts from a release folder."""
        return cls(
            receipt=receipt,
            schema=schema,
            combine=metadata["combine"],
            parts=read_parts(metadata["parts"], tables),
            notes=tuple(metadata["notes"]),
            expected=dict(metadata["expected"]),
            total=metadata["total"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the error predicted from public facts, as figures by name."""
        return {name: float(figure) for name, figure in self.expected.items()}

    def summary(self) -> dict[str, str]:
        """Describe parts, levels and assumptions in a few words."""
        told = [
            f"{p.tell_levels()} (epsilon {format_short(p.epsilon)})" for p in self.parts[:_TOLD]
        ]
        more = len(self.parts) - len(told)
        described = {
            "parts": "; ".join(told) + (f"; and {more:,} more" if more > 0 else ""),
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

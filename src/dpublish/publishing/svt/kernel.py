"""Count the records that satisfy a query, exactly and record by record."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpublish.aggregates.kernel import ArrayKernel
from dpublish.data.batch import Batch
from dpublish.data.column import NumberColumn
from dpublish.data.query.language import Condition, Query, require_columns
from dpublish.data.query.weights import (
    RANGES,
    axis_weights,
    is_partial,
    query_number,
    range_ends,
)
from dpublish.data.schema import Schema
from dpublish.errors import InvalidQuery
from dpublish.types import BoolArray, IntArray

_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class Matching(ArrayKernel):
    """The number of records that satisfy all conditions of a query.

    One record more or less changes it by 0 or 1, and no count of any query falls if a record is
    added: counts are monotonic.  Ranges of numbers are compared with the number itself, clipped
    to the public bounds; other conditions with its code.  What is wrong with a query is found
    from the schema alone.
    """

    schema: Schema
    query: Query

    def __post_init__(self) -> None:
        require_columns(self.query, self.schema.names, "the schema says")
        _ = self._lookups, self._ranges

    @property
    def size(self) -> int:
        """One number."""
        return 1

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns whose values are listed by a condition."""
        return tuple(self._lookups)

    @property
    def values(self) -> tuple[str, ...]:
        """Columns of numbers that are compared with the ends of ranges."""
        return tuple(self._ranges)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Count the records of `batch`."""
        found: BoolArray = np.ones(len(batch), dtype=np.bool_)
        for name, is_wanted in self._lookups.items():
            found &= is_wanted[batch.codes(name)]
        for name, limits in self._ranges.items():
            for operator, limit in limits:
                found &= _COMPARE[operator](batch.values(name), limit)
        out[0] += np.count_nonzero(found)

    @cached_property
    def _lookups(self) -> dict[str, BoolArray]:
        return {
            name: self._wanted(name, listed)
            for name in self.query.columns
            if (listed := tuple(c for c in self.query.about(name) if not self._is_range(c)))
        }

    @cached_property
    def _ranges(self) -> dict[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = {}
        for condition in filter(self._is_range, self.query.conditions):
            axis = self.schema[condition.column].axis()
            axis_weights(axis, (condition,))  # refuses a range that ends before it starts
            found.setdefault(condition.column, []).extend(
                (operator, query_number(axis, text, operator))
                for text, operator in range_ends(condition)
            )
        return found

    def _is_range(self, condition: Condition) -> bool:
        is_number = isinstance(self.schema[condition.column], NumberColumn)
        return is_number and condition.operator in RANGES

    def _wanted(self, name: str, listed: tuple[Condition, ...]) -> BoolArray:
        axis = self.schema[name].axis()
        weights = axis_weights(axis, listed)
        if np.any(is_partial(weights)):
            example = "30..40" if axis.date_kind is None else "2024-02..2024-03"
            raise InvalidQuery(
                f"the conditions on {name!r} name a value within a bin; write a range, such as "
                f"{name} in {example}, or name a bin"
            )
        return np.asarray(weights > 0)

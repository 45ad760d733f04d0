"""An axis: one column on one level of its taxonomy, as a release shows it.

An axis is public.  It names the cells of a histogram, knows which part of each cell a
query covers, and holds all that is needed to draw a value from within a cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from math import ceil, floor, inf, isinf, isnan, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.data.periods import DATE_KINDS, DateKind, Span, read_period, write_value
from dpublish.data.taxonomy import Level, Taxonomy, canonical_text
from dpublish.errors import InvalidQuery

Kind = Literal["numeric", "integer", "date", "datetime", "category", "ordinal"]
Value = str | int | float
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """The cells of `column` on a `level`; level 0 is one cell, the deepest the leaves.

    Attributes:
        column: Name of the column.
        kind: What the column holds.
        level: Level of the taxonomy, counted from the root.
        taxonomy: All levels of the column.
        leaf_edges: Edges of the leaves, for columns of numbers and dates.  An integer
            is where its cell starts: the cell between 30 and 35 holds 30 to 34.
        closed: Side on which the intervals are closed.
        special: Number of leaves at the end that stand for unlisted and missing values.
    """

    column: str
    kind: Kind
    level: int
    taxonomy: Taxonomy
    leaf_edges: tuple[float, ...] | None = None
    closed: Literal["left", "right"] = "left"
    special: int = 0

    def __post_init__(self) -> None:
        self.taxonomy.require_level(self.level)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the cells."""
        return self.taxonomy.levels[self.level].labels

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.labels)

    @property
    def holds_integers(self) -> bool:
        """Whether the values are integers; dates are days, times are seconds."""
        return self.kind in ("integer", "date", "datetime")

    @property
    def date_kind(self) -> DateKind | None:
        """Whether the numbers are days (date) or seconds (datetime); None if they are neither."""
        return next((kind for kind in DATE_KINDS if kind == self.kind), None)

    def write(self, number: float) -> str:
        """Write a number of the column as a query takes it: integers without decimals, dates so.

        >>> from dpublish.data.schema import column
        >>> column("admitted", "date", bounds=["2023", "2024"]).axis().write(19_754)
        '2024-02-01'
        """
        if self.date_kind is not None:
            return write_value(number, self.date_kind)
        return f"{number:.0f}" if self.holds_integers else repr(float(number))

    def find_run(self, value: Value) -> tuple[int, int] | None:
        """Find the leaves of a named cell: the first, and the first after the last."""
        text = canonical_text(value)
        if self.date_kind is not None:
            text = text.replace("T", " ")  # an hour is named with a blank, and asked for with a T
        return self.taxonomy.runs.get(text)

    def read_period(self, value: Value) -> Span | None:
        """Read the days or seconds that a value of a column of dates stands for."""
        return None if self.date_kind is None else read_period(str(value), self.date_kind)

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the cells has a meaning."""
        return self.kind != "category"

    @cached_property
    def leaf_to_cell(self) -> NDArray[np.int64]:
        """The cell in which each leaf lies."""
        return _frozen(self.taxonomy.leaf_to_cell(self.level))

    @cached_property
    def leaf_starts(self) -> NDArray[np.int64]:
        """The first leaf of each cell, closed off by the number of leaves."""
        return _frozen(self.taxonomy.cell_starts(self.level))

    @property
    def leaf_labels(self) -> tuple[str, ...]:
        """Names of the leaves, in the order of their codes."""
        return self.taxonomy.levels[-1].labels

    def leaves_of(self, cell: int) -> tuple[str, ...]:
        """Name the leaves within a cell."""
        return self.leaf_labels[self.leaf_starts[cell] : self.leaf_starts[cell + 1]]

    @property
    def ordinary_leaves(self) -> int:
        """Number of leaves that stand for listed values; the special ones come after them."""
        return self.taxonomy.size - self.special

    @cached_property
    def edges(self) -> tuple[float, ...] | None:
        """Edges of the cells that are intervals; these come first.  None without numbers."""
        if self.leaf_edges is None:
            return None
        starts = self.leaf_starts[:-1]
        inner = starts[starts < self.ordinary_leaves]
        return (*(self.leaf_edges[start] for start in inner), self.leaf_edges[-1])

    def cover(
        self,
        low: Value | None = None,
        high: Value | None = None,
        include_low: bool = True,
        include_high: bool = True,
    ) -> Weights:
        """Weigh each cell by the part of it that lies between two values.

        Length counts for numeric columns, integers for integer ones (days or seconds for
        dates), listed values for ordinal ones.  An end that is None is open; one that is a
        period, such as 2024-02, belongs to the range as a whole or not at all.  Special cells
        weigh nothing, except as part of the root.
        """
        if self.kind == "category":
            raise InvalidQuery(f"column {self.column!r} has no order; ask with = or in")
        if self.kind == "ordinal":
            return self._cover_ordinal(low, high, include_low, include_high)
        first = self._number(low, -inf, at_start=include_low)
        last = self._number(high, inf, at_start=not include_high)
        return self._cover_numbers(first, last, include_low, include_high)

    def match(self, *values: Value) -> Weights:
        """Weigh each cell by the part of it that is one of the values, or groups of values.

        A value within a coarser cell counts as one of its leaves (of its integers, for
        integer columns).

        >>> work = Taxonomy((Level((0,), ("any",)), Level((0, 3), ("Paid", "Unpaid")),
        ...                  Level((0, 1, 2, 3), ("Private", "State", "Local", "Unpaid"))))
        >>> Axis("work", "category", 1, work).match("Unpaid", "State").round(2)
        array([0.33, 1.  ])
        """
        spans: list[tuple[float, float]] = []
        leaves = np.zeros(self.taxonomy.size)
        for value in values:
            run = self.find_run(value)
            if run is None:
                spans.append(self._single(value))
                continue
            start, stop = run
            if self.leaf_edges is not None and start < self.ordinary_leaves:
                stop = min(stop, self.ordinary_leaves)
                spans.append((self.leaf_edges[start], self.leaf_edges[stop]))
                start, stop = stop, run[1]
            leaves[start:stop] = 1
        weights = self._share_of_leaves(leaves)
        for low, high in _union(spans):
            weights += self._cover_numbers(low, high, True, False)
        return np.minimum(weights, 1.0)

    def value_span(self, value: Value) -> tuple[float, float]:
        """Find the stretch of numbers that a value, or a named cell, stands for.

        A cell of missing values has none: its stretch is empty.

        >>> from dpublish.data.schema import column
        >>> age = column("age", "integer", bounds=[0, 99], bins=10).axis()
        >>> age.value_span("30..39"), age.value_span("31")
        ((30.0, 40.0), (31.0, 32.0))
        """
        run = self.find_run(value)
        if run is None or self.leaf_edges is None:
            return self._single(value)
        start, stop = (min(end, self.ordinary_leaves) for end in run)
        return self.leaf_edges[start], self.leaf_edges[stop]

    def to_dict(self) -> dict[str, Any]:
        """Turn the axis into plain values for a file."""
        levels = [{"starts": [*x.starts], "labels": [*x.labels]} for x in self.taxonomy.levels]
        return {
            "column": self.column,
            "kind": self.kind,
            "level": self.level,
            "levels": levels,
            "leaf_edges": None if self.leaf_edges is None else [*self.leaf_edges],
            "closed": self.closed,
            "special": self.special,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Axis":
        """Read back what `to_dict` wrote."""
        settings = dict(plain)
        levels = settings.pop("levels")
        edges = settings.pop("leaf_edges")
        return cls(
            taxonomy=Taxonomy(tuple(Level(tuple(x["starts"]), tuple(x["labels"])) for x in levels)),
            leaf_edges=None if edges is None else tuple(map(float, edges)),
            **settings,
        )

    def _cover_numbers(
        self, low: float, high: float, include_low: bool, include_high: bool
    ) -> Weights:
        if self.holds_integers:
            low = _first_whole(low, include_low)
            high = _first_whole(high, not include_high)
        edges = np.array(self.edges)
        overlap = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
        weights = np.zeros(self.size)
        weights[: len(overlap)] = np.maximum(overlap, 0) / np.diff(edges)
        return weights

    def _cover_ordinal(
        self, low: Value | None, high: Value | None, include_low: bool, include_high: bool
    ) -> Weights:
        start, stop = 0, self.ordinary_leaves
        if low is not None:
            start = self._leaf_range(low)[0 if include_low else 1]
        if high is not None:
            stop = self._leaf_range(high)[1 if include_high else 0]
        leaves = np.zeros(self.taxonomy.size)
        leaves[start:stop] = 1
        return self._share_of_leaves(leaves)

    def _share_of_leaves(self, leaves: Weights) -> Weights:
        sums = np.bincount(self.leaf_to_cell, weights=leaves, minlength=self.size)
        return sums / np.diff(self.leaf_starts)

    def _leaf_range(self, value: Value) -> tuple[int, int]:
        """Find the leaves of a value, or of a group of values, that has a position in the order."""
        run = self.taxonomy.runs.get(canonical_text(value))
        if run is None:
            raise self._unknown(value)
        if run[0] >= self.ordinary_leaves:
            raise InvalidQuery(f"{value!r} has no position in the order of column {self.column!r}")
        return run[0], min(run[1], self.ordinary_leaves)

    def _single(self, value: Value) -> tuple[float, float]:
        """Find the stretch that a single number takes up, if it has one."""
        if self.leaf_edges is None:
            raise self._unknown(value)
        if self.date_kind is not None:
            return self._single_period(value)
        number = self._number(value, inf)
        if not self.holds_integers:
            raise InvalidQuery(f"column {self.column!r} is continuous; ask for a range of values")
        first, stop = self.leaf_edges[0], self.leaf_edges[-1]
        if not (first <= number < stop and number.is_integer()):
            bounds = f"{first:.0f} to {stop - 1:.0f}"
            raise InvalidQuery(
                f"column {self.column!r} holds the integers from {bounds}, not {value!r}"
            )
        return number, number + 1

    def _single_period(self, value: Value) -> tuple[float, float]:
        first, stop = (self.leaf_edges or (0.0, 0.0))[0], (self.leaf_edges or (0.0, 0.0))[-1]
        found = self.read_period(value)
        if found is None:
            raise self._no_date(value)
        if not (found.start < stop and first < found.stop):
            bounds = f"{self.write(first)} to {self.write(stop - 1)}"
            raise InvalidQuery(
                f"column {self.column!r} holds the dates from {bounds}, not {str(value)!r}"
            )
        return float(found.start), float(found.stop)

    def _no_date(self, value: object) -> InvalidQuery:
        example = "2024-02-15" if self.date_kind == "date" else "2024-02-15T13:30"
        return InvalidQuery(
            f"column {self.column!r} holds dates, and {str(value)!r} is none; write such as "
            f"2024, 2024-Q1, 2024-02, 2024-W05 or {example}"
        )

    def limit(self, value: Value, *, at_start: bool) -> float:
        """Read a number that the column is compared with: of a period its first, or its last."""
        return self._number(value, inf, at_start=at_start)

    def _number(self, value: Value | None, default: float, *, at_start: bool = True) -> float:
        if value is None:
            return default
        if self.date_kind is not None and isinstance(value, str):
            found = self.read_period(value)
            if found is None:
                raise self._no_date(value)
            return float(found.start if at_start else found.stop - 1)
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = nan
        if isnan(number):
            raise InvalidQuery(f"column {self.column!r} holds numbers, and {value!r} is none")
        return number

    def _unknown(self, value: Value) -> InvalidQuery:
        labels = [label for level in reversed(self.taxonomy.levels) for label in level.labels]
        near = get_close_matches(str(value), labels, n=1)
        known = ", ".join(dict.fromkeys(labels[:20]))
        hint = f"did you mean {near[0]!r}?" if near else f"known: {known}"
        return InvalidQuery(f"column {self.column!r} has no value {str(value)!r}; {hint}")


def _first_whole(limit: float, included: bool) -> float:
    """Find the first integer after a limit, or the limit itself if it is included."""
    if isinf(limit):
        return limit
    return float(ceil(limit) if included else floor(limit) + 1)


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge stretches that touch or overlap, so that none is counted twice."""
    merged: list[tuple[float, float]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _frozen(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array

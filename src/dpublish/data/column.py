"""A column: its public domain, and the rule by which a record's value becomes a code.

All that is known here was declared by the owner; nothing is learned from the rows.  A code
is the number of a leaf of the column's taxonomy.  What becomes of a value depends on that
value alone, and no value raises an error.
"""

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.rounding import format_number
from dpublish.data.axis import Axis
from dpublish.data.encoding import UNKNOWN, Encoded, Numbers, code_type, to_numbers, to_positions
from dpublish.data.interval import Partition, order_intervals
from dpublish.data.taxonomy import ROOT, Node, Taxonomy, canonical_text
from dpublish.errors import InvalidParameter, InvalidSchema

Missing = Literal["refuse", "category", "drop"]
NumberKind = Literal["numeric", "integer", "date", "datetime"]
Category = str | int | bool
MISSING_LABEL = "(missing)"


class _LeveledColumn:
    """What columns of every kind share: codes for the leaves of a taxonomy."""

    def __post_init__(self) -> None:
        _ = self.taxonomy  # built here, so that a column that exists is sound

    @property
    def taxonomy(self) -> Taxonomy:
        """The levels of the column."""
        raise NotImplementedError

    @property
    def source_name(self) -> str:
        """Name of the column that is read in the table; that of the column itself as a rule."""
        return str(vars(self)["name"])

    def encode(self, array: Any) -> Encoded:
        """Find the leaf of every value of an Arrow array."""
        raise NotImplementedError

    def encode_source(self, array: Any) -> Encoded:
        """Find the leaf of every value of the table's column that is called `source_name`."""
        return self.encode(array)

    @property
    def size(self) -> int:
        """Number of leaf codes."""
        return self.taxonomy.size

    @property
    def height(self) -> int:
        """Deepest level, that of the leaves."""
        return self.taxonomy.height


@dataclass(frozen=True, kw_only=True)
class NumberColumn(_LeveledColumn):
    """Numbers (`kind` numeric) or integers (integer) within public bounds.

    Dates and times are integers, too: `DateColumn`.

    Attributes:
        name: Name of the column in the table.
        kind: Whether the values are whole.
        partition: The leaves, as intervals.
        tree: Taxonomy of intervals as the owner wrote it, or None.
        branching: How many neighboring leaves to merge from level to level, or None.
        missing: What becomes of a record without a value.
        description: What the column holds, for readers of a release.
        measured_in: The unit of measurement, such as "cm" or "euros".
    """

    name: str
    kind: NumberKind
    partition: Partition
    tree: Node | None = None
    branching: int | None = None
    missing: Missing = "refuse"
    description: str | None = field(default=None, compare=False, repr=False)
    measured_in: str | None = field(default=None, compare=False, repr=False)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value after clipping."""
        return self.partition.low, self.partition.high

    @property
    def holds(self) -> str:
        """What the values are, in a word for messages."""
        return "numbers" if self.kind in ("numeric", "integer") else "dates"

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The levels of the column."""
        extra = (MISSING_LABEL,) if self.missing == "category" else ()
        if self.tree is not None:
            ordered = order_intervals(self.tree, whole=self.partition.whole)
            if ordered.partition != self.partition:
                raise InvalidSchema("taxonomy and cells differ")
            root = ordered.root
            return Taxonomy.from_tree(Node(ROOT, root.children) if extra else root, extra)
        return self._merge_leaves()

    def _merge_leaves(self) -> Taxonomy:
        """Merge neighboring leaves from level to level, if the owner says how many."""
        extra = (MISSING_LABEL,) if self.missing == "category" else ()
        labels = self.partition.labels
        if self.branching is not None:
            return Taxonomy.merging(labels, self.branching, self.partition.label, extra)
        return Taxonomy.flat((*labels, *extra))

    def axis(self, level: int | None = None) -> Axis:
        """Look at the column on a level of its taxonomy; the leaves, unless told otherwise."""
        return Axis(
            column=self.name,
            kind=self.kind,
            level=self.height if level is None else level,
            taxonomy=self.taxonomy,
            leaf_edges=self.partition.edges,
            closed=self.partition.closed,
            special=self.size - self.partition.size,
        )

    def encode(self, array: Any) -> Encoded:
        """Find the leaf of every value of an Arrow array."""
        clipped, keep = self.values(array)
        codes = self.partition.locate(clipped).astype(code_type(self.size))
        if self.missing == "category" and keep is not None:
            codes[~keep] = self.size - 1
            keep = None
        return Encoded(codes, keep)

    def show(self, number: float, digits: int = 4) -> str:
        """Write a number of the column for people."""
        return format_number(number, digits)

    def read(self, array: Any) -> NDArray[np.float64]:
        """Read an Arrow array as numbers that are not clipped; NaN stands for missing."""
        return to_numbers(array, self.name)

    def values(self, array: Any) -> Numbers:
        """Clip every value of an Arrow array to the bounds.

        A missing value has no number, whatever the rule: its record is not kept.
        """
        numbers = self.read(array)
        absent = np.isnan(numbers)
        if not absent.any():
            return Numbers(self.partition.clip(numbers), None)
        filled = np.where(absent, self.partition.low, numbers)
        return Numbers(self.partition.clip(filled), ~absent)


@dataclass(frozen=True, kw_only=True)
class CategoryColumn(_LeveledColumn):
    """One of a public list of values, with (`kind` ordinal) or without (category) an order.

    Attributes:
        name: Name of the column in the table.
        kind: Whether the order of the categories has a meaning.
        categories: The values, in the order of the leaves.
        codes: How the table writes each category, if not by its name.
        other: Label that catches all values not listed, or None.
        tree: Taxonomy of the values, or None.
        branching: How many neighboring values to merge from level to level, or None.
        missing: What becomes of a record without a value, or with one that is not listed.
        description: What the column holds, for readers of a release.
    """

    name: str
    kind: Literal["category", "ordinal"]
    categories: tuple[Category, ...]
    codes: tuple[Category, ...] | None = None
    other: str | None = None
    tree: Node | None = None
    branching: int | None = None
    missing: Missing = "refuse"
    description: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.codes is not None:
            if len(self.codes) != len(self.categories):
                raise InvalidSchema("codes must be one for each of the values")
            require_distinct(tuple(map(str, self.codes)))
            _ = self._codes  # built here, so that a column that exists is sound

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the listed values, in the order of the leaves."""
        return tuple(x if isinstance(x, str) else canonical_text(x) for x in self.categories)

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The levels of the column."""
        labels, extra = self.labels, self._extra
        if self.tree is not None:
            if [*map(canonical_text, self.tree.leaves())] != [*map(canonical_text, labels)]:
                raise InvalidSchema("taxonomy and values differ")
            return Taxonomy.from_tree(self.tree, extra)
        require_distinct((*labels, *extra))
        if self.branching is not None:
            return Taxonomy.merging(labels, self.branching, self._name_range, extra)
        return Taxonomy.flat((*labels, *extra))

    def axis(self, level: int | None = None) -> Axis:
        """Look at the column on a level of its taxonomy; the leaves, unless told otherwise."""
        return Axis(
            column=self.name,
            kind=self.kind,
            level=self.height if level is None else level,
            taxonomy=self.taxonomy,
            special=len(self._extra),
        )

    def find(self, array: Any) -> NDArray[np.int64]:
        """Find the leaf of every value; `UNKNOWN` is not listed, `MISSING` is blank."""
        return to_positions(array, self._codes, self.name)

    def encode(self, array: Any) -> Encoded:
        """Find the leaf of every value of an Arrow array."""
        positions = self.find(array)
        if self.other is not None:
            positions[positions == UNKNOWN] = self._codes[canonical_text(self.other)]
        absent = positions < 0
        if self.missing == "category":
            positions[absent] = self.size - 1
            return Encoded(positions.astype(code_type(self.size)), None)
        positions[absent] = 0
        keep = ~absent if absent.any() else None
        return Encoded(positions.astype(code_type(self.size)), keep)

    def values(self, array: Any) -> Numbers:
        """Refuse: the values have no size."""
        raise InvalidParameter(
            f"column {self.name!r} is of kind {self.kind}; numeric or integer is needed"
        )

    def _name_range(self, start: int, stop: int) -> str:
        first, last = self.labels[start], self.labels[stop - 1]
        return first if first == last else f"{first}..{last}"

    @cached_property
    def _extra(self) -> tuple[str, ...]:
        extra = () if self.other is None or self._lists(self.other) else (self.other,)
        return (*extra, MISSING_LABEL) if self.missing == "category" else extra

    def _lists(self, label: str) -> bool:
        return canonical_text(label) in map(canonical_text, self.labels)

    @cached_property
    def _codes(self) -> dict[str, int]:
        leaves = self.taxonomy.levels[-1].labels
        codes = {canonical_text(label): code for code, label in enumerate(leaves)}
        for code, spelling in enumerate(self.codes or ()):
            # Names are read too: synthetic rows hold them.
            if codes.setdefault(canonical_text(spelling), code) != code:
                raise InvalidSchema(
                    f"codes has {spelling!r}, which is the name or the code of another value"
                )
        if self.missing == "category":
            del codes[MISSING_LABEL]  # only the rule leads there, not the word itself
        return codes


Column = NumberColumn | CategoryColumn


def with_taxonomy(column: Column, taxonomy: Taxonomy) -> Column:
    """Look at a column through other levels over the same leaves.

    Codes stay what they are, so counts on the new levels can be taken from the same table.
    """
    if taxonomy.levels[-1] != column.taxonomy.levels[-1]:
        raise InvalidParameter(f"these are not the leaves of column {column.name!r}")
    found = copy(column)
    vars(found)["taxonomy"] = taxonomy
    return found


def with_words(column: Column, description: str | None, measured_in: str | None) -> Column:
    """State what a column holds, and in what it is measured; both are words for readers."""
    stated = {"description": description, "measured_in": measured_in}
    given = {name: words for name, words in stated.items() if words is not None}
    for name, words in given.items():
        if not isinstance(words, str) or not words.strip():
            raise InvalidSchema(f"{name} must be text, or left out")
    if "measured_in" in given and column.kind not in ("numeric", "integer"):
        raise InvalidSchema(
            f"measured_in is for numbers, not for a column of kind {column.kind}; remove it, or "
            "say it in description"
        )
    if not given:
        return column
    found = copy(column)
    vars(found).update(given)
    return found


def require_distinct(labels: tuple[str, ...]) -> None:
    """Refuse blank values, and values that are told apart by their spelling only."""
    seen: set[str] = set()
    for label in labels:
        text = canonical_text(label)
        if not text:
            raise InvalidSchema("values holds a blank; blanks count as missing")
        if text in seen:
            raise InvalidSchema(f"values names {label!r} twice; every value must be unique")
        seen.add(text)

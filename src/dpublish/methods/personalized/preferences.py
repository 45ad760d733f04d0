"""Preferences: which records may cost how much, and what is public about it.

Every record has a level, one of a few public numbers: the most that all personalized releases
together may cost it.  A record's own number is rounded down to a level, so that it is never
charged more than it allows.  Records below the first level, and those without a number, are
part of no personalized release.

Where a person has several records (`unit` in the schema), the person has the smallest level of
them all; one record below the first level, or without a number, takes all of them out.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from math import inf
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.core.run import Run
from dpublish.data.axis import Axis
from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.interval import Interval, Partition, parse_interval
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.privacy.epsilon import format_epsilon, format_short, parse_epsilon, quoted
from dpublish.privacy.levels import parse_levels
from dpublish.privacy.neighbors import PersonalRecord

# --- Levels by a rule -----------------------------------------------------------------------------
#
# A rule such as `0..17=0.01, 18..=1` is a public look-up from the values of a column to levels.
# Every value has a level, so that no one is left out by an oversight; level 0 leaves people out
# on purpose.

REST = "*"
"""Stands for all values that no other part of the rule names."""

_COMMA = re.compile(r",(?![^\[(]*[\])])")  # one that is not inside an interval such as [0, 5)
_RANGE = re.compile(r"(.*?)\s*\.\.\s*(.*)")


class RulePart(NamedTuple):
    """Some values of a column, as they were written, and the level of their records."""

    values: str
    level: Fraction


def parse_rule(text: str) -> tuple[RulePart, ...]:
    """Read a rule: parts `values=level`, apart by commas, or by semicolons if there are any.

    >>> parse_rule("..17=0, [18, 65)=0.1, *=1")[1:]
    (RulePart(values='[18, 65)', level=Fraction(1, 10)), RulePart(values='*', level=Fraction(1, 1)))
    >>> [part.values for part in parse_rule("Self-employed, no staff=0.1; *=1")]
    ['Self-employed, no staff', '*']
    """
    return tuple(map(_parse_part, text.split(";") if ";" in text else _COMMA.split(text)))


def write_rule(parts: Sequence[RulePart]) -> str:
    """Write a rule in one spelling, whatever the order and spacing of its parts.

    >>> write_rule(parse_rule("18.. = 1,  ..17=0.10"))
    '..17=0.1; 18..=1'
    """
    written = (f"{canonical_text(part.values)}={format_epsilon(part.level)}" for part in parts)
    return "; ".join(sorted(written))


def digest_rule(parts: Sequence[RulePart], column: Column) -> str:
    """Compute a digest of which values have which level, so that a rule keeps its meaning.

    A group of values may be defined anew in the schema, and the rule that names it stays the
    same.  How finely numbers are cut does not matter; where the level changes does.

    >>> from dpublish.data.schema import column
    >>> fine, coarse = (column("age", "integer", bounds=[0, 99], bins=n) for n in (100, 4))
    >>> rule = parse_rule("..24=0.1, *=1")
    >>> digest_rule(rule, fine) == digest_rule(rule, coarse)
    True
    """
    axis, levels = column.axis(), list(map(format_epsilon, look_up(parts, column)))
    named = list(zip(axis.leaf_labels, levels, strict=True))
    cuts: list[tuple[float, str]] = []
    if axis.leaf_edges is not None:
        steps = pairwise(levels[: axis.ordinary_leaves])
        changes = [position for position, (low, high) in enumerate(steps, start=1) if low != high]
        cuts = [(axis.leaf_edges[position], levels[position]) for position in changes]
        named = [("", levels[0]), *named[axis.ordinary_leaves :]]
    # Where an unlisted value goes is in no label, since `other` may name a listed one.
    other = getattr(column, "other", None)
    beyond = [None if other is None else canonical_text(other), column.missing]
    described: list[object] = [axis.kind, axis.closed, cuts, sorted(named), beyond]
    if isinstance(column, DateColumn):
        described += [column.time_zone, column.format]
    return sha256(json.dumps(described).encode("ascii")).hexdigest()[:16]


def levels_of(parts: Sequence[RulePart]) -> tuple[Fraction, ...]:
    """List the levels that a rule gives, rising; level 0 is none."""
    return tuple(sorted({part.level for part in parts if part.level}))


def look_up(parts: Sequence[RulePart], column: Column) -> tuple[Fraction, ...]:
    """Find the level of every code of `column`; 0 leaves its records out.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 99], bins=4)
    >>> list(map(str, look_up(parse_rule("0..24=0, 25..49=0.5, *=1"), age)))
    ['0', '1/2', '1', '1']
    """
    axis = column.axis()
    owners = np.full(column.size, -1, dtype=np.int64)
    ordered = sorted(parts, key=lambda part: part.values == REST)  # what is left is known last
    for number, part in enumerate(ordered):
        codes = owners < 0 if part.values == REST else _find_codes(part.values, axis)
        if (owners[codes] >= 0).any():
            raise InvalidParameter(
                f"the rule's part {quoted(part.values)} names a value that another part has too"
            )
        owners[codes] = number
    if (owners < 0).any():
        lacking = axis.leaf_labels[int(np.argmin(owners))]
        raise InvalidParameter(
            f"the rule gives {lacking!r} of column {column.name!r} no level; add for example "
            f"{REST}=0, which leaves all other records out"
        )
    return tuple(ordered[owner].level for owner in owners.tolist())


def _parse_part(text: str) -> RulePart:
    values, equals, level = (piece.strip() for piece in text.rpartition("="))
    if not equals or not values:
        raise InvalidParameter(
            f"the rule's part {quoted(text.strip())} is not of the form values=level, "
            "such as 18..=1"
        )
    nothing = canonical_text(level) == "0"
    return RulePart(values, Fraction(0) if nothing else parse_epsilon(level, "a level of the rule"))


def _find_codes(values: str, axis: Axis) -> NDArray[np.bool_]:
    """Mark the codes that hold some values, and refuse values that share a code with others."""
    weights = _weigh(values, axis)
    shared = np.flatnonzero((weights > 0) & (weights < 1))
    if shared.size:
        label = axis.leaf_labels[int(shared[0])]
        raise InvalidParameter(
            f"the rule's part {quoted(values)} takes in only some of {label!r}, the finest "
            f"value of column {axis.column!r} in the schema; move its ends"
        )
    if not weights.any():
        raise InvalidParameter(
            f"the rule's part {quoted(values)} holds no value of column {axis.column!r}"
        )
    return weights > 0


def _weigh(values: str, axis: Axis) -> NDArray[np.float64]:
    if axis.kind == "category" or canonical_text(values) in axis.taxonomy.runs:
        return axis.match(values)
    if axis.kind == "ordinal" or axis.date_kind is not None:
        ends = _RANGE.fullmatch(values)
        return axis.cover(ends[1] or None, ends[2] or None) if ends else axis.match(values)
    span = parse_interval(values) or _parse_range(values)
    if span is None:
        return axis.match(values)
    if axis.kind == "numeric":
        _check_ends(values, span, axis)
    return axis.cover(span.low, span.high, span.include_low, span.include_high)


def _parse_range(values: str) -> Interval | None:
    """Read `18..`, `..17` or `0.5..2`: both ends belong to it, and one of them may be open."""
    ends = _RANGE.fullmatch(values)
    if ends is None:
        return None
    try:
        return Interval(float(ends[1] or -inf), float(ends[2] or inf), True, True)
    except ValueError:
        return None


def _check_ends(values: str, span: Interval, axis: Axis) -> None:
    """Refuse an end that belongs to another cell than the rule says.

    A person with that value would have a level that the owner gave to others.
    """
    edges = axis.leaf_edges or ()
    takes_low = axis.closed == "left" or span.low == edges[0]
    takes_high = axis.closed == "right" or span.high == edges[-1]
    low_differs = edges[0] <= span.low and span.include_low != takes_low
    high_differs = span.high <= edges[-1] and span.include_high != takes_high
    if low_differs or high_differs:
        raise InvalidParameter(
            f"the rule's part {quoted(values)} has an end that belongs to another cell of column "
            f"{axis.column!r}; write intervals like its cells, such as {axis.leaf_labels[0]}"
        )


# --- Preferences --------------------------------------------------------------------------------

Mode = Literal["frame", "levels", "values-only"]
MODES: tuple[Mode, ...] = ("frame", "levels", "values-only")
LARGEST_LEVEL = 1000
MOST_PEOPLE = 10**15
LEVEL = "(level)"
"""Column that gives bounded rows their person's level, where a rule gives levels."""


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """Where records have their levels from, and what is public about them.

    Attributes:
        column: Column of each record's own number; with a `rule`, the column that it looks at.
        levels: The public levels, exact and rising.
        mode: What is public: all eligible people with their levels (`frame`), the levels
            alone (`levels`), or who is present with which level (`values-only`).
        sizes: How many people are eligible at each level; in mode `frame` only.
        rule: Gives a level to every value of `column`, such as `0..17=0.01, 18..=1`.
        derived: The owner's word that levels may tell something about the rule's column.

    >>> own = Preferences(column="own", levels=(Fraction(1, 100), Fraction(1)))
    >>> [str(amount) for amount in own.amounts(Fraction(1, 2)).values()]
    ['1/200', '1/2']
    """

    column: str
    levels: tuple[Fraction, ...]
    mode: Mode = "levels"
    sizes: tuple[int, ...] | None = None
    rule: str | None = None
    derived: bool = False

    def __post_init__(self) -> None:
        if not self.column.strip():
            raise InvalidParameter("the preference column is blank; name it")
        object.__setattr__(self, "levels", parse_levels(self.levels))
        require_known("mode", self.mode, MODES)
        _check_sizes(self.mode, self.sizes, len(self.levels))
        _check_spacing(self.levels)
        self._check_rule()

    @classmethod
    def by_rule(
        cls,
        schema: Schema,
        *,
        source: str,
        rule: str,
        derived: bool = False,
        levels: tuple[Fraction, ...] | None = None,
        mode: Mode = "levels",
        sizes: tuple[int, ...] | None = None,
    ) -> "Preferences":
        """Build preferences by the column `source`; the levels are those of the rule.

        >>> from dpublish.data.schema import column
        >>> people = Schema((column("age", "integer", bounds=[0, 99]),))
        >>> own = Preferences.by_rule(people, source="age", rule="..17=0.1, *=1", derived=True)
        >>> own.level_of_code(people)[16:20]
        array([1, 1, 2, 2])
        """
        found = levels_of(parse_rule(rule)) if levels is None else levels
        made = cls(column=source, levels=found, mode=mode, sizes=sizes, rule=rule, derived=derived)
        made.check(schema)
        return made

    def neighbors(self, schema: Schema) -> PersonalRecord:
        """Return what a personalized release hides: a change of one record, at its own level.

        Or of all records of a person, at the smallest of their levels.
        """
        levels, unit = tuple(map(format_epsilon, self.levels)), schema.unit
        if self.rule is None:
            return PersonalRecord(self.column, levels, self.mode, unit=unit)
        parts = self._rule_parts
        cells = digest_rule(parts, schema[self.column])
        return PersonalRecord(self.column, levels, self.mode, write_rule(parts), cells, unit)

    def schema(self, schema: Schema) -> Schema:
        """Put the preference column into a schema, so that its bins are the levels.

        Bin 0 is below the first level, bin b is level b.  With a rule the schema stays.
        """
        if self.rule is None:
            listed = self._own_column
            if self.column not in schema.names:
                schema = replace(schema, columns=(*schema.columns, listed))
            elif isinstance(schema[self.column], CategoryColumn):
                raise InvalidParameter(
                    f"column {self.column!r} holds no numbers; give its values levels by a rule"
                )
            else:
                kept = (listed if x.name == self.column else x for x in schema.columns)
                schema = replace(schema, columns=tuple(kept))
        self.check(schema)
        return schema

    def check(self, schema: Schema) -> None:
        """Refuse a schema in which records do not have these levels."""
        if schema.unit is not None:
            self._check_unit(schema, schema.unit)
        if self.rule is not None:
            self.level_of_code(schema)
        elif self.column not in schema.names or schema[self.column] != self._own_column:
            raise InvalidParameter(
                f"column {self.column!r} does not have these levels; open the table with "
                "preferences.schema(schema)"
            )

    @property
    def of_rows(self) -> "Preferences":
        """The preferences by which bounded rows have levels: a column that holds their person's."""
        column = self.column if self.rule is None else LEVEL
        return replace(self, column=column, rule=None, derived=False)

    def bound(
        self,
        table: Table,
        most: int,
        key: bytes,
        columns: Sequence[str],
        complete: Sequence[str] | None = None,
    ) -> Table:
        """Keep at most `most` rows of each person, all of them at that person's level.

        Of the rows that have a value of the columns that are to be `complete` (None: of all).

        The level is the smallest over all rows of the person, also over those that do not stay
        or that another column leaves out.  The result has the given columns and one that gives
        rows their level (`of_rows`).

        Privacy:
            Which rows of a person stay, and at which level, depends on that person's rows alone
            (docs/proofs/personal_units.md).  So adding or removing a person of level e adds
            or removes at most `most` rows of the result, all of them at level e, and one who has
            no level changes nothing.
        """
        numbers = tuple(self.level_of_code(table.schema).tolist())
        lowest = Lowest(table.schema[self.column], numbers, self.of_rows._own_column)
        kept = tuple(dict.fromkeys((*columns, self.column)))
        needed = kept if complete is None else (*complete, self.column)
        return table.bound(most, key, kept, lowest=lowest, complete=needed)

    def without(self, schema: Schema) -> Schema:
        """Return the schema of what is published within a group.

        A column that holds nothing but preferences is not in it; the column of a rule is.
        """
        if self.rule is not None:
            return schema
        others: tuple[Column, ...] = tuple(x for x in schema.columns if x.name != self.column)
        return replace(schema, columns=others)

    def amounts(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level may spend if the largest spends `epsilon`: in proportion."""
        epsilon = parse_epsilon(epsilon)
        if epsilon > self.levels[-1]:
            raise InvalidParameter(
                f"epsilon ({format_short(epsilon)}) is above the largest level, "
                f"{format_short(self.levels[-1])}"
            )
        share = epsilon / self.levels[-1]
        return {level: level * share for level in self.levels}

    def level_of_code(self, schema: Schema) -> NDArray[np.int64]:
        """Number the level of each code of the column from 1; 0 leaves its records out."""
        if self.rule is None:
            return np.arange(len(self.levels) + 1)
        found = look_up(self._rule_parts, schema[self.column])
        return np.array([self._numbers.get(level, 0) for level in found], dtype=np.int64)

    def group(self, table: Table, levels: Collection[Fraction]) -> Table:
        """Pick the records that have one of some levels.

        A record's own content alone decides, so groups with different levels share no record.
        """
        chosen = [self._number(level) for level in levels]
        codes = np.flatnonzero(np.isin(self.level_of_code(table.schema), chosen))
        return table.only(self.column, codes.tolist(), keep=self.rule is not None)

    def sample(
        self, run: Run, rates: Mapping[Fraction, Fraction], columns: Sequence[str] | None = None
    ) -> Run:
        """Keep each record with the rate of its level; levels without a rate are left out."""
        by_number = [Fraction(0)] * (len(self.levels) + 1)
        for level, rate in rates.items():
            by_number[self._number(level)] = rate
        by_code = [by_number[number] for number in self.level_of_code(run.schema)]
        kept = self.without(run.schema).names if columns is None else columns
        return run.sample_by(self.column, by_code, kept)

    @cached_property
    def _own_column(self) -> NumberColumn:
        """Cut at the levels; a value is compared with the nearest float, so that 0.3 is 0.3."""
        edges = (0.0, *map(float, self.levels), 2 * float(self.levels[-1]))
        return NumberColumn(
            name=self.column, kind="numeric", partition=Partition(edges), missing="drop"
        )

    @cached_property
    def _numbers(self) -> dict[Fraction, int]:
        return {level: number for number, level in enumerate(self.levels, start=1)}

    @cached_property
    def _rule_parts(self) -> tuple[RulePart, ...]:
        return parse_rule(self.rule or "")

    def _check_unit(self, schema: Schema, unit: str) -> None:
        """Refuse people with several records where it is public who is there, or at which level."""
        if self.mode == "values-only":
            raise InvalidParameter(
                f"records belong to people here ({unit!r}), and values-only exchanges the values "
                "of one record: how many records a person has would be public; use --mode levels, "
                "or frame with --sizes"
            )
        if unit == self.column:
            raise InvalidParameter(f"column {unit!r} tells people apart, and gives no level")
        if LEVEL in schema.names:
            raise InvalidParameter(f"rename the column {LEVEL!r} first; people's levels go there")

    def _number(self, level: Fraction) -> int:
        if level not in self._numbers:
            raise InvalidParameter(f"{format_short(level)} is not one of the levels")
        return self._numbers[level]

    def _check_rule(self) -> None:
        if self.rule is None:
            if self.derived:
                raise InvalidParameter("--derived goes with --rule; remove it, or write the rule")
            return
        for level in levels_of(self._rule_parts):
            if level not in self.levels:
                raise InvalidParameter(f"the rule gives {format_short(level)}, which is no level")
        if not self.derived:
            raise InvalidParameter(
                f"the rule makes levels from {self.column!r}, so that whoever learns a level "
                "learns something about that column; add --derived (derived=True in Python) if "
                "that is acceptable"
            )


def _check_sizes(mode: Mode, sizes: tuple[int, ...] | None, levels: int) -> None:
    if (mode == "frame") != (sizes is not None):
        raise InvalidParameter(
            "sizes of the levels are public in mode frame, and only there: give --sizes with "
            "--mode frame, or neither"
        )
    if sizes is None:
        return
    for size in sizes:
        require_count(at_least=0, sizes=size)
    if len(sizes) != levels:
        raise InvalidParameter(
            f"there are {levels} levels, so --sizes must be {levels} numbers too"
        )
    if sum(sizes) > MOST_PEOPLE:
        raise InvalidParameter("sizes add up to more people than there can be")


def _check_spacing(levels: tuple[Fraction, ...]) -> None:
    """Refuse levels that are the same number, or 0, when they are read as floats."""
    if levels[-1] > LARGEST_LEVEL:
        raise InvalidParameter(f"a level is at most {LARGEST_LEVEL:,}; it would hide nothing")
    if any(low >= high for low, high in pairwise((0.0, *map(float, levels)))):
        raise InvalidParameter("levels are too close together, or to 0, to distinguish values")

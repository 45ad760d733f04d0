"""Preferences: which records may cost how much, and what is public about it.

Every record has a level, one of a few public numbers: the most that all personalized releases
together may cost it.  A record's own number is rounded down to a level, so that it is never
charged more than it allows.  Records below the first level, and those without a number, are
part of no personalized release.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.interval import Partition
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.methods.personalized.preference_rule import (
    RulePart,
    digest_rule,
    levels_of,
    look_up,
    parse_rule,
    write_rule,
)
from dpublish.privacy.epsilon import format_epsilon, format_short, parse_epsilon
from dpublish.privacy.levels import parse_levels
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.randomness import RandomSource

Mode = Literal["frame", "levels", "values-only"]
MODES: tuple[Mode, ...] = ("frame", "levels", "values-only")
LARGEST_LEVEL = 1000
MOST_PEOPLE = 10**15


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """Where records have their levels from, and what everybody may know about them.

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
        """Give records their levels by the column `source`; the levels are those of the rule.

        >>> from dpublish.data.schema import column
        >>> people = Schema((column("age", "integer", bounds=[0, 99]),))
        >>> own = Preferences.by_rule(people, source="age", rule="..17=0.1, *=1", derived=True)
        >>> own.level_of_leaf(people)[16:20]
        array([1, 1, 2, 2])
        """
        found = levels_of(parse_rule(rule)) if levels is None else levels
        made = cls(column=source, levels=found, mode=mode, sizes=sizes, rule=rule, derived=derived)
        made.check(schema)
        return made

    def neighbors(self, schema: Schema) -> PersonalRecord:
        """Say what a personalized release hides: a change of one record, at its own level."""
        levels = tuple(map(format_epsilon, self.levels))
        if self.rule is None:
            return PersonalRecord(self.column, levels, self.mode)
        parts = self._rule_parts
        cells = digest_rule(parts, schema[self.column])
        return PersonalRecord(self.column, levels, self.mode, write_rule(parts), cells)

    def schema(self, schema: Schema) -> Schema:
        """Put the preference column into a schema, so that its leaves are the levels.

        Leaf 0 is below the first level, leaf b is level b.  With a rule the schema stays.
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
            raise InvalidParameter(
                "levels belong to single records, and here rows belong to units; make one "
                "record of each unit first"
            )
        if self.rule is not None:
            self.level_of_leaf(schema)
        elif self.column not in schema.names or schema[self.column] != self._own_column:
            raise InvalidParameter(
                f"column {self.column!r} does not have these levels; open the table with "
                "preferences.schema(schema)"
            )

    def without(self, schema: Schema) -> Schema:
        """Give the schema of what is published within a group.

        A column that holds nothing but preferences is not in it; the column of a rule is.
        """
        if self.rule is not None:
            return schema
        others: tuple[Column, ...] = tuple(x for x in schema.columns if x.name != self.column)
        return replace(schema, columns=others)

    def amounts(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level may spend if the largest spends `epsilon`: in proportion."""
        epsilon = parse_epsilon(epsilon)
        if epsilon > self.levels[-1]:
            raise InvalidParameter(
                f"epsilon ({format_short(epsilon)}) is above the largest level, "
                f"{format_short(self.levels[-1])}"
            )
        share = epsilon / self.levels[-1]
        return {level: level * share for level in self.levels}

    def level_of_leaf(self, schema: Schema) -> NDArray[np.int64]:
        """Number the level of each leaf of the column from 1; 0 leaves its records out."""
        if self.rule is None:
            return np.arange(len(self.levels) + 1)
        found = look_up(self._rule_parts, schema[self.column])
        return np.array([self._numbers.get(level, 0) for level in found], dtype=np.int64)

    def group(self, table: Table, levels: Collection[Fraction]) -> Table:
        """Pick the records that have one of some levels.

        A record's own content alone decides, so groups with different levels share no record.
        """
        chosen = [self._number(level) for level in levels]
        leaves = np.flatnonzero(np.isin(self.level_of_leaf(table.schema), chosen))
        return table.only(self.column, leaves.tolist(), keep=self.rule is not None)

    def sample(
        self,
        table: Table,
        rates: Mapping[Fraction, Fraction],
        rng: RandomSource,
        columns: Sequence[str] | None = None,
    ) -> Table:
        """Keep each record with the rate of its level; levels without a rate are left out."""
        by_number = [Fraction(0)] * (len(self.levels) + 1)
        for level, rate in rates.items():
            by_number[self._number(level)] = rate
        by_leaf = [by_number[number] for number in self.level_of_leaf(table.schema)]
        kept = self.without(table.schema).names if columns is None else columns
        return table.sample_by(self.column, by_leaf, rng, kept)

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

    def _number(self, level: Fraction) -> int:
        if level not in self._numbers:
            raise InvalidParameter(f"{format_short(level)} is not one of the levels")
        return self._numbers[level]

    def _check_rule(self) -> None:
        if self.rule is None:
            if self.derived:
                raise InvalidParameter("derived goes with a rule; remove it, or write the rule")
            return
        for level in levels_of(self._rule_parts):
            if level not in self.levels:
                raise InvalidParameter(f"the rule gives {format_short(level)}, which is no level")
        if not self.derived:
            raise InvalidParameter(
                f"the rule makes levels from {self.column!r}, so that whoever learns a level "
                "learns something about that column; say derived=True if that may be"
            )


def _check_sizes(mode: Mode, sizes: tuple[int, ...] | None, levels: int) -> None:
    if (mode == "frame") != (sizes is not None):
        raise InvalidParameter("sizes of the levels are public in mode frame, and only there")
    if sizes is None:
        return
    for size in sizes:
        require_count(at_least=0, sizes=size)
    if len(sizes) != levels:
        raise InvalidParameter(f"there are {levels} levels, so sizes must be {levels} numbers too")
    if sum(sizes) > MOST_PEOPLE:
        raise InvalidParameter("sizes add up to more people than there can be")


def _check_spacing(levels: tuple[Fraction, ...]) -> None:
    """Refuse levels that values read as floats cannot be told apart by."""
    if levels[-1] > LARGEST_LEVEL:
        raise InvalidParameter(f"a level is at most {LARGEST_LEVEL:,}; it would hide nothing")
    if any(low >= high for low, high in pairwise((0.0, *map(float, levels)))):
        raise InvalidParameter("levels are too close together, or to 0, to tell values apart")

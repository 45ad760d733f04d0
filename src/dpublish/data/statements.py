"""Public facts about combinations of columns: which ones cannot be, and how often some occur.

The owner states them as conditions of the query language, from public knowledge: a regulation, a
code book, a published statistic.  No row is ever looked at for them.  A condition must say of every
leaf code of a column whether it holds, for a method knows no more of a record than its codes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from dpublish.data.column import Column
from dpublish.data.query.language import Condition, parse_query, require_columns
from dpublish.data.query.weights import assumption, axis_weights, is_partial
from dpublish.errors import InvalidParameter, InvalidSchema, about, require_count
from dpublish.types import BoolArray

MOST_STATEMENTS = 1_000
"""Statements of a kind that a schema may have."""
_LOOKS = 50_000  # at statements, in the search for a combination that remains possible


class Cells(NamedTuple):
    """What a statement covers: some columns of a schema, and a mask over the codes of each."""

    columns: tuple[Column, ...]
    codes: tuple[BoolArray, ...]


@dataclass(frozen=True)
class Statement:
    """Conditions that are stated of a table; a schema works out which codes satisfy them.

    Attributes:
        where: The conditions, all of which must hold, in the language of queries.
        cells: The codes that satisfy them; None until the statement is part of a schema.
    """

    where: str = ""
    cells: Cells | None = field(default=None, kw_only=True, compare=False, repr=False)

    most: ClassVar[int] = 4

    def __post_init__(self) -> None:
        with about(f"where = {self.where!r}:"):
            object.__setattr__(self, "where", str(parse_query(self.where)))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the conditions are about, in their order."""
        return parse_query(self.where).columns

    @property
    def codes(self) -> tuple[BoolArray, ...]:
        """A mask over the leaf codes for each column; a record is meant if all of them hold."""
        if self.cells is None:
            raise InvalidParameter("codes are known once the statement is part of a schema")
        return self.cells.codes

    def bind(self, columns: Mapping[str, Column]) -> Self:
        """Work out which codes of the columns of a schema satisfy the conditions."""
        query = parse_query(self.where)
        with about(f"where = {self.where!r}:"):
            require_columns(query, tuple(columns), "this schema knows")
            self._check_number()
            found = tuple(columns[name] for name in query.columns)
            codes = tuple(_covered(each, query.about(each.name)) for each in found)
        return replace(self, cells=Cells(found, codes))

    def keep(self, columns: Mapping[str, Column]) -> Self | None:
        """Return the same statement for other columns; None if it does not fit them."""
        if self.cells is None or not set(self.columns) <= columns.keys():
            return None
        if all(columns[each.name] == each for each in self.cells.columns):
            return self
        try:
            return self.bind(columns)
        except InvalidParameter:
            return None

    def is_within(self, other: "Statement") -> bool:
        """Check whether every combination that this one covers is covered by the other, too."""
        masks = dict(zip(self.columns, self.codes, strict=True))
        return set(other.columns) <= masks.keys() and all(
            not np.any(masks[name] & ~mask)
            for name, mask in zip(other.columns, other.codes, strict=True)
        )

    def _check_number(self) -> None:
        if len(self.columns) > self.most:
            raise InvalidSchema(
                f"has conditions on {len(self.columns)} columns, and at most {self.most} are "
                "possible; state it of fewer columns"
            )


@dataclass(frozen=True)
class Combination(Statement):
    """A combination of values that no record can have, whoever is in the table.

    Attributes:
        where: What cannot be: conditions on two to four columns that never hold together.

    >>> Combination("age < 16 and marital_status = Married").columns
    ('age', 'marital_status')
    """

    def describe(self) -> str:
        """Say what is stated, for people."""
        return f"impossible: {self.where}"

    def _check_number(self) -> None:
        super()._check_number()
        if len(self.columns) < 2:
            raise InvalidSchema(
                "has conditions on fewer than two columns; a single value that is impossible is "
                "left out of the column's values, or of its bounds"
            )


@dataclass(frozen=True)
class KnownTotal(Statement):
    """How many records satisfy some conditions, from a published statistic.

    Attributes:
        where: Conditions on at most three columns; empty for the number of all records.
        count: How many records satisfy them.
        source: Where that was published, in words for reports.

    >>> KnownTotal("sex = Female", count=12_345, source="Census 2020, table P1").describe()
    'known total: 12,345 records with sex = Female (Census 2020, table P1)'
    """

    count: int = field(kw_only=True)
    source: str | None = field(default=None, kw_only=True)

    most: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        with about(f"where = {self.where!r}:"):
            require_count(at_least=0, count=self.count)
        object.__setattr__(self, "count", int(self.count))

    def describe(self) -> str:
        """Say what is stated, for people."""
        what = f"with {self.where}" if self.where else "in all"
        source = f" ({self.source})" if self.source else ""
        return f"known total: {self.count:,} record{'' if self.count == 1 else 's'} {what}{source}"


_Stated = TypeVar("_Stated", Combination, KnownTotal)


class Facts(NamedTuple):
    """The statements of a schema, each with the codes that it covers."""

    impossible: tuple[Combination, ...]
    totals: tuple[KnownTotal, ...]


def settle_statements(
    columns: Mapping[str, Column],
    impossible: Iterable[Combination],
    totals: Iterable[KnownTotal],
) -> Facts:
    """Fit statements to the columns of a schema.

    New ones must fit, and must not contradict the others.  Those that were part of a schema
    already are left out if their columns are no longer there, or are cut otherwise.
    """
    given = (*impossible, *totals)
    facts = Facts(_settle(columns, impossible), _settle(columns, totals))
    if any(statement.cells is None for statement in given):
        _refuse_contradictions(facts)
    return facts


def _settle(columns: Mapping[str, Column], given: Iterable[_Stated]) -> tuple[_Stated, ...]:
    given = tuple(given)
    if len(given) > MOST_STATEMENTS:
        raise InvalidSchema(
            f"states {len(given):,} facts of a kind, more than {MOST_STATEMENTS:,}; state some "
            "together, such as column in {a, b}"
        )
    found = (each.bind(columns) if each.cells is None else each.keep(columns) for each in given)
    return tuple(each for each in found if each is not None)


def leaves_room(combinations: Sequence[Combination]) -> bool:
    """Check that some combination of values remains possible.

    Every statement rules out a box of codes.  A combination is possible if it lies outside each
    box in at least one column: these columns are chosen one box after the other.  A search that
    takes very long is ended, in favor of the owner.
    """
    free = {
        each.name: np.ones(each.size, dtype=np.bool_)
        for statement in combinations
        for each in (statement.cells.columns if statement.cells else ())
    }
    waiting, looks = [(0, free)], 0
    while waiting:
        start, allowed = waiting.pop()
        number = _next_box(combinations, start, allowed)
        if number is None or looks > _LOOKS:
            return True
        looks += number + 1 - start
        box = combinations[number]
        for name, mask in zip(box.columns, box.codes, strict=True):
            outside = allowed[name] & ~mask
            if outside.any():
                waiting.append((number + 1, {**allowed, name: outside}))
    return False


def _next_box(
    combinations: Sequence[Combination], start: int, allowed: Mapping[str, BoolArray]
) -> int | None:
    """Find the next statement that still rules out some of what is allowed."""
    for number in range(start, len(combinations)):
        box = combinations[number]
        if all((allowed[name] & m).any() for name, m in zip(box.columns, box.codes, strict=True)):
            return number
    return None


def _refuse_contradictions(facts: Facts) -> None:
    if not leaves_room(facts.impossible):
        raise InvalidSchema(
            "the impossible combinations leave nothing possible; remove or correct some of them"
        )
    for one, other in permutations(facts.totals, 2):
        if one.is_within(other):
            _compare_totals(one, other)
    for total in facts.totals:
        ruled_out = next((each for each in facts.impossible if total.is_within(each)), None)
        if total.count and ruled_out is not None:
            raise InvalidSchema(
                f"{total.describe()}, but {ruled_out.where!r} is impossible; remove one of both"
            )


def _compare_totals(one: KnownTotal, other: KnownTotal) -> None:
    if other.is_within(one):
        raise InvalidSchema(
            f"two totals are about the same records ({one.where or 'all records'}); remove one"
        )
    if one.count > other.count:
        raise InvalidSchema(
            f"{one.describe()}, but only {other.describe().removeprefix('known total: ')}, of "
            "which they are a part; correct one of both"
        )


def _covered(column: Column, conditions: tuple[Condition, ...]) -> BoolArray:
    """Mark the leaf codes that satisfy conditions on a column; refuse what codes cannot express."""
    axis = column.axis()
    weights = axis_weights(axis, conditions)
    if np.any(cut := is_partial(weights)):
        raise InvalidSchema(
            f"covers a part of the bin {axis.labels[int(np.argmax(cut))]!r} of {column.name!r}; "
            "name whole bins, or change the column's bins, cuts or bounds so that one starts there"
        )
    if not weights.any():
        raise InvalidSchema(f"holds for no value of {column.name!r} that the schema knows")
    if weights.all():
        raise InvalidSchema(
            f"holds for every value of {column.name!r}; leave the condition on it out"
        )
    if assumption(axis, conditions, weights) is not None:
        side, signs = ("lower", "< and >=") if axis.closed == "left" else ("upper", "<= and >")
        raise InvalidSchema(
            f"cuts {column.name!r} at the wrong side of a bin's end; bins hold their {side} end, "
            f"so write {signs}"
        )
    codes: BoolArray = weights > 0
    codes.flags.writeable = False
    return codes

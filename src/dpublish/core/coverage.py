"""What is in a release, and what is not: told from its public schema and receipt alone.

A record that the missing rule of a column leaves out is in no count, numbers are clipped to their
bounds, a person with many records is in it with a few of them, and a filter may have gone before.
Whoever reads a number must know: a total over records with an age is not the number of records.
No row is looked at here, so nothing is told of how many records each rule concerns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpublish.data.column import MISSING_LABEL, Column, NumberColumn
from dpublish.data.schema import Schema
from dpublish.data.steps import FILTER
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    ReplaceRecord,
    UserInWindow,
    plural,
)
from dpublish.privacy.receipt import Receipt

_MOST_NAMED = 6


class Covered(Protocol):
    """What must be known of a release: all of it is public."""

    @property
    def receipt(self) -> Receipt:
        """What was guaranteed."""
        ...

    @property
    def schema(self) -> Schema:
        """The columns that are published."""
        ...

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns whose missing rules decide which records are in it."""
        ...

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """Names of other columns, without a value of which a record still counts elsewhere."""
        ...

    @property
    def needs_numbers(self) -> bool:
        """Whether a record without a number is left out, whatever the rule."""
        ...


@dataclass(frozen=True)
class Coverage:
    """Which records a release is about.

    Attributes:
        counts: What is counted, in a few words: "records with age and sex".
        columns: What becomes of a record without a value, or with one out of bounds, by column.
        limits: What else was done to records or leaves them out, a sentence each.
    """

    counts: str
    columns: dict[str, str]
    limits: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Tell all of it in sentences."""
        rules = [f"{name}: {rule}." for name, rule in self.columns.items()]
        return [f"In this release are {self.counts}.", *rules, *self.limits]


def coverage_of(release: Covered) -> Coverage:
    """Tell which records a release is about, and what was done to them."""
    receipt = release.receipt
    columns = [release.schema[name] for name in release.complete]
    rules = {x.name: _rule(x, is_number=release.needs_numbers) for x in columns}
    for name in release.measured_columns:
        rules.setdefault(name, _measured_rule(release.schema[name]))
    return Coverage(what_is_counted(release), rules, tuple(_limits(receipt)))


def what_is_counted(release: Covered) -> str:
    """Say in a few words what a release counts: records, or people, with which columns."""
    columns = [release.schema[name] for name in release.complete]
    needed = [x.name for x in columns if _leaves_out(x, is_number=release.needs_numbers)]
    noun, *limits = _whose(release.receipt)
    counted = f"{noun} with {_listed(needed)}" if needed else f"all {noun}"
    return ", ".join([counted, *limits, *_filters(release.receipt)])


def contribution_of(receipt: Receipt) -> int | None:
    """Return how many records of a person were kept at most, if they were bounded."""
    if receipt.contribution is not None:
        return receipt.contribution
    given = receipt.settings.get("contribution")
    return given if isinstance(given, int) else None


def not_in_intervals(receipt: Receipt) -> str | None:
    """Say what confidence intervals do not cover, where records of a person are left out.

    None where none are: no bound, or an owner who vouches for it.
    """
    most, hidden = contribution_of(receipt), receipt.neighbors
    if most is None or isinstance(hidden, AddRemoveRecord | ReplaceRecord):
        return None
    if _is_vouched(receipt):
        return None
    noun = hidden.noun if isinstance(hidden, AddRemoveUnit | UserInWindow) else "person"
    return f"the interval covers noise, not the records of a {noun} beyond {most:,}"


def _is_vouched(receipt: Receipt) -> bool:
    """Return whether the owner says that no one has more records than the bound."""
    hidden = receipt.neighbors
    if not isinstance(hidden, AddRemoveUnit | UserInWindow):
        return False
    return bool(receipt.settings.get("trust_rows")) and hidden.column == hidden.noun


def _whose(receipt: Receipt) -> list[str]:
    """Name what is counted, and then what else limits it."""
    hidden, most = receipt.neighbors, contribution_of(receipt)
    if isinstance(hidden, AddRemoveUnit | UserInWindow):
        if most is None:  # the table shows a unit's distinct values, each once
            return [plural(hidden.noun), "each once for every value that they have"]
        return ["records", f"at most {most:,} of any one {hidden.noun}"]
    if isinstance(hidden, PersonalRecord):
        limit = [] if most is None or hidden.unit is None else [f"at most {most:,} of a person"]
        return ["records", *limit, _which_levels(receipt)]
    return ["records"]


def _which_levels(receipt: Receipt) -> str:
    """Say at which levels people are in it: those that pay."""
    first = _first_paying(receipt)
    return "at one of the levels" if first is None else f"of people at level {first} or above"


def _first_paying(receipt: Receipt) -> str | None:
    """Return the level below which none pays, if there is one and all above it pay."""
    pays = [paid > 0 for _, paid in receipt.personal]
    if all(pays) or pays != sorted(pays):
        return None
    return format_epsilon(receipt.personal[pays.index(True)][0])


def _filters(receipt: Receipt) -> list[str]:
    return [step for step in receipt.steps if step.startswith(FILTER)]


def _leaves_out(column: Column, *, is_number: bool) -> bool:
    """Return whether a record without a value of the column is in no count."""
    return column.missing != "category" or (is_number and isinstance(column, NumberColumn))


def _rule(column: Column, *, is_number: bool) -> str:
    """Tell what becomes of a record by its value of one column."""
    gone = _leaves_out(column, is_number=is_number)
    fate = "is left out" if gone else f"counts as {MISSING_LABEL}"
    if isinstance(column, NumberColumn):
        low, high = (_written(column, bound) for bound in column.bounds)
        return f"a record without a value {fate}; values are clipped to {low} to {high}"
    if column.other is not None:
        other = f"one that is not listed counts as {column.other}"
        return f"a record without a value {fate}; {other}"
    return f"a record without a value, or with one that is not listed, {fate}"


def _measured_rule(column: Column) -> str:
    """Tell what becomes of a record by its value of a column that some numbers are about."""
    said = "a record without a value counts, and has no part in what is computed of this column"
    if not isinstance(column, NumberColumn):
        return said
    low, high = (_written(column, bound) for bound in column.bounds)
    return f"{said}; values are clipped to {low} to {high}"


def _written(column: Any, bound: float) -> str:
    return str(column.show(bound, digits=12))  # dates are written as dates


def _limits(receipt: Receipt) -> list[str]:
    said = [f"Before that, record by record: {step}." for step in receipt.steps]
    hidden, most = receipt.neighbors, contribution_of(receipt)
    if isinstance(hidden, AddRemoveUnit | UserInWindow) and most is not None:
        said.append(_share_of_one(hidden, most, receipt))
    if isinstance(hidden, PersonalRecord):
        said.append("Records below the first level, or without one, are left out.")
        if (first := _first_paying(receipt)) is not None:
            said.append(f"People below level {first} pay nothing, and are left out, too.")
        if hidden.unit is not None and most is not None:
            said.append(_share_of_person(hidden.unit, most))
    return said


def _share_of_person(unit: str, most: int) -> str:
    return (
        f"A person ({unit!r}) has the smallest level of all their records, and at most {most:,} "
        "of these are in it, whichever a random key picks; records of no one are left out."
    )


def _share_of_one(hidden: AddRemoveUnit | UserInWindow, most: int, receipt: Receipt) -> str:
    is_stream = isinstance(hidden, UserInWindow) or "horizon" in receipt.settings
    where = "a snapshot" if is_stream else "it"
    if _is_vouched(receipt):
        return f"The owner vouches that any one {hidden.who} has at most {most:,} in {where}."
    return (
        f"Of any one {hidden.who}, at most {most:,} of these records are in {where}, whichever a "
        f"random key picks; records that belong to no {hidden.noun} are left out. Confidence "
        "intervals cover noise, not what is left out."
    )


def _listed(names: Sequence[str]) -> str:
    """List some names; only the first of many.

    >>> _listed(["age"]), _listed(["age", "sex"]), _listed(list("abcdefghi"))
    ('age', 'age and sex', 'a, b, c, d, e, f and 3 other columns')
    """
    if len(names) > _MOST_NAMED + 1:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED:,} other columns"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last

"""Propose what a schema may say of a column, from its name and its stored type alone.

No value is looked at.  What a public fact knows is proposed with the fact; what only the owner
can know is asked for, and stays open until it is answered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from dpublish.data.axis import Kind
from dpublish.data.encoding import is_text
from dpublish.data.public_facts.facts import Fact, ValueList, find_fact

ProposedRole = Literal["publish", "identifier", "text", "unusable"]
OTHER = "other"
MISSING = "category"
"""What is proposed for missing values: a cell of their own, which is right with and without any."""
_STORED = "its values are stored as {}"
_ASK_VALUES = "its values, such as a, b, c or @codes.csv"
_ASK_ANY = "its values (a, b, c or @codes.csv), its bounds (0..100 by 5) or its dates (2023..2024)"
_ASK_BOUNDS = "its bounds, such as 0..100 by 5"
_ASK_PERIOD = "the period of the table, such as 2023-01-01..2024-12-31"
NUMBERS: tuple[Kind, ...] = ("numeric", "integer")
DATES: tuple[Kind, ...] = ("date", "datetime")


@dataclass(frozen=True)
class Proposal:
    """What a schema may say of a column, and what is still open.

    Attributes:
        column: Name of the column.
        role: Whether it is to be published; else it tells rows or people apart, is free text, or
            has a type that cannot be used.
        kind: The kind of its values, if a type or a fact says so.
        settings: Keys of a schema beside the kind: bounds, bins or cuts, values, codes, other.
        why: What the proposal rests on.
        ask: What only the owner knows; empty if nothing is open.
        fact: Name of the public fact, if there is one.
        unit: What the column tells apart, if it may be the unit: a person, a household.
        lists: Named ways to write its values, of which the first is proposed.
    """

    column: str
    role: ProposedRole = "publish"
    kind: Kind | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    ask: str = ""
    fact: str | None = None
    unit: str | None = None
    lists: tuple[ValueList, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the column can be published without a word from the owner."""
        return self.role == "publish" and not self.ask

    @property
    def summary(self) -> str:
        """What is proposed, in a few words.

        >>> propose("age").summary, propose("sex").summary, propose("email").summary
        ('integer, 0 to 120 in 24 bins', 'category, 2 values or other', 'left out')
        """
        if self.role != "publish":
            return "left out"
        kind = self.kind or "kind unknown"
        return f"{kind}, {self._domain}" if self.settings else f"{kind}; to be asked"

    @property
    def _domain(self) -> str:
        if "values" in self.settings:
            other = " or other" if "other" in self.settings else ""
            return f"{len(self.settings['values'])} values{other}"
        edges = self.settings.get("cuts", self.settings.get("bounds"))
        number = len(edges) - 1 if "cuts" in self.settings else self.settings.get("bins")
        bins = (
            f" in {number} bins" if isinstance(number, int) else f" by {number}" if number else ""
        )
        return f"{edges[0]} to {edges[-1]}{bins}"

    @property
    def needs_period(self) -> bool:
        """Whether what is open is the period of the table, which columns of dates share."""
        is_dated = self.kind in DATES or self.fact == "year"
        return self.role == "publish" and bool(self.ask) and is_dated


def propose(column: str, kind: Any = None, *, today: date | None = None) -> Proposal:
    """Propose what a schema may say of a column.

    Args:
        column: Its name.
        kind: Its Arrow type; None if it is stored as text that has none, in a CSV file.
        today: The day on which it is proposed, for bounds such as this year.

    >>> propose("patient_age").settings["cuts"][:3], propose("age", pa.string()).ask
    ([0, 5, 10], 'its values, such as a, b, c or @codes.csv')
    >>> propose("PatientID").role, propose("color").is_complete
    ('identifier', False)
    """
    stored = _value_type(kind)
    if stored is not None and _kind_of(stored) is None:
        why = f"left out: values of type {kind} cannot be used"
        return Proposal(column, "unusable", why=why)
    fact = find_fact(column)
    if fact is not None and fact.role != "publish":
        return Proposal(column, fact.role, why=fact.why, fact=fact.name, unit=fact.unit)
    if stored is not None and pa.types.is_boolean(stored):
        settings = {"values": [False, True]}
        return Proposal(column, kind="category", settings=settings, why=_STORED.format("bool"))
    if fact is None:
        return _by_type(column, kind)
    return _by_fact(column, kind, fact, today)


def cells(
    kind: Kind, low: float, high: float, step: float | None, *, bins: int | None = None
) -> dict[str, Any]:
    """Cut numbers into bins of a width: equal bins if it divides them, else cuts.

    >>> cells("integer", 0, 119, 5), cells("integer", 0, 12, 5), cells("numeric", 0, 1, 0.25)
    ({'bounds': [0, 119], 'bins': 24}, {'cuts': [0, 5, 10, 12]}, {'bounds': [0, 1], 'bins': 4})
    """
    if step is None:
        return {"bounds": [low, high], **({} if bins is None else {"bins": bins})}
    first, last, width = (Fraction(str(number)) for number in (low, high, step))
    count = (last - first + (1 if kind == "integer" else 0)) / width
    if count.denominator == 1:
        return {"bounds": [low, high], "bins": int(count)}
    number = int((last - first) / width)
    edges = [first + index * width for index in range(number + 1)]
    if edges[-1] < last:
        edges.append(last)
    return {"cuts": [int(e) if e.denominator == 1 else float(e) for e in edges]}


def list_settings(chosen: ValueList) -> dict[str, Any]:
    """Write a list of values as keys of a schema; all values not listed are counted as other."""
    codes = {} if chosen.codes is None else {"codes": [*chosen.codes]}
    return {"values": [*chosen.values], **codes, "other": other_label(chosen.values)}


def other_label(values: Sequence[object]) -> str:
    """Name the cell of values that are not listed: the listed `Other`, if there is one.

    >>> other_label(["a", "Other"]), other_label(["a"])
    ('Other', 'other')
    """
    return next((str(v) for v in values if str(v).casefold() == OTHER), OTHER)


def _value_type(kind: Any) -> Any:
    """Return the type of the values; None if nothing is stored that has one."""
    if kind is None or pa.types.is_null(kind):
        return None
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _kind_of(stored: Any) -> Kind | None:
    """Return the kind that a stored type stands for; None if it cannot be used."""
    types = pa.types
    guesses: tuple[tuple[Any, Kind], ...] = (
        (types.is_boolean, "category"),
        (types.is_integer, "integer"),
        (types.is_floating, "numeric"),
        (types.is_decimal, "numeric"),
        (is_text, "category"),
        (types.is_date, "date"),
        (types.is_timestamp, "datetime"),
    )
    return next((kind for fits, kind in guesses if fits(stored)), None)


def _by_type(column: str, kind: Any) -> Proposal:
    """Propose the kind that the stored type stands for, and ask for the rest."""
    stored = _value_type(kind)
    if stored is None:
        return Proposal(column, ask=_ASK_ANY)
    is_listed = pa.types.is_dictionary(kind)
    found = ("ordinal" if kind.ordered else "category") if is_listed else _kind_of(stored)
    asks = {"integer": _ASK_BOUNDS, "numeric": _ASK_BOUNDS, "date": _ASK_PERIOD}
    ask = asks.get("date" if found in DATES else str(found), _ASK_VALUES)
    return Proposal(column, kind=found, ask=ask, why=_STORED.format(kind))


def _by_fact(column: str, kind: Any, fact: Fact, today: date | None) -> Proposal:
    """Propose what a fact knows, if it fits the stored type."""
    stored = _value_type(kind)
    found = None if stored is None else _kind_of(stored)
    if not _fits(fact, found, is_listed=kind is not None and pa.types.is_dictionary(kind)):
        return _by_type(column, kind)
    lists = _fitting_lists(fact, found)
    known: dict[str, Any] = {}
    if lists:
        known = list_settings(lists[0])
    elif (bounds := fact.settled_bounds(today)) is not None:
        known = _bounded(fact, bounds)
    elif fact.lists:
        return _by_type(column, kind)
    dated = found if found in DATES else fact.kind
    return Proposal(
        column,
        kind=dated,
        settings=known,
        why=(lists[0].why or fact.why) if lists else fact.why,
        ask="" if known else fact.ask,
        fact=fact.name,
        lists=lists,
    )


def _fits(fact: Fact, found: Kind | None, *, is_listed: bool) -> bool:
    """Check that a fact can be about values of a stored kind."""
    if found is None:
        return True
    if is_listed:
        return fact.kind in ("category", "ordinal")
    fitting: dict[Kind, tuple[Kind, ...]] = {
        "integer": ("integer", "numeric", "category", "ordinal"),
        "numeric": ("integer", "numeric", "category", "ordinal"),
        "category": ("category", "ordinal", *DATES),
        "date": DATES,
        "datetime": DATES,
    }
    return fact.kind in fitting[found]


def _fitting_lists(fact: Fact, found: Kind | None) -> tuple[ValueList, ...]:
    """Keep the lists that numbers can be found in, where numbers are stored."""
    if found not in NUMBERS:
        return fact.lists
    return tuple(each for each in fact.lists if _has_numbers(each))


def _has_numbers(listed: ValueList) -> bool:
    return all(type(code) is int for code in (listed.codes or listed.values))


def _bounded(fact: Fact, bounds: Sequence[Any]) -> dict[str, Any]:
    if fact.kind in DATES:
        return {"bounds": [*bounds], **({} if fact.bins is None else {"bins": fact.bins})}
    return cells(fact.kind or "numeric", bounds[0], bounds[1], fact.step)

"""Read the shipped list of public facts, and find the one that a column's name claims.

A fact is what everyone may know of columns with such a name, in any table: its bounds, or lists of
its values.  It comes from standards and from common knowledge, never from rows.  Whether it
holds for a table is for its owner to say.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from dpublish.data.axis import Kind
from dpublish.data.column import Category
from dpublish.data.public_facts.column_names import head_of, without_fillers, words_of

Role = Literal["publish", "identifier", "text"]
THIS_YEAR = "this year"
"""A bound that moves with the calendar: the last day of the year, or its number."""


class ValueList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to write the values of a category: names, and the codes that are read, too."""

    name: str
    values: tuple[Category, ...]
    codes: tuple[Category, ...] | None = None
    why: str = ""


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is publicly known of columns with certain names.

    Attributes:
        name: What the fact is called.
        why: Why it holds, in a few words for a schema's comment.
        columns: Names that end a column's name: `age` is in `patient_age`.
        whole: Names that must be all of a column's name.
        first: Words that begin a column's name: `is`, `has`.
        units: Words that may follow a name: `years`, `kg`.
        role: Whether such a column is published, tells rows or people apart, or is free text.
        unit: What the column tells apart, if it may be the unit: a person, a household.
        kind: The kind of the values.
        bounds: The least and the greatest value.
        step: A width of bins that suits most purposes.
        bins: A period of the calendar that suits most purposes.
        lists: Ways to write the values, the most usual first.
        ask: What only the owner knows, in words; empty if the fact is all there is.
    """

    name: str
    why: str
    columns: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    role: Role = "publish"
    unit: str | None = None
    kind: Kind | None = None
    bounds: tuple[int | float | str, int | float | str] | None = None
    step: int | float | None = None
    bins: str | None = None
    lists: tuple[ValueList, ...] = ()
    ask: str = ""

    def settled_bounds(self, today: date | None = None) -> tuple[int | float | str, ...] | None:
        """Return the bounds, with the year of `today` where they move with the calendar."""
        if self.bounds is None:
            return None
        year = (today or date.today()).year
        end = f"{year}-12-31" if self.kind in ("date", "datetime") else year
        return tuple(end if bound == THIS_YEAR else bound for bound in self.bounds)


@dataclass(frozen=True)
class _Index:
    """Facts by the words of the names that they claim."""

    endings: Mapping[tuple[str, ...], Fact]
    wholes: Mapping[str, Fact]
    firsts: Mapping[str, Fact]

    def find(self, words: tuple[str, ...]) -> Fact | None:
        """Find the fact that claims a name: by all of it, its first word, or how it ends."""
        for candidate in (words, without_fillers(words)):
            if fact := self.wholes.get("".join(candidate)):
                return fact
        if len(words) > 1 and (fact := self.firsts.get(words[0])):
            return fact
        return self._by_ending(words) or self._by_ending(without_fillers(words))

    def _by_ending(self, words: tuple[str, ...]) -> Fact | None:
        """Take the longest ending; what follows a linking word counts only together with it."""
        head = head_of(words)
        for start in range(len(words)):
            fact = self.endings.get(words[start:])
            if fact is not None and (start < len(head) or len(head) == len(words)):
                return fact
        return self._by_ending(without_fillers(head)) if head != words else None


def find_fact(name: str) -> Fact | None:
    """Find the public fact that the name of a column claims, if there is one.

    >>> find_fact("patient_age").name, find_fact("dateOfBirth").name, find_fact("has_email").name
    ('age', 'date-of-birth', 'flag')
    >>> find_fact("color") is None
    True
    """
    words = words_of(name)
    return _index().find(words) if words else None


@cache
def load_facts() -> tuple[Fact, ...]:
    """Read all facts that are shipped, file by file."""
    folder = resources.files("dpublish.data.public_facts")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    found: list[Fact] = []
    for file in files:
        plain = tomllib.loads(file.read_text(encoding="utf-8"))
        found += msgspec.convert(plain["facts"], list[Fact])
    return tuple(found)


def claimed_names(fact: Fact) -> Iterator[tuple[str, ...]]:
    """List the names that a fact claims as words: in several or in one, and with units."""
    for name in fact.columns:
        words = words_of(name)
        yield words
        yield ("".join(words),)
        for unit in map(words_of, fact.units):
            yield words + unit
            yield ("".join(words), *unit)


@cache
def _index() -> _Index:
    endings: dict[tuple[str, ...], Fact] = {}
    wholes: dict[str, Fact] = {}
    firsts: dict[str, Fact] = {}
    facts = load_facts()
    for fact in facts:  # what a fact lists itself goes before what units make of another's names
        endings |= {words_of(name): fact for name in fact.columns}
        firsts |= dict.fromkeys(fact.first, fact)
    for fact in facts:
        for words in claimed_names(fact):
            endings.setdefault(words, fact)
    wholes |= {"".join(words): fact for words, fact in endings.items()}
    for fact in facts:
        wholes |= {"".join(words_of(name)): fact for name in fact.whole}
    return _Index(endings, wholes, firsts)

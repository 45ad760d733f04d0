"""What is hidden: the change to the data that a release must not reveal.

The guarantee is always "the release would have looked almost the same if ...".  What
follows the dots is a value, carried by the table, the receipt and the report.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.levels import parse_levels

PERSON = "person"
"""What a unit is, unless the owner says otherwise."""


@dataclass(frozen=True)
class AddRemoveRecord:
    """One record is added or removed; the number of records is private."""

    name: ClassVar[str] = "add-remove-record"

    def describe(self) -> str:
        """Describe in plain words what is hidden."""
        return "any one record were added to the table or removed from it"

    def brief(self) -> str:
        """Name what is hidden in a few words, for tables and messages."""
        return "one record"

    def claim(self) -> str:
        """Name what someone may want to find out, and that is hidden."""
        return "that a given record is in the table"


@dataclass(frozen=True)
class ReplaceRecord:
    """One record is exchanged for another; the number of records is public."""

    name: ClassVar[str] = "replace-record"

    def describe(self) -> str:
        """Describe in plain words what is hidden."""
        return "any one record of the table were exchanged for another"

    def brief(self) -> str:
        """Name what is hidden in a few words, for tables and messages."""
        return "one record exchanged for another"

    def claim(self) -> str:
        """Name what someone may want to find out, and that is hidden."""
        return "that a given record has certain values rather than certain others"


class _Unit:
    """What the notions of a unit share: the column that tells units apart, and what one is."""

    column: str
    noun: str

    @property
    def who(self) -> str:
        """Name a unit and the column by which it is known: person ('patient_id')."""
        return self.noun if self.column == self.noun else f"{self.noun} ({self.column!r})"


@dataclass(frozen=True)
class AddRemoveUnit(_Unit):
    """All records that share one value of `column` are added or removed: those of a person.

    `noun` says what a unit is if it is no person: a basket, a household.  It is a word for
    messages, and two notions that differ in it are the same.
    """

    column: str
    noun: str = field(default=PERSON, compare=False, repr=False)
    name: ClassVar[str] = "add-remove-unit"

    def __post_init__(self) -> None:
        require_noun(self.noun)

    def describe(self) -> str:
        """Describe in plain words what is hidden."""
        return f"all records of any one {self.who} were added to the table or removed from it"

    def brief(self) -> str:
        """Name what is hidden in a few words, for tables and messages."""
        return f"all records of one {self.who}"

    def claim(self) -> str:
        """Name what someone may want to find out, and that is hidden."""
        return f"that a given {self.who} is in the table"


@dataclass(frozen=True)
class UserInWindow(_Unit):
    """All records of one person within any `window` consecutive snapshots are added or removed.

    `noun` is as for `AddRemoveUnit`.
    """

    column: str
    window: int
    noun: str = field(default=PERSON, compare=False, repr=False)
    name: ClassVar[str] = "user-in-window"

    def __post_init__(self) -> None:
        require_count(window=self.window)
        require_noun(self.noun)

    def describe(self) -> str:
        """Describe in plain words what is hidden."""
        return (
            f"all records of any one {self.who} within {self.window} consecutive snapshots "
            "were added or removed"
        )

    def brief(self) -> str:
        """Name what is hidden in a few words, for tables and messages."""
        return f"all records of one {self.who} in any {self.window:,} consecutive snapshots"

    def claim(self) -> str:
        """Name what someone may want to find out, and that is hidden."""
        return (
            f"that a given {self.who} is in the data within {self.window:,} consecutive snapshots"
        )


def require_noun(noun: object) -> None:
    """Refuse what cannot stand for a unit in a sentence."""
    if not isinstance(noun, str) or not noun.strip() or not noun.isprintable():
        raise InvalidParameter("what a unit is must be a word, such as person or basket")


def plural(noun: str) -> str:
    """Write a noun for several.

    >>> [plural(noun) for noun in ("person", "basket", "family", "address")]
    ['people', 'baskets', 'families', 'addresses']
    """
    if noun == PERSON:
        return "people"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


@dataclass(frozen=True)
class PersonalRecord:
    """One record changes, and how well that is hidden goes by the record's own level.

    `column` gives a record its level, by its own number or by `rule`; `cells` sums up what the
    rule means by the schema.  `mode` says what is public about levels: in `frame` all eligible
    people with theirs, in `levels` the grid alone, in `values-only` who is present with which
    level.  With a `unit` all records change that share one value of it, a person's, and the
    person has the smallest level that any of them has.
    """

    column: str
    levels: tuple[str, ...]
    mode: str
    rule: str | None = None
    cells: str | None = None
    unit: str | None = None
    name: ClassVar[str] = "personal-record"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidParameter("the preference column must be named")
        if not all(isinstance(text, str | None) for text in (self.rule, self.cells, self.unit)):
            raise InvalidParameter("the rule that gives levels, and the unit, must be text")
        require_known("mode", self.mode, tuple(_CHANGES))
        if self.unit is not None and self.mode not in _UNIT_CHANGES:
            raise InvalidParameter(f"the mode {self.mode} hides values of one record, not a unit")
        # One spelling for each number: two notions that hide the same are equal.
        exact = tuple(map(format_epsilon, parse_levels(self.levels)))
        object.__setattr__(self, "levels", exact)

    @property
    def presence(self) -> AddRemoveRecord | AddRemoveUnit:
        """The same change where all levels pay alike: what an ordinary release beside it hides."""
        return AddRemoveRecord() if self.unit is None else AddRemoveUnit(self.unit)

    def describe(self) -> str:
        """Describe in plain words what is hidden."""
        changes = _CHANGES if self.unit is None else _UNIT_CHANGES
        return changes[self.mode].format(column=repr(self.column), unit=repr(self.unit))

    def brief(self) -> str:
        """Name what is hidden in a few words, for tables and messages."""
        what = "the values of one record" if self.mode == "values-only" else "one record"
        by = f"column {self.column!r}" if self.rule is None else f"the rule {self.rule!r}"
        of = "" if self.rule is None else f" of column {self.column!r}"
        given = f"the level that {by}{of} gives it"
        if self.unit is not None:
            what = f"all records of one person ({self.unit!r})"
            given = f"the smallest level that {by}{of} gives any of them"
        return f"{what}, at {given} (mode {self.mode})"

    def claim(self) -> str:
        """Name what someone may want to find out, and that is hidden."""
        if self.mode == "values-only":
            return "that a given record has certain values rather than certain others"
        whose = "record" if self.unit is None else f"person ({self.unit!r})"
        return f"that a given {whose} is in the table"


_CHANGES = {
    "frame": "the record of any one eligible person, with the level that {column} gives it, "
    "were added to the table or removed from it",
    "levels": "any one record, with the level that {column} gives it, were added to the table "
    "or removed from it",
    "values-only": "the values of any one record were exchanged for others, except the level "
    "that {column} gives it",
}
_UNIT_CHANGES = {
    "frame": "all records of any one eligible person ({unit}), at the smallest level that "
    "{column} gives any of them, were added to the table or removed from it",
    "levels": "all records of any one person ({unit}), at the smallest level that {column} gives "
    "any of them, were added to the table or removed from it",
}

Neighbors = AddRemoveRecord | ReplaceRecord | AddRemoveUnit | UserInWindow | PersonalRecord
_KINDS: dict[str, type[Neighbors]] = {
    kind.name: kind
    for kind in (AddRemoveRecord, ReplaceRecord, AddRemoveUnit, UserInWindow, PersonalRecord)
}


def hides_units(neighbors: Neighbors) -> bool:
    """Say whether all rows of a unit are added or removed together, once and for all."""
    if isinstance(neighbors, PersonalRecord):
        return neighbors.unit is not None
    return isinstance(neighbors, AddRemoveUnit)


def to_dict(neighbors: Neighbors) -> dict[str, Any]:
    """Turn a notion of neighbors into plain values for a file.

    >>> to_dict(AddRemoveUnit("basket"))
    {'name': 'add-remove-unit', 'column': 'basket'}
    """
    plain = {"name": neighbors.name, **asdict(neighbors)}
    if isinstance(neighbors, PersonalRecord) and neighbors.unit is None:
        del plain["unit"]  # other notions look as they always did
    if plain.get("noun") == PERSON:
        del plain["noun"]
    return plain


def from_dict(plain: dict[str, Any]) -> Neighbors:
    """Read back what `to_dict` wrote."""
    settings = dict(plain)
    kind = _KINDS.get(settings.pop("name", ""))
    if kind is None:
        raise InvalidParameter("unknown notion of neighbors; a newer dpublish may have written it")
    return kind(**settings)

"""The entries of a ledger, each sealed to the one before.

An entry's hash covers everything in it and the hash of the entry before it.  Whoever edits,
removes, inserts or reorders an entry breaks the chain there, or has to rewrite all that
follows.
"""

import json
import os
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple

import msgspec

from dpublish.errors import InvalidParameter, InvalidType, what_it_is
from dpublish.privacy import neighbors as notions
from dpublish.privacy.epsilon import format_epsilon, quoted, read_exact
from dpublish.privacy.levels import LevelAmounts
from dpublish.privacy.neighbors import Neighbors

FORMAT = 4  # grants say what they hide, which earlier formats did not
MOVED_FORMAT = 5  # the chain has been moved, which programs of format 4 do not understand
DESCRIBED_FORMAT = 6  # a dataset was described, by an entry that format 5 does not have
NEWEST = DESCRIBED_FORMAT
ORIGIN = "0" * 64  # what the first entry names as the hash before it

LevelsText = tuple[tuple[str, str], ...]
"""(level, amount) as text; entries without levels do not have the field."""

Clock = Callable[[], datetime]
"""What tells a ledger the time; tests bring their own."""

NotionText = dict[str, Any]
"""What is hidden, as `neighbors.to_dict` writes it; before the first grant there is none."""

MOST_STATED = 160
"""Characters of a statement, such as a publisher: a certificate has one line for each."""

_NEVER = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, halves of characters, line separators
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def read_levels(texts: LevelsText | msgspec.UnsetType) -> LevelAmounts:
    """Read amounts by level as an entry holds them; none, if it does not hold any."""
    if isinstance(texts, msgspec.UnsetType):
        return ()
    return tuple((read_exact(level), read_exact(amount)) for level, amount in texts)


def write_levels(pairs: LevelAmounts) -> LevelsText | msgspec.UnsetType:
    """Write amounts by level as an entry holds them."""
    if not pairs:
        return msgspec.UNSET
    return tuple((format_epsilon(level), format_epsilon(amount)) for level, amount in pairs)


def read_notion(plain: NotionText | msgspec.UnsetType) -> Neighbors | None:
    """Read what an entry says is hidden; None, if it does not say."""
    if isinstance(plain, msgspec.UnsetType):
        return None
    try:
        notion = notions.from_dict(plain)
        is_same = write_notion(notion) == plain and isinstance(plain.get("column", ""), str)
    except (TypeError, AttributeError):
        is_same = False
    if not is_same:
        raise ValueError("it does not say clearly what is hidden")
    return notion


def write_notion(notion: Neighbors | None) -> NotionText | msgspec.UnsetType:
    """Write what is hidden as an entry holds it."""
    if notion is None:
        return msgspec.UNSET
    plain = notions.to_dict(notion)
    return {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What every entry holds.

    Receipts publish entries' hashes.  The salt keeps a published hash from confirming a
    guess at what the entry says (a purpose, a cap, the time at which a release ended).
    """

    kind: ClassVar[str]
    salt: str = msgspec.field(default_factory=lambda: os.urandom(16).hex())


class Created(Body, frozen=True, kw_only=True):
    """The ledger was opened, with an anchor at `anchor` if it is given."""

    kind = "create"
    format: int = FORMAT
    anchor: str | msgspec.UnsetType = msgspec.UNSET


class Anchored(Body, frozen=True, kw_only=True):
    """The ledger got an anchor, or another one; `lost` if the one before could not be checked."""

    kind = "anchor"
    anchor: str
    lost: bool


class Moved(Body, frozen=True, kw_only=True):
    """The ledger was closed, to go on at `to`; nothing follows this entry here.

    `to` is for people and leaves out how to connect; `target` is the hash of all of it.
    """

    kind = "move"
    to: str
    target: str


class Continued(Body, frozen=True, kw_only=True):
    """The ledger goes on here, with all entries of the one at `source`."""

    kind = "continue"
    source: str


class Totals(Body, frozen=True, kw_only=True):
    """What every entry about a dataset holds: its account as it stands after the entry.

    `levels` states what each level has spent.  Cap and spent are then the highest level's.
    `hides` states what all releases hide, from the first grant on.
    """

    cap: str
    spent: str
    levels: LevelsText | msgspec.UnsetType = msgspec.UNSET
    hides: NotionText | msgspec.UnsetType = msgspec.UNSET


class Added(Totals, frozen=True, kw_only=True):
    """A dataset got its cap, and maybe a publisher and a contact, as `Described` states them."""

    kind = "add"
    note: str
    publisher: str | msgspec.UnsetType = msgspec.UNSET
    contact: str | msgspec.UnsetType = msgspec.UNSET


class Described(Totals, frozen=True, kw_only=True):
    """The owner said who publishes a dataset, and whom to ask; "" if that is not stated.

    It states both, so the last such entry says all.
    """

    kind = "describe"
    publisher: str
    contact: str


class CapChanged(Totals, frozen=True, kw_only=True):
    """A dataset got another cap."""

    kind = "cap"
    reason: str


class Granted(Totals, frozen=True, kw_only=True):
    """Epsilon was debited: at each level its own amount, or the same at all.

    `all_have_levels` is the owner's word, for an ordinary release where there are levels, that
    no record of its table is below the first.
    """

    kind = "grant"
    epsilon: str
    purpose: str
    fingerprinted: bool
    amounts: LevelsText | msgspec.UnsetType = msgspec.UNSET
    all_have_levels: bool = False


class Published(Totals, frozen=True, kw_only=True):
    """What a grant paid for was published."""

    kind = "publish"
    grant: int
    release_id: str
    release_hash: str


_KINDS = (Created, Anchored, Moved, Continued, Added, Described, CapChanged, Granted, Published)
_BODIES: dict[str, type[Body]] = {body.kind: body for body in _KINDS}


def format_of(kinds: Iterable[str]) -> int:
    """Return the format that a ledger with entries of these kinds has."""
    found = set(kinds)
    if Described.kind in found:
        return DESCRIBED_FORMAT
    return MOVED_FORMAT if found & {Moved.kind, Continued.kind} else FORMAT


class Statement(NamedTuple):
    """Who publishes a dataset, and whom to ask; "" if the owner does not say."""

    publisher: str = ""
    contact: str = ""


def statement_in(content: Body) -> Statement | None:
    """Read what an entry says of publisher and contact; None if it is not about that."""
    if isinstance(content, Described):
        return Statement(content.publisher, content.contact)
    if isinstance(content, Added):
        given = (content.publisher, content.contact)
        return Statement(*("" if isinstance(text, msgspec.UnsetType) else text for text in given))
    return None


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    number: int
    time: str
    kind: str
    dataset: str
    body: str
    previous: str
    hash: str = ""

    def digest(self) -> str:
        """Compute the hash that the entry must carry.

        A JSON list quotes its parts, so no two entries have the same encoding.
        """
        parts = [self.number, self.time, self.kind, self.dataset, self.body, self.previous]
        return sha256(json.dumps(["dpublish-ledger-1", *parts]).encode("ascii")).hexdigest()

    @property
    def is_sealed(self) -> bool:
        """Whether the entry carries the hash that it must."""
        return self.hash == self.digest()

    def content(self) -> Body:
        """Read the body; a ValueError says that it cannot be read."""
        if self.kind not in _BODIES:
            raise ValueError(f"unknown kind {self.kind!r}")
        try:
            return msgspec.json.decode(self.body.encode("utf-8"), type=_BODIES[self.kind])
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None


def seal(number: int, time: str, dataset: str, body: Body, previous: str) -> Entry:
    """Make the entry that follows the one whose hash is `previous`."""
    text = json.dumps(msgspec.to_builtins(body), separators=(",", ":"), sort_keys=True)
    entry = Entry(number, time, body.kind, dataset, text, previous)
    return replace(entry, hash=entry.digest())


def holds(entry: Entry, body: Body) -> bool:
    """Check whether the entry can be read back as `body`; if not, it must never be written."""
    try:
        return entry.content() == body
    except ValueError:
        return False


class Head(NamedTuple):
    """How far the ledger goes: the number and the hash of its last entry."""

    entries: int
    hash: str


def json_schema() -> dict[str, Any]:
    """Describe the body of an entry, by its kind, as a JSON Schema."""
    _, found = msgspec.json.schema_components(_KINDS)
    return {
        "anyOf": [
            {
                **found[body.__name__],
                "title": body.kind,
                "description": (body.__doc__ or "").split("\n")[0],
            }
            for body in _KINDS
        ]
    }


# --- Which texts a ledger takes -------------------------------------------------------------
#
# Receipts and tables show these texts to people.  Two names that look the same would be two
# accounts for one dataset, and a character that turns the line around would show another text
# than the one that was agreed to.


def is_one_line(text: object) -> bool:
    r"""Check whether `text` is a line that can be shown.

    >>> is_one_line("ages, by ward"), is_one_line("two\nlines"), is_one_line("\u202eelif")
    (True, False, False)
    """
    return (
        isinstance(text, str)
        and bool(text.strip())
        and not any(unicodedata.category(c) in _NEVER or c in _TURNS for c in text)
    )


def require_text(**settings: str) -> None:
    """Refuse settings that are not one line of text."""
    for name, value in settings.items():
        if not isinstance(value, str):
            raise InvalidType(f"{name} must be one line of text, not {what_it_is(value)}")
        if not is_one_line(value):
            raise InvalidParameter(f"{name} must be one line of text, not {quoted(value)}")


def require_statement(stated: Statement) -> None:
    """Refuse a publisher or a contact that is not a short line; "" leaves it out."""
    for name, text in stated._asdict().items():
        if text == "":
            continue
        require_text(**{name: text})
        if len(text) > MOST_STATED:
            raise InvalidParameter(
                f"{name} has {len(text):,} characters; a certificate has room for {MOST_STATED}"
            )


def require_new_name(name: str, known: Iterable[str]) -> None:
    """Refuse a dataset's name that could be taken for another, or for itself written otherwise."""
    if name != unicodedata.normalize("NFC", name).strip():
        raise InvalidParameter(
            f"dataset ({quoted(name)}) must not begin or end with a space, and its "
            "accented letters must be single characters (Unicode NFC)"
        )
    for other in known:
        if other == name:
            raise InvalidParameter(
                f"the ledger has {name!r} already; `dpublish ledger cap` changes what it may spend"
            )
        if _look(other) == _look(name):
            raise InvalidParameter(f"{name!a} looks like {other!a}, which the ledger has already")


def stamp(clock: Clock | None) -> str:
    """Write down what the clock says, in UTC; without one, the time."""
    now = datetime.now(UTC) if clock is None else clock()
    if not isinstance(now, datetime):
        raise InvalidParameter("the clock must tell a datetime")
    try:
        return now.astimezone(UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError):
        raise InvalidParameter("the clock tells a time that cannot be written in UTC") from None


def _look(name: str) -> str:
    shown = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(c for c in shown if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", shown)

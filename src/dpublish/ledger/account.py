"""How a dataset stands: the last of its entries states it, and all of them add up to it.

Every entry about a dataset states its cap and what is spent.  Granting reads the last one,
verifying adds all of them up again from the first.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpublish.display import Card, Display, draw, one_line
from dpublish.ledger.chain import (
    Added,
    CapChanged,
    Continued,
    Entry,
    Granted,
    Moved,
    Published,
    Statement,
    Totals,
    is_one_line,
    read_levels,
    read_notion,
    statement_in,
    write_notion,
)
from dpublish.privacy.epsilon import format_epsilon, format_short, read_exact
from dpublish.privacy.levels import LevelAmounts, largest, parse_levels, require_amounts
from dpublish.privacy.neighbors import Neighbors, PersonalRecord, UserInWindow


@dataclass(frozen=True)
class GrantStatus:
    """A grant and what became of it."""

    entry: int
    time: str
    epsilon: Fraction
    purpose: str
    hides: Neighbors
    """The change that its release hides."""
    fingerprinted: bool = False
    fingerprint: str | None = None
    release_id: str | None = None
    release_hash: str | None = None
    levels: LevelAmounts = ()
    """What each level paid; without any, every record paid epsilon."""
    all_have_levels: bool = False
    """Whether the owner said that no record is below the first level."""

    @property
    def window(self) -> int | None:
        """Snapshots for which epsilon was paid, again and again; None if it was paid once."""
        return self.hides.window if isinstance(self.hides, UserInWindow) else None

    @property
    def state(self) -> str:
        """Check whether its release was published; if not, the grant stays debited all the same."""
        return "interrupted or running" if self.release_id is None else "published"

    def to_dict(self) -> dict[str, Any]:
        """Turn the grant into plain values, without its fingerprint."""
        plain = asdict(self) | {"epsilon": format_epsilon(self.epsilon), "state": self.state}
        del plain["fingerprint"], plain["levels"]
        plain["hides"] = write_notion(self.hides)
        if self.window is not None:
            plain["per_window_of"] = self.window
        if self.levels:
            pairs = [(format_epsilon(level), format_epsilon(paid)) for level, paid in self.levels]
            plain["levels"] = [{"level": level, "epsilon": paid} for level, paid in pairs]
        return plain


@dataclass
class Account:
    """What one dataset may spend and has spent, added up from its entries.

    `levels` says what each level has spent, if there are any; a level is its own cap, and cap
    and spent are those of the highest.  `hides` says what its releases hide, from the first
    grant on: epsilons that hide different things do not add up.  Where that is a user within a
    window of snapshots, all amounts are per window.
    """

    cap: Fraction
    spent: Fraction = Fraction(0)
    levels: dict[Fraction, Fraction] = field(default_factory=dict)
    hides: Neighbors | None = None
    grants: dict[int, GrantStatus] = field(default_factory=dict)
    stated: Statement = field(default_factory=Statement)
    """Publisher and contact; known only where all entries were added up."""

    @property
    def left(self) -> Fraction:
        """How much may still be granted."""
        return self.cap - self.spent

    def pay(self, epsilon: Fraction, amounts: LevelAmounts = ()) -> None:
        """Take `epsilon` off, at every level alike or by `amounts`; refuse nothing."""
        if not self.levels:
            self.spent += epsilon
            return
        for level, amount in amounts or tuple((level, epsilon) for level in self.levels):
            self.levels[level] += amount
        self.spent = self.levels[max(self.levels)]

    def overdrawn(self) -> list[Fraction]:
        """List the levels that have spent more than their own number."""
        return [level for level, spent in self.levels.items() if spent > level]


@dataclass(frozen=True)
class LevelStatus:
    """How the people of one level stand: each may spend `level` in all."""

    level: Fraction
    spent: Fraction

    @property
    def left(self) -> Fraction:
        """How much may still be granted at this level."""
        return self.level - self.spent

    def to_dict(self) -> dict[str, str]:
        """Turn the level into plain values."""
        amounts = {"level": self.level, "spent": self.spent, "left": self.left}
        return {name: format_epsilon(amount) for name, amount in amounts.items()}


@dataclass(frozen=True)
class Status(Display):
    """How a dataset stands: what it may spend, what is debited, and for what.

    With levels, cap and spent are those of the highest.
    """

    dataset: str
    cap: Fraction
    spent: Fraction
    grants: tuple[GrantStatus, ...]
    levels: tuple[LevelStatus, ...] = ()
    hides: Neighbors | None = None
    """What all its releases hide; None before the first."""
    publisher: str = ""
    """Who publishes it, by the owner's word; "" if they do not say."""
    contact: str = ""
    """Whom to ask about it, by the owner's word."""

    @property
    def window(self) -> int | None:
        """Snapshots of each stream for which cap, spent and left hold; None if for all time."""
        return self.hides.window if isinstance(self.hides, UserInWindow) else None

    @property
    def left(self) -> Fraction:
        """How much may still be granted."""
        return self.cap - self.spent

    def __repr__(self) -> str:
        amounts = (f"{name}={format_short(value)}" for name, value in self._amounts().items())
        grants = "1 grant" if len(self.grants) == 1 else f"{len(self.grants):,} grants"
        return one_line(f"Status({self.dataset!r}, {', '.join(amounts)}, {grants})")

    def _stated(self) -> dict[str, str]:
        """Return publisher and contact, as far as the owner states them."""
        stated = {"publisher": self.publisher, "contact": self.contact}
        return {name: text for name, text in stated.items() if text}

    def _amounts(self) -> dict[str, Fraction]:
        return {"cap": self.cap, "spent": self.spent, "left": self.left}

    def _card(self) -> Card:
        hides = "decided by the first grant" if self.hides is None else self.hides.brief()
        rows = [
            [str(x.entry), x.time[:16], format_short(x.epsilon), x.purpose, x.state]
            for x in reversed(self.grants)
        ]
        amounts = {name: format_short(value) for name, value in self._amounts().items()}
        return Card(
            f"Dataset {self.dataset}",
            {
                **{name: f"epsilon {text}" for name, text in amounts.items()},
                "hidden": hides,
                **self._stated(),
            },
            ("entry", "time (UTC)", "epsilon", "purpose", "state") if rows else (),
            rows,
        )

    def to_arrow(self) -> Any:
        """Return the grants as an Arrow table, one row each; fingerprints stay behind."""
        import pyarrow as pa

        fields = [("entry", pa.int64()), ("time", pa.string()), ("epsilon", pa.float64())]
        fields += [(name, pa.string()) for name in ("exact", "purpose", "state", "release_id")]
        return pa.Table.from_pylist([*self._as_records()], schema=pa.schema(fields))

    def _as_records(self) -> list[dict[str, Any]]:
        return [
            {
                "entry": each.entry,
                "time": each.time,
                "epsilon": float(each.epsilon),
                "exact": format_epsilon(each.epsilon),
                "purpose": each.purpose,
                "state": each.state,
                "release_id": each.release_id,
            }
            for each in self.grants
        ]

    def plot(self) -> Any:
        """Draw what each grant has spent, and what is left; returns a Matplotlib figure."""
        labels = [f"{each.entry}: {each.purpose}" for each in self.grants] + ["left"]
        amounts = [float(each.epsilon) for each in self.grants] + [float(self.left)]
        title = f"{self.dataset}: epsilon {format_short(self.cap)} in all"
        return draw("bars", labels, amounts, title=title, unit="epsilon")

    def to_dict(self) -> dict[str, Any]:
        """Turn the status into plain values; fingerprints stay behind, being made from rows."""
        amounts = {"cap": self.cap, "spent": self.spent, "left": self.left}
        levels: dict[str, Any] = {}
        if self.levels:
            levels = {"levels": [each.to_dict() for each in self.levels]}
        return {
            "dataset": self.dataset,
            **{name: format_epsilon(amount) for name, amount in amounts.items()},
            "hides": None if self.hides is None else write_notion(self.hides),
            **({} if self.window is None else {"per_window_of": self.window}),
            **self._stated(),
            **levels,
            "grants": [grant.to_dict() for grant in self.grants],
        }


@dataclass
class Books:
    """Every dataset's account, kept by entering one entry after the other."""

    accounts: dict[str, Account] = field(default_factory=dict)
    release_ids: set[str] = field(default_factory=set)
    is_moved: bool = False
    """Whether the entry before closed the ledger, so that it goes on elsewhere only."""

    def enter(self, entry: Entry) -> Iterator[str]:
        """Enter the next entry and say what is wrong with it."""
        try:
            content = entry.content()
            if isinstance(content, Continued) is not self.is_moved:
                yield "a ledger that was moved goes on by an entry that says so, and only then"
            self.is_moved = isinstance(content, Moved)
            if isinstance(content, Totals):
                yield from _text_problems(entry, content)
                yield from self._changed(entry, content)
        except ValueError as error:
            yield f"its contents cannot be read ({error})"

    def _changed(self, entry: Entry, content: Totals) -> Iterator[str]:
        cap, spent = read_exact(content.cap), read_exact(content.spent)
        levels = read_levels(content.levels)
        known = self.accounts.get(entry.dataset)
        if (known is None) is not isinstance(content, Added):
            yield f"{entry.dataset!r} must be added before it is used, and once"
        if known is None:
            known = self.accounts[entry.dataset] = _opened(cap, levels)
        yield from self._moved(entry, content, known)
        stated = (cap, spent, levels, read_notion(content.hides))
        if stated != (known.cap, known.spent, tuple(known.levels.items()), known.hides):
            yield "its totals are not what the entries before it add up to"
        if known.spent > known.cap:
            yield f"{entry.dataset!r} has spent more than its cap"
        for level in known.overdrawn():
            yield f"level {format_short(level)} of {entry.dataset!r} has spent more than it may"

    def _moved(self, entry: Entry, content: Totals, account: Account) -> Iterator[str]:
        account.stated = statement_in(content) or account.stated
        if isinstance(content, CapChanged):
            account.cap = read_exact(content.cap)
            if account.levels:
                yield "it changes the cap of people who have numbers of their own"
        elif isinstance(content, Granted):
            grant = granted(entry, content)
            account.grants[entry.number] = grant
            if grant.levels and [level for level, _ in grant.levels] != list(account.levels):
                yield f"it debits levels that {entry.dataset!r} does not have"
                return
            yield from _notion_problems(account, grant)
            account.hides = add_notion(account, grant.hides) or account.hides
            account.pay(grant.epsilon, grant.levels)
        elif isinstance(content, Published):
            yield from self._published(account, content)

    def _published(self, account: Account, content: Published) -> Iterator[str]:
        if content.release_id in self.release_ids:
            yield "it records a release whose id was recorded before"
        self.release_ids.add(content.release_id)
        grant = account.grants.get(content.grant)
        if grant is None or grant.release_id is not None:
            yield f"entry {content.grant} is no grant of this dataset that waits for its release"
            return
        account.grants[content.grant] = closed(grant, content)


def _text_problems(entry: Entry, content: Totals) -> Iterator[str]:
    texts = {"time": entry.time, "dataset": entry.dataset}
    for name in ("note", "reason", "purpose", "release_id", "release_hash"):
        texts[name] = getattr(content, name, "none")
    texts |= (statement_in(content) or Statement())._asdict()
    for name in ("note", *Statement._fields):  # these may be empty
        texts[name] = texts[name] or "none"
    for name, text in texts.items():
        if not is_one_line(text):
            yield f"its {name} is not one line of text"


def _opened(cap: Fraction, levels: LevelAmounts) -> Account:
    if levels and max(parse_levels(level for level, _ in levels)) != cap:
        raise ValueError("its cap is not its highest level")
    return Account(cap, levels={level: Fraction(0) for level, _ in levels})


def add_notion(account: Account, hides: Neighbors) -> Neighbors | None:
    """Find what an account hides when it has paid for one more release; None if it must not.

    All releases hide the same change.  Where people have levels, an ordinary release hides a
    record (or all records of a person) as a personalized one does that costs every level the
    same, so those two go together.
    """
    known = account.hides
    if known in (None, hides):
        return hides
    personal, plain = (known, hides) if isinstance(known, PersonalRecord) else (hides, known)
    if not account.levels or not isinstance(personal, PersonalRecord):
        return None
    # Who is there is public in the mode values-only, so an ordinary release hides another change.
    goes_together = personal.mode != "values-only" and plain == personal.presence
    return personal if goes_together else None


def _notion_problems(account: Account, grant: GrantStatus) -> Iterator[str]:
    if account.hides is not None and add_notion(account, grant.hides) is None:
        yield f"it hides {grant.hides.brief()}, but earlier releases hide {account.hides.brief()}"
    if account.levels and grant.window is not None:
        yield "it pays per window where people have numbers of their own"
    if account.levels and not grant.levels and not grant.all_have_levels:
        yield "it is ordinary, and no one said that all records have levels"


def granted(entry: Entry, content: Granted) -> GrantStatus:
    """Read the grant that an entry made."""
    epsilon, levels = read_exact(content.epsilon), read_levels(content.amounts)
    hides = read_notion(content.hides)
    if hides is None:
        raise ValueError("it does not say what is hidden")
    if isinstance(hides, PersonalRecord) and not levels:
        hides = hides.presence  # an ordinary release beside personalized ones
    if levels:
        require_amounts(levels)
        if not isinstance(hides, PersonalRecord) or parse_levels(hides.levels) != tuple(
            level for level, _ in levels
        ):
            raise ValueError("it debits other levels than its release has")
        if largest(levels) != epsilon:
            raise ValueError("its epsilon is not the most that a level pays")
    return GrantStatus(
        entry=entry.number,
        time=entry.time,
        epsilon=epsilon,
        purpose=content.purpose,
        fingerprinted=content.fingerprinted,
        levels=levels,
        hides=hides,
        all_have_levels=content.all_have_levels,
    )


def closed(grant: GrantStatus, content: Published) -> GrantStatus:
    """Note on a grant what was published for it."""
    return replace(grant, release_id=content.release_id, release_hash=content.release_hash)

"""What a plan's page was asked: a goal beside what is wanted; all of it stands in the address."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from dpublish.errors import InvalidParameter
from dpublish.planning.advice_rules import N_CLUSTERS
from dpublish.studio.wanted import Wanted

_OWN = (
    *("goal", "n_clusters", "horizon", "window", "rehearsal"),
    *("origin", "release", "public", "is_public", "shares", "tried", "enough", "repeats"),
)
_LONGEST = 4_000  # characters of a field; an address holds them all
_DIGITS = 9


@dataclass(frozen=True)
class Asked:
    """The fields of a plan's page, as texts.

    Attributes:
        wanted: What would be published.
        goal: What it is for, such as `classify:income`; the advice follows from it.
        n_clusters: How many clusters, for the goal clusters.
        horizon: How many steps a stream has.
        window: Or within how many steps people are hidden.
        rehearsal: The key of a rehearsal that is shown.
        origin: Where rows to rehearse on are from: `release`, `table` or `simulated`.
        release: The earlier release that stands in.
        public: The public table that stands in.
        is_public: `yes` where someone has said that it is public.
        shares: Stated shares of values by column, for a simulation.
        tried: The epsilons to rehearse at.
        enough: What a measure must come to, such as `wrong <= 0.18`.
        repeats: How many releases are made at each epsilon.
    """

    wanted: Wanted
    goal: str = ""
    n_clusters: str = ""
    horizon: str = ""
    window: str = ""
    rehearsal: str = ""
    origin: str = ""
    release: str = ""
    public: str = ""
    is_public: str = ""
    shares: str = ""
    tried: str = ""
    enough: str = ""
    repeats: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str], columns: Iterable[str] = ()) -> Self:
        """Read the fields of an address or a form; a task and `columns` make a goal.

        >>> Asked.of({"task": "counts"}, ["age", "sex"]).goal, Asked.of({"goal": "rows"}).goal
        ('counts:age,sex', 'rows')
        """
        if any(len(text) > _LONGEST for text in fields.values()):
            raise InvalidParameter(f"a field holds at most {_LONGEST:,} characters")
        texts = {name: fields.get(name, "").strip() for name in _OWN}
        if task := fields.get("task", "").strip():
            texts["goal"] = ":".join(part for part in (task, ",".join(columns)) if part)
        return cls(Wanted.of(fields), **texts)

    def query(self, **changes: str) -> dict[str, str]:
        """Write the fields as an address has them; empty ones are left out."""
        found = self.wanted.query() | {name: getattr(self, name) for name in _OWN} | changes
        return {name: text for name, text in found.items() if text}

    def base(self, **changes: str) -> dict[str, str]:
        """Write the fields without the method, its settings and its rehearsal."""
        left = replace(self.wanted, method="", settings={})
        return replace(self, wanted=left, rehearsal="").query(**changes)

    @property
    def task(self) -> str:
        """The first word of the goal."""
        return self.goal.partition(":")[0].strip()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the goal names."""
        listed = self.goal.partition(":")[2].split(",")
        return tuple(name.strip() for name in listed if name.strip())

    def sizes(self) -> dict[str, Any]:
        """Read the numbers that a goal needs besides its columns."""
        return {
            "n_clusters": read_count(self.n_clusters, "the number of clusters") or N_CLUSTERS,
            "horizon": read_count(self.horizon, "the number of steps"),
            "window": read_count(self.window, "the window"),
        }


def read_count(text: str, what: str) -> int | None:
    """Read a number of things; None if nothing is written.

    >>> read_count("12", "the number of steps"), read_count("", "the number of steps")
    (12, None)
    """
    if not text:
        return None
    plain = text.replace(",", "")
    if not plain.isdecimal() or len(plain) > _DIGITS or not int(plain):
        raise InvalidParameter(f"write {what} in digits, from 1 on, such as 5")
    return int(plain)

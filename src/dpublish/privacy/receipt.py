"""A receipt says what a release guarantees: what is hidden, how well, and who keeps the account.

It is published with the release, so it holds public settings only, and never anything that
was computed from rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from typing import Any

import msgspec

from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.privacy import neighbors as notions
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_epsilon, read_exact
from dpublish.privacy.levels import (
    LevelAmounts,
    largest,
    parse_levels,
    require_amounts,
    tell_amounts,
)
from dpublish.privacy.neighbors import Neighbors, PersonalRecord
from dpublish.randomness import RandomSource, is_secure

SEEDED = "NOT PRIVATE: seeded"
UNACCOUNTED = "NOT ACCOUNTED: no ledger granted this budget"


@dataclass(frozen=True)
class Receipt:
    """What was guaranteed for one release.

    `shares` are the budgets at the ends of the budget's tree, by purpose.  `parallel` names the
    purposes whose shares went to disjoint parts of the data: they cost the largest, not the sum.
    `personal` says, for a personalized release, what each level paid; epsilon is the most of it.
    `created` is when the budget was granted (or made, without a ledger), before any row was read.
    `assumptions` are what the proof of this method takes for granted, beyond what all do.
    `contribution` is how many rows of a unit were kept at most, if they were bounded.  `steps`
    say what was done to each record before the method saw it: filters, derived columns, lookups.
    `epsilon_read` says how epsilon was read, if it was given as a float.
    """

    method: str
    settings: Mapping[str, Any]
    epsilon: Fraction
    shares: tuple[tuple[str, Fraction], ...]
    neighbors: Neighbors
    parallel: tuple[str, ...] = ()
    dataset: str | None = None
    ledger_entry: int | None = None
    ledger_hash: str | None = None
    package_version: str = ""
    stamps: tuple[str, ...] = ()
    personal: LevelAmounts = ()
    assumptions: tuple[str, ...] = ()
    contribution: int | None = None
    steps: tuple[str, ...] = ()
    epsilon_read: str = ""
    created: str = field(default="", compare=False)
    release_id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("a receipt's epsilon must be greater than 0")
        total = sum((share for _, share in self.shares), Fraction(0))
        if not self.parallel and total != self.epsilon:
            raise InvalidParameter(
                f"the shares add up to {format_epsilon(total)}, "
                f"but epsilon is {format_epsilon(self.epsilon)}"
            )
        if self.personal:
            self._require_personal()

    def _require_personal(self) -> None:
        require_amounts(self.personal)
        if largest(self.personal) != self.epsilon:
            raise InvalidParameter("a receipt's epsilon must be the most that any level pays")
        levels = tuple(level for level, _ in self.personal)
        if not isinstance(self.neighbors, PersonalRecord) or (
            parse_levels(self.neighbors.levels) != levels
        ):
            raise InvalidParameter("a personalized receipt must hide records of the same levels")

    @classmethod
    def issue(
        cls,
        *,
        method: str,
        settings: Mapping[str, Any],
        budget: Budget,
        neighbors: Neighbors,
        rng: RandomSource,
        personal: LevelAmounts = (),
        assumptions: Sequence[str] = (),
        contribution: int | None = None,
        steps: Sequence[str] = (),
    ) -> Receipt:
        """Write the receipt for what `budget` paid for.

        Issue it when the budget is spent, so that the shares show how it was split.
        `personal` is what each level paid, if that is not what the ledger granted by level.

        Privacy:
            Reads no rows and spends nothing: it states the epsilon of a budget that opens
            once, so the guarantee is as good as the mechanisms that were handed its shares.
            A seeded source hides nothing, and the receipt says so; a budget that no ledger
            granted bounds this release alone, and the receipt says that too.  Its time is the
            budget's: the time at which a release ends depends on the rows.
        """
        refuse_seeded_grant(budget, rng)
        refuse_other_notion(budget, neighbors)
        personal = personal or budget.levels or ()
        if personal:
            budget.require_levels(personal)
        grant = budget.grant
        stamps = (SEEDED, not is_secure(rng)), (UNACCOUNTED, grant is None)
        return cls(
            method=method,
            settings={name: _plain_setting(name, value) for name, value in settings.items()},
            epsilon=budget.epsilon,
            shares=tuple((share.purpose, share.epsilon) for share in budget.account()),
            parallel=tuple(budget.parallel_purposes()),
            neighbors=neighbors,
            dataset=grant.dataset if grant else None,
            ledger_entry=grant.entry if grant else None,
            ledger_hash=grant.entry_hash if grant else None,
            package_version=_package_version(),
            stamps=tuple(stamp for stamp, applies in stamps if applies),
            personal=personal,
            assumptions=tuple(assumptions),
            contribution=contribution,
            steps=tuple(steps),
            epsilon_read=budget.epsilon_read,
            created=budget.opened,
            release_id=os.urandom(16).hex(),
        )

    def for_unit(
        self,
        most: int,
        *,
        budget: Budget,
        neighbors: Neighbors,
        settings: Mapping[str, Any],
        steps: Sequence[str] = (),
    ) -> Receipt:
        """State the release of single rows as one of units that own at most `most` of them.

        Shares are what they cost a unit, so that they add up to the whole budget; what was
        spent before rows were bounded comes first.

        Privacy:
            Reads no rows and spends nothing.  `budget` paid `most` times for what this receipt
            states (`Budget.for_rows`), and for its other shares as they are.
        """
        refuse_other_notion(budget, neighbors)
        spent = [(share.purpose, share.epsilon) for share in budget.account()][:-1]
        return replace(
            self,
            settings={**self.settings, **settings},
            epsilon=budget.epsilon,
            shares=(*spent, *((purpose, most * share) for purpose, share in self.shares)),
            neighbors=neighbors,
            personal=tuple((level, most * amount) for level, amount in self.personal),
            contribution=most,
            steps=self.steps or tuple(steps),
            epsilon_read=budget.epsilon_read,
        )

    @property
    def is_private(self) -> bool:
        """Whether the release keeps its guarantee, as far as its own randomness goes."""
        return not any(stamp.startswith("NOT PRIVATE") for stamp in self.stamps)

    @property
    def anchor(self) -> tuple[int, str] | None:
        """The entry that `Ledger.verify(anchors=...)` must find unchanged, if there is one."""
        if self.ledger_entry is None or self.ledger_hash is None:
            return None
        return self.ledger_entry, self.ledger_hash

    def guarantee(self) -> str:
        """Describe in plain words what is guaranteed."""
        if not self.is_private:
            return (
                "This release guarantees nothing: its noise came from a seed, and whoever knows "
                "or guesses the seed can take the noise off again."
            )
        text = (
            "Whatever anyone learns from this release would have been almost as likely if "
            f"{self.neighbors.describe()}: no outcome's probability differs by more than a "
            f"factor of {self._strength()}."
        )
        if UNACCOUNTED in self.stamps:
            text += " No ledger adds it to other releases from the same data."
        return text

    def _strength(self) -> str:
        if not self.personal:
            return _factor(self.epsilon)
        whose, without = "record", "Records below the first level, or without one,"
        if isinstance(self.neighbors, PersonalRecord) and self.neighbors.unit is not None:
            whose, without = "person", "People with a record below the first level, or without one,"
        return (
            f"e^ε, where ε goes by the {whose}'s level: {tell_amounts(self.personal)}. "
            f"At most that is {_factor(self.epsilon)}. {without} are not in the release"
        )

    def to_dict(self) -> dict[str, Any]:
        """Turn the receipt into plain values for a JSON file; epsilons become exact strings."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("personal", "assumptions", "contribution", "steps", "epsilon_read"):
            del plain[name]
        if self.personal:  # other receipts look as they always did
            plain["personal"] = [[*map(format_epsilon, pair)] for pair in self.personal]
        if self.assumptions:
            plain["assumptions"] = list(self.assumptions)
        if self.contribution is not None:
            plain["contribution"] = self.contribution
        if self.steps:
            plain["steps"] = list(self.steps)
        if self.epsilon_read:
            plain["epsilon_read"] = self.epsilon_read
        return plain | {
            "settings": dict(self.settings),
            "epsilon": format_epsilon(self.epsilon),
            "shares": [
                {"purpose": purpose, "epsilon": format_epsilon(share)}
                for purpose, share in self.shares
            ],
            "neighbors": notions.to_dict(self.neighbors),
            "parallel": list(self.parallel),
            "stamps": list(self.stamps),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Receipt:
        """Read back what `to_dict` wrote; fields that a later version added are ignored."""
        try:
            stored = msgspec.convert(dict(plain), type=_Stored)
            return cls(
                **{
                    **msgspec.structs.asdict(stored),
                    "epsilon": read_exact(stored.epsilon),
                    "shares": tuple((s.purpose, read_exact(s.epsilon)) for s in stored.shares),
                    "neighbors": notions.from_dict(stored.neighbors),
                    "personal": tuple(
                        (read_exact(level), read_exact(amount)) for level, amount in stored.personal
                    ),
                }
            )
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            raise CorruptRelease(f"the receipt cannot be read: {error}") from error


def refuse_seeded_grant(budget: Budget, source: RandomSource) -> None:
    """Refuse to draw from a seed what a ledger has paid for.

    Call it before any row is read.  A granted budget is a guarantee to real people, which noise
    that can be taken off again would break.
    """
    if budget.grant is not None and not is_secure(source):
        raise InvalidParameter(
            "a ledger granted this budget, so its noise must come from randomness.secure(); "
            "experiment with a Budget that no ledger granted"
        )


def refuse_part(budget: Budget) -> None:
    """Refuse a part of a grant where a whole one is due: the ledger records one release.

    A part may be larger than the grant (for a sample), or hide another change (a row of a unit).
    """
    if budget.grant is not None and budget.is_part:
        raise InvalidParameter(
            "this budget is a part of a grant, which pays within its release only; grant one for "
            "this release"
        )


def refuse_other_notion(budget: Budget, neighbors: Neighbors) -> None:
    """Refuse a release that hides another change than the ledger was told.

    The ledger adds up epsilons of one change; those of another would make its sum untrue.
    """
    if budget.hides is not None and budget.hides != neighbors:
        raise InvalidParameter(
            f"the ledger was told that this release hides {budget.hides.brief()}, and it hides "
            f"{neighbors.brief()}; grant it with hides={neighbors!r}"
        )


class _StoredShare(msgspec.Struct):
    purpose: str
    epsilon: str


class _Stored(msgspec.Struct, kw_only=True):
    """The receipt's fields as they stand in a file."""

    method: str
    settings: dict[str, Any]
    epsilon: str
    shares: list[_StoredShare]
    neighbors: dict[str, Any]
    package_version: str
    created: str
    release_id: str
    parallel: tuple[str, ...]
    stamps: tuple[str, ...]
    dataset: str | None
    ledger_entry: int | None
    ledger_hash: str | None
    personal: tuple[tuple[str, str], ...] = ()
    assumptions: tuple[str, ...] = ()
    contribution: int | None = None
    steps: tuple[str, ...] = ()
    epsilon_read: str = ""


_MEANINGS = {
    "method": "name of the method",
    "settings": "settings of the method; exact numbers are text",
    "epsilon": "epsilon of the whole release as exact text, such as 0.5 or 1/3",
    "shares": "what epsilon was spent on, by purpose",
    "neighbors": "what is hidden: the name of the notion of neighbors and its parts",
    "package_version": "version of dpublish that wrote it",
    "created": "time at which the budget was granted, before any row was read",
    "release_id": "random name of the release",
    "parallel": "purposes whose shares went to disjoint parts of the data",
    "stamps": "warnings, such as NOT PRIVATE: seeded",
    "dataset": "the account of the ledger that paid",
    "ledger_entry": "number of the grant in the ledger",
    "ledger_hash": "hash of that entry",
    "personal": "pairs of a level and what it paid, of a personalized release",
    "assumptions": "what the proof of this method takes for granted beyond what all do",
    "contribution": "most rows of a unit that were kept",
    "steps": "what was done to each record before the method saw it",
    "epsilon_read": "how epsilon was read, if it was given as a float",
}


def json_schema() -> dict[str, Any]:
    """Describe a receipt as a JSON Schema; fields may be added by later versions."""
    _, found = msgspec.json.schema_components((_Stored,), ref_template="#/$defs/{name}")
    stored, share = found["_Stored"], found["_StoredShare"]
    properties = {
        name: {**part, "description": _MEANINGS[name]}
        for name, part in stored["properties"].items()
    }
    properties["shares"]["items"] = {**share, "title": "share", "description": "one share"}
    return {"type": "object", "properties": properties, "required": stored["required"]}


def _plain_setting(name: str, value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, Fraction):
        return format_epsilon(value)
    if isinstance(value, (list, tuple)):
        return [_plain_setting(name, part) for part in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain_setting(name, part) for key, part in value.items()}
    raise InvalidParameter(f"the setting {name!r} cannot be written to a file: {type(value)}")


def _factor(epsilon: Fraction) -> str:
    exponent = format_epsilon(epsilon)
    power = f"e^ε = e^({exponent})" if "/" in exponent else f"e^ε = e^{exponent}"
    if epsilon > 100:  # a number that means nothing to anyone
        return power
    return f"{power} ≈ {(Decimal(epsilon.numerator) / epsilon.denominator).exp():.6g}"


def _package_version() -> str:
    try:
        return version("dpublish")
    except PackageNotFoundError:
        return "unknown"

"""Divide what is left of a cap over the releases of a year, exactly, and spend nothing.

Amounts are decimals that can be typed, rounded down: together they never exceed what is left.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from dpublish.errors import (
    BudgetExhausted,
    InvalidParameter,
    InvalidType,
    plain_refusals,
    require_count,
    require_known,
    what_it_is,
)
from dpublish.ledger.account import Status
from dpublish.privacy.epsilon import (
    ExactNumber,
    format_epsilon,
    format_short,
    parse_epsilon,
    quoted,
)
from dpublish.privacy.neighbors import Neighbors, UserInWindow

PERIODS: Mapping[str, int] = {"day": 365, "week": 52, "month": 12, "quarter": 4, "year": 1}
"""How many releases of each period a year has."""

MOST_RELEASES = 1_000_000
_DIGITS = 4  # significant digits of an amount that is typed
_PERCENT = re.compile(r"\s*(\d{1,2}(\.\d{1,10})?)\s*%\s*")


class Step(NamedTuple):
    """One release of a schedule: what it costs, and what is spent and left afterward."""

    number: int
    epsilon: Fraction
    spent: Fraction
    left: Fraction


@dataclass(frozen=True)
class Schedule:
    """Equal releases that a dataset can pay for: `releases` times `epsilon`.

    Where people have levels, the releases are personalized: each level pays at most its part of
    epsilon, in proportion, and cap and left are the highest level's.  `ordinary` is what as many
    ordinary releases could cost instead, which cost every level the same.
    """

    dataset: str
    cap: Fraction
    left: Fraction
    kept: Fraction
    releases: int
    epsilon: Fraction
    per: str | None = None
    hides: Neighbors | None = None
    ordinary: Fraction | None = None

    def __post_init__(self) -> None:
        if self.releases * self.epsilon > self.available:
            raise InvalidParameter("a schedule must not cost more than is available")

    @property
    def window(self) -> int | None:
        """Snapshots for which all amounts hold, again and again; None if they hold once."""
        return self.hides.window if isinstance(self.hides, UserInWindow) else None

    @property
    def available(self) -> Fraction:
        """What may be divided: what is left, without what is kept."""
        return self.left - self.kept

    @property
    def total(self) -> Fraction:
        """What all releases cost together."""
        return self.releases * self.epsilon

    @property
    def remainder(self) -> Fraction:
        """What is left when all releases are paid, with what is kept."""
        return self.left - self.total

    def steps(self) -> Iterator[Step]:
        """Yield the releases one after the other."""
        before = self.cap - self.left
        for number in range(1, self.releases + 1):
            paid = number * self.epsilon
            yield Step(number, self.epsilon, before + paid, self.left - paid)

    def to_dict(self) -> dict[str, Any]:
        """Turn the schedule into plain values; epsilons are exact text."""
        amounts = {
            "cap": self.cap,
            "left": self.left,
            "kept": self.kept,
            "available": self.available,
            "epsilon": self.epsilon,
            "total": self.total,
            "remainder": self.remainder,
        }
        plain: dict[str, Any] = {"dataset": self.dataset, "releases": self.releases}
        plain |= {name: format_epsilon(amount) for name, amount in amounts.items()}
        if self.per is not None:
            plain["per"] = self.per
        if self.window is not None:
            plain["per_window_of"] = self.window
        if self.ordinary is not None:
            plain["epsilon_of_ordinary_releases"] = format_epsilon(self.ordinary)
        return plain


@plain_refusals
def plan_releases(
    status: Status,
    *,
    releases: int | None = None,
    epsilon: ExactNumber | None = None,
    per: str | None = None,
    keep: str | ExactNumber | None = None,
) -> Schedule:
    """Divide what a dataset has left over equal releases; nothing is spent.

    Give the number of `releases`, or `epsilon` of each to learn how many there can be, or `per`
    (day, week, month, quarter, year) for the releases of one year.  `keep` sets aside an amount,
    `"0.2"`, or a part of what is left, `"20%"`, for what no one foresees.
    """
    if not isinstance(status, Status):
        raise InvalidType(
            'status must be what a ledger says of a dataset: ledger.status("people"), not '
            + what_it_is(status)
        )
    if per is not None:
        require_known("period", per, PERIODS)
    count = _count(releases, epsilon, per)
    left = status.cap * _unused(status)
    kept = _kept(keep, left)
    available = left - kept
    if available <= 0:
        raise BudgetExhausted(
            f"{status.dataset!r} has nothing to divide: {format_short(left)} is left"
            + (f", and {format_short(kept)} is kept" if kept else "")
        )
    if epsilon is None:
        each = rounded_down(available / count)
    else:
        each = parse_epsilon(epsilon)
        count = _fitting(status.dataset, available, each)
    ordinary = None
    if status.levels:
        least = min(level.left for level in status.levels)
        ordinary = rounded_down(least * available / left / count)
    return Schedule(
        status.dataset, status.cap, left, kept, count, each, per, status.hides, ordinary
    )


def rounded_down(value: Fraction) -> Fraction:
    """Round down to a decimal of four digits that matter; a shorter one stays as it is.

    >>> rounded_down(Fraction(1, 6)), rounded_down(Fraction(1, 8))
    (Fraction(833, 5000), Fraction(1, 8))
    """
    context = Context(prec=_DIGITS, rounding=ROUND_DOWN, Emin=-9999, Emax=9999)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _count(releases: int | None, epsilon: ExactNumber | None, per: str | None) -> int:
    """Return how many releases are asked for; 1 if epsilon decides it."""
    if releases is not None and epsilon is not None:
        raise InvalidParameter(
            "releases and epsilon decide each other: give the number of releases, or the epsilon "
            "of each"
        )
    if releases is None and epsilon is None and per is None:
        raise InvalidParameter(
            "say how to divide what is left: releases (--releases 12), per (--per month), or the "
            "epsilon of each (--epsilon 0.1)"
        )
    if epsilon is not None:
        return 1
    count = PERIODS[per] if releases is None and per is not None else releases
    require_count(releases=count)
    if count is None or count > MOST_RELEASES:
        raise InvalidParameter(f"releases must be at most {MOST_RELEASES:,}")
    return count


def _unused(status: Status) -> Fraction:
    """Find the part of the cap that is left; of levels, the part that every one has left."""
    if not status.levels:
        return status.left / status.cap
    return min(each.left / each.level for each in status.levels)


def _kept(keep: str | ExactNumber | None, left: Fraction) -> Fraction:
    if keep is None or keep in (0, "0"):
        return Fraction(0)
    if isinstance(keep, str) and (found := _PERCENT.fullmatch(keep)):
        return left * Fraction(found[1]) / 100
    if isinstance(keep, str) and "%" in keep:
        raise InvalidParameter(f"what is kept ({quoted(keep)}) must be a part such as 20%")
    return parse_epsilon(keep, "what is kept")


def _fitting(dataset: str, available: Fraction, each: Fraction) -> int:
    count = available // each
    if count < 1:
        raise BudgetExhausted(
            f"{dataset!r} has {format_short(available)} to divide, which is less than one release "
            f"of {format_short(each)}: take an epsilon of at most {format_short(available)}"
        )
    if count > MOST_RELEASES:
        raise InvalidParameter(
            f"epsilon ({format_short(each)}) allows more than {MOST_RELEASES:,} releases; so "
            "small an epsilon releases nothing but noise: take a larger one"
        )
    return int(count)

"""What a dataset has left before and after a release, at every level where people have levels."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from dpublish.errors import DPublishError, InvalidParameter
from dpublish.ledger.account import Account, Status
from dpublish.ledger.debit import fix_notion
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.planning.schedule import plan_releases
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.neighbors import Neighbors


class LevelLine(NamedTuple):
    """What the people of one level pay, and what they have left."""

    level: Fraction
    left: Fraction
    pays: Fraction

    @property
    def after(self) -> Fraction:
        """What is left afterward; below 0 if it does not suffice."""
        return self.left - self.pays


@dataclass(frozen=True)
class Remains:
    """What a dataset has left, before and after a release, and how many it can pay for.

    Attributes:
        status: The account.
        left: What is left now; of levels, at the one that is short first.
        after: What is left there afterward; below 0 if it does not suffice.
        lines: The same for each level.
        releases: How many releases of this size can be paid for, this one included; None where
            that is not known.
        problem: Why there can be none, if that is so.
    """

    status: Status
    left: Fraction
    after: Fraction
    lines: tuple[LevelLine, ...] = ()
    releases: int | None = None
    problem: str = ""

    @classmethod
    def of(cls, status: Status, method: Any, epsilon: Fraction) -> "Remains":
        """Compute what a release of `epsilon` by a method leaves.

        An ordinary method costs every level epsilon, a personalized one what it says of each.
        """
        is_personal = isinstance(method, PersonalSettings)
        pays = spending(method, epsilon)
        if is_personal:
            _require_levels(status, pays)
        lines = tuple(
            LevelLine(each.level, each.left, pays.get(each.level, epsilon))
            for each in status.levels
        )
        short = min(lines, key=lambda line: line.after, default=None)
        left = status.left if short is None else short.left
        after = status.left - epsilon if short is None else short.after
        if lines and not is_personal:
            return cls(status, left, after, lines)
        try:
            releases, problem = plan_releases(status, epsilon=epsilon).releases, ""
        except DPublishError as error:
            releases, problem = 0, str(error)
        return cls(status, left, after, lines, releases, problem)

    @property
    def suffices(self) -> bool:
        """Whether the release can be paid for."""
        return self.after >= 0


def spending(method: Any, epsilon: Fraction) -> Mapping[Fraction, Fraction]:
    """Return what each level pays, of a personalized method; nothing of others."""
    return method.spending(epsilon) if isinstance(method, PersonalSettings) else {}


def require_notion(status: Status, hides: Neighbors) -> None:
    """Refuse what the ledger would refuse: a release that hides another change than before."""
    levels = {each.level: each.spent for each in status.levels}
    fix_notion(status.dataset, Account(status.cap, status.spent, levels, status.hides), hides)


def _require_levels(status: Status, pays: Mapping[Fraction, Fraction]) -> None:
    """Refuse a personalized release from a dataset that has other levels, or none."""
    own = [each.level for each in status.levels]
    if not own:
        raise InvalidParameter(
            f"{status.dataset!r} has a cap for all and no levels: take an ordinary method, or add "
            "the dataset with levels"
        )
    if set(own) != set(pays):
        raise InvalidParameter(
            f"{status.dataset!r} has other levels in the ledger; write them as levels: "
            + ",".join(map(format_short, own))
        )

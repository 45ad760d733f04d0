"""Show how much of each level is used, and find what every level can still pay."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from dpublish.cli.output import say, say_table
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.ledger.account import Status
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.epsilon import format_epsilon, format_short

_WIDTH = 20  # characters
_MOST_SHOWN = 20  # levels


def epsilon_left(method: PersonalSettings, status: Status) -> Fraction:
    """Find the largest epsilon of which every level can still pay what the method costs.

    A method may form other groups when it may spend less; then all levels pay in proportion.
    """
    left = {each.level: each.left for each in status.levels}
    if tuple(left) != method.levels:
        raise InvalidParameter(
            f"{status.dataset!r} does not have these levels in the ledger, so what it has left "
            "is not known; add it with the same --levels"
        )
    top = method.levels[-1]
    costs = method.spending(top)
    most = top * min(left[level] / amount for level, amount in costs.items() if amount)
    if most <= 0:
        raise BudgetExhausted(f"{status.dataset!r} has nothing left at a level that would pay")
    most = min(most, top)
    if all(amount <= left[level] for level, amount in method.spending(most).items()):
        return most
    return top * min(left[level] / level for level in method.levels)


def say_level_use(
    paid: Mapping[Fraction, Fraction], left: Mapping[Fraction, Fraction], *, heading: str = "pays"
) -> None:
    """Print what each level pays, what it has left afterward, and how much of it is used."""
    levels = _some(list(paid))
    say_table(
        ["level", heading, "left", "used"],
        [
            [*map(format_short, (level, paid[level], left[level])), _meter(1 - left[level] / level)]
            for level in levels
        ],
    )
    if len(levels) < len(paid):
        say(f"{len(paid) - len(levels):,} levels between them are not shown; see --json")


def level_use(paid: Mapping[Fraction, Fraction]) -> str:
    """Draw the used part of each level as a digit from 0 to 9, or * if all of it is used.

    >>> level_use({Fraction(1, 10): Fraction(1, 10), Fraction(1): Fraction(1, 4)})
    '*3'
    """
    used = [paid[level] / level for level in _some(list(paid))]
    return "".join("*" if part == 1 else str(min(ceil(part * 10), 9)) for part in used)


def plain_levels(amounts: Mapping[Fraction, Fraction]) -> list[dict[str, Any]]:
    """List what each level pays, for programs."""
    return [
        {"level": format_epsilon(level), "pays": format_epsilon(amount)}
        for level, amount in amounts.items()
    ]


def _some(levels: Sequence[Fraction]) -> Sequence[Fraction]:
    """Take a table's worth of levels, the first and the last among them."""
    if len(levels) <= _MOST_SHOWN:
        return levels
    positions = [(len(levels) - 1) * row // (_MOST_SHOWN - 1) for row in range(_MOST_SHOWN)]
    return [levels[position] for position in positions]


def _meter(used: Fraction) -> str:
    filled = ceil(used * _WIDTH)  # what is used a little is seen to be used
    return "#" * filled + "." * (_WIDTH - filled)

"""Levels: the public numbers among which each person's own epsilon is rounded down.

A personalized release costs each level an amount of its own.  Amounts by level are kept as
pairs in rising order of the level, so that equal ones are equal and can be hashed.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import EpsilonLike, format_short, parse_epsilon

LevelAmounts = tuple[tuple[Fraction, Fraction], ...]
"""(level, amount) for every level, in rising order."""

MOST_LEVELS = 1000
_NAMED = 5  # levels that a sentence lists one by one


def parse_levels(levels: Iterable[EpsilonLike]) -> tuple[Fraction, ...]:
    """Read levels: exact, above zero, strictly rising, at most a thousand.

    >>> parse_levels(["0.01", "0.1", 1])
    (Fraction(1, 100), Fraction(1, 10), Fraction(1, 1))
    """
    if isinstance(levels, str):
        raise InvalidParameter("levels are several numbers, such as ('0.01', '0.1', '1')")
    found = tuple(parse_epsilon(level, "a level") for level in levels)
    if not 1 <= len(found) <= MOST_LEVELS:
        raise InvalidParameter(f"there must be 1 to {MOST_LEVELS:,} levels, not {len(found):,}")
    if any(low >= high for low, high in pairwise(found)):
        raise InvalidParameter("levels must rise from one to the next, such as 0.01, 0.1, 1")
    return found


def parse_amounts(amounts: Mapping[Fraction, EpsilonLike]) -> LevelAmounts:
    """Read what each level pays: from nothing up to the level itself, and something somewhere.

    >>> parse_amounts({Fraction(1): "0.5", Fraction(1, 100): 0})
    ((Fraction(1, 100), Fraction(0, 1)), (Fraction(1, 1), Fraction(1, 2)))
    """
    exact = ((parse_epsilon(level, "a level"), amount) for level, amount in amounts.items())
    pairs = sorted((level, _parse_amount(level, amount)) for level, amount in exact)
    require_amounts(tuple(pairs))
    return tuple(pairs)


def require_amounts(pairs: LevelAmounts) -> None:
    """Refuse amounts that are not in order of their levels, or above them, or all nothing."""
    parse_levels(level for level, _ in pairs)
    for level, amount in pairs:
        if not 0 <= amount <= level:
            raise InvalidParameter(
                f"level {format_short(level)} pays from 0 up to its own number, "
                f"not {format_short(amount) if amount > 0 else 'less than nothing'}"
            )
    if not any(amount for _, amount in pairs):
        raise InvalidParameter("some level must pay something")


def largest(pairs: LevelAmounts) -> Fraction:
    """Return what the level pays that pays most: the epsilon that covers every record."""
    return max(amount for _, amount in pairs)


def tell_amounts(pairs: LevelAmounts) -> str:
    """Describe how much each level pays; of many levels the first and the last are named.

    >>> tell_amounts(parse_amounts({Fraction(1, 100): 0, Fraction(1, 10): "0.1", Fraction(1): 1}))
    '0 at level 0.01, 0.1 at level 0.1 and 1 at level 1'
    """
    named = [f"{format_short(amount)} at level {format_short(level)}" for level, amount in pairs]
    if len(named) > _NAMED:
        return f"{named[0]}, and so on over {len(named):,} levels to {named[-1]}"
    return tell_list(named)


def tell_list(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> tell_list(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _parse_amount(level: Fraction, amount: EpsilonLike) -> Fraction:
    if amount in (0, "0"):
        return Fraction(0)  # the records of this level are not used
    return parse_epsilon(amount, f"the amount at level {format_short(level)}")

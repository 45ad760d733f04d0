"""Debit an account, or refuse: what is asked for must be there, at every level it touches."""

from collections.abc import Iterable
from fractions import Fraction
from typing import TypedDict

from msgspec import UnsetType

from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.ledger.account import Account, add_notion
from dpublish.ledger.chain import LevelsText, NotionText, write_levels, write_notion
from dpublish.privacy.epsilon import EpsilonLike, format_epsilon, format_short, parse_epsilon
from dpublish.privacy.levels import LevelAmounts, parse_levels, tell_list
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    Neighbors,
    PersonalRecord,
    UserInWindow,
)
from dpublish.randomness import RandomSource, is_secure

LEVEL_DIGITS = 120  # of a level's amount: it is the level times epsilon over the highest level
_TOLD = 3  # overdrawn levels that a message lists one by one


def open_account(cap: EpsilonLike | None, levels: Iterable[EpsilonLike]) -> Account:
    """Make a new account: with one cap, or with levels, each of which is its own cap."""
    exact = tuple(parse_amount(level, "a level") for level in levels)
    if not exact:
        return Account(parse_amount("2.0" if cap is None else cap, "cap"))
    parse_levels(exact)
    if cap is not None and parse_amount(cap, "cap") != exact[-1]:
        raise InvalidParameter(
            f"the cap of a dataset with levels is its highest level "
            f"({format_short(exact[-1])}); leave the cap out"
        )
    return Account(exact[-1], levels=dict.fromkeys(exact, Fraction(0)))


def parse_amount(value: EpsilonLike, name: str, digits: int = 40) -> Fraction:
    """Read an amount that is round enough for many of them to be added up exactly."""
    amount = parse_epsilon(value, name)
    if max(amount.numerator, amount.denominator) >= 10**digits:
        raise InvalidParameter(f"{name} has more than {digits} digits; write a rounder one")
    return amount


class TotalsText(TypedDict):
    """What every entry states of the account it is about."""

    cap: str
    spent: str
    levels: LevelsText | UnsetType
    hides: NotionText | UnsetType


def totals(account: Account) -> TotalsText:
    """Write an account as its entries state it."""
    return {
        "cap": format_epsilon(account.cap),
        "spent": format_epsilon(account.spent),
        "levels": write_levels(tuple(account.levels.items())),
        "hides": write_notion(account.hides),
    }


def require_secure(rng: RandomSource) -> None:
    """Refuse noise from a seed for what a ledger pays for."""
    if not is_secure(rng):
        raise InvalidParameter(
            "a seeded source gives the noise away: draw from randomness.secure(), "
            "or experiment with a Budget that no ledger granted"
        )


def fix_notion(dataset: str, account: Account, hides: Neighbors) -> None:
    """Let the first grant say what an account hides; refuse what hides another change.

    A release that hides one row costs a user with 50 rows 50 times its epsilon, and one that
    hides values does not hide presence at all, so one sum could not stand for both.
    """
    if account.levels and isinstance(hides, UserInWindow):
        raise InvalidParameter(
            f"{dataset!r} has levels, which bound what a person loses for all time, and this "
            f"stream would cost epsilon again in every window of {hides.window:,} snapshots: give "
            "it a horizon, or pay for it from an account without levels"
        )
    joined = add_notion(account, hides)
    if joined is None and account.hides is not None:
        known, remedy = account.hides.brief(), _remedy(account.hides, hides)
        raise InvalidParameter(
            f"{dataset!r} has paid for releases that hide {known}, and this one would hide "
            f"{hides.brief()}: their epsilons do not add up{remedy}"
        )
    account.hides = joined


def _remedy(known: Neighbors, hides: Neighbors) -> str:
    personal = [each for each in (known, hides) if isinstance(each, PersonalRecord)]
    if [each.mode for each in personal].count("values-only") == 1:
        return (
            ". A table whose membership is public is a dataset of its own; add it under another "
            "name, with what is left to its people"
        )
    if len(personal) == 2:
        return (
            ", for a person could have one level here and another there. Use the unit, the "
            "column, the rule and the mode of the first release, and describe the rule's column "
            "in the schema as it was then"
        )
    return (
        ". Pay for this one from a second account (`dpublish ledger add LEDGER NAME --cap ...`): "
        "each cap then bounds its own kind of change, and what a person loses over both is "
        f"bounded by neither{_alternative(known, hides)}"
    )


def _alternative(known: Neighbors, hides: Neighbors) -> str:
    """Describe how the release could share the account, where that weakens no protection."""
    if isinstance(known, AddRemoveUnit) and isinstance(hides, AddRemoveRecord):
        return f'. Or hide all records of one {known.who} here, too: unit = "{known.column}"' + (
            " in the schema, and --contribution 4 for the method"
        )
    windows = [each for each in (known, hides) if isinstance(each, UserInWindow)]
    if len(windows) == 2 and windows[0].column == windows[1].column:
        return f". Or give this stream the same window: --window {windows[0].window}"
    return ""


def require_word(dataset: str, account: Account, *, by_level: bool, all_have_levels: bool) -> None:
    """Refuse an ordinary release where people have levels, unless the owner vouches for all."""
    if all_have_levels and (by_level or not account.levels):
        raise InvalidParameter(
            "all_have_levels (--all-have-levels) is for an ordinary release from a dataset with "
            "levels; leave it out here"
        )
    if account.levels and not by_level and not all_have_levels:
        first = format_short(min(account.levels))
        raise InvalidParameter(
            f"{dataset!r} has levels, and an ordinary release costs every record the same, also "
            f"those below the first level ({first}) or without one. If the table has no such "
            "record, say so with --all-have-levels (all_have_levels=True); otherwise use a "
            "personalized method, which leaves them out"
        )


def require_same_levels(dataset: str, account: Account, amounts: LevelAmounts) -> None:
    """Refuse a release by level that has other levels than the account, or where it has none."""
    if not amounts:
        return
    if not account.levels:
        raise InvalidParameter(
            f"{dataset!r} has no levels; a personalized release needs a dataset that was added "
            "to the ledger with them"
        )
    asked = [level for level, _ in amounts]
    if asked != list(account.levels):
        raise InvalidParameter(
            f"{dataset!r} has {_tell_levels(list(account.levels))}, but the release has "
            f"{_tell_levels(asked)}; they must be the same"
        )


def debit(dataset: str, account: Account, epsilon: Fraction, amounts: LevelAmounts) -> None:
    """Take `epsilon` off the account, by level if there are `amounts`; refuse an overdraft."""
    if account.levels:
        _require_levels_left(dataset, account, epsilon, amounts)
    elif epsilon > account.left:
        asked, cap, left = map(format_short, (epsilon, account.cap, account.left))
        advice = f"ask for at most {left}" if account.left else "nothing more can be released"
        raise BudgetExhausted(
            f"{dataset!r} has {left} left of its cap of {cap}, but {asked} was asked for: "
            f"{advice}, unless its owner raises the cap"
        )
    account.pay(epsilon, amounts)
    # Python writes numbers of up to 4300 digits.
    if any(s.denominator >= 10**4000 for s in (account.spent, *account.levels.values())):
        raise InvalidParameter("the account has too many digits to stay exact; round epsilon")


def _require_levels_left(
    dataset: str, account: Account, epsilon: Fraction, amounts: LevelAmounts
) -> None:
    asked = amounts or tuple((level, epsilon) for level in account.levels)
    left = {level: level - spent for level, spent in account.levels.items()}
    short = [(level, amount) for level, amount in asked if amount > left[level]]
    if not short:
        return
    told = [
        f"level {format_short(level)} has {format_short(left[level])} left, "
        f"but {format_short(amount)} was asked for"
        for level, amount in short[:_TOLD]
    ]
    if len(short) > _TOLD:
        told.append(f"{len(short) - _TOLD} more levels are short")
    most = min(epsilon * left[level] / amount for level, amount in asked if amount)
    raise BudgetExhausted(f"{dataset!r} cannot pay: {'; '.join(told)}: {_advise(most, amounts)}")


def _advise(most: Fraction, amounts: LevelAmounts) -> str:
    limit = f"ask for at most {format_short(most)}" if most else "nothing more can be released"
    if amounts:
        return f"{limit} in these proportions; a person's own number is never raised"
    return f"{limit}; an ordinary release costs every level the same"


def _tell_levels(levels: list[Fraction]) -> str:
    told = [format_short(level) for level in levels]
    if len(told) > _TOLD:
        return f"{len(told):,} levels from {told[0]} to {told[-1]}"
    return f"level{'s' if len(told) > 1 else ''} {tell_list(told)}"

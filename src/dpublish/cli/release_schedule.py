"""Print a schedule of releases: what each costs, and what is spent and left after it."""

from fractions import Fraction

from dpublish.cli.output import say, say_table
from dpublish.planning.schedule import Schedule, Step
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.meaning import most_sure, percent_at_most
from dpublish.privacy.neighbors import AddRemoveRecord

_SHOWN = 12  # rows; of longer schedules the first and the last ones
_ENDS = 3


def say_schedule(found: Schedule) -> None:
    """Print how what is left is divided, release by release, and what that means."""
    many = f"{found.releases:,} release" + ("s" if found.releases > 1 else "")
    often = "" if found.per is None else f", one per {found.per},"
    kind = "personalized " if found.ordinary is not None else ""
    say(
        f"{found.dataset}: {format_short(found.left)} of {format_short(found.cap)} is left; "
        f"{many}{often} can cost epsilon {format_short(found.epsilon)} each"
    )
    if found.kept:
        say(f"kept for later: {format_short(found.kept)}")
    say()
    say_table(
        [found.per or "release", "epsilon", "spent afterward", "left afterward"],
        [_row(step) for step in _some(found)],
    )
    say()
    if found.ordinary is not None:
        say(
            "the releases are personalized: each level pays at most its part of epsilon; as many "
            f"ordinary releases can cost epsilon {format_short(found.ordinary)} each"
        )
    if found.window is not None:
        say(f"all amounts are per window of {found.window:,} snapshots, again in every window")
    hides = AddRemoveRecord() if found.hides is None else found.hides
    say(
        f"all {kind}releases together cost {format_short(found.total)}: who thinks it 50 % likely "
        f"{hides.claim()} can be at most {_sure(found)} sure after all of them"
    )
    say(f"nothing was spent; next: dpublish release --epsilon {format_short(found.epsilon)} ...")


def _some(found: Schedule) -> list[Step | None]:
    """Take a table's worth of steps; None stands for those that are left out."""
    steps = list(found.steps())
    if len(steps) <= _SHOWN:
        return list(steps)
    return [*steps[:_ENDS], None, *steps[-_ENDS:]]


def _row(step: Step | None) -> list[str]:
    if step is None:
        return ["...", "", "", ""]
    return [f"{step.number:,}", *map(format_short, (step.epsilon, step.spent, step.left))]


def _sure(found: Schedule) -> str:
    """Bound what can be known after all that was spent by then, earlier releases included."""
    spent: Fraction = found.cap - found.left + found.total
    return percent_at_most(most_sure(Fraction(1, 2), spent))

"""What a guided start asks its owner, step by step, in words."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpublish.data.column_answer import SKIP
from dpublish.data.proposals import NUMBERS, Proposal
from dpublish.planning.goals import GOALS, NEEDS_TARGET
from dpublish.privacy.epsilon import format_epsilon, format_short
from dpublish.privacy.neighbors import PERSON

WHY_NOT_READ = (
    "No value of the table is read: a bound or a category that was taken from rows would tell "
    "something about a person, and no epsilon would have paid for it.",
    "So kinds, bounds and lists of values come from the names and types of the columns, from "
    "public facts, and from you.",
)
"""Why an owner is asked at all."""
COLUMN = "column:"
"""How the key of an answer about one column begins."""
NONE, ALL, UNKNOWN = "none", "all", "unknown"
_CAP = "1"
_OPTIONS = {
    "row": "--row 'a hospital visit'",
    "unit": "--unit {default}, or --unit none if every person has one row",
    "columns": "--columns all, or --leave-out ...",
    "goal": "--goal rows",
    "steps": "--steps 30",
    "rows": "--rows 20000",
    "period": "--dates 2023-01-01..2024-12-31",
    "cap": "--cap 1",
    "epsilon": "--epsilon 0.5",
}


_ORDER = ("row", "unit", COLUMN, "columns", "goal", "steps", "rows", "period", "cap", "epsilon")


def answer_order(key: str) -> int:
    """Return the rank in which answers are taken, since some depend on others."""
    known = COLUMN if key.startswith(COLUMN) else key
    return _ORDER.index(known) if known in _ORDER else len(_ORDER)


@dataclass(frozen=True)
class Step:
    """Something to ask the owner.

    Attributes:
        key: What the answer is kept as.
        title: What is asked, in one line.
        hints: What to know before answering.
        default: What is proposed; None if only the owner can say.
        option: How the answer is given on the command line.
        column: The column that it is about, if it is about one.
    """

    key: str
    title: str
    hints: tuple[str, ...] = ()
    default: str | None = None
    option: str = ""
    column: str | None = None


def row_step() -> Step:
    """Ask what a row is."""
    return Step(
        "row",
        "What is a row?",
        ("In a few words, such as: a person, a hospital visit, a purchase.",),
        default="a record of one person",
        option=_OPTIONS["row"],
    )


def unit_step(proposals: Sequence[Proposal]) -> Step:
    """Ask whose data it is; propose a column whose name says that it tells people apart."""
    candidates = [each.column for each in proposals if each.unit is not None]
    people = [each.column for each in proposals if each.unit == PERSON]
    default = next(iter([*people, *candidates]), NONE)
    told = f"Candidates: {', '.join(candidates)}." if candidates else "No name looks like one."
    return Step(
        "unit",
        "Whose data is it? Name the column that all rows of one person share, or none",
        (
            "A release hides all rows of any one person, if this column tells people apart.",
            f"Write none only if every person has one row. {told}",
        ),
        default=default,
        option=_OPTIONS["unit"].format(default="COLUMN" if default == NONE else default),
    )


def columns_step() -> Step:
    """Ask which columns matter."""
    return Step(
        "columns",
        "Which columns matter?",
        (
            "all, or a list (age, sex), or all but some (-notes, -email).",
            "Columns that tell people or rows apart and free text are left out anyway.",
            "To change a proposal, add it behind a semicolon: all; age=18..99 by 1; sex=numbers",
        ),
        default=ALL,
        option=_OPTIONS["columns"],
    )


def goal_step() -> Step:
    """Ask what the release is for."""
    words = tuple(
        f"  {task}{':COLUMN' if task in NEEDS_TARGET else ''}: {text}"
        for task, text in GOALS.items()
    )
    return Step("goal", "What for?", words, default="rows", option=_OPTIONS["goal"])


def stream_step() -> Step:
    """Ask how long a stream is."""
    return Step(
        "steps",
        "How many steps will the stream have?",
        ("A number, or window 10 for a stream without an end.",),
        option=_OPTIONS["steps"],
    )


def rows_step() -> Step:
    """Ask for the public size of the table."""
    return Step(
        "rows",
        "How many rows are there, roughly, if that is publicly known?",
        ("It only helps the plan; write unknown if the number is not public.",),
        default=UNKNOWN,
        option=_OPTIONS["rows"],
    )


def period_step(dated: Sequence[Proposal]) -> Step:
    """Ask for the period that columns of dates share."""
    names = ", ".join(each.column for each in dated)
    return Step(
        "period",
        f"Which period do the dates lie in ({names})?",
        (
            "Two dates from public knowledge, such as 2023-01-01..2024-12-31.",
            "If the table does not write 2024-02-15, add how: 2023..2024 as %d.%m.%Y",
        ),
        option=_OPTIONS["period"],
    )


def column_step(proposal: Proposal) -> Step:
    """Ask for what only the owner knows of a column."""
    name = proposal.column
    has_numbers = proposal.kind in NUMBERS
    option = f"--column {shlex.quote(f'{name}=0..100 by 5' if has_numbers else f'{name}=a,b,c')}"
    if not has_numbers:
        option += f", or --codes {shlex.quote(f'{name}=codes.csv')}"
    hints = (f"{proposal.why[0].upper()}{proposal.why[1:]}.",) if proposal.why else ()
    return Step(
        COLUMN + name,
        f"{name}: {proposal.ask or 'what are its values?'}; or {SKIP}",
        hints,
        option=option,
        column=name,
    )


def cap_step() -> Step:
    """Ask for the cap of the ledger."""
    return Step(
        "cap",
        "How much epsilon may all releases of this table spend together?",
        (
            "The ledger refuses what goes beyond it. 1 is a careful start; the cap can be raised",
            "later, for a reason that stays on record.",
        ),
        default=_CAP,
        option=_OPTIONS["cap"],
    )


def epsilon_step(left: Fraction | None) -> Step:
    """Ask what the first release may cost; propose half of what is left."""
    default = None if left is None or left <= 0 else format_epsilon(left / 2)
    hint = "" if left is None else f" {format_short(left)} may be spent in all."
    return Step(
        "epsilon",
        "How much of it may the first release spend?",
        (f"Less is more private and less exact.{hint}",),
        default=default,
        option=_OPTIONS["epsilon"],
    )

"""A guided start: from a table that no one has described to a schema, a ledger and a plan.

A `Start` knows the names and types of the columns, and the answers so far; it says what to ask
next, and refuses an answer that cannot be used, with the reason.  It reads no row: all that it
writes follows from names, types, public facts and answers.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dpublish.data.column_answer import codes_file, read_answer, read_format, read_period
from dpublish.data.engines.addresses import is_address, local_path
from dpublish.data.proposals import DATES, MISSING, Proposal, propose
from dpublish.data.sources import find_files
from dpublish.data.stamps import require_format
from dpublish.errors import InvalidParameter, UnreadableData, require_known
from dpublish.planning.goals import Goal
from dpublish.planning.start_steps import (
    ALL,
    COLUMN,
    NONE,
    UNKNOWN,
    Step,
    cap_step,
    column_step,
    columns_step,
    epsilon_step,
    goal_step,
    period_step,
    row_step,
    rows_step,
    stream_step,
    unit_step,
)
from dpublish.privacy.epsilon import format_short, parse_epsilon
from dpublish.privacy.neighbors import PERSON, require_noun


class Unit(NamedTuple):
    """Whose data it is: the column that all rows of one of them share, and what they are."""

    column: str | None
    noun: str = PERSON


class Chosen(NamedTuple):
    """The columns that matter, and what was said of some of them by the way."""

    names: tuple[str, ...]
    said: Mapping[str, str]


class Described(NamedTuple):
    """What the schema will say of a column, and what that rests on."""

    name: str
    settings: Mapping[str, Any]
    why: str


@dataclass(frozen=True)
class Account:
    """What a dataset may spend in all, and what is left of it."""

    cap: Fraction
    left: Fraction


@dataclass(frozen=True)
class Start:
    """The columns of a table, and what its owner has said so far.

    Attributes:
        proposals: What is proposed for each column, in the order of the table.
        unreadable: Columns that cannot be read, and why.
        account: The ledger's account of the dataset, if there is one already.
        folder: The folder of the schema.
        data: The table's own file, which is no list of codes.
        answers: The answers so far, by their keys.

    >>> start = Start.of([("age", None), ("patient_id", None)])
    >>> start = start.answered("row", "a visit").answered("unit", "patient_id")
    >>> start.next_step().key, start.chosen.names
    ('columns', ('age',))
    """

    proposals: tuple[Proposal, ...]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    folder: Path = field(default_factory=Path)
    data: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Iterable[tuple[str, Any]], **known: Any) -> "Start":
        """Propose what names and types say; columns without a name, or with one name, are apart."""
        listed = [*columns]
        names = [name for name, _ in listed]
        _require_names(names)
        unreadable = {
            name: "it has no name" if not name.strip() else "several columns are called so"
            for name in names
            if not name.strip() or names.count(name) > 1
        }
        found = tuple(propose(name, kind) for name, kind in listed if name not in unreadable)
        return cls(found, unreadable, **known)

    @cached_property
    def by_name(self) -> Mapping[str, Proposal]:
        """The proposals by the names of their columns."""
        return {each.column: each for each in self.proposals}

    @cached_property
    def unit(self) -> Unit:
        """Whose data it is."""
        return _read_unit(self.answers.get("unit", NONE), self)

    @cached_property
    def chosen(self) -> Chosen:
        """The columns that matter, before any is skipped."""
        return _read_columns(self.answers.get("columns", ALL), self)

    @cached_property
    def goal(self) -> Goal:
        """What the release is for."""
        return Goal.parse(self.answers.get("goal", "rows"))

    @property
    def n_records(self) -> int | None:
        """How many rows there are, if that is public."""
        text = self.answers.get("rows", UNKNOWN)
        return None if text == UNKNOWN else int(text.replace(",", "").replace("_", ""))

    @property
    def epsilon(self) -> Fraction:
        """What the first release is to cost."""
        return parse_epsilon(self.answers["epsilon"])

    def steps(self) -> list[Step]:
        """List all that is to be asked as far as it is known by now, answered or not."""
        found = [row_step(), unit_step(self.proposals), columns_step()]
        if "columns" not in self.answers:
            return found
        found.append(goal_step())
        if self.goal.task == "stream":
            found.append(stream_step())
        found.append(rows_step())
        asked = self._open_columns()
        dated = [each for each in asked if self._shares_period(each)]
        if dated or "period" in self.answers:
            found.append(period_step(dated))
        found += [column_step(each) for each in asked if each not in dated]
        if self.account is None:
            found.append(cap_step())
        return [*found, epsilon_step(self.left)]

    def next_step(self) -> Step | None:
        """Return what to ask next; None if nothing is open."""
        return next((step for step in self.steps() if step.key not in self.answers), None)

    def open_steps(self) -> list[Step]:
        """List what is still open."""
        return [step for step in self.steps() if step.key not in self.answers]

    def answered(self, key: str, text: str) -> "Start":
        """Take an answer; refuse one that cannot be used, with the reason."""
        said = " ".join(text.split()) if key != "period" and not key.startswith(COLUMN) else text
        after = replace(self, answers={**self.answers, key: said.strip()})
        after.check(key)
        return after

    def without(self, *keys: str) -> "Start":
        """Forget some answers."""
        return replace(self, answers={k: v for k, v in self.answers.items() if k not in keys})

    def check(self, key: str) -> None:
        """Refuse the answer of a key if it cannot be used."""
        if key.startswith(COLUMN):
            self._check_column(key.removeprefix(COLUMN), self.answers[key])
            return
        checks = {
            "row": self._check_row,
            "unit": lambda: self.unit,
            "columns": self._check_columns,
            "goal": self._check_goal,
            "steps": lambda: self.stream_settings,
            "rows": self._check_rows,
            "period": self._check_period,
            "cap": lambda: parse_epsilon(self.answers["cap"], "cap"),
            "epsilon": self._check_epsilon,
        }
        require_known("answer", key, checks)
        checks[key]()

    @cached_property
    def described(self) -> tuple[Described, ...]:
        """What the schema will say of each column, of those that are settled by now."""
        found = []
        for name in self.chosen.names:
            settings = self._settings(name)
            if settings is not None:
                found.append(Described(name, self._finished(name, settings), self._why(name)))
        return tuple(found)

    @property
    def left_out(self) -> Mapping[str, str]:
        """The columns that the schema will not have, and why."""
        kept = {each.name for each in self.described}
        return {
            **self.unreadable,
            **{
                each.column: self._why_out(each)
                for each in self.proposals
                if each.column not in kept
            },
        }

    @property
    def stream_settings(self) -> Mapping[str, int]:
        """How long a stream is, as `advise` takes it."""
        if self.goal.task != "stream":
            return {}
        word, _, number = self.answers.get("steps", "").rpartition(" ")
        if not number.isdecimal() or int(number) < 1 or word not in ("", "window"):
            raise InvalidParameter(
                "write how many steps there will be, such as 30, or window 10 for a stream without "
                "an end in which any 10 steps hide a person"
            )
        return {"window" if word else "horizon": int(number)}

    def _said(self, name: str) -> str | None:
        """Return what was said of one column, by itself or among the columns."""
        return self.answers.get(COLUMN + name, self.chosen.said.get(name))

    def _settings(self, name: str) -> Mapping[str, Any] | None:
        """Return the keys of a column; None if it is left out, or not settled yet."""
        proposal = self.by_name[name]
        said = self._said(name)
        if said is not None:
            return read_answer(said, proposal, self.folder)
        if proposal.is_complete:
            return {"kind": proposal.kind, **proposal.settings}
        if proposal.needs_period and "period" in self.answers:
            return read_period(self.answers["period"], proposal)
        return None

    def _finished(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Add what follows from other answers: the format of dates, and rules for a target."""
        finished = {**settings}
        written = read_format(self.answers.get("period", ""))
        if written and finished["kind"] in DATES:
            finished.setdefault("format", written)
        if name == self.goal.target:
            finished.pop("other", None)  # no model should learn to predict what is not listed
            return {**finished, "missing": "drop"}
        return {**finished, "missing": MISSING}

    def _why(self, name: str) -> str:
        proposal = self.by_name[name]
        if self._said(name) is not None or not proposal.is_complete:
            return "as the owner says"
        return proposal.why if proposal.fact is None else f"public fact: {proposal.why}"

    def _why_out(self, proposal: Proposal) -> str:
        if proposal.column == self.unit.column:
            return "it is the unit"
        if proposal.role != "publish" and proposal.column not in self.chosen.names:
            return proposal.why.removeprefix("left out: ")
        return "left out by the owner"

    def _open_columns(self) -> list[Proposal]:
        """List the columns of which something must be asked."""
        found = [self.by_name[name] for name in self.chosen.names]
        return [
            each
            for each in found
            if each.column not in self.chosen.said
            and (COLUMN + each.column in self.answers or not each.is_complete)
        ]

    def _shares_period(self, proposal: Proposal) -> bool:
        """Whether a column lies in the period that all dates share: none was said of it alone."""
        return proposal.needs_period and COLUMN + proposal.column not in self.answers

    def _check_row(self) -> None:
        if not self.answers["row"] or not self.answers["row"].isprintable():
            raise InvalidParameter("say in a few words what a row is, such as: a hospital visit")

    def _check_columns(self) -> None:
        for name, said in self.chosen.said.items():
            self._check_column(name, said)

    def _check_column(self, name: str, said: str) -> None:
        require_known("column", name, self.by_name)
        if name not in self.chosen.names:
            raise InvalidParameter(
                f"column {name!r} is left out, or is the unit; nothing can be said of it"
            )
        named = codes_file(said)
        if named is not None and self.data and _is_part(named, self.data):
            raise InvalidParameter(
                "the table itself is no list of codes: its values are private; name a file that is "
                "public, or write the values"
            )
        settings = read_answer(said, self.by_name[name], self.folder)
        if settings is None and "goal" in self.answers and name in self.goal.columns:
            raise InvalidParameter(f"the goal {self.goal} needs column {name!r}; describe it")
        others = [each.name for each in self.described if each.name != name]
        waiting = [each.column for each in self._open_columns() if each.column != name]
        if settings is None and not others and not waiting:
            raise InvalidParameter(f"{name!r} is the only column; describe it, or keep another")

    def _check_goal(self) -> None:
        for name in self.goal.columns:
            require_known("column", name, self.chosen.names)

    def _check_rows(self) -> None:
        text = self.answers["rows"]
        plain = text.replace(",", "").replace("_", "")
        if text != UNKNOWN and not (plain.isdecimal() and int(plain) > 0):
            raise InvalidParameter(
                "write a number of rows, such as 20000, if one is publicly known; else unknown"
            )

    def _check_period(self) -> None:
        written = read_format(self.answers["period"])
        if written is not None:
            require_format(written)
        dated = [each for each in self._open_columns() if self._shares_period(each)]
        for each in dated or [Proposal("date", kind="date")]:
            read_period(self.answers["period"], each)

    def _check_epsilon(self) -> None:
        epsilon = parse_epsilon(self.answers["epsilon"])
        left = self.left
        if left is not None and epsilon > left:
            raise InvalidParameter(
                f"epsilon {format_short(epsilon)} is more than the {format_short(left)} that the "
                "dataset may spend; write a smaller one"
            )

    @property
    def left(self) -> Fraction | None:
        """How much may be spent on the first release; None if no cap is known yet."""
        if self.account is not None:
            return self.account.left
        return parse_epsilon(self.answers["cap"], "cap") if "cap" in self.answers else None


def split_names(text: str) -> list[str]:
    """Split a list of names at its commas; a name with a comma stands in double quotes.

    >>> split_names('age, "last, first", sex')
    ['age', 'last, first', 'sex']
    """
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part.strip() for part in parts if part.strip()]


def join_names(names: Iterable[str]) -> str:
    """Write a list of names as `split_names` reads it.

    >>> join_names(["age", "last, first"])
    'age,"last, first"'
    """
    escaped = (name.replace('"', '""') for name in names)
    return ",".join(f'"{name}"' if "," in name or '"' in name else name for name in escaped)


def split_said(text: str, names: Iterable[str]) -> tuple[str, str] | None:
    """Split `age=0..120` at the sign behind the longest known name; None if there is none."""
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(name) and text[len(name) :].lstrip().startswith("="):
            return name, text[len(name) :].lstrip()[1:].strip()
    return None


def _read_unit(text: str, start: Start) -> Unit:
    if text.casefold() == NONE:
        return Unit(None)
    column, has_noun, noun = text.rpartition(" as ")
    if not has_noun or text in start.by_name:
        column, noun = text, ""
    require_known("column", column, start.by_name)
    proposal = start.by_name[column]
    if proposal.role == "unusable":
        raise InvalidParameter(f"column {column!r} cannot be the unit; {proposal.why}")
    noun = noun or proposal.unit or PERSON
    require_noun(noun)
    return Unit(column, noun)


def _read_columns(text: str, start: Start) -> Chosen:
    """Read which columns matter: `all`, a list, or `-notes,-email`; and `age=0..99` behind `;`."""
    kept: list[str] = []
    dropped: set[str] = set()
    said: dict[str, str] = {}
    for part in (part.strip() for part in text.split(";")):
        if (pair := split_said(part, start.by_name)) is not None:
            said[pair[0]] = pair[1]
            continue
        for name in split_names(part):
            if name in start.by_name:
                kept.append(name)
            elif name.startswith("-"):
                require_known("column", name[1:].strip(), [*start.by_name, *start.unreadable])
                dropped.add(name[1:].strip())
            elif name.casefold() != ALL:
                require_known("column", name, start.by_name)
    return Chosen(_keep(start, kept, dropped, said), said)


def _keep(
    start: Start, listed: Sequence[str], dropped: set[str], said: Mapping[str, str]
) -> tuple[str, ...]:
    """Keep what is listed, or all that may be published; refuse what tells people apart."""
    own = {*said, *(key.removeprefix(COLUMN) for key in start.answers if key.startswith(COLUMN))}
    for name in listed:
        role = start.by_name[name].role
        if role in ("identifier", "unusable") and name not in own:
            raise InvalidParameter(
                f"column {name!r} is left out: {start.by_name[name].why}; if its values are few "
                f"and public, list them: {name}=a,b,c"
            )
    kept = tuple(
        each.column
        for each in start.proposals
        if each.column != start.unit.column
        and each.column not in dropped
        and (each.column in own or _is_kept(each, listed))
    )
    if not kept:
        raise InvalidParameter(
            "no column is left to publish; keep at least one, or list the values of one that is "
            "left out if they are few and public: NAME=a,b,c"
        )
    return kept


def _is_kept(proposal: Proposal, listed: Sequence[str]) -> bool:
    return proposal.column in listed if listed else proposal.role == "publish"


def _require_names(names: Sequence[str]) -> None:
    """Refuse a first line that looks like a row: its values would be taken for public names."""
    looks = sum(1 for name in names if name.strip() and not any(c.isalpha() for c in name))
    if not names or 2 * looks > len(names):
        raise UnreadableData(
            "the first line of the table does not seem to name its columns; write their names "
            "there, so that no row is taken for names"
        )


def _is_part(path: str, data: str) -> bool:
    """Check whether a file is the table, or one of the files that it is made of."""
    files = [data]
    if not is_address(local_path(data)):
        with suppress(UnreadableData):
            files += find_files(local_path(data))
    return any(_is_same(local_path(path), file) for file in files)


def _is_same(path: str, other: str) -> bool:
    try:
        return Path(path).samefile(other)
    except (OSError, ValueError):
        return False

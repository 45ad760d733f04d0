"""A guided start as pages see it: the table, its files, the answers, and how queries are grouped.

The answers lie in the same file as those of `dpublish init`, so that either goes on where the
other was left.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dpublish.data.column_answer import codes_file
from dpublish.data.sources import proposable_columns
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.planning.goals import NEEDS_TARGET
from dpublish.planning.start import Start, join_names
from dpublish.planning.start_files import (
    Prepared,
    StartFiles,
    find_account,
    load_answers,
    prepare,
    require_free,
)
from dpublish.planning.start_steps import ALL, COLUMN, Step
from dpublish.studio.code_files import find_codes
from dpublish.studio.desk import Desk

STAGES = {
    "table": "The table",
    "goal": "What for",
    "columns": "What only you know",
    "budget": "How much may be spent",
}
"""The groups in which queries are put to the owner, and their titles."""
REVIEW = "review"
_STAGE_OF = {
    **dict.fromkeys(("row", "unit", "columns"), "table"),
    **dict.fromkeys(("goal", "steps", "rows"), "goal"),
    "period": "columns",
    **dict.fromkeys(("cap", "epsilon"), "budget"),
}


class Asked(NamedTuple):
    """One query on a page: its step, the name of its field, and what stands in it."""

    step: Step
    field: str
    value: str
    problem: str


@dataclass(frozen=True)
class Begun:
    """A guided start that goes on.

    Attributes:
        desk: The studio's desk.
        data: The name of the table.
        files: Where it reads from and writes to.
        start: The columns and the answers so far.
    """

    desk: Desk
    data: str
    files: StartFiles
    start: Start

    @classmethod
    def of(cls, desk: Desk, data: str, dataset: str = "", table: str = "") -> "Begun":
        """Go on with a table of the studio; reads names and types of its columns, and no row."""
        files = start_files(desk, data, dataset, table)
        columns = proposable_columns(files.data, table=files.table)
        start = Start.of(
            columns,
            account=find_account(files.ledger, files.dataset),
            folder=files.schema.parent,
            data=files.data,
        )
        require_free(files)
        return cls(desk, data, files, load_answers(start, files))

    @property
    def query(self) -> dict[str, str]:
        """The fields of an address that leads here again."""
        table = self.files.table or ""
        is_named = self.data in self.desk.sources
        return {
            "data": self.data,
            "dataset": self.files.dataset,
            "table": "" if is_named else table,
        }

    @property
    def schema(self) -> str:
        """The schema's name within the studio's folder."""
        return self.files.schema.name

    @property
    def stage(self) -> str:
        """The first group in which something is open; the review if nothing is."""
        opened = {stage_of(step.key) for step in self.start.open_steps()}
        return next((stage for stage in STAGES if stage in opened), REVIEW)

    def may_open(self, stage: str) -> bool:
        """Whether a group can be asked by now: what comes before it is answered."""
        order = [*STAGES, REVIEW]
        return stage in STAGES and order.index(stage) <= order.index(self.stage)

    def asked(
        self, stage: str, typed: Mapping[str, str], problems: Mapping[str, str]
    ) -> list[Asked]:
        """List the queries of a group with what was answered or is proposed."""
        found = []
        for step in self._preview(stage):
            kept = self._shown(self.start.answers.get(step.key, step.default or ""))
            value = typed.get(step.key, kept)
            found.append(Asked(step, self.field(step), value, problems.get(step.key, "")))
        return found

    def field(self, step: Step) -> str:
        """Name the field of a step; those of columns are counted, as names may hold anything."""
        if step.column is None:
            return step.key
        return f"column-{[*self.start.by_name].index(step.column)}"

    def read(self, stage: str, form: Mapping[str, str]) -> "Answers":
        """Take the answers of a group, each as far as it can be used."""
        start = self.start.without(*(k for k in self.start.answers if stage_of(k) == stage))
        typed: dict[str, str] = {}
        problems: dict[str, str] = {}
        while (step := next(_unread(start, stage, typed), None)) is not None:
            typed[step.key] = form.get(self.field(step), "")
            try:
                text = self._typed(step, form)
                if not text:
                    raise InvalidParameter("write an answer")
                start = start.answered(step.key, self._inside(text))
            except DPublishError as refusal:
                problems[step.key] = str(refusal)
        shown = {key: text for key, text in typed.items() if key in problems}
        return Answers(replace(self, start=start), shown, problems)

    def prepare(self) -> Prepared:
        """Prepare what will be written; nothing is written yet."""
        task = self.start.goal.task
        output = self.desk.releases / self.desk.free_name(f"{self.files.dataset}-{task}")
        return prepare(self.start, replace(self.files, output=str(output)))

    def kept(self, column: str) -> bool:
        """Whether a column is among those that matter."""
        try:
            return column in self.start.chosen.names
        except InvalidParameter:  # nothing is left of what is offered
            return False

    def said(self, column: str) -> str:
        """Return what was said of a column that is left out as a rule."""
        return self._shown(self.start.chosen.said.get(column, "")) if self.kept(column) else ""

    def _preview(self, stage: str) -> list[Step]:
        """List the steps of a group; what depends on a proposal is proposed, too."""
        start = self.start
        if stage == "budget" and start.left is None:
            cap = next((step for step in start.steps() if step.key == "cap"), None)
            start = start if cap is None else start.answered("cap", cap.default or "1")
        return [step for step in start.steps() if stage_of(step.key) == stage]

    def _typed(self, step: Step, form: Mapping[str, str]) -> str:
        """Read the field of a step; a goal is in two, and columns are ticked one by one."""
        if step.key == "columns":
            return self._columns(form)
        text = form.get(self.field(step), "").strip()
        if step.key == "goal":
            task, columns = text, form.get("goal_columns", "").strip()
            needs = task in NEEDS_TARGET or task not in ("", "stream")
            return f"{task}:{columns}" if columns and needs else task
        return text

    def _columns(self, form: Mapping[str, str]) -> str:
        """Read which columns are ticked, and what was said of those that are left out as a rule."""
        ticked: list[str] = []
        said: list[str] = []
        for i, proposal in enumerate(self.start.proposals):
            text = form.get(f"say-{i}", "").strip()
            if f"keep-{i}" in form:
                ticked.append(proposal.column)
            elif text:
                said.append(f"{proposal.column}={self._inside(text)}")
                ticked.append(proposal.column)
            if ticked[-1:] == [proposal.column] and ";" in proposal.column + text:
                raise InvalidParameter(
                    f"column {proposal.column!r}: a semicolon cannot stand in a name or an answer "
                    "here; untick it, and add it to the schema later"
                )
        offered = [x.column for x in self.start.proposals if x.role == "publish"]
        listed = ALL if {*ticked, form.get("unit", "")} >= {*offered} else join_names(ticked)
        return "; ".join([listed, *said]) if listed else ""

    def _inside(self, text: str) -> str:
        """Name a file of codes by its path; refuse one that is not in the studio's folder."""
        named = codes_file(text)
        if named is None:
            return text
        head, _, rest = text.partition("@")
        return f"{head}@{find_codes(self.desk, named)}{rest.strip()[len(named) :]}"

    def _shown(self, text: str) -> str:
        return text.replace(f"@{self.desk.files.resolve()}/", "@")


class Answers(NamedTuple):
    """A start with some more answers, and those that could not be used, and why."""

    begun: Begun
    typed: Mapping[str, str]
    problems: Mapping[str, str]


def start_files(desk: Desk, data: str, dataset: str = "", table: str = "") -> StartFiles:
    """Name what a guided start reads and writes; all that it writes lies in the studio's folder."""
    source = desk.source(data)
    if not dataset and data in desk.sources:
        dataset = data
    files = StartFiles.of(
        source.location,
        dataset=dataset or None,
        ledger=desk.ledger,
        table=table or source.table,
    )
    return replace(files, schema=desk.files / files.schema.name)


def stage_of(key: str) -> str:
    """Return the group of a query."""
    return "columns" if key.startswith(COLUMN) else _STAGE_OF[key]


def _unread(start: Start, stage: str, typed: Mapping[str, str]) -> Iterator[Step]:
    return (step for step in start.steps() if stage_of(step.key) == stage and step.key not in typed)

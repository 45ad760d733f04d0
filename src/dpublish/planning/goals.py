"""What a release is for, in words: `rows`, `classify:income`, `counts:age,sex`, `clusters` ..."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidType, require_known

GoalTask = Literal["rows", "counts", "statistics", "classify", "model", "clusters", "top", "stream"]

GOALS: Mapping[GoalTask, str] = {
    "rows": "synthetic rows for any use",
    "counts": "counts of a few columns, each with a confidence interval",
    "statistics": "sums, means and quantiles, by group",
    "classify": "a classifier that predicts a class column",
    "model": "a regression: coefficients, and predictions of a class or a number",
    "clusters": "groups of similar records",
    "top": "the most frequent values",
    "stream": "counts of a table that changes, step by step",
}
"""Every task, in words for people."""

NEEDS_TARGET: frozenset[GoalTask] = frozenset({"classify", "model"})
"""Goals that name one column to predict."""


def _colon(text: str) -> str:
    """Put a colon behind the task where a blank stands: `classify income`."""
    word, blank, listed = text.strip().partition(" ")
    return f"{word}:{listed}" if blank and word in get_args(GoalTask) and ":" not in text else text


@dataclass(frozen=True)
class Goal:
    """A task, and the columns that it is about; none stands for all that fit.

    >>> Goal.parse("classify:income"), str(Goal.parse("counts: age, sex"))
    (Goal(task='classify', columns=('income',)), 'counts:age,sex')
    >>> str(Goal.parse("classify income"))
    'classify:income'
    """

    task: GoalTask
    columns: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: "str | Goal", schema: Schema | None = None) -> "Goal":
        """Read a goal; with a schema, refuse columns that it does not have."""
        if isinstance(text, Goal):
            goal = text
        elif isinstance(text, str):
            word, _, listed = _colon(text).partition(":")
            require_known("goal", word.strip(), get_args(GoalTask))
            names = tuple(name.strip() for name in listed.split(",") if name.strip())
            task: GoalTask = word.strip()  # type: ignore[assignment]
            goal = cls(task, names)
        else:
            raise InvalidType(
                f"a goal is a text such as 'rows' or 'classify:income', not {type(text).__name__}"
            )
        goal.check(schema)
        return goal

    def check(self, schema: Schema | None = None) -> None:
        """Refuse a goal without the column that it needs, or with one that is not there."""
        if self.task in NEEDS_TARGET and len(self.columns) != 1:
            raise InvalidParameter(
                f"the goal {self.task} needs the one column to predict: {self.task}:income"
            )
        for name in self.columns:
            if schema is not None:
                require_known("column", name, schema.names)

    @property
    def target(self) -> str | None:
        """The column to predict, of a goal that predicts one."""
        return self.columns[0] if self.task in NEEDS_TARGET else None

    def __str__(self) -> str:
        return ":".join(part for part in (self.task, ",".join(self.columns)) if part)

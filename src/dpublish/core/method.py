"""What every method offers: public settings, one release, and its error predicted.

A method is a frozen dataclass.  Each field is a public setting, described by `setting(...)`,
so that the command line, the plan, the receipt and the report list the same things.

`Method.release` is the only way in, and final: it checks what must be checked before any row
is read, hands the method a `Run`, and checks that the whole budget was spent.  A method writes
`_release(run)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar, final

from dpublish.core.released import Release
from dpublish.core.run import Progress, Run, settings_of
from dpublish.data.schema import Schema, all_names
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, Neighbors
from dpublish.privacy.receipt import refuse_other_notion, refuse_part, refuse_seeded_grant
from dpublish.randomness import RandomSource

__all__ = [
    "ExpectedError",
    "Method",
    "Predicts",
    "Progress",
    "Run",
    "figure_name",
    "setting",
    "settings_of",
]

R_co = TypeVar("R_co", bound=Release, covariant=True)


@dataclass(frozen=True)
class ExpectedError:
    """How far a release will be from the truth, predicted without the data."""

    summary: str
    figures: Mapping[str, float]
    target: str
    """The figure that shrinks as epsilon grows; `plan` solves for it."""


class Predicts(Protocol):
    """Public settings whose error can be predicted: a method, or a method for streams."""

    name: ClassVar[str]

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error from public facts."""
        ...


class Method(ABC, Generic[R_co]):
    """A way to publish something: public settings and one verb.

    Subclasses are frozen dataclasses.  They write `_release` and `expected_error`, and may
    name other neighbors than single records in `hidden`.
    """

    name: ClassVar[str]
    task: ClassVar[str] = ""
    """What the method is for: counting, synthesis, classification, clustering ..."""
    publishes: ClassVar[str] = ""
    """What it publishes, in one line."""
    prefer_when: ClassVar[str] = ""
    """When to choose it, in one line."""
    released: ClassVar[type[Release]]
    """The class of the released value; a method of another package states it for `load`."""
    hidden: ClassVar[tuple[type[Neighbors], ...]] = (AddRemoveRecord,)
    """The changes to a table that the method can hide."""
    takes_levels: ClassVar[bool] = False
    """Whether a budget may cost people of different levels different amounts."""

    @final
    def release(
        self,
        table: Table,
        *,
        budget: Budget,
        rng: RandomSource,
        progress: Progress | None = None,
    ) -> R_co:
        """Publish from `table`, spending exactly `budget`.

        Privacy:
            Whatever could stop a release stops it here, from public facts alone and before any
            row is read: a part of a grant, rows that were bounded by unit, a seed where a
            ledger paid, neighbors that the method does not hide, another change than the
            ledger was told, settings that do not fit the schema or epsilon.  Then `_release`
            argues for itself.  At the end every share of the budget must be spent and the
            receipt must name what ran.
        """
        refuse_part(budget)
        refuse_bounded(table)
        require_columns(self, table)
        return self.release_part(table, budget=budget, rng=rng, progress=progress)

    @final
    def release_part(
        self,
        table: Table,
        *,
        budget: Budget,
        rng: RandomSource,
        progress: Progress | None = None,
    ) -> R_co:
        """Publish within another release, from a part of its budget: for runs alone.

        Privacy:
            As `release`.  Whoever hands out the part argues what it costs the whole release,
            and what a table that is not the owner's own (a sample, a group) hides.
        """
        refuse_seeded_grant(budget, rng)
        if budget.levels is not None and not self.takes_levels:
            raise InvalidParameter(f"{self.name} costs every person the same; name no levels")
        self.check_table(table)
        refuse_other_notion(budget, self.neighbors_of(table))
        expected = self.expected_error(table.schema, None, self.epsilon_of(budget))
        run = Run(
            table,
            rng=rng,
            method=self.runs,
            budget=budget,
            expected=expected.figures,
            progress=progress,
        )
        released = self._release(run)
        run.require_spent(released.receipt)
        return released

    @property
    def runs(self) -> "Method[Any]":
        """The method that a release of these settings runs, and that its receipt names.

        Itself, unless its settings leave the work to another one.
        """
        return self

    @abstractmethod
    def _release(self, run: Run) -> R_co:
        """Publish from the run's table, with all of its budget.

        Privacy:
            Argued by each method.
        """

    @abstractmethod
    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error from public facts; refuse what could not be published."""

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone.

        A table may be opened with these alone, so a method that names fewer than it reads fails.
        All but the unit, unless the settings say otherwise; never none, for a column counts rows.
        """
        return all_names(schema)

    def check_table(self, table: Table) -> None:
        """Refuse a table whose neighbors the method does not hide; reads no rows."""
        if not isinstance(table.neighbors, self.hidden):
            what = "a record or unit" if AddRemoveUnit in self.hidden else "one record"
            raise InvalidParameter(f"{self.name} hides {what} added or removed, nothing else")

    def neighbors_of(self, table: Table) -> Neighbors:
        """Return the change to the table that a release hides."""
        return table.neighbors

    def epsilon_of(self, budget: Budget) -> Fraction:
        """Return the epsilon with which the error of a release from `budget` is predicted."""
        return budget.epsilon


def refuse_bounded(table: Table) -> None:
    """Refuse rows that were bounded by unit: one row more may replace another of its unit."""
    if getattr(table, "is_bounded", False):
        raise InvalidParameter(
            "a table whose rows were bounded by unit hides neither a record nor a unit at this "
            "epsilon: publish from the table as it was opened"
        )


def require_columns(method: Method[Any], table: Table) -> None:
    """Refuse a table that was opened without a column that the method reads; reads no rows."""
    told: Any = table
    opened = told.opened if hasattr(type(table), "opened") else table.schema.names
    for name in method.reads(table.schema):
        if name not in opened:
            raise InvalidParameter(
                f"{method.name} reads column {name!r}, and the table was opened without it: open "
                "it with columns=method.reads(schema)"
            )


def setting(description: str, *, default: Any = MISSING) -> Any:
    """Declare a public setting of a method, with the help text that users see."""
    return field(default=default, metadata={"help": description})


def figure_name(name: str) -> str:
    """Write the name of a figure for people.

    >>> figure_name("one_cell_95")
    'one cell (95 %)'
    """
    return name.replace("_", " ").replace(" 95", " (95 %)")

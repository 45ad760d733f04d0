"""What every method offers: public settings, one release, and its error predicted.

A method is a frozen dataclass.  Each field is a public setting, described by `setting(...)`,
so that the command line, the plan, the receipt and the report list the same things.

`Method.release` is the only way in, and final: it checks what must be checked before any row
is read, hands the method a `Run`, and checks that the whole budget was spent.  A method writes
`_release(run)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from fractions import Fraction
from functools import wraps
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar, final

from dpublish.core.contribution import (
    MOST_ROWS,
    choose_contribution,
    record_schema,
    require_contribution,
    require_share,
    require_unit,
)
from dpublish.core.released import Release
from dpublish.core.run import Progress, Run, settings_of
from dpublish.core.setting_values import settle_settings
from dpublish.data.schema import Schema, all_names, needs_contribution
from dpublish.data.steps import FILTER
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, plain_refusals
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    Neighbors,
    PersonalRecord,
    ReplaceRecord,
)
from dpublish.privacy.receipt import refuse_other_notion, refuse_part, refuse_seeded_grant
from dpublish.randomness import RandomSource

__all__ = [
    "ExpectedError",
    "Method",
    "Predicts",
    "Progress",
    "Run",
    "Standing",
    "figure_name",
    "setting",
    "settings_of",
]

R_co = TypeVar("R_co", bound=Release, covariant=True)
Standing = Literal["default", "alternative", "baseline"]
"""Whether a method is what to take for its task, may suit better in some case, or is there to
compare with."""


def setting(description: str, *, default: Any = MISSING, is_quiet: bool = False) -> Any:
    """Declare a public setting of a method, with the help text that users see.

    A quiet one is left out of receipts as long as it has its default.
    """
    metadata = {"help": description, "quiet": is_quiet}
    return field(default=default, metadata=metadata, repr=not is_quiet)


@dataclass(frozen=True)
class ExpectedError:
    """How far a release will be from the truth, predicted without the data."""

    summary: str
    figures: Mapping[str, float]
    target: str
    """The figure that shrinks as epsilon grows; `plan` solves for it."""
    is_of_goal: bool = True
    """Whether the target bounds what is published for its own sake, such as a count.  False if it
    is noise on the way to something else, such as a classifier: how many predictions will be
    wrong does not follow from it."""


class Predicts(Protocol):
    """Public settings whose error can be predicted: a method, or a method for streams."""

    name: ClassVar[str]

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error from public facts."""
        ...

    def neighbors(self, schema: Schema) -> Neighbors:
        """Return the change that is hidden."""
        ...


@dataclass(frozen=True, kw_only=True)
class Method(ABC, Generic[R_co]):
    """A way to publish something: public settings and one verb.

    Subclasses are frozen dataclasses.  They write `_release` and `expected_error`, and may
    name other neighbors than single records in `hidden`.  A method that hides single records
    hides units with several rows, too, once `contribution` says how many rows of each are kept;
    it need not know of that.

    Parameters:
        contribution: Most rows of one unit that are kept, chosen at random; `"auto"` buys a
            private 95 % quantile of rows per unit.  For schemas that name a unit.
        contribution_share: Part of epsilon that `contribution="auto"` spends.
    """

    name: ClassVar[str]
    task: ClassVar[str] = ""
    """What the method is for: counting, synthesis, classification, clustering ..."""
    publishes: ClassVar[str] = ""
    """What it publishes, in one line."""
    prefer_when: ClassVar[str] = ""
    """When to choose it, in one line."""
    standing: ClassVar[Standing] = "alternative"
    """Whether it is the default of its task, an alternative, or a baseline of the literature."""
    proofs: ClassVar[tuple[str, ...]] = ()
    """Pages of docs/proofs, without their ending: its own, and those of mechanisms that it uses."""
    released: ClassVar[type[Release]]
    """The class of the released value; a method of another package states it for `load`."""
    hidden: ClassVar[tuple[type[Neighbors], ...]] = (AddRemoveRecord,)
    """The changes to a table that the method can hide."""
    takes_levels: ClassVar[bool] = False
    """Whether a budget may cost people of different levels different amounts."""

    contribution: Literal["auto"] | int | None = setting(
        "Most records of one person that are kept, if the schema says who that is (unit): 4, or "
        "auto, which buys a private 95 % quantile of records per person; noise grows in "
        "proportion.",
        default=None,
        is_quiet=True,
    )
    contribution_share: Fraction = setting(
        "Part of epsilon that contribution auto spends.", default=Fraction(1, 20), is_quiet=True
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every method take lists, names and decimals as people write them."""
        super().__init_subclass__(**options)
        if "__post_init__" in vars(cls):
            checked = plain_refusals(_settling(cls.__post_init__))
            cls.__post_init__ = checked  # type: ignore[assignment, method-assign]

    def __post_init__(self) -> None:
        settle_settings(self)

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
            receipt must name what ran.  With `contribution`, units are hidden at the budget's
            epsilon (`_release_units`).
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
        self.require_table(table)
        refuse_other_notion(budget, self.neighbors_of(table))
        if self.contribution is not None:
            # Refused here, and not by the method for records, which runs when rows were read.
            self.predict_error(table.schema, None, self.epsilon_of(budget))
            return self._release_units(table, budget=budget, rng=rng, progress=progress)
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

    def _release_units(
        self, table: Table, *, budget: Budget, rng: RandomSource, progress: Progress | None
    ) -> R_co:
        """Publish from at most m rows of each unit, by the method that hides single records.

        Privacy:
            `budget.epsilon`-differentially private for all rows of one unit added or removed.
            The key is drawn before any row is read.  For every key, the bounded tables of
            neighbors differ in at most m rows, all added or all removed (`Table.bound`), so a
            chain of m record neighbors leads from one to the other, and a release that costs
            epsilon / m for each of them costs epsilon in all (`Budget.for_rows`).  With
            `"auto"`, m is a private choice that its own share pays for; given m, the rest is
            as above, and both add up.  Proof: docs/proofs/contribution_bound.md.
        """
        key = rng.words(2).tobytes()
        shares = {"rows": budget}
        if self.contribution == "auto":
            part = self.contribution_share
            shares = budget.split(contribution=part, release=1 - part)
            most = choose_contribution(
                table,
                self.reads(table.schema),
                self.complete_columns(table.schema),
                budget=shares["contribution"],
                rng=rng,
            )
        else:
            most = int(self.contribution or 1)
        *_, rest = shares.values()
        # Opened before any row is read for it: a share that is already used stops here.
        paying = rest.for_rows(most, hides=self.row_neighbors(table.schema))
        released: Any = self.for_records().release_part(
            self.bound_rows(table, most, key), budget=paying, rng=rng, progress=progress
        )
        receipt = released.receipt.for_unit(
            most,
            budget=budget,
            neighbors=self.neighbors_of(table),
            settings=self.unit_settings(),
            steps=getattr(table, "steps", ()),
        )
        lifted: R_co = released.with_receipt(receipt)
        return lifted

    def for_records(self) -> Self:
        """Return the method that hides single records, with the same settings otherwise."""
        return replace(self, contribution=None)

    def bound_rows(self, table: Table, most: int, key: bytes) -> Table:
        """Keep at most `most` rows of each unit, with the columns that are read.

        Privacy:
            A unit's rows alone decide which of them stay, whatever the key is (`Table.bound`).
        """
        schema = table.schema
        return table.bound(most, key, self.reads(schema), complete=self.complete_columns(schema))

    def complete_columns(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns without which a row of a unit has no part in a release.

        Such rows go before the bound, so that none of the others goes for them.  All that are
        read, unless the settings say otherwise.
        """
        return self.reads(schema)

    def record_schema(self, schema: Schema) -> Schema:
        """Return the schema of the rows that stay: records of their own."""
        return record_schema(schema, self.reads(schema))

    def row_neighbors(self, schema: Schema) -> Neighbors:
        """Return the change that `for_records` hides in the rows that stay: one of them."""
        return AddRemoveRecord()

    def unit_settings(self) -> dict[str, Any]:
        """Return what the receipt of a release that hides units states besides."""
        return {"contribution": self.contribution}

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

    @final
    def predict_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a release of `epsilon`, bounded by unit if that is set.

        With `contribution` set to `"auto"`, for the largest bound that may come out.
        """
        if self.contribution is None:
            if schema.unit is not None and AddRemoveUnit not in self.hidden:
                raise needs_contribution(schema, self.name)
            return self.expected_error(schema, n_records, epsilon)
        self.check_contribution(schema)
        most, amount = self._worst_case(epsilon)
        bounded = self.record_schema(schema)
        found = self.for_records().expected_error(bounded, n_records, amount / most)
        what = f"at most {most} record{'' if most == 1 else 's'} of each {schema.unit_who}"
        if self.contribution == "auto":
            what += ", the most that auto may choose"
        return replace(found, summary=f"{found.summary}; {what}")

    @final
    def check_contribution(self, schema: Schema | None = None) -> None:
        """Refuse a bound that is none, or for which the schema names no unit."""
        require_contribution(self.contribution, self.contribution_share)
        if schema is not None:
            require_unit(schema)

    def _worst_case(self, epsilon: Fraction) -> tuple[int, Fraction]:
        """Return the most rows of a unit that may be kept, and what is spent on them."""
        if self.contribution == "auto":
            require_share(epsilon * self.contribution_share)
            return MOST_ROWS, epsilon * (1 - self.contribution_share)
        return int(self.contribution or 1), epsilon

    @final
    def require_table(self, table: Table) -> None:
        """Refuse a table that the method cannot publish from as it is set; reads no rows."""
        if self.contribution is None:
            self.check_table(table)
        else:
            self.check_units(table)
        refuse_steps(table, self.neighbors_of(table))

    def check_table(self, table: Table) -> None:
        """Refuse a table whose neighbors the method does not hide; reads no rows."""
        if isinstance(table.neighbors, self.hidden):
            return
        if isinstance(table.neighbors, AddRemoveUnit):
            raise needs_contribution(table.schema, self.name)
        what = "a record, or all of a person," if AddRemoveUnit in self.hidden else "one record"
        raise InvalidParameter(f"{self.name} hides {what} added or removed, nothing else")

    def check_units(self, table: Table) -> None:
        """Refuse a table whose rows cannot be bounded by unit for this method; reads no rows."""
        self.check_contribution(table.schema)
        hidden = self.neighbors_of(table)
        if AddRemoveRecord not in self.hidden or not isinstance(hidden, AddRemoveUnit):
            raise InvalidParameter(
                f"{self.name} hides {hidden.brief()} as it is set, and contribution hides people "
                "who are added or removed; leave one of the two out"
            )

    def neighbors(self, schema: Schema) -> Neighbors:
        """Return the change that a release from a table with this schema hides."""
        return schema.neighbors

    def neighbors_of(self, table: Table) -> Neighbors:
        """Return the change to the table that a release hides."""
        return table.neighbors

    def epsilon_of(self, budget: Budget) -> Fraction:
        """Return the epsilon with which the error of a release from `budget` is predicted."""
        return budget.epsilon


def _settling(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Turn settings into the types that a method declares before it checks them."""

    @wraps(check)
    def settled(method: Any) -> None:
        settle_settings(method)
        check(method)

    return settled


def refuse_bounded(table: Table) -> None:
    """Refuse rows that were bounded by unit: one row more may replace another of its unit."""
    if getattr(table, "is_bounded", False):
        raise InvalidParameter(
            "a table whose rows were bounded by unit hides neither a record nor a person at this "
            "epsilon: publish from the table as it was opened"
        )


def refuse_steps(table: Table, hidden: Neighbors) -> None:
    """Refuse steps before the method where it is public who is in the table; reads no rows.

    Who is left after a filter depends on values that are hidden, and so does a level that is
    derived from them (docs/proofs/record_steps.md).
    """
    steps = getattr(table, "steps", ())
    if isinstance(hidden, ReplaceRecord) and any(step.startswith(FILTER) for step in steps):
        raise InvalidParameter(
            "the number of records is public here, and how many of them a filter keeps is not: "
            "leave out where, or public_records"
        )
    if isinstance(hidden, PersonalRecord) and hidden.mode == "values-only" and steps:
        raise InvalidParameter(
            "with the mode values-only it is public who is in the table, at which level; where, "
            "derive and lookups make that depend on values: leave them out, or use another mode"
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


def figure_name(name: str) -> str:
    """Write the name of a figure for people.

    >>> figure_name("one_cell_95")
    'one cell (95 %)'
    """
    return name.replace("_", " ").replace(" 95", " (95 %)")

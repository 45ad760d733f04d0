"""What personalized methods share: whose levels they respect, what each level pays, and how.

A personalized release of epsilon spends at most the share a_b = e_b * epsilon / e_B of every
level e_b, where e_B is the largest level.  What a method costs at each level is public and
known before (`spending`); the most that any level pays is the epsilon of its `Budget`.

Where people have several rows, at most m of them stay (`contribution`), all at the person's own
level, the smallest of all their rows.  The method that hides single records (`for_records`) then
runs with epsilon / m, and a person pays m times what one row costs.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, final

from dpublish.core.method import Method, Run, setting, settings_of
from dpublish.core.released import Release
from dpublish.data.schema import Schema, needs_contribution
from dpublish.data.steps import FILTER
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, InvalidType, require_count, what_it_is
from dpublish.methods.personalized.kernels import AskedCodes, LevelCounts
from dpublish.methods.personalized.preferences import Mode, Preferences
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_short, parse_epsilon
from dpublish.privacy.levels import parse_amounts, parse_levels
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.privacy.receipt import Receipt

ASSUMED_PEOPLE = 1_000
"""People at each level for which errors are predicted where their number is not public."""
EXCHANGEABLE_COUNTS = (
    "Assert that levels tell nothing about the other values: counts are then scaled up to all "
    "eligible people, whose number at each level must be public."
)


@dataclass(frozen=True, kw_only=True)
class PersonalSettings(Method[Any]):
    """Settings of every personalized method: where levels are, and what of them is public.

    Parameters:
        preference: Column that holds how much epsilon each person accepts.
        levels: The public levels, rising; each person's number is rounded down to one of them.
        mode: What is public: `"frame"`, `"levels"` or `"values-only"`.
        sizes: Number of eligible people at each level, for the mode `"frame"`.
        rule: Levels by the preference column's values, such as `"0..17=0.01, 18..=1"`.
        derived: Confirms that the levels of a rule may tell something about its column.
        contribution: Most rows of one person that are kept, where the schema names a unit; all
            rows of a person are then hidden together, at the smallest level of them all.
    """

    takes_levels: ClassVar[bool] = True
    task: ClassVar[str] = "personalized"

    name: ClassVar[str]

    preference: str = setting("Column that holds how much epsilon each person accepts.")
    levels: tuple[Fraction, ...] = setting(
        "The levels, rising, such as 0.01,0.1,1: each person's number is rounded down to one of "
        "them; people below the first level, or without a number, are left out."
    )
    mode: Mode | None = setting(
        "What is public: frame (how many eligible people there are at each level, given by "
        "sizes), levels (the levels alone) or values-only (who is in the table, and their "
        "levels). Without it frame if sizes are given, else levels.",
        default=None,
    )
    sizes: tuple[int, ...] = setting(
        "How many eligible people there are at each level, present or not; for frame.", default=()
    )
    rule: str | None = setting(
        "Levels by the preference column's values, such as 0..17=0.01,18..=1, instead of its "
        "numbers.",
        default=None,
    )
    derived: bool = setting(
        "Confirm that the levels of a rule may tell something about its column.",
        default=False,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", parse_levels(self.levels))
        if self.contribution == "auto":
            raise InvalidParameter(
                "records per person are measured at one epsilon for all, which people of low "
                "levels may not accept: say how many records of each person may count, "
                "--contribution 4"
            )
        if self.contribution is not None:
            require_count(contribution=self.contribution)
        if self.mode is None:
            object.__setattr__(self, "mode", "frame" if self.sizes else "levels")
        _ = self.preferences  # refuses what does not fit together

    @property
    def preferences(self) -> Preferences:
        """Whose level is what, and who may know it."""
        return Preferences(
            column=self.preference,
            levels=self.levels,
            mode=self.mode or "levels",
            sizes=self.sizes or None,
            rule=self.rule,
            derived=self.derived,
        )

    @final
    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what a release of `epsilon` costs at every level: public, at most its share.

        Of a person with several rows it is what all of them cost together.
        """
        exact, rows = parse_epsilon(epsilon), self.rows_each
        self.preferences.amounts(exact)  # refuses more than the largest level
        if self.contribution is None:
            return self.row_spending(exact)
        costs = self.for_records().row_spending(exact / rows)
        return {level: rows * cost for level, cost in costs.items()}

    @abstractmethod
    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what a release of `epsilon` costs a single record of every level."""

    @property
    def rows_each(self) -> int:
        """How many rows of a person take part at most."""
        return 1 if self.contribution is None else int(self.contribution)

    def for_records(self) -> Self:
        """Return the method that hides single rows, which have their person's level in a column."""
        own = self.preferences.of_rows
        return replace(
            self,
            contribution=None,
            preference=own.column,
            rule=own.rule,
            derived=own.derived,
            **self._for_rows(self.rows_each),
        )

    def _for_rows(self, rows: int) -> dict[str, Any]:
        """Return the settings that are others where people have up to so many rows."""
        return {}

    def record_schema(self, schema: Schema) -> Schema:
        """Return the schema of bounded rows: what is read of them, and their person's level."""
        own = self.preferences.of_rows
        return own.schema(replace(self.prepare(schema), unit=None))

    def row_neighbors(self, schema: Schema) -> Neighbors:
        """Return the change that is hidden in bounded rows: one of them, at its person's level."""
        return self.preferences.of_rows.neighbors(self.record_schema(schema))

    def bound_rows(self, table: Table, most: int, key: bytes) -> Table:
        """Keep at most `most` rows of each person, all of them at that person's level.

        Privacy:
            As `Preferences.bound`: a person's rows alone decide which of them stay, and at which
            level.
        """
        needed = self.complete_columns(table.schema)
        return self.preferences.bound(table, most, key, self.reads(table.schema), needed)

    def unit_settings(self) -> dict[str, Any]:
        """Return the settings that the receipt of a release that hides people states."""
        return {**settings_of(self.runs), "contribution": self.contribution}

    def check_table(self, table: Table) -> None:
        """Refuse a table that lacks the levels, or has another rule for them; reads no rows."""
        if table.schema.unit is not None:
            raise needs_contribution(table.schema, self.name)
        self._check_levels(table)

    def check_units(self, table: Table) -> None:
        """Refuse a table whose rows cannot be bounded, or do not have the levels; reads no rows."""
        self.check_contribution(table.schema)
        self._check_levels(table)
        if any(step.startswith(FILTER) for step in getattr(table, "steps", ())):
            raise InvalidParameter(
                "a filter could leave out the record that gives a person their level, so that one "
                "person had different levels in different releases; leave --where (where=) out, "
                "and ask for the part that you want of what is published"
            )

    def _check_levels(self, table: Table) -> None:
        """Refuse levels that are not in the table itself, or not as the schema says.

        The ledger adds up what people of a level lose over all releases, and knows the column of
        levels by its name: one that a step makes may be another in the next release.
        """
        self.preferences.check(table.schema)
        if self.preference in getattr(table, "made", ()):
            raise InvalidParameter(
                f"column {self.preference!r} gives people their levels, and a step (derive, "
                "lookups) makes it: made in another way, a person had one level here and another "
                "in the next release; take a column of the table, and a rule (--rule) if it holds "
                "no levels"
            )

    def neighbors(self, schema: Schema) -> Neighbors:
        """Return the change that is hidden, with the levels at which it is."""
        return self.preferences.neighbors(schema)

    def neighbors_of(self, table: Table) -> Neighbors:
        """Return the change to the table that is hidden, with the levels at which it is."""
        return self.neighbors(table.schema)

    def epsilon_of(self, budget: Budget) -> Fraction:
        """Return the epsilon whose `spending` is what `budget` holds; refuse if there is none."""
        return full_epsilon(self, budget)

    def prepare(self, schema: Schema) -> Schema:
        """Declare the preference column, so that a table can be opened for this method."""
        return self.preferences.schema(schema)

    def inner_schema(self, schema: Schema) -> Schema:
        """Return the schema that the people's records have without their levels."""
        return self.preferences.without(self.prepare(schema))

    def budget(self, epsilon: Fraction, purpose: str = "release") -> Budget:
        """Make the budget of a release of `epsilon` that no ledger adds up; for experiments."""
        amounts = parse_amounts(self.spending(epsilon))
        return Budget.seeded(max(amount for _, amount in amounts), purpose, levels=amounts)

    def with_levels(self, columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
        """Add the column that levels come from to what a release reads; in the schema's order."""
        read = {*columns, self.preference}
        return tuple(name for name in schema.names if name in read)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads, of a schema that `prepare` made."""
        return self.with_levels(super().reads(schema), schema)

    @property
    def halves(self) -> int:
        """Count the steps from a table to its neighbor: one record in or out, or both.

        With `values-only` a record's values are exchanged: it is taken out and put in again.
        A method that hides one step then runs with half of each level's amount.
        """
        return 2 if self.mode == "values-only" else 1


@dataclass(frozen=True, kw_only=True)
class PersonalMethod(PersonalSettings):
    """Settings of the personalized methods that run another method on chosen records."""

    inner: Method[Any] = setting(
        'Method to run on the chosen records, with its settings: "histogram columns=age,sex".'
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not hasattr(self.inner, "contribution"):
            raise InvalidType(
                'inner must be a method that is set, such as dpublish.Histogram(columns=["age"]), '
                f"not {what_it_is(self.inner)}"
            )
        if isinstance(self.inner, PersonalSettings):
            raise InvalidParameter("inner must be an ordinary method, not a personalized one")
        if self.inner.contribution is not None:
            raise InvalidParameter(
                f"records are bounded once, before anything is published: --contribution is for "
                f"{self.name}, not for what runs inside it"
            )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads, of a schema that `prepare` made."""
        return self.with_levels(self.inner_reads(schema), schema)

    def complete_columns(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns without which a row has no part in a release: the inner method's."""
        needed = self.inner.complete_columns(self.preferences.without(schema))
        return self.with_levels(needed, schema)

    def inner_reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that the inner method reads."""
        return self.inner.reads(self.preferences.without(schema))

    def check_table(self, table: Table) -> None:
        """Refuse a table, or an inner method, whose neighbors are not single records."""
        super().check_table(table)
        self._check_inner(table)

    def check_units(self, table: Table) -> None:
        """Refuse a table whose rows cannot be bounded, or an inner method that needs all rows."""
        super().check_units(table)
        self._check_inner(table)

    def _check_inner(self, table: Table) -> None:
        if self.inner.neighbors_of(table) != table.neighbors:
            raise InvalidParameter(
                f"inner ({self.inner.name}) must hide one record added or removed; leave its "
                "public number of records out"
            )


def full_epsilon(method: PersonalSettings, budget: Budget) -> Fraction:
    """Find the epsilon whose `spending` is just what `budget` holds; refuse if there is none."""
    top = method.levels[-1]
    if budget.levels is None:
        full = budget.epsilon * top / max(method.spending(top).values())
    else:
        # The lowest level that pays at all pays its whole share.
        level, amount = next(pair for pair in budget.levels if pair[1])
        full = amount * top / level
    if full > top:
        most = max(method.spending(top).values())
        raise InvalidParameter(
            f"epsilon ({format_short(budget.epsilon)}) is more than {method.name} may spend with "
            f"these levels, {format_short(most)}"
        )
    amounts = parse_amounts(method.spending(full))
    found = max(amount for _, amount in amounts)
    if found != budget.epsilon or (budget.levels is not None and amounts != budget.levels):
        raise InvalidParameter(
            f"the budget holds other amounts than {method.name} spends; grant what spending(...) "
            "says, or make the budget by budget(...)"
        )
    return full


def inner_release(
    run: Run,
    method: Method[Any],
    share: Budget,
    epsilon: Fraction,
    *,
    shows_progress: bool = True,
) -> Release:
    """Run an ordinary method on the records of the run, paid for by `share`.

    Privacy:
        As private as `method` is with `epsilon` for one record of the part added or removed;
        the share holds at least that (`Budget.at_most`), or twice of it if records are
        exchanged.  It is emptied before the method reads a row.
    """
    budget = share.at_most(epsilon, hides=AddRemoveRecord())
    released: Release = run.release(method, budget=budget, shows_progress=shows_progress)
    return released


def personal_receipt(run: Run, method: PersonalSettings) -> Receipt:
    """Write the receipt of a personalized release; call it when the whole budget is spent.

    Privacy:
        Reads no rows and spends nothing (`Receipt.issue`).
    """
    return Receipt.issue(
        method=method.name,
        settings=settings_of(method),
        budget=run.budget,
        neighbors=method.preferences.neighbors(run.schema),
        rng=run.rng,
        personal=parse_amounts(method.spending(method.epsilon_of(run.budget))),
        steps=run.steps,
    )


def known_sizes(run: Run, method: PersonalSettings) -> tuple[int, ...] | None:
    """Return the public number of people at each level; count the table if that is public too.

    Call it when the budget is open.  Only in the mode `values-only` rows are read: there it is
    public who is in the table, and at which level.
    """
    if method.mode == "frame":
        return method.sizes
    if method.mode == "levels":
        return None
    return tuple(run.sum(level_counts(method, run.schema)).tolist())


def level_counts(method: PersonalSettings, schema: Schema, asked: AskedCodes = ()) -> LevelCounts:
    """Make the kernel that counts the records of each level, of those with the asked codes."""
    numbers = method.preferences.level_of_code(schema) - 1
    return LevelCounts(method.preference, tuple(numbers.tolist()), len(method.levels), asked)

"""Synth: synthetic rows for any use, from chosen noisy tables joined on a junction tree."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.contribution import record_schema
from dpublish.core.method import ExpectedError, Method, Progress, Run, Standing, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.column import Column
from dpublish.data.schema import Schema, keep_columns, listed_names, needs_contribution
from dpublish.data.statements import Combination, KnownTotal
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.domain import require_names
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import release_marginal, require_marginal
from dpublish.methods.synth.choice import ExactTables, choose_tables
from dpublish.methods.synth.classes import make_classes, masks_of
from dpublish.methods.synth.measure import measure_quality
from dpublish.methods.synth.model import Known, Model, fit_model
from dpublish.methods.synth.plan import (
    MOST_TABLES,
    PRIOR_SHARE,
    SIZE_SHARE,
    Plan,
    are_long,
    column_weights,
    count_values,
    make_plan,
)
from dpublish.methods.synth.prior import choose_prior, read_prior
from dpublish.methods.synth.quality import STEPS
from dpublish.methods.synth.released import SynthRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

MOST_COLUMNS = 400
_MOST_PAIR_CELLS = 4_000_000
_CLASS_LIMITS = (64, 48, 32, 24, 16, 12, 8, 4)
_MOST_QUALITY = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Synth(Method[SynthRelease]):
    """Publish a model of a whole table, and draw synthetic rows for any use from it.

    Adds noise to the marginal of every column and to a few tables of two (or three) columns,
    chosen by what they add to what is already known.  One distribution is fitted to all of them.
    It is the method to take for "rows for any use".  Choose `PrivPfC` to predict one class,
    `Histogram` for a few columns with a confidence interval for every count, and `Statistics`
    for means and totals.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record (or all records of
        one person, with `contribution` set).  Proof: docs/proofs/synth.md.

    Parameters:
        columns: Columns to publish; all, unless named.  Columns that the schema calls functions
            of others are not counted: rows have them by rule.
        target: Columns that rows will be used to predict; tables with them are preferred.
        target_weight: How much more a record counts in the score of tables with a target.
        quality_share: Part of epsilon that measures how far rows are from the truth; 0 for none.
        prior: A public table, or an earlier release, of the same columns: what to start from,
            if it fits better than independent columns.

    Returns:
        A `SynthRelease` with `rows(n, where=...)`, `row_batches(n)`, `count(query)`,
        `mean_distance()`, `worst_distance()`, `marginal(column)`, `tables()`.

    Example:
        >>> from dpublish import Budget, Synth, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> release = Synth().release(people, budget=Budget.seeded("2"), rng=seeded(7))
        >>> release.rows(1_000, seed=1).num_rows
        1000
        >>> set(release.rows(50, seed=1, where="sex = Female").column("sex").to_pylist())
        {'Female'}

    Reference:
        R. McKenna, B. Mullins, D. Sheldon, G. Miklau, "AIM: An Adaptive and Iterative Mechanism
        for Differentially Private Synthetic Data", PVLDB 15(11), 2022; R. McKenna, G. Miklau,
        D. Sheldon, "Winning the NIST Contest", Journal of Privacy and Confidentiality 11(3),
        2021.  The score, the shares and the fit are our own, for pure epsilon.
    """

    name: ClassVar[str] = "synth"
    proofs: ClassVar[tuple[str, ...]] = ("synth", "selection", "exact")
    task: ClassVar[str] = "synthesis"
    publishes: ClassVar[str] = (
        "noisy marginals and chosen tables, joined into one model; rows of all columns, counts and "
        "the measured distance from the truth follow for free"
    )
    prefer_when: ClassVar[str] = "you want rows for any use: the default for whole tables"
    standing: ClassVar[Standing] = "default"

    columns: tuple[str, ...] = setting("Columns to publish; all, unless named.", default=())
    target: tuple[str, ...] = setting(
        "Columns that rows will be used to predict; tables with them are preferred.", default=()
    )
    target_weight: int = setting(
        "How much more a record counts in the score of tables with a target.", default=3
    )
    quality_share: Fraction = setting(
        "Part of epsilon that measures how far rows are from the truth; 0 for none.",
        default=Fraction(2, 100),
    )
    prior: str | None = setting(
        "A public table (a file), or an earlier release (a folder), of the same columns to start "
        "from; taken if it fits better than independent columns.",
        default=None,
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_names(self.target)
        require_count(target_weight=self.target_weight)
        if self.target_weight > 100:
            raise InvalidParameter(f"target_weight ({self.target_weight}) must be at most 100")
        if not isinstance(self.quality_share, Fraction):
            raise InvalidParameter("quality_share must be an exact Fraction")
        if not 0 <= self.quality_share <= _MOST_QUALITY:
            raise InvalidParameter(f"quality_share ({self.quality_share}) must be 0 to 0.5")

    def _release(self, run: Run) -> SynthRelease:
        """Publish marginals, chosen tables, the model that fits them, and how good it is.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The size
            costs its share.  The plan (how many tables, which shares) follows from it, and its
            shares add up to the rest, whatever it is.  Each marginal costs its share
            (`release_marginal`).  Classes of values follow from noisy marginals.  Choices and
            tables cost their shares (`choose_tables`), the prior (`choose_prior`) and the
            quality (`measure_quality`) theirs.  The model is computed from what was released,
            by a fixed number of steps at most.  All counts leave out the same records, by each
            record's own values.  Proof: docs/proofs/synth.md.
        """
        columns = self._columns(run.schema)
        names = tuple(column.name for column in columns)
        prior = None if self.prior is None else read_prior(self.prior, run.schema, names)
        shares = self._shares(len(columns))
        budgets = run.split(**shares)
        kernel = _marginal_counts(run.schema, names)
        size, *exact = kernel.split(run.sum(kernel))
        records = run.noisy_size(int(size), budget=budgets["size"])
        plan = self._plan(columns, records, budgets["model"].epsilon)
        parts = budgets["model"].split(**plan.weights)
        marginals = _release_marginals(run, columns, exact, budget=parts["marginals"])
        known = _learn(run.schema, columns, marginals)
        tables = ExactTables(run, known) if self._needs_pairs(plan, len(columns)) else None
        if prior is not None and tables is not None:
            known = choose_prior(run, known, tables, prior, budget=budgets["prior"])
        known, model = self._model(run, known, tables, plan, parts)
        quality = None
        if "quality" in budgets and tables is not None:
            run.step(1, 2, "measuring the quality")
            quality = measure_quality(run, model, tables, budget=budgets["quality"])
        return SynthRelease(
            receipt=run.receipt(assumptions=stated_facts(self._published(run.schema))),
            schema=self._published(run.schema),
            size=NoisySize(records, budgets["size"].epsilon),
            marginals=known.marginals,
            classes=known.classes,
            counted=known.tables,
            cliques=model.tree.cliques,
            parents=model.tree.parents,
            levels=known.levels,
            probabilities=model.tables,
            quality=quality,
            prior=None if prior is None else ("chosen" if known.prior else "not chosen"),
        )

    def _release_units(
        self, table: Table, *, budget: Budget, rng: RandomSource, progress: Progress | None
    ) -> SynthRelease:
        """Publish from at most so many rows of each unit; rules then fill the other columns in.

        Privacy:
            That of `Method._release_units`: columns that are filled in by rule are not read,
            and what the schema says of them is public.
        """
        counted = self._counted(table.schema)
        method = replace(self, columns=counted) if self.columns else self
        found = super(Synth, method)._release_units(
            table, budget=budget, rng=rng, progress=progress
        )
        schema = self.record_schema(table.schema)
        receipt = replace(found.receipt, assumptions=tuple(stated_facts(schema)))
        return replace(found, schema=schema, receipt=receipt)

    def record_schema(self, schema: Schema) -> Schema:
        """Return the schema of the rows that stay, with the columns that rules fill in."""
        return record_schema(schema, self._names(schema))

    def _plan(self, columns: tuple[Column, ...], records: int, epsilon: Fraction) -> Plan:
        values, is_long = count_values(columns), are_long(columns)
        return make_plan(len(columns), values, records, epsilon, is_long=is_long)

    def _needs_pairs(self, plan: Plan, columns: int) -> bool:
        """Return whether pairs of columns are counted at all; public."""
        wanted = plan.tables > 0 or self.quality_share > 0 or self.prior is not None
        return wanted and columns > 1

    def _model(
        self,
        run: Run,
        known: Known,
        tables: ExactTables | None,
        plan: Plan,
        parts: dict[str, Budget],
    ) -> tuple[Known, Model]:
        """Choose and count tables, and fit the model.

        Privacy:
            That of `choose_tables`; without tables nothing is read and nothing is left to pay.
        """
        if tables is None or not plan.tables:
            return known, fit_model(known)
        return choose_tables(
            run,
            known,
            tables,
            plan,
            targets=[known.names.index(name) for name in self.target],
            target_weight=self.target_weight,
            choices=parts["choices"],
            tables=parts["tables"],
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads: not those that are functions of others."""
        return self._counted(schema)

    def _counted(self, schema: Schema) -> tuple[str, ...]:
        published = keep_columns(schema, self._names(schema))
        filled = {one.column for one in published.functions}
        return tuple(name for name in published.names if name not in filled)

    def _names(self, schema: Schema) -> tuple[str, ...]:
        if self.columns:
            return listed_names(self.columns, schema)
        return tuple(name for name in schema.names if name != schema.unit)

    def _published(self, schema: Schema) -> Schema:
        return keep_columns(schema, self._names(schema))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a marginal's count and, for a number of records, of the tables."""
        columns = self._columns(schema)
        if self.prior is not None:
            read_prior(self.prior, schema, tuple(column.name for column in columns))
        self._require_rates(columns, epsilon)
        left = epsilon * self._shares(len(columns))["model"]
        plan = self._plan(columns, n_records or 0, left)
        weights = plan.weights if n_records or len(columns) == 1 else plan.least_weights
        marginals = left * weights["marginals"] / sum(weights.values())
        own = column_weights(columns)
        width = float(sum_quantile(marginals * max(own) / sum(own), 1, 0.95))
        figures = {"one_value_95": width, "columns": float(len(columns))}
        summary = f"{len(columns)} marginals, each count of a value within {width:,.0f} (95 %)"
        if n_records:
            figures["one_value_95_per_record"] = width / n_records
            figures["tables"] = float(plan.tables)
            if plan.tables:
                rate = left * weights["tables"] / sum(weights.values()) / plan.tables
                figures["one_cell_95"] = float(sum_quantile(rate, 1, 0.95))
                summary += (
                    f"; {plan.tables} tables, each count within {figures['one_cell_95']:,.0f}"
                )
            else:
                summary += "; too few records for this epsilon to join columns"
        elif len(columns) > 1:
            summary += (
                "; less noise, and how many tables, depends on the number of records (--rows)"
            )
        return ExpectedError(summary, figures, target="one_value_95")

    def _shares(self, columns: int) -> dict[str, Fraction]:
        shares = {"size": SIZE_SHARE}
        if columns > 1 and self.prior is not None:
            shares["prior"] = PRIOR_SHARE
        if columns > 1 and self.quality_share > 0:
            shares["quality"] = self.quality_share
        return {**shares, "model": 1 - sum(shares.values(), Fraction(0))}

    def _require_rates(self, columns: tuple[Column, ...], epsilon: Fraction) -> None:
        """Refuse an epsilon whose smallest share allows no exact noise, whatever the size is."""
        number = len(columns)
        shares = self._shares(number)
        pairs = max(number * (number - 1) // 2, 1)
        require_rate(epsilon * shares["size"])
        if "quality" in shares:
            require_rate(epsilon * shares["quality"] / 2 / (STEPS * pairs))
        if "prior" in shares:
            require_rate(epsilon * shares["prior"] / (STEPS * pairs))
        left = epsilon * shares["model"]
        weights = column_weights(columns)
        for column, weight in zip(columns, weights, strict=True):
            require_marginal("auto", column.size, left / 4 * weight / sum(weights))
        require_rate(left / 20 / MOST_TABLES / STEPS / self.target_weight)

    def _columns(self, schema: Schema) -> tuple[Column, ...]:
        if schema.unit is not None:
            raise needs_contribution(schema, self.name)
        for name in self.columns:
            require_known("column", name, schema.names)
            if self.columns.count(name) > 1:
                raise InvalidParameter(f"column {name!r} is listed twice")
        _refuse_filled(self._published(schema))
        names = self._counted(schema)
        if len(names) > MOST_COLUMNS:
            raise InvalidParameter(
                f"synth takes at most {MOST_COLUMNS} columns, not {len(names)}; name those that "
                "matter with columns"
            )
        for name in self.target:
            if name in schema.names and name in self._names(schema) and name not in names:
                raise InvalidParameter(
                    f"the target {name!r} is filled in by a rule of the schema; name the columns "
                    "that it is a function of"
                )
            require_known("column", name, names)
        return tuple(schema[name] for name in names)


def _marginal_counts(schema: Schema, names: tuple[str, ...]) -> CompleteCounts:
    """Count the complete records, and those with each value of each column."""
    return CompleteCounts(schema, ((), *(((name, None),) for name in names)), names)


def _release_marginals(
    run: Run, columns: tuple[Column, ...], exact: list[IntArray], *, budget: Budget
) -> tuple[NoisyMarginal, ...]:
    """Publish the marginal of every column.

    Privacy:
        That of `release_marginal` for each column, from shares that depend on the schema alone.
    """
    weights = column_weights(columns)
    shares = budget.split(**{f"column-{i + 1}": weight for i, weight in enumerate(weights)})
    return tuple(
        release_marginal(run, counts, method="auto", budget=share)
        for counts, share in zip(exact, shares.values(), strict=True)
    )


def _learn(
    schema: Schema, columns: tuple[Column, ...], marginals: tuple[NoisyMarginal, ...]
) -> Known:
    """Cut the columns into classes, by their noisy marginals and what the schema says."""
    names = tuple(column.name for column in columns)
    kept = set(names)
    impossible = tuple(one for one in schema.impossible if {*one.columns} <= kept)
    totals = tuple(one for one in schema.totals if {*one.columns} <= kept)
    most = most_classes(columns)
    classes = tuple(
        make_classes(
            column.axis(),
            marginal,
            most=most,
            kept_apart=masks_of((*impossible, *totals), column.name),
        )
        for column, marginal in zip(columns, marginals, strict=True)
    )
    return Known(names, classes, marginals, impossible=impossible, totals=totals)


def _refuse_filled(schema: Schema) -> None:
    """Refuse statements about columns that rules fill in: rows could not be held to them."""
    filled = {one.column for one in schema.functions}
    stated: list[Combination | KnownTotal] = [*schema.impossible, *schema.totals]
    for one in stated:
        for name in one.columns:
            if name in filled:
                raise InvalidParameter(
                    f"{one.describe()!r} names column {name!r}, which a rule of the schema fills "
                    "in; state it of the columns that it is a function of"
                )


def most_classes(columns: tuple[Column, ...]) -> int:
    """Return how many classes a column may have, so that all pairs can be counted; public."""
    for most in _CLASS_LIMITS:
        sizes = [min(column.size, most) for column in columns]
        pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        if pairs <= _MOST_PAIR_CELLS:
            return most
    return 2


def stated_facts(schema: Schema) -> list[str]:
    """List what a published schema says is known, for the receipt."""
    said = [one.describe() for one in schema.impossible]
    said += [one.describe() for one in schema.functions]
    said += [one.describe() for one in schema.totals]
    if schema.totals:
        said.append(
            "known totals are public facts about this table: to someone who knows them, the "
            "values of one record are hidden at twice this epsilon"
        )
    return said

"""Majority: the most frequent class and nothing else, what every classifier has to beat."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.task import class_column
from dpublish.data.schema import Schema, listed_names
from dpublish.mechanisms.selection import selection_rate, shortfall_95
from dpublish.methods.trees.released import DecisionTreeRelease


@dataclass(frozen=True, kw_only=True)
class Majority(Method[DecisionTreeRelease]):
    """Publish the majority class of a column, and nothing else.

    The class is chosen by private selection on the class counts; no count is published.
    Choose it as a baseline: a classifier that does not beat it has learned nothing.

    Guarantee:
        Pure epsilon-differential privacy when one record is added or removed.

    Parameters:
        target: Column with the classes, of kind category or ordinal.

    Returns:
        A `DecisionTreeRelease` of one leaf, with `predict(rows)` and `rules()`.

    Example:
        >>> from dpublish import Budget, Majority, datasets, seeded
        >>> people = datasets.table("census", 500)
        >>> method = Majority(target="income")
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.rules()
        'all records: <=50K'

    Reference:
        R. McKenna and D. Sheldon (2020), "Permute-and-flip: a new mechanism for differentially
        private selection".
    """

    name: ClassVar[str] = "majority"
    proofs: ClassVar[tuple[str, ...]] = ("selection", "exact")
    task: ClassVar[str] = "classification"
    publishes: ClassVar[str] = "the majority class"
    prefer_when: ClassVar[str] = "you want the baseline that every classifier has to beat"
    standing: ClassVar[Standing] = "baseline"

    target: str = setting("Column of the classes.")

    def _release(self, run: Run) -> DecisionTreeRelease:
        """Publish the majority class, as a tree of one leaf.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: the
            record raises the count of one class by 1, so the range sensitivity is 1, and
            `select` costs the budget.  No count is published.
        """
        kernel = Counts(run.schema, (((self.target, None),),))
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(choice=1)["choice"]
        counts = run.sum(kernel)
        label = run.select(counts, of=kernel, budget=share)
        run.step(1, 1, "majority class")
        return DecisionTreeRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=(run.schema[self.target],)),
            target=self.target,
            label=label,
            expected=run.expected,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names((self.target,), schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how many records the chosen class may fall behind the most frequent."""
        classes = class_column(schema, self.target).axis().size
        shortfall = float(shortfall_95(classes, selection_rate(epsilon, 1)))
        figures = {"classes": float(classes), "choice_shortfall_95": shortfall}
        if n_records:
            figures["choice_shortfall_per_record"] = shortfall / n_records
        summary = (
            f"one of {classes:,} classes; it has at most {shortfall:,.0f} records fewer than the "
            "most frequent (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95")

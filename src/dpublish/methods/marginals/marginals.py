"""Publish how the records are spread over the values of each column, one column at a time.

Known as: one-way marginals; counted leaf by leaf, hierarchically, by EFPA or by NoiseFirst.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, get_args

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.histogram.domain import (
    counted_columns,
    require_names,
)
from dpublish.methods.marginals.one_marginal import (
    MarginalMethod,
    marginal_reach,
    release_marginal,
    require_marginal,
)
from dpublish.methods.marginals.released import MarginalsRelease


@dataclass(frozen=True, kw_only=True)
class Marginals(Method[MarginalsRelease]):
    """Method: count the records by each of `columns`, and add noise to each marginal evenly."""

    name: ClassVar[str] = "marginals"

    columns: tuple[str, ...] = setting(
        "Columns whose marginals are published; all, unless named.", default=()
    )
    marginal: MarginalMethod = setting(
        "How to count. identity: value by value; hierarchical: runs of values, too, for range "
        "counts in large columns; efpa: the lowest waves, for smooth marginals; noise-first: "
        "merge like neighbors; auto: identity up to 128 values, hierarchical beyond.",
        default="auto",
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("marginal", self.marginal, get_args(MarginalMethod))

    def _release(self, run: Run) -> MarginalsRelease:
        """Publish the marginals of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  Each
            of the m marginals gets an even share, epsilon / m, and is private at that cost
            (`release_marginal`): a record lies in one leaf of each column, or in none of any.
            Sequential composition adds the shares up to epsilon.  Which method counts a
            column follows from its number of leaves.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        columns = self._columns(table.schema, budget.epsilon)
        budgets = budget.split_evenly(len(columns), "marginal")
        kernel = _kernel(table.schema, columns)
        marginals = []
        for done, counts in enumerate(kernel.split(table.sum(kernel))):
            marginals.append(
                release_marginal(counts, method=self.marginal, budget=budgets[done], rng=rng)
            )
            if progress is not None:
                progress(done + 1, len(columns), "marginals")
        return MarginalsRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=columns),
            marginals=tuple(marginals),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of counting the records in half of a column's values.

        The noise does not depend on the number of records; `n_records` only relates it to them.
        """
        columns = self._columns(schema, epsilon)
        share = epsilon / len(columns)
        reach = max(marginal_reach(self.marginal, column.size, share) for column in columns)
        figures = {"range_count_95": reach, "columns": float(len(columns))}
        if n_records:
            figures["range_count_95_per_record"] = reach / n_records
        what = f"{len(columns)} marginals; a count of half of a column's values is"
        if self.marginal in ("efpa", "noise-first"):
            claim = (
                f"by noise alone within {reach:,.0f} of the truth (95 %); smoothing adds an error "
                "that is not known"
            )
        else:
            claim = f"within {reach:,.0f} of the truth (95 %)"
        return ExpectedError(f"{what} {claim}", figures, target="range_count_95")

    def _columns(self, schema: Schema, epsilon: Fraction) -> tuple[Column, ...]:
        if not schema.columns:
            raise InvalidParameter("the schema has no column to count by")
        columns = counted_columns(schema, self.columns or schema.names)
        _kernel(schema, columns)
        for column in columns:
            require_marginal(self.marginal, column.size, epsilon / len(columns))
        return columns


def _kernel(schema: Schema, columns: tuple[Column, ...]) -> Counts:
    """Count by every column; a record that one column leaves out is left out of all."""
    return Counts(schema, tuple(((column.name, None),) for column in columns))

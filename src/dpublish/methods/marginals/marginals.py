"""Marginals: noisy counts of each column by itself."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, get_args

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column
from dpublish.data.schema import Schema, listed_names
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.histogram.domain import counted_columns, require_names
from dpublish.methods.marginals.one_marginal import (
    MarginalMethod,
    marginal_half_width,
    release_marginal,
    require_marginal,
)
from dpublish.methods.marginals.released import MarginalsRelease


@dataclass(frozen=True, kw_only=True)
class Marginals(Method[MarginalsRelease]):
    """Publish noisy counts of the values of each column, one column at a time.

    Every column gets an even share of epsilon and is counted by the method that suits its
    number of values.  Choose it to describe each column: counts, ranges, quantiles.  It says
    nothing of how columns depend on each other.  Choose `Synth` for rows of any use, and
    `Histogram` for the cells of a few columns together.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/marginals.md.

    Parameters:
        columns: Columns whose marginals are published; all columns if none is named.
        marginal: How to count.  `"identity"`: value by value; `"hierarchical"`: runs of values,
            too, for range counts in large columns; `"efpa"`: the lowest Fourier coefficients,
            for smooth marginals; `"noise-first"`: merge neighbors with like noisy counts;
            `"structure-first"`: choose buckets of like neighbors, then count them;
            `"auto"`: identity up to 128 values, hierarchical beyond.

    Returns:
        A `MarginalsRelease` with `count(query)` about one column, `marginal(column)`,
        `quantile(column, part)`, `rows(n)` with independent columns, `tables()`.

    Example:
        >>> from dpublish import Budget, Marginals, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> method = Marginals(columns=("age", "sex"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.count("age <= 40"))
        2,278 (95 % confidence interval 2,265 to 2,291)
        >>> release.quantile("age", 0.5)
        42

    Reference:
        Hierarchical counts: M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of
        Differentially Private Histograms Through Consistency", VLDB 2010.  EFPA: G. Ács,
        C. Castelluccia, R. Chen, "Differentially Private Histogram Publishing through Lossy
        Compression", ICDM 2012.  NoiseFirst and StructureFirst (with another cost of buckets):
        J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett, "Differentially Private Histogram
        Publication", The VLDB Journal 22(6), 2013.
    """

    name: ClassVar[str] = "marginals"
    proofs: ClassVar[tuple[str, ...]] = ("marginals", "selection", "exact")
    task: ClassVar[str] = "counting"
    publishes: ClassVar[str] = (
        "a noisy marginal of each column; counts and quantiles of one column follow for free"
    )
    prefer_when: ClassVar[str] = (
        "each column matters by itself, and some have many values; synth is the default for rows"
    )

    columns: tuple[str, ...] = setting(
        "Columns whose marginals are published; all, unless named.", default=()
    )
    marginal: MarginalMethod = setting(
        "How to count. identity: value by value; hierarchical: runs of values, too, for range "
        "counts in large columns; efpa: the lowest waves, for smooth marginals; noise-first: "
        "merge like neighbors; structure-first: choose buckets of like neighbors, then count them; "
        "auto: identity up to 128 values, hierarchical beyond.",
        default="auto",
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("marginal", self.marginal, get_args(MarginalMethod))

    def _release(self, run: Run) -> MarginalsRelease:
        """Publish the marginals.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  Each
            of the m marginals gets an even share, epsilon / m, and is private at that cost
            (`release_marginal`): a record has one value of each column, or is left out of all.
            Sequential composition adds the shares up to epsilon.  Which method counts a
            column follows from its number of values.
        """
        columns = self._columns(run.schema, run.epsilon)
        shares = run.budget.split_evenly(len(columns), "marginal")
        kernel = _kernel(run.schema, columns)
        marginals = []
        for done, counts in enumerate(kernel.split(run.sum(kernel))):
            marginals.append(
                release_marginal(run, counts, method=self.marginal, budget=shares[done])
            )
            run.step(done + 1, len(columns), "marginals")
        return MarginalsRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=columns),
            marginals=tuple(marginals),
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names(self.columns, schema) if self.columns else super().reads(schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of counting the records in half of a column's values.

        The noise does not depend on the number of records; `n_records` only relates it to them.
        """
        columns = self._columns(schema, epsilon)
        share = epsilon / len(columns)
        width = max(marginal_half_width(self.marginal, column.size, share) for column in columns)
        figures = {"range_count_95": width, "columns": float(len(columns))}
        if n_records:
            figures["range_count_95_per_record"] = width / n_records
        what = f"{len(columns)} marginals; a count of half of a column's values is"
        if self.marginal in ("efpa", "noise-first", "structure-first"):
            claim = (
                f"by noise alone within {width:,.0f} of the truth (95 %); smoothing adds an error "
                "that is not known"
            )
        else:
            claim = f"within {width:,.0f} of the truth (95 %)"
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

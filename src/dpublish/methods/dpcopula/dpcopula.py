"""Publish marginals and correlations, from which rows of many large columns follow.

Known as: DPCopula.
Reference: H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of
Multi-Dimensional Data using Copula Functions", EDBT 2014, repaired.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, get_args

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known, require_positive
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.expected_correlation import expected_spread
from dpublish.methods.dpcopula.kendall import release_kendall
from dpublish.methods.dpcopula.mle import release_mle
from dpublish.methods.dpcopula.noisy_correlation import CorrelationMethod, NoisyCorrelation
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.dpcopula.spearman import release_spearman
from dpublish.methods.dpcopula.weighed_marginals import (
    count_records,
    marginal_kernel,
    release_marginals,
    require_marginals,
)
from dpublish.methods.histogram.domain import (
    counted_columns,
    require_names,
)
from dpublish.methods.marginals.one_marginal import MarginalMethod

SIZE_SHARE = Fraction(1, 50)
"""Part of epsilon that buys the noisy number of records."""
MOST_ORDERED = 1000
"""Most columns that are correlated: pairs grow with their square."""
_USUAL_RECORDS = 10_000
_METHODS: Mapping[CorrelationMethod, Callable[..., NoisyCorrelation]] = {
    "spearman": release_spearman,
    "kendall": release_kendall,
    "mle": release_mle,
}


@dataclass(frozen=True, kw_only=True)
class DPCopula(Method[DPCopulaRelease]):
    """Method: perturb each marginal, and one number for every two columns with an order."""

    name: ClassVar[str] = "dpcopula"

    columns: tuple[str, ...] = setting("Columns to publish; all, unless named.", default=())
    correlation: CorrelationMethod = setting(
        "How to measure dependence. spearman: products of ranks; kendall: agreement of pairs "
        "of records; mle: correlations within random blocks, for very many records.",
        default="spearman",
    )
    marginal: MarginalMethod = setting(
        "How to count marginals, as in the method marginals.", default="auto"
    )
    ratio: Fraction | None = setting(
        "How many times more of epsilon marginals get than correlations; by the number of columns "
        "unless given.",
        default=None,
    )
    shrink: bool = setting(
        "Whether correlations are moved toward 0 by what is likely to be noise.", default=True
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("correlation", self.correlation, get_args(CorrelationMethod))
        require_known("marginal", self.marginal, get_args(MarginalMethod))
        if self.ratio is not None:
            if not isinstance(self.ratio, Fraction):
                raise InvalidParameter("ratio must be an exact Fraction")
            require_positive(ratio=self.ratio)

    def _release(self, run: Run) -> DPCopulaRelease:
        """Publish the marginals of `table` and the correlations of its columns with an order.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy size, the marginals (`release_marginals`) and the correlations
            (`release_spearman`, `release_kendall` or `release_mle`, given what was released
            before) each cost their share; sequential composition adds them up to epsilon.
            Which columns have an order follows from the schema.  Rows and counts follow from
            what was released.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        columns = self._columns(table.schema)
        ordered = ordered_columns(columns)
        self._predict(columns, ordered, _USUAL_RECORDS, budget.epsilon)
        budgets = budget.split(**self._shares(ordered))
        size, counts = count_records(table, columns, columns, budget=budgets["size"], rng=rng)
        marginals = release_marginals(
            counts,
            columns,
            method=self.marginal,
            budget=budgets["marginals"],
            run=run,
        )
        correlation = None
        if ordered:
            correlation = _METHODS[self.correlation](
                table,
                ordered,
                marginals,
                size,
                budget=budgets["correlations"],
                rng=rng,
                progress=progress,
            )
        return DPCopulaRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=columns),
            marginals=tuple(marginals.values()),
            correlation=correlation,
            size=size,
            shrink=self.shrink,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a range count in one column, and of a correlation."""
        columns = self._columns(schema)
        ordered = ordered_columns(columns)
        reach, spread = self._predict(columns, ordered, n_records or _USUAL_RECORDS, epsilon)
        figures = {"range_count_95": reach, "columns": float(len(columns))}
        summary = (
            f"{len(columns)} marginals; a count of half of a column's values is within "
            f"{reach:,.0f} of the truth (95 %)"
        )
        if n_records:
            figures["range_count_95_per_record"] = reach / n_records
            if ordered:
                figures["correlation_95"] = 1.96 * spread
                summary += f"; a correlation within {1.96 * spread:.2f}"
        return ExpectedError(summary, figures, target="range_count_95")

    def _predict(
        self, columns: tuple[Column, ...], ordered: tuple[str, ...], records: int, epsilon: Fraction
    ) -> tuple[float, float]:
        """Refuse an epsilon whose shares would buy no exact noise; otherwise tell the errors."""
        if len(ordered) > MOST_ORDERED:
            raise InvalidParameter(
                f"{len(ordered):,} columns are too many to be correlated (at most "
                f"{MOST_ORDERED:,}); name fewer with --columns"
            )
        shares = self._shares(ordered)
        require_rate(epsilon * shares["size"])
        reach = require_marginals(columns, self.marginal, epsilon * shares["marginals"])
        if not ordered:
            return reach, 0.0
        share = epsilon * shares["correlations"]
        return reach, expected_spread(self.correlation, len(ordered), records, share)

    def _shares(self, ordered: tuple[str, ...]) -> dict[str, Fraction]:
        if not ordered:
            return {"size": SIZE_SHARE, "marginals": 1 - SIZE_SHARE}
        ratio = best_ratio(len(ordered)) if self.ratio is None else self.ratio
        left = (1 - SIZE_SHARE) / (ratio + 1)
        return {"size": SIZE_SHARE, "marginals": left * ratio, "correlations": left}

    def _columns(self, schema: Schema) -> tuple[Column, ...]:
        if not schema.columns:
            raise InvalidParameter("the schema has no column to publish")
        columns = counted_columns(schema, self.columns or schema.names)
        marginal_kernel(schema, columns, columns)  # refuses what cannot be counted
        return columns


def best_ratio(columns: int) -> Fraction:
    """Choose how many times more marginals get than correlations.

    Marginals grow in number with the columns, correlations with their square.  Measured best:
    4 to 8 for four columns, 2 for eight and for sixteen.

    >>> [str(best_ratio(columns)) for columns in (2, 4, 8, 16)]
    ['8', '8', '2', '2']
    """
    return min(max(Fraction(128, columns**2), Fraction(2)), Fraction(8))


def ordered_columns(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Name the columns that can be correlated: none, if there are fewer than two.

    Two values have an order, whichever comes first.
    """
    found = []
    for column in columns:
        leaves = column.axis().ordinary_leaves
        if leaves == 2 or (leaves > 2 and column.kind != "category"):
            found.append(column.name)
    return tuple(found) if len(found) > 1 else ()

"""DPCopula: marginals and correlations, from which rows of many large columns follow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, pi, sqrt
from typing import ClassVar, get_args

import numpy as np

from dpublish.core.method import ExpectedError, Method, Run, setting, settings_of
from dpublish.core.noisy_size import NoisySize
from dpublish.data.column import Column
from dpublish.data.schema import Schema, listed_names
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count, require_known, require_positive
from dpublish.mechanisms.exact.lattice import choose_exponent, lattice_sensitivity
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.column_marginals import (
    count_public_records,
    count_records,
    half_for_exchange,
    marginal_kernel,
    release_marginals,
    require_marginals,
    require_whole,
)
from dpublish.methods.dpcopula.correlation import CorrelationMethod, NoisyCorrelation
from dpublish.methods.dpcopula.kendall import (
    SampleSize,
    release_kendall,
    sample_records,
    tau_sensitivity,
)
from dpublish.methods.dpcopula.latent_correlation import (
    SCORE_UNIT,
    best_steepness,
    pair_terms,
    score_table,
    slope_of_terms,
)
from dpublish.methods.dpcopula.mle import correlation_sensitivity, count_blocks, release_mle
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.dpcopula.spearman import release_spearman
from dpublish.methods.histogram.domain import counted_columns, require_names
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import MarginalMethod
from dpublish.privacy.amplification import amplified_epsilon
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import Neighbors, ReplaceRecord
from dpublish.privacy.receipt import Receipt

SIZE_SHARE = Fraction(1, 50)
"""Part of epsilon that the noisy number of records costs."""
MOST_ORDERED = 1000
"""Most columns that are correlated: pairs grow with their square."""
USUAL_RECORDS = 10_000
"""Number of records for which errors are predicted if none is given."""
_VALUES = 256
_METHODS: Mapping[CorrelationMethod, Callable[..., NoisyCorrelation]] = {
    "spearman": release_spearman,
    "mle": release_mle,
}


@dataclass(frozen=True, kw_only=True)
class DPCopula(Method[DPCopulaRelease]):
    """Publish noisy marginals and correlations, and draw synthetic rows from a Gaussian copula.

    Adds noise to the marginal of each column and to one statistic of every two columns with an
    order.  Choose it for many columns of many values, whose joint counts would be mostly noise,
    if dependence is roughly monotone.  Choose `DPCopulaHybrid` for a table of numbers and
    categories, `PrivBayes` for categories, and `PSD` for range counts over two or three columns.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, or, with
        `public_records`, for exchanging one record for another.
        Proof: docs/proofs/correlation.md.

    Parameters:
        columns: Columns to publish; all, unless named.
        correlation: The statistic: "spearman", products of ranks; "kendall", agreement of pairs
            of records; "mle", correlations within random blocks, for very many records.
        marginal: How marginals are counted, as in `Marginals`.
        ratio: How many times more of epsilon marginals get than correlations; by the number of
            columns unless given.
        shrink: Whether correlations are moved toward 0 by what is likely to be noise.
        sample: Of how many records "kendall" counts agreement, drawn at random: "auto", all but
            of huge tables; "paper", the fewest that the authors ask for; or a number.
        public_records: The number of records, if everyone may know it.  Nothing is then spent on
            it, and the release hides which values a record has, not that it is there.

    Returns:
        A `DPCopulaRelease` with `rows(n)`, `count(query)`, `matrix`, `tables()`.

    Example:
        >>> from dpublish import Budget, DPCopula, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> method = DPCopula(columns=("age", "education", "hours", "income"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.ordered
        ('age', 'education', 'hours', 'income')
        >>> print(f"{release.matrix[1, 3]:.2f}")  # education and income
        0.60
        >>> print(release.count_by_model("age >= 41 and hours >= 40"))
        697.2 (95 % model interval 648.6 to 745.7; 0 to 1,453 whether the model fits or not)
        >>> release.rows(1_000, seed=1).num_rows
        1000

    Reference:
        H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of Multi-Dimensional
        Data using Copula Functions", EDBT 2014, with a corrected sensitivity.
    """

    name: ClassVar[str] = "dpcopula"
    proofs: ClassVar[tuple[str, ...]] = ("correlation", "marginals", "selection", "exact")
    task: ClassVar[str] = "synthesis"
    publishes: ClassVar[str] = (
        "noisy marginals and correlations; rows of all columns and range counts follow for free"
    )
    prefer_when: ClassVar[str] = (
        "all columns are numbers with many values, and range counts of several matter"
    )

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
    sample: SampleSize = setting(
        "Of how many records kendall counts agreement, drawn at random. auto: all but of huge "
        "tables; paper: 50 m (m - 1) / epsilon of m columns, the fewest that its authors ask for.",
        default="auto",
    )
    public_records: int | None = setting(
        "The exact number of records, if it is public: the release then hides one record's values, "
        "not that it is there.",
        default=None,
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("correlation", self.correlation, get_args(CorrelationMethod))
        require_known("marginal", self.marginal, get_args(MarginalMethod))
        if self.ratio is not None:
            if not isinstance(self.ratio, Fraction):
                raise InvalidParameter("ratio must be an exact Fraction")
            require_positive(ratio=self.ratio)
        self._check_sample()
        if self.public_records is not None:
            require_count(public_records=self.public_records, at_least=2)

    def neighbors(self, schema: Schema) -> Neighbors:
        """Return the change that is hidden: an exchange, if the number of records is public."""
        return schema.neighbors if self.public_records is None else ReplaceRecord()

    def neighbors_of(self, table: Table) -> Neighbors:
        """Return the change to the table that is hidden, or an exchange likewise."""
        return table.neighbors if self.public_records is None else ReplaceRecord()

    def _check_sample(self) -> None:
        if self.sample == "auto":
            return
        if self.correlation != "kendall":
            raise InvalidParameter(
                "sample is for correlation kendall; the others count all records"
            )
        if self.sample != "paper":
            require_count(sample=self.sample, at_least=2)

    def _release(self, run: Run) -> DPCopulaRelease:
        """Publish the marginals, and the correlations of the columns with an order.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy size, the marginals (`release_marginals`) and the correlations
            (`release_spearman`, `release_kendall` or `release_mle`, given what was released
            before) each cost their share; sequential composition adds them up to epsilon.
            Which columns have an order follows from the schema.  Rows and counts follow from
            what was released.  With `public_records` it is private when one record is
            exchanged: nothing is spent on the size, and whatever hides one record in or out
            gets half of its share (`half_for_exchange`), but Kendall's taus all of it.
        """
        columns = self._columns(run.schema)
        ordered = ordered_columns(columns)
        budgets = run.split(**self._shares(ordered))
        if self.public_records is None:
            size, counts = count_records(run, columns, columns, budget=budgets["size"])
        else:
            size, counts = count_public_records(run, columns, self.public_records)
        marginals = release_marginals(
            run, counts, columns, method=self.marginal, budget=self._half(budgets["marginals"])
        )
        correlation = None
        if ordered:
            correlation = self._release_correlation(
                run, ordered, marginals, size, budget=budgets["correlations"]
            )
        return DPCopulaRelease(
            receipt=self._receipt(run),
            schema=replace(run.schema, columns=columns),
            marginals=tuple(marginals.values()),
            correlation=correlation,
            size=size,
            shrink=self.shrink,
        )

    def _release_correlation(
        self,
        run: Run,
        ordered: tuple[str, ...],
        marginals: Mapping[str, NoisyMarginal],
        size: NoisySize,
        *,
        budget: Budget,
    ) -> NoisyCorrelation:
        """Publish the statistic that the settings name.

        Privacy:
            As argued in `release_spearman`, `release_kendall` or `release_mle`.
        """
        if self.correlation == "kendall":
            return release_kendall(
                run,
                ordered,
                marginals,
                size,
                budget=budget,
                sample=self.sample,
                public_records=self.public_records,
            )
        half = self._half(budget)
        return _METHODS[self.correlation](run, ordered, marginals, size, budget=half)

    def _half(self, budget: Budget) -> Budget:
        """Return what may be spent on hiding one record in or out.

        Privacy:
            All, or half if one record is exchanged (`half_for_exchange`).
        """
        return budget if self.public_records is None else half_for_exchange(budget)

    def _receipt(self, run: Run) -> Receipt:
        """Write the receipt, with the change that this release hides.

        Privacy:
            Reads no rows and spends nothing (`Receipt.issue`).
        """
        return Receipt.issue(
            method=self.name,
            settings=settings_of(self),
            budget=run.budget,
            neighbors=self.neighbors_of(run.table),
            rng=run.rng,
            steps=run.steps,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names(self.columns, schema) if self.columns else super().reads(schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a range count in one column, and of a correlation."""
        columns = self._columns(schema)
        ordered = ordered_columns(columns)
        n_records = self.public_records or n_records
        width, deviation = self._predict(columns, ordered, n_records or USUAL_RECORDS, epsilon)
        figures = {"range_count_95": width, "columns": float(len(columns))}
        summary = (
            f"{len(columns)} marginals; a count of half of a column's values is within "
            f"{width:,.0f} of the truth (95 %)"
        )
        if n_records:
            figures["range_count_95_per_record"] = width / n_records
            if ordered:
                figures["correlation_95"] = 1.96 * deviation
                summary += f"; a correlation within {1.96 * deviation:.2f}"
        return ExpectedError(summary, figures, target="range_count_95")

    def _predict(
        self, columns: tuple[Column, ...], ordered: tuple[str, ...], records: int, epsilon: Fraction
    ) -> tuple[float, float]:
        """Refuse an epsilon whose shares allow no exact noise; otherwise predict the errors."""
        if len(ordered) > MOST_ORDERED:
            raise InvalidParameter(
                f"{len(ordered):,} columns are too many to be correlated (at most "
                f"{MOST_ORDERED:,}); name fewer with --columns"
            )
        shares = {name: epsilon * share for name, share in self._shares(ordered).items()}
        steps = 1 if self.public_records is None else 2  # one record out, another one in
        if "size" in shares:
            require_rate(shares["size"])
        width = require_marginals(columns, self.marginal, shares["marginals"] / steps)
        if not ordered:
            return width, 0.0
        share = shares["correlations"]
        if (
            self.correlation != "kendall"
            or sample_records(self.sample, len(ordered), share) < records
        ):
            share /= steps
        return width, expected_deviation(
            self.correlation, len(ordered), records, share, sample=self.sample
        )

    def _shares(self, ordered: tuple[str, ...]) -> dict[str, Fraction]:
        size = {"size": SIZE_SHARE} if self.public_records is None else {}
        rest = 1 - sum(size.values(), Fraction(0))
        if not ordered:
            return {**size, "marginals": rest}
        ratio = best_ratio(len(ordered)) if self.ratio is None else self.ratio
        left = rest / (ratio + 1)
        return {**size, "marginals": left * ratio, "correlations": left}

    def _columns(self, schema: Schema) -> tuple[Column, ...]:
        if not schema.columns:
            raise InvalidParameter("the schema has no column to publish")
        columns = counted_columns(schema, self.columns or schema.names)
        marginal_kernel(schema, columns, columns)  # refuses what cannot be counted
        if self.public_records is not None:
            require_whole(columns)
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
        values = column.axis().ordinary_leaves
        if values == 2 or (values > 2 and column.kind != "category"):
            found.append(column.name)
    return tuple(found) if len(found) > 1 else ()


def expected_deviation(
    method: CorrelationMethod,
    columns: int,
    records: int,
    epsilon: Fraction,
    *,
    sample: SampleSize = "auto",
) -> float:
    """Predict the standard deviation of the published correlation of two independent columns.

    It is due to the noise and to the sampling of records, for columns with many values.  An
    epsilon so small that its noise would not fit is refused.

    >>> for method in ("spearman", "kendall", "mle"):
    ...     print(method, round(expected_deviation(method, 8, 50_000, Fraction(1, 9)), 4))
    spearman 0.013
    kendall 0.026
    mle 0.1956
    """
    records = max(records, columns)
    if method == "mle":
        require_rate(epsilon / correlation_sensitivity(columns))
        noise = Fraction(columns**2, 2 * count_blocks(columns, records, records))
        return _join(float(noise / epsilon), 1.0, 1.0, records)
    _require_noise(columns, epsilon)
    if method == "kendall":
        counted = max(min(sample_records(sample, columns, epsilon), records), columns)
        rate = Fraction(counted, records)
        amplified = epsilon if rate == 1 else amplified_epsilon(epsilon, rate)
        noise = tau_sensitivity(columns, counted)
        return _join(float(noise / amplified), 2 / pi, 2 / 3, counted)
    steepness = best_steepness(float(records), float(epsilon), columns)
    probabilities = np.full(_VALUES, 1 / _VALUES)
    table = score_table(probabilities, steepness)
    slope = float(slope_of_terms(np.zeros(1), pair_terms([table] * 2, [probabilities] * 2))[0])
    square = float(np.mean((table / SCORE_UNIT) ** 2))
    return _join(comb(columns, 2) / float(epsilon) / records, slope, square, records)


def _join(noise: float, slope: float, deviation: float, records: int) -> float:
    """Combine the scale of the noise with the deviation of a single record."""
    return sqrt(2 * noise**2 + deviation**2 / records) / slope


def _require_noise(columns: int, epsilon: Fraction) -> None:
    """Refuse an epsilon that would need wider noise than fits, on any lattice that is chosen."""
    pairs = comb(columns, 2)
    # The lattice may be up to twice finer than for a sensitivity that is a power of two.
    exponent = choose_exponent(Fraction(1), epsilon, pairs) - 1
    require_rate(epsilon / lattice_sensitivity(Fraction(1), exponent, pairs))

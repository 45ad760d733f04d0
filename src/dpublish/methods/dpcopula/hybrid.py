"""DPCopula-Hybrid: a table of numbers and categories together, by cells or by a network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple, get_args

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.dependence import SHARES_RANGE
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column
from dpublish.data.schema import Schema, listed_names
from dpublish.errors import InvalidParameter, require_count, require_known, require_positive
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.cell_copulas import Copulas, cells_error, release_cells
from dpublish.methods.dpcopula.column_marginals import (
    count_records,
    marginal_kernel,
    release_marginals,
    require_marginals,
)
from dpublish.methods.dpcopula.dpcopula import (
    SIZE_SHARE,
    USUAL_RECORDS,
    expected_deviation,
    ordered_columns,
)
from dpublish.methods.dpcopula.intervals import TotalEvidence
from dpublish.methods.dpcopula.mixed_network import STRUCTURE_SHARE, no_network, release_network
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.dpcopula.released_cells import CellCopulasRelease
from dpublish.methods.dpcopula.released_hybrid import DPCopulaHybridRelease
from dpublish.methods.dpcopula.spearman import release_spearman
from dpublish.methods.histogram.domain import counted_columns, require_names
from dpublish.methods.marginals.one_marginal import MarginalMethod
from dpublish.methods.privbayes.structure import records_per_cell, require_countable

Design = Literal["auto", "network", "numbers-first", "cells"]
MARGINALS_SHARES = (Fraction(6, 10), Fraction(4, 10))
"""Part of epsilon, after the size, of marginals beside a small and beside a larger network."""
CORRELATIONS_SHARE = Fraction(15, 100)
"""Part of what is left after marginals."""
LEAST_FOR_NETWORK, LEAST_FOR_MORE = 6, 10
"""How often theta a cell of a marginal must hold for a network, and for the larger one."""
MANY_VALUES = 50
"""From so many values on, a number is taken as one that a normal variable may stand for."""
_MOST_DEGREE = 4


class MixedColumns(NamedTuple):
    """The columns of a mixed table by their role."""

    numbers: tuple[Column, ...]
    categories: tuple[Column, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], least_values: int) -> "MixedColumns":
        """Split columns into numbers, which have an order and many values, and the rest."""
        numbers = tuple(
            column
            for column in columns
            if column.kind != "category" and column.axis().ordinary_leaves >= least_values
        )
        categories = tuple(column for column in columns if column not in numbers)
        if not numbers:
            raise InvalidParameter(
                f"no column has an order and {least_values} values or more; use privbayes"
            )
        if not categories:
            raise InvalidParameter("all columns are numbers; use dpcopula")
        return cls(numbers, categories)

    @property
    def all(self) -> tuple[Column, ...]:
        """All columns, numbers first."""
        return (*self.numbers, *self.categories)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the numbers, and of the categories."""
        return tuple(c.name for c in self.numbers), tuple(c.name for c in self.categories)


def restrict(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Leave out all other columns; the order stays that of the schema."""
    return replace(schema, columns=tuple(column for column in schema.columns if column in columns))


@dataclass(frozen=True, kw_only=True)
class DPCopulaHybrid(Method[DPCopulaHybridRelease | CellCopulasRelease]):
    """Publish a table of numbers and categories together, and draw synthetic rows from it.

    Adds noise to the marginals of the columns, and joins numbers with categories by a network
    or by the cells of the categories.  Choose `Synth` for rows of any use.  Choose this one for
    a mixed table of few categories whose correlations matter, and `DPCopula` if all columns are
    numbers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proofs: docs/proofs/mixed_network.md, docs/proofs/cell_copulas.md.

    Parameters:
        columns: Columns to publish; all, unless named.
        design: How numbers and categories are joined: "network", a network over categories and
            classes of numbers; "numbers-first", numbers by a copula, on which categories depend;
            "cells", a marginal of every number for each full cell of the categories; "auto",
            numbers-first if numbers of 50 values or more outnumber all other columns, else
            network.
        least_values: A column with an order and at least so many values counts as a number.
        marginal: How marginals are counted, as in `Marginals`.
        theta: Least average count of a joint cell, in units of its noise.  Where a cell of a
            single column could not hold six times as much, there are marginals alone.
        max_degree: Most parents of a column in the network.
        least_records: Noisy count from which a cell has marginals of its own, in the design
            "cells"; more if the noise needs it.
        copulas: In the design "cells": "shared", one matrix of correlations for all cells;
            "per-cell", one for each full cell, as its authors have it.

    Returns:
        A `DPCopulaHybridRelease`, or a `CellCopulasRelease` for the design "cells"; both with
        `rows(n)`, `count(query)`, `tables()`.

    Example:
        >>> from dpublish import Budget, DPCopulaHybrid, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> method = DPCopulaHybrid(columns=("age", "hours", "sex", "education"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["network"]
        '4 columns, 5 dependences, 2 joint counts'
        >>> print(release.count("age >= 41"))
        2,775 (95 % confidence interval 2,698 to 2,852)
        >>> release.rows(1_000, seed=1).column_names
        ['age', 'sex', 'education', 'hours']

    Reference:
        H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of Multi-Dimensional
        Data using Copula Functions", EDBT 2014 (design "cells", with a corrected sensitivity);
        the designs with a network are our own.
    """

    name: ClassVar[str] = "dpcopula-hybrid"
    proofs: ClassVar[tuple[str, ...]] = (
        "mixed_network",
        "cell_copulas",
        "correlation",
        "marginals",
        "bayes_network",
        "selection",
        "exact",
    )
    task: ClassVar[str] = "synthesis"
    publishes: ClassVar[str] = (
        "noisy marginals of numbers, joined with noisy counts of categories; rows of all columns "
        "follow for free"
    )
    prefer_when: ClassVar[str] = (
        "numbers with many values are joined with few categories, and correlations matter; synth "
        "is the default for rows of any use"
    )

    columns: tuple[str, ...] = setting("Columns to publish; all, unless named.", default=())
    design: Design = setting(
        "How numbers and categories are joined. network: a network over categories and classes "
        "of numbers; numbers-first: numbers by a copula, categories depend on them; cells: a "
        "marginal of every number for each full cell of the categories; auto: numbers-first if "
        "numbers of 50 values or more outnumber all other columns, else network.",
        default="auto",
    )
    least_values: int = setting(
        "From how many values on a column with an order counts as a number.", default=10
    )
    marginal: MarginalMethod = setting(
        "How to count marginals, as in the method marginals.", default="auto"
    )
    theta: Fraction = setting(
        "Least average count of a joint cell, in units of its noise.", default=Fraction(4)
    )
    max_degree: int = setting("Most parents of a column in the network.", default=3)
    least_records: int = setting(
        "Noisy count from which a cell has marginals of its own, in the design cells; more if the "
        "noise needs it.",
        default=200,
    )
    copulas: Copulas = setting(
        "Whether all cells of the design cells share their correlations (shared), or each full "
        "cell has its own (per-cell).",
        default="shared",
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("design", self.design, get_args(Design))
        require_known("marginal", self.marginal, get_args(MarginalMethod))
        require_known("copulas", self.copulas, get_args(Copulas))
        if self.copulas == "per-cell" and self.design != "cells":
            raise InvalidParameter("copulas per-cell needs the design cells")
        require_count(least_records=self.least_records, max_degree=self.max_degree)
        require_count(least_values=self.least_values, at_least=3)
        if self.max_degree > _MOST_DEGREE:
            raise InvalidParameter(f"max_degree ({self.max_degree}) must be at most {_MOST_DEGREE}")
        if not isinstance(self.theta, Fraction):
            raise InvalidParameter("theta must be an exact Fraction")
        require_positive(theta=self.theta)

    def _release(self, run: Run) -> DPCopulaHybridRelease | CellCopulasRelease:
        """Publish the columns together.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            design follows from the schema; how the rest of epsilon is shared out, and whether
            there is a network, from the noisy size and the schema.  Noisy size, marginals
            (`release_marginals`), network (`release_network`) and, if numbers come first,
            correlations (`release_spearman`) each cost their share, given what was released
            before; on every path sequential composition adds them up to epsilon.  For the design
            cells see `release_cells`.  Rows and counts follow from what was released.
        """
        parts = self._parts(run.schema)
        if self._design(parts) != "cells":
            return self._release_network(run, parts)
        numbers, categories = parts.names
        return release_cells(
            run,
            numbers=numbers,
            categories=categories,
            marginal=self.marginal,
            least_records=self.least_records,
            copulas=self.copulas,
        )

    def _release_network(self, run: Run, parts: MixedColumns) -> DPCopulaHybridRelease:
        """Publish marginals, network and, if numbers come first, correlations.

        Privacy:
            As argued in `_release`.
        """
        budgets = run.split(size=SIZE_SHARE, rest=1 - SIZE_SHARE)
        size, counts = count_records(run, parts.all, parts.all, budget=budgets["size"])
        budgets = budgets["rest"].split(**self._shares(parts, size.value, run.epsilon))
        marginals = release_marginals(
            run, counts, parts.all, method=self.marginal, budget=budgets["marginals"]
        )
        correlation = None
        if "correlations" in budgets:
            correlation = release_spearman(
                run,
                self._ordered(parts),
                marginals,
                size,
                budget=budgets["correlations"],
                complete=tuple(column.name for column in parts.all),
            )
        schema = restrict(run.schema, parts.all)
        numbers, _ = parts.names
        numbers_first = self._design(parts) == "numbers-first"
        if "network" in budgets:
            network = release_network(
                run,
                schema,
                marginals,
                numbers=numbers,
                numbers_first=numbers_first,
                records=TotalEvidence((*marginals.values(),), size.value, size.rate).records,
                theta=self.theta,
                max_degree=self.max_degree,
                budget=budgets["network"],
            )
        else:
            network = no_network(schema, marginals, numbers, budgets["marginals"].epsilon)
        receipt = run.receipt()
        return DPCopulaHybridRelease(
            receipt=receipt,
            schema=schema,
            numbers=DPCopulaRelease(
                receipt=receipt,
                schema=schema,
                marginals=tuple(marginals[name] for name in schema.names),
                correlation=correlation,
                size=size,
            ),
            classes=network.classes,
            nodes=network.nodes,
            counts=network.counts,
            noise_rate=network.rate,
            numbers_first=numbers_first,
            apart=network.apart,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names(self.columns, schema) if self.columns else super().reads(schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a range count in one number, and of a joint count."""
        parts = self._parts(schema)
        if self._design(parts) == "cells":
            numbers, categories = parts.names
            return cells_error(
                schema, numbers, categories, n_records, epsilon, marginal=self.marginal
            )
        require_rate(epsilon * SIZE_SHARE)
        self._require_rates(parts, epsilon)
        shares = self._shares(parts, n_records, epsilon)
        left = epsilon * (1 - SIZE_SHARE)
        width = require_marginals(parts.all, self.marginal, left * shares["marginals"])
        figures = {"range_count_95": width}
        summary = (
            f"{len(parts.all)} marginals, a count of half of a column's values within "
            f"{width:,.0f} of the truth (95 %)"
        )
        if n_records:
            figures["range_count_95_per_record"] = width / n_records
            if "correlations" in shares:
                ordered, share = self._ordered(parts), left * shares["correlations"]
                deviation = expected_deviation("spearman", len(ordered), n_records, share)
                figures["correlation_95"] = 1.96 * deviation
        if "network" not in shares:
            return ExpectedError(f"{summary}; no joint counts", figures, target="range_count_95")
        joints = len(parts.categories) if self._ordered(parts) else len(parts.all)
        rate = left * shares["network"] * (1 - STRUCTURE_SHARE) / joints
        figures["one_cell_95"] = float(sum_quantile(rate, 1, 0.95))
        summary += f"; up to {joints} joint counts, each within {figures['one_cell_95']:,.0f}"
        return ExpectedError(summary, figures, target="range_count_95")

    def _require_rates(self, parts: MixedColumns, epsilon: Fraction) -> None:
        """Refuse an epsilon whose smallest shares, for any noisy size, allow no exact noise."""
        left = epsilon * (1 - SIZE_SHARE)
        for marginals in MARGINALS_SHARES:
            shares = self._shares_with(parts, marginals)
            require_marginals(parts.all, self.marginal, left * shares["marginals"])
            if "correlations" in shares:
                columns, share = len(self._ordered(parts)), left * shares["correlations"]
                expected_deviation("spearman", columns, USUAL_RECORDS, share)
            network = left * shares["network"]
            require_rate(network * STRUCTURE_SHARE / len(parts.all) / SHARES_RANGE)
            require_rate(network * (1 - STRUCTURE_SHARE) / len(parts.all))

    def _design(self, parts: MixedColumns) -> Design:
        if self.design != "auto":
            return self.design
        many = sum(c.axis().ordinary_leaves >= MANY_VALUES for c in parts.numbers)
        return "numbers-first" if 2 * many > len(parts.all) else "network"

    def _ordered(self, parts: MixedColumns) -> tuple[str, ...]:
        """Name the numbers that correlations join: none if the network joins them."""
        return ordered_columns(parts.numbers) if self._design(parts) == "numbers-first" else ()

    def _shares(
        self, parts: MixedColumns, records: int | None, epsilon: Fraction
    ) -> dict[str, Fraction]:
        """Share out what is left after the size; public, from the noisy size and the schema.

        The fewer records a cell of a marginal holds, in units of its noise, the more the
        marginals get: all, where no network could make up for what it takes from them.
        """
        if records is None:
            return self._shares_with(parts, min(MARGINALS_SHARES))
        cell = records_per_cell(parts.all, records, epsilon) / self.theta
        if cell < LEAST_FOR_NETWORK:
            return {"marginals": Fraction(1)}
        return self._shares_with(parts, MARGINALS_SHARES[cell >= LEAST_FOR_MORE])

    def _shares_with(self, parts: MixedColumns, marginals: Fraction) -> dict[str, Fraction]:
        """Share out the rest where marginals get so much and there is a network."""
        shares = {"marginals": marginals}
        if self._ordered(parts):
            shares["correlations"] = (1 - marginals) * CORRELATIONS_SHARE
        return {**shares, "network": 1 - sum(shares.values(), Fraction(0))}

    def _parts(self, schema: Schema) -> MixedColumns:
        columns = counted_columns(schema, self.columns or schema.names)
        parts = MixedColumns.of(columns, self.least_values)
        for column in parts.categories:
            require_countable(column, None)
        marginal_kernel(schema, columns, parts.all)  # refuses what cannot be counted
        return parts

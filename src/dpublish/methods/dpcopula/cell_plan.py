"""What is settled about cells and copulas before any row is read."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.cell_tables import RESERVED
from dpublish.methods.dpcopula.expected_correlation import expected_spread
from dpublish.methods.dpcopula.weighed_marginals import require_marginals
from dpublish.methods.histogram.domain import counted_columns, require_few
from dpublish.methods.marginals.one_marginal import MarginalMethod

MOST_CELLS = 1_000_000
MOST_GROUPS = 64
"""Most cells that have marginals of their own."""
MOST_COUNTS = 1 << 24
"""Most counts of leaves that all groups together may have."""
USUAL_RECORDS = 10_000
"""How many records are thought of where nothing is said."""

FEW_CELLS = 100
_FEW_CELLS_SHARE, _MANY_CELLS_SHARE = Fraction(1, 10), Fraction(2, 5)


@dataclass(frozen=True)
class CellPlan:
    """Columns by their part in the release, and shares of the budget.

    Attributes:
        schema: All columns; a record that lacks one of them is counted nowhere.
        numbers: Columns with an order, whose marginals are counted in groups of cells.
        categories: Columns whose combinations are the cells.
    """

    schema: Schema
    numbers: tuple[Column, ...]
    categories: tuple[Column, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(column.size for column in self.categories)

    @property
    def shares(self) -> dict[str, Fraction]:
        """Part of epsilon that goes to each purpose.

        Many cells need more than few: a count over one column adds up the noise of all the
        others' combinations.  Marginals get eight times as much as correlations.
        """
        if not self.numbers:
            return {"cells": Fraction(1)}
        cells = _FEW_CELLS_SHARE if self.cells <= FEW_CELLS else _MANY_CELLS_SHARE
        if len(self.numbers) == 1:
            return {"cells": cells, "marginals": 1 - cells}
        ninth = (1 - cells) / 9
        return {"cells": cells, "marginals": 8 * ninth, "correlations": ninth}

    def predict(
        self, marginal: MarginalMethod, records: int, epsilon: Fraction
    ) -> dict[str, float]:
        """Refuse an epsilon whose shares would buy no exact noise; otherwise tell the errors."""
        bought = {name: epsilon * share for name, share in self.shares.items()}
        require_rate(bought["cells"])
        reach = float(sum_quantile(bought["cells"], 1, 0.95))
        figures = {"one_cell_95": reach, "cells": float(self.cells)}
        if "marginals" in bought:
            reach = require_marginals(self.numbers, marginal, bought["marginals"])
            figures["group_range_count_95"] = reach
        if "correlations" in bought:
            share = bought["correlations"]
            spread = expected_spread("spearman", len(self.numbers), records, share)
            figures["correlation_95"] = 1.96 * spread
        return figures


def make_cell_plan(
    schema: Schema, numbers: tuple[str, ...], categories: tuple[str, ...]
) -> CellPlan:
    """Find the columns, and refuse what cannot be counted."""
    if not categories:
        raise InvalidParameter("cells need at least one column of few values")
    used = counted_columns(schema, (*numbers, *categories))
    plan = CellPlan(
        replace(schema, columns=used),
        tuple(column for column in used if column.name in numbers),
        tuple(column for column in used if column.name in categories),
    )
    require_few(plan.categories)
    for column in plan.numbers:
        if column.kind == "category":
            raise InvalidParameter(f"column {column.name!r} has no order, so it has no copula")
    for column in plan.categories:
        if column.name in RESERVED:
            raise InvalidParameter(f"cells are not made of a column called {column.name!r}")
    if plan.cells > MOST_CELLS:
        raise InvalidParameter(
            f"{plan.cells:,} cells are too many (at most {MOST_CELLS:,}); take fewer columns, "
            "or another design"
        )
    if (MOST_GROUPS + 1) * sum(column.size for column in plan.numbers) > MOST_COUNTS:
        raise InvalidParameter("marginals of all groups have too many leaves; take coarser bins")
    return plan

"""The marginals of several columns, with more of the budget for those that need it.

Correlations are measured with what these marginals say about each column's values.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, log

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.counts import Counts
from dpublish.core.method import Run
from dpublish.core.noisy_size import NoisySize
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.gaussian_copula import ValueDistribution
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import (
    MarginalMethod,
    marginal_half_width,
    release_marginal,
    require_marginal,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import rational_weight
from dpublish.privacy.neighbors import AddRemoveRecord

NO_NOISE = Fraction(64)
"""The rate that stands beside a number without noise: such noise would be 0 but for 10^-27."""


def marginal_shares(columns: Sequence[Column], method: MarginalMethod) -> dict[str, Fraction]:
    """Return the part of the budget of each column's marginal; the parts add up to 1.

    A range count's half-width is that at epsilon 1 divided by the share.  The sum of squared
    errors is least where shares grow with the half-width to the power 2/3.
    """
    widths = {c.name: marginal_half_width(method, c.size, Fraction(1)) for c in columns}
    weights = {name: rational_weight(width ** (2 / 3)) for name, width in widths.items()}
    total = sum(weights.values(), Fraction(0))
    return {name: weight / total for name, weight in weights.items()}


def split_marginals(
    columns: Sequence[Column], method: MarginalMethod, budget: Budget
) -> dict[str, Budget]:
    """Split a budget by `marginal_shares`."""
    shares = marginal_shares(columns, method)
    budgets = budget.split(**{f"marginal of {name}": share for name, share in shares.items()})
    return dict(zip(shares, budgets.values(), strict=True))


def require_marginals(
    columns: Sequence[Column], method: MarginalMethod, epsilon: Fraction
) -> float:
    """Refuse marginals that cannot be published; otherwise predict the worst range count (95 %)."""
    worst = 0.0
    shares = marginal_shares(columns, method)
    for column in columns:
        share = epsilon * shares[column.name]
        require_marginal(method, column.size, share)
        worst = max(worst, marginal_half_width(method, column.size, share))
    return worst


def marginal_kernel(
    schema: Schema, columns: Sequence[Column], counted: Sequence[Column]
) -> CompleteCounts:
    """Count the records that have all `columns`, and these by each column of `counted`."""
    sets = ((), *(((column.name, None),) for column in counted))
    return CompleteCounts(schema, sets, tuple(column.name for column in columns))


def count_records(
    run: Run, columns: Sequence[Column], counted: Sequence[Column], *, budget: Budget
) -> tuple[NoisySize, dict[str, NDArray[np.int64]]]:
    """Return the noisy number of records that have all `columns`, and exact marginals of some.

    Privacy:
        The noisy size is `budget.epsilon`-differentially private when one record is added or
        removed.  The exact marginals are private: callers pass them to mechanisms and keep none.
    """
    kernel = marginal_kernel(run.schema, columns, counted)
    total, *marginals = kernel.split(run.sum(kernel))
    size = NoisySize(run.noisy_size(int(total), budget=budget), budget.epsilon)
    return size, {column.name: counts for column, counts in zip(counted, marginals, strict=True)}


def count_public_records(
    run: Run, columns: Sequence[Column], records: int
) -> tuple[NoisySize, dict[str, NDArray[np.int64]]]:
    """Return the public number of records, and exact marginals; refuse another number.

    Privacy:
        Only where one record is exchanged for another: the number of all rows, whatever is
        missing in them, is then the same on all neighbors, so that whether it is `records`
        tells nothing that is hidden.  How many rows are complete decides nothing.  The exact
        marginals are private: callers pass them to mechanisms and keep none.
    """
    every = Counts(run.schema, ((),))
    if int(run.sum(every).sum()) != records:
        raise InvalidParameter(
            f"the table does not have {records:,} records, as public_records says; give their "
            "exact number"
        )
    kernel = marginal_kernel(run.schema, columns, columns)
    _, *marginals = kernel.split(run.sum(kernel))
    size = NoisySize(records, NO_NOISE)
    return size, {column.name: counts for column, counts in zip(columns, marginals, strict=True)}


def require_whole(columns: Sequence[Column]) -> None:
    """Refuse columns whose missing rule leaves records out: the public number would not be theirs.

    Privacy does not rest on it: a record that is left out all the same moves no count.
    """
    leaving = [column.name for column in columns if column.missing == "drop"]
    if leaving:
        raise InvalidParameter(
            f"public_records needs columns that keep all records; {', '.join(leaving)} may leave "
            'some out (missing = "drop"), and how many is private'
        )


def half_for_exchange(budget: Budget) -> Budget:
    """Return what a mechanism that hides one record in or out may spend if one is exchanged.

    Privacy:
        An exchange takes one record out and puts another one in.  A mechanism that is
        e-private for either step is 2 e-private for both, so e is half of `budget`.
    """
    return budget.at_most(budget.epsilon / 2, hides=AddRemoveRecord())


def release_marginals(
    run: Run,
    counts: Mapping[str, NDArray[np.int64]],
    columns: Sequence[Column],
    *,
    method: MarginalMethod,
    budget: Budget,
) -> dict[str, NoisyMarginal]:
    """Publish the marginal of every one of `columns` from its exact counts.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a record
        has one value in every column, each marginal costs its share (`release_marginal`), and
        shares follow from numbers of values and add up to the whole.
    """
    marginals = {}
    budgets = split_marginals(columns, method, budget)
    for done, (name, share) in enumerate(budgets.items(), start=1):
        marginals[name] = release_marginal(run, counts[name], method=method, budget=share)
        run.step(done, len(budgets), "marginals")
    return marginals


# --- What correlations need to know ---------------------------------------------------------------


def value_distributions(
    schema: Schema, columns: Sequence[str], marginals: Mapping[str, NoisyMarginal]
) -> list[ValueDistribution]:
    """Return the released distribution of each column's values."""
    return [
        ValueDistribution(marginals[name].probabilities, schema[name].axis().ordinary_leaves)
        for name in columns
    ]


def fewest_records(size: NoisySize, columns: int) -> int:
    """Bound the number of records from below: right in 999 of 1000 cases, and at least `columns`.

    No privacy guarantee rests on it being right.
    """
    return max(columns, floor(size.value - log(500) / float(size.rate)))


def complete_columns(
    columns: Sequence[str], marginals: Mapping[str, NoisyMarginal]
) -> tuple[str, ...]:
    """List the columns that a record must have: those with a published marginal, too."""
    return tuple(dict.fromkeys((*columns, *marginals)))


def require_correlated(run: Run, columns: Sequence[str]) -> None:
    """Refuse tables whose neighbors differ by more than a record, and fewer than two columns."""
    if not isinstance(run.neighbors, AddRemoveRecord):
        raise InvalidParameter("correlations are published for single records added or removed")
    if len(columns) < 2:
        raise InvalidParameter("a correlation needs two columns or more")

"""Publish the margins of several columns, with more of the budget for those that need it."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.noise import noisy_size
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import rational_weight
from dpublish.randomness import RandomSource
from dpublish.release.labelled_histogram import NoisySize
from dpublish.release.noisy_margin import NoisyMargin
from dpublish.release.recipe import Progress
from dpublish.synthesis.histograms.margins import (
    MarginMethod,
    margin_reach,
    release_margin,
    require_margin,
)


def margin_shares(columns: Sequence[Column], method: MarginMethod) -> dict[str, Fraction]:
    """Say which part of the budget each column's margin gets; the parts add up to 1.

    A range count's error is its reach at epsilon 1 over the share.  The sum of squared errors
    is least where shares grow with the reach to the power 2/3.
    """
    reaches = {column.name: margin_reach(method, column.size, Fraction(1)) for column in columns}
    weights = {name: rational_weight(reach ** (2 / 3)) for name, reach in reaches.items()}
    total = sum(weights.values(), Fraction(0))
    return {name: weight / total for name, weight in weights.items()}


def require_margins(columns: Sequence[Column], method: MarginMethod, epsilon: Fraction) -> float:
    """Refuse margins that cannot be published; otherwise foretell the worst range count (95 %)."""
    worst = 0.0
    shares = margin_shares(columns, method)
    for column in columns:
        share = epsilon * shares[column.name]
        require_margin(method, column.size, share)
        worst = max(worst, margin_reach(method, column.size, share))
    return worst


def margin_kernel(
    schema: Schema, columns: Sequence[Column], counted: Sequence[Column]
) -> CompleteCounts:
    """Count the records that have all `columns`, and these by each column of `counted`."""
    sets = ((), *(((column.name, None),) for column in counted))
    return CompleteCounts(schema, sets, tuple(column.name for column in columns))


def count_records(
    table: Table,
    columns: Sequence[Column],
    counted: Sequence[Column],
    *,
    budget: Budget,
    rng: RandomSource,
) -> tuple[NoisySize, dict[str, NDArray[np.int64]]]:
    """Blur the number of records that have all `columns`; give the exact margins of some, too.

    Privacy:
        The noisy size is `budget.epsilon`-differentially private when one record is added or
        removed.  The exact margins are private: callers hand them to mechanisms and keep none.
    """
    kernel = margin_kernel(table.schema, columns, counted)
    total, *margins = kernel.split(table.sum(kernel))
    rate = budget.epsilon
    size = NoisySize(noisy_size(int(total), budget=budget, rng=rng), rate)
    return size, {column.name: counts for column, counts in zip(counted, margins, strict=True)}


def release_margins(
    counts: Mapping[str, NDArray[np.int64]],
    columns: Sequence[Column],
    *,
    method: MarginMethod,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> dict[str, NoisyMargin]:
    """Publish the margin of every one of `columns` from its exact counts.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a record
        lies in one leaf of every column, each margin costs its share (`release_margin`), and
        shares follow from numbers of leaves and add up to the whole.
    """
    shares = margin_shares(columns, method)
    purses = budget.split(**{f"margin of {name}": share for name, share in shares.items()})
    margins = {}
    for done, (name, purse) in enumerate(zip(shares, purses.values(), strict=True), start=1):
        margins[name] = release_margin(counts[name], method=method, budget=purse, rng=rng)
        if progress is not None:
            progress(done, len(shares), "margins")
    return margins

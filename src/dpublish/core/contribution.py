"""How many rows of a unit are kept: a public number, or a private quantile of rows per unit."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np

from dpublish.data.schema import Schema, bounded_schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.quantile import rank_range
from dpublish.mechanisms.selection import select, selection_rate
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

MOST_ROWS = 64
"""The largest bound that `contribution="auto"` may choose."""

MOST_NAMED_ROWS = 1_000_000
"""The largest bound that may be named."""

QUANTILE = Fraction(19, 20)
"""Which part of the units is to keep all of its rows."""


def require_unit(schema: Schema) -> None:
    """Refuse to bound rows where there are no units."""
    if schema.unit is None:
        raise InvalidParameter(
            "contribution bounds the records of each person, and the schema names no unit; write "
            'unit = "patient_id" (the column that tells people apart) at its top, or leave '
            "contribution out"
        )


def require_contribution(
    contribution: Literal["auto"] | int | None, share: Fraction = Fraction(1, 20)
) -> None:
    """Refuse a bound that is none, or a share that cannot be spent on it."""
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise InvalidParameter("contribution_share must be an exact number between 0 and 1")
    if contribution is None or contribution == "auto":
        return
    if not isinstance(contribution, int):
        raise InvalidParameter(f"contribution ({contribution}) must be an integer, or auto")
    require_count(contribution=contribution)
    if contribution > MOST_NAMED_ROWS:
        raise InvalidParameter(
            f"contribution ({contribution:,}) must be at most {MOST_NAMED_ROWS:,}; noise grows "
            "with it, and would leave nothing to see"
        )


def require_share(epsilon: Fraction) -> None:
    """Refuse a share of epsilon that no exact choice can be made with."""
    selection_rate(epsilon, rank_range(QUANTILE))


def record_schema(schema: Schema, columns: Sequence[str]) -> Schema:
    """Describe the bounded table: some columns of single records."""
    return bounded_schema(schema, (schema[name] for name in columns))


def choose_contribution(
    table: Table,
    columns: Sequence[str],
    complete: Sequence[str],
    *,
    budget: Budget,
    rng: RandomSource,
) -> int:
    """Choose a number of rows that about 95 % of the units do not exceed, at most 64.

    Of the rows that have the columns that are to be `complete`.

    Privacy:
        `budget.epsilon`-differentially private for one unit added or removed: permute-and-flip
        over the public candidates 1 to 64.  The score of m is minus the distance of 0.95 times
        the number of units from the interval [units with fewer than m rows, units with at most
        m rows], in twentieths.  A unit more moves both ends, measured from there, by -19 or +1,
        so every score moves by at most 19 up or down, and two of them against each other by at
        most R = 38.  What is taken off for large m is public (`prior`), and moves with no unit.
        Proof: docs/proofs/contribution_bound.md.
    """
    rows = table.rows_per_unit(MOST_ROWS, columns, complete)
    scores = quantile_scores(rows) + prior(budget.epsilon)
    chosen = select(scores, sensitivity_range=rank_range(QUANTILE), budget=budget, rng=rng)
    return chosen + 1


def prior(epsilon: Fraction) -> IntArray:
    """Score numbers of rows before any unit is seen: each has exp(1/4) times the odds of the next.

    These are the odds with which a candidate is taken when its turn comes (permute-and-flip).
    Of a small table the choice knows little, and noise grows with every row.  Of a large one it
    makes no difference.

    >>> prior(Fraction(1, 20))[:3].tolist()
    [0, -190, -380]
    """
    step = ceil(rank_range(QUANTILE) / epsilon / 4)
    return -step * np.arange(MOST_ROWS, dtype=np.int64)


def quantile_scores(counts: IntArray) -> IntArray:
    """Score every number of rows by how near to the quantile it is; exact, and so private.

    >>> quantile_scores(np.array([90, 8, 2])).tolist()
    [-100, 0, -60]
    """
    part, parts = QUANTILE.numerator, QUANTILE.denominator
    at_most = np.cumsum(counts, dtype=np.int64)
    fewer = at_most - counts
    target = part * at_most[-1]
    scores: IntArray = -np.maximum(np.maximum(parts * fewer - target, target - parts * at_most), 0)
    return scores

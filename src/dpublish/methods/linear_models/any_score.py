"""Fit whatever has a score that is a sum over records: the general form of PrivGene.

A score f(D, ω) = h(ω) + Σ q(t, ω) may belong to any model: a center, a threshold, a shape.  Where
q looks at few columns, it can be listed for every cell of theirs, and how far one record can move
two candidates apart follows from that list, without a proof by hand.
"""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.method import Run
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.genetic_search import Scores
from dpublish.methods.linear_models.model_scores import Scorer
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.types import IntArray

MOST_CELLS = 1 << 16
"""Qualities are listed for at most so many cells."""
LARGEST_QUALITY = 1 << 30
"""Differences of qualities, and their sums over 2^27 records and more, are exact in int64."""
LARGEST_PUBLIC = 1 << 60
"""With such sums, the public part of a score fits an int64 too."""

Quality = Callable[[Mapping[str, IntArray], IntArray], IntArray]
"""Computes q in whole units: given the codes of cells by column and the candidates, a row a
cell and a column a candidate.  It must not look at anything else."""


def list_cells(schema: Schema, columns: tuple[str, ...]) -> dict[str, IntArray]:
    """List the cells of some columns, each by its codes.

    >>> from dpublish.data.schema import column
    >>> pair = column("a", "integer", bounds=[0, 1]), column("b", "integer", bounds=[0, 2])
    >>> schema = Schema(pair)
    >>> list_cells(schema, ("a", "b"))["b"].tolist()
    [0, 1, 2, 0, 1, 2]
    """
    for name in columns:
        require_known("column", name, schema.names)
    shape = tuple(schema[name].size for name in columns)
    if not shape or prod(shape) > MOST_CELLS:
        raise InvalidParameter(f"these columns must have 1 to {MOST_CELLS:,} cells together")
    codes = np.unravel_index(np.arange(prod(shape)), shape)
    return {name: code.astype(np.int64) for name, code in zip(columns, codes, strict=True)}


def score_cells(
    run: Run,
    columns: tuple[str, ...],
    quality: Quality,
    *,
    public: Callable[[IntArray], IntArray] | None = None,
) -> Scorer:
    """Make a function that scores candidates by the records, for `run.genetic_search`.

    The range that it states is taken over all cells of the domain and the candidates of the
    round: the largest difference of two qualities of one cell, or the largest quality where all
    have the same sign (R1), whichever is less.  The records do not enter it.

    Args:
        run: The release at work; `Run(table, rng=...)` makes one.
        columns: The columns that `quality` looks at; a record must be complete in them.
        quality: q in whole units, at most 2^30 in size, as int64.
        public: h in whole units, one number a candidate, at most 2^60 in size, as int64; it may
            not look at the records.

    Privacy:
        Reads exact counts; what it makes is for a private choice alone.  The range holds of the
        scores as they are computed if no sum wraps: 2^27 records add up to at most 2^57, to
        which at most 2^60 is added (up to 2^32 records, 2^62 + 2^60 still fits).  What is
        refused is judged by the domain and the candidates, never by the records.
    """
    if not isinstance(run.neighbors, AddRemoveRecord):
        raise InvalidParameter("sums over records hide one record added or removed")
    cells = list_cells(run.schema, columns)
    sets = (tuple((name, None) for name in columns),)
    counts = run.sum(CompleteCounts(run.schema, sets, columns)).ravel().astype(np.int64)

    def score(candidates: IntArray) -> Scores:
        qualities = np.asarray(quality(cells, candidates))
        if qualities.shape != (len(counts), len(candidates)):
            raise InvalidParameter("a quality is an integer for every cell and every candidate")
        sensitivity_range = quality_range(qualities)  # refuses what could wrap in the sums
        values = counts @ qualities
        if public is not None:
            values = values + _public_part(public(candidates), len(candidates))
        return Scores(np.asarray(values, dtype=np.int64), sensitivity_range)

    return score


def quality_range(qualities: IntArray) -> int:
    """Bound how far one record can move two candidates apart; a row a cell of the domain.

    Qualities that are no int64, or more than 2^30 in size, are refused: where a difference
    wraps, the range would be far too small.

    >>> quality_range(np.array([[-64, -49, -36], [-16, -9, -4]]))
    28
    """
    _require_exact("a quality", qualities, LARGEST_QUALITY)
    apart = int((qualities.max(axis=1) - qualities.min(axis=1)).max())
    has_one_sign = bool((qualities <= 0).all() or (qualities >= 0).all())
    largest = int(np.abs(qualities).max()) if has_one_sign else apart
    return max(min(apart, largest), 1)


def _public_part(given: IntArray, count: int) -> IntArray:
    """Refuse a public part that is not an integer for every candidate."""
    part = np.asarray(given)
    if part.shape != (count,):
        raise InvalidParameter("the public part of a score is an integer for every candidate")
    _require_exact("the public part of a score", part, LARGEST_PUBLIC)
    return part


def _require_exact(what: str, numbers: IntArray, largest: int) -> None:
    """Refuse numbers that int64 arithmetic could not add exactly."""
    if numbers.dtype != np.int64:
        raise InvalidParameter(
            f"{what} must be of type int64, not {numbers.dtype}: round to whole units, and "
            "convert with .astype(np.int64)"
        )
    if int(numbers.min()) < -largest or int(numbers.max()) > largest:  # abs(-2^63) would wrap
        raise InvalidParameter(
            f"{what} must be at most 2^{largest.bit_length() - 1} in size, so that no sum "
            "wraps: choose a coarser unit"
        )

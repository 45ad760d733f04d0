"""Draw the columns that refine a grid so that rows agree with what refinements published.

A refinement publishes, by cell of its column, noisy sums of residuals, of variances, and of what
each record leaves of the sensitivity.  The last two tell how many records a cell has, and which
probabilities the card before it gave them.  Rows are drawn to match: a row's cell depends on
the probabilities of its classes.  All of it is post-processing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.core.probabilities import draw_cells
from dpublish.data.axis import Axis
from dpublish.methods.privpfc.kernels import sensitivity_of
from dpublish.methods.privpfc.released_columns import Refinement
from dpublish.methods.privpfc.score_card import UNIT, ScoreCard, to_probabilities
from dpublish.types import FloatArray, IntArray

_BINS = 16  # of the highest probability, for each class that may have it
_PASSES = 40
_DOUBT = 3  # deviations of noise that a sum has to outweigh to be believed
_GOLDEN = (5**0.5 - 1) / 2
_EVENLY = 0.02  # part of the rows that are distributed evenly over all cells


class Drawn(NamedTuple):
    """The cells of a column that was drawn, on the finest axis that is known of it."""

    axis: Axis
    cells: IntArray

    @property
    def leaves(self) -> IntArray:
        """A leaf of each row's cell: the first."""
        return np.asarray(self.axis.leaf_starts[self.cells])


def draw_refined(
    drawn: dict[str, Drawn],
    card: ScoreCard,
    refinements: Sequence[Refinement],
    size: int,
    records: float,
    rng: np.random.Generator,
) -> dict[str, Drawn]:
    """Add the columns of refinements to rows whose grid columns are drawn.

    Args:
        drawn: Cells of the grid's columns, of as many rows as there will be.
        card: The score card of the grid alone.
        refinements: In the order of their publication.
        size: Number of rows.
        records: Number of records that the rows stand for.
        rng: Source of the draws; the privacy does not depend on it.
    """
    found = dict(drawn)
    for one in refinements:
        codes = {name: column.leaves for name, column in found.items()}
        scores = card.score(codes, size)
        known = found.get(one.axis.column)
        if known is None or _is_finer(one.axis, known.axis):
            cells = _draw_cells(one, known, scores, records, rng)
            found[one.axis.column] = Drawn(one.axis, cells)
        card = ScoreCard((*card.terms, one.term))
    return found


def draw_evenly(scores: IntArray, cells: IntArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw the class of each row by its scores, so that alike rows share classes out evenly.

    Rows of a cell with like scores come one after the other in a sequence whose points are
    equally spaced (multiples of the golden ratio from a random start).  Each row has its
    classes with the probabilities of its scores; their shares among alike rows vary far less
    than in independent draws.
    """
    bounds = np.cumsum(to_probabilities(scores), axis=1)
    points = np.empty(len(scores))
    order = np.lexsort((*scores.T, cells))
    points[order] = (rng.random() + np.arange(len(scores)) * _GOLDEN) % 1.0
    return np.asarray((bounds <= points[:, None] * bounds[:, -1:]).sum(axis=1), dtype=np.intp)


def _is_finer(axis: Axis, than: Axis) -> bool:
    """Check whether every cell of an axis lies in one cell of another, coarser one."""
    return axis.size > than.size and bool(np.isin(than.leaf_starts, axis.leaf_starts).all())


def _draw_cells(
    one: Refinement,
    known: Drawn | None,
    scores: IntArray,
    records: float,
    rng: np.random.Generator,
) -> IntArray:
    """Draw a cell of the refinement's axis for each row, within its known cell."""
    if not len(scores):
        return np.empty(0, dtype=np.int64)
    parents = 1 if known is None else known.axis.size
    above = np.zeros(one.axis.size, dtype=np.int64)
    group = _score_groups(scores)
    if known is not None:
        above = known.axis.leaf_to_cell[one.axis.leaf_starts[:-1]].astype(np.int64)
        group = known.cells + parents * group
    groups, members, sizes = np.unique(group, return_inverse=True, return_counts=True)
    middle = np.stack(
        [np.bincount(members, column) / sizes for column in scores.astype(np.float64).T], axis=1
    )
    allowed = (groups % parents)[:, None] == above
    weights = sizes.astype(np.float64) * (max(records, 1.0) / len(scores))
    shares = fit_shares(one, np.rint(middle).astype(np.int64), weights, allowed)
    return draw_cells(shares, members.astype(np.int64), rng)


def _score_groups(scores: IntArray) -> IntArray:
    """Group rows by their likeliest class and by how likely it is."""
    probabilities = to_probabilities(scores)
    best = probabilities.argmax(axis=1)
    level = probabilities.max(axis=1, initial=0) * _BINS // (UNIT + 1)
    return np.asarray(best * _BINS + level)


def fit_shares(
    one: Refinement, scores: IntArray, weights: FloatArray, allowed: NDArray[np.bool_]
) -> FloatArray:
    """Find how the records of each group are shared out over the cells of a refinement.

    Args:
        one: The refinement, with the sums that are to be met.
        scores: Scores of each group's records before the refinement.
        weights: How many records each group has.
        allowed: Whether a group may have records in a cell.

    Returns:
        Shares, a row for each group; multiplied until they meet the sums (iterative scaling),
        which are weighed against their noise.
    """
    use = usage(one, scores)
    wanted = np.maximum(one.published_use, 0.0)
    doubt = _DOUBT / (float(one.rate) * UNIT)
    counts = wanted.sum(axis=0) + doubt
    shares = _normalized(np.where(allowed, counts, 0.0))
    for _ in range(_PASSES):
        met = np.einsum("g,gc,gck->kc", weights, shares, use)
        factors = np.log((wanted + doubt) / (met + doubt))
        shares = _normalized(shares * np.exp(np.einsum("gck,kc->gc", use, factors)))
    even = _normalized(allowed.astype(np.float64))
    return (1 - _EVENLY) * shares + _EVENLY * even


def usage(one: Refinement, scores: IntArray) -> FloatArray:
    """Compute what a record of each group is expected to add to each sum, if it lies in each cell.

    Variances come first, then what records of each class leave of the sensitivity, all as parts
    of one record.
    """
    classes = one.classes
    before = _proportions(scores)
    after = _proportions((scores[:, None, :] + one.term.scores).reshape(-1, classes))
    after = after.reshape(len(scores), one.axis.size, classes)
    planes = before[:, 1:] if classes == 2 else before
    variances = (planes * (1 - planes)).sum(axis=1)
    bound = sensitivity_of(classes) / UNIT
    residuals = np.stack(
        [
            np.abs((np.arange(classes) == own) - before)[:, -planes.shape[1] :]
            for own in range(classes)
        ]
    ).sum(axis=2)
    left = np.maximum(bound - residuals - variances, 0.0).T  # by group and class
    parts = [
        np.broadcast_to(variances[:, None, None], (*after.shape[:2], 1)),
        after * left[:, None],
    ]
    return np.concatenate(parts, axis=2) / bound


def _proportions(scores: IntArray) -> FloatArray:
    probabilities = to_probabilities(scores).astype(np.float64)
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def _normalized(shares: FloatArray) -> FloatArray:
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))

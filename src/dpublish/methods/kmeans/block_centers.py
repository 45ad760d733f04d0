"""Centers of each of many blocks of records, and what may be published of all of them."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.data.box import UNIT, Box
from dpublish.data.table import Table
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.quantile import quantile
from dpublish.methods.kmeans.kernel_cluster_sums import ClusterSums
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

RANGE_CELLS = 1024
"""Cells of a column among which its quantiles are looked for."""
TAIL = Fraction(1, 20)
"""Part of the records that a loose range leaves out at either end."""


def block_centers(block: Table, box: Box, start: NDArray[np.float64], rounds: int) -> IntArray:
    """Find centers of a block in lattice coordinates, in the order of `start`.

    The answer is exact and private: only what one record changes in all blocks together may
    be published.  A block with fewer records than centers gives the start; a center that no
    record is nearest to stays where it is.  Every block takes all rounds, whatever it holds,
    so that their number tells nothing.
    """
    centers, enough = start, False
    for _ in range(rounds):
        sums = block.sum(ClusterSums(box, centers))
        counts = sums[:, :1]
        enough = bool(counts.sum() >= len(start))
        means = sums[:, 1:] / (np.maximum(counts, 1) * UNIT)
        centers = np.where(counts > 0, means, centers)
    return _on_lattice(centers if enough else start)


def mean_of_blocks(
    centers: Sequence[IntArray], ranges: IntArray, *, budget: Budget, rng: RandomSource
) -> NDArray[np.float64]:
    """Publish the mean of lattice centers (k, d), one set per block, between -1 and 1.

    Args:
        centers: The centers of each block; as many sets as there are blocks.
        ranges: Public lowest and highest lattice coordinate of each column.
        budget: Budget to empty, in equal shares over the columns.
        rng: Source of the noise.

    Privacy:
        `budget.epsilon`-differentially private for neighbors that differ in one block's
        centers, in whatever way.  Of the sums over blocks each coordinate in column j moves
        by at most high_j - low_j, since all are clipped to that range, so the k of them move
        by k times that in sum (L1), and get geometric noise for it.
    """
    budgets = budget.split_evenly(len(ranges), "column")
    total = np.zeros_like(centers[0])
    for block in centers:
        total += np.clip(block, ranges[:, 0], ranges[:, 1])
    found = np.empty(total.shape)
    for column, ((low, high), share) in enumerate(zip(ranges.tolist(), budgets, strict=True)):
        noisy = add_geometric(
            total[:, column], sensitivity=len(total) * (high - low), budget=share, rng=rng
        )
        found[:, column] = np.clip(noisy / (len(centers) * UNIT), low / UNIT, high / UNIT)
    return found


def find_ranges(table: Table, box: Box, *, budget: Budget, rng: RandomSource) -> IntArray:
    """Publish where the middle nine tenths of each column lie, in lattice coordinates.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: two
        quantiles of each column, each for an equal share (`quantile`).  Records are put into
        public cells one by one.  A range that is none (the noise crossed its ends) is
        replaced by the public bounds, which looks at the noisy ends only.
    """
    width = 2 * UNIT // RANGE_CELLS
    budgets = iter(budget.split_evenly(2 * box.dimensions, "end"))
    ranges = np.empty((box.dimensions, 2), dtype=np.int64)
    for place, column in enumerate(box.columns):
        counts = table.sum(BoxGrid(Box((column,)), (RANGE_CELLS,)))
        values = np.repeat(np.arange(RANGE_CELLS), counts)
        low, high = (
            int(
                quantile(
                    values,
                    probability=probability,
                    lower=0,
                    upper=RANGE_CELLS - 1,
                    cells=RANGE_CELLS - 1,
                    budget=next(budgets),
                    rng=rng,
                )
            )
            for probability in (TAIL, 1 - TAIL)
        )
        inside = (low, high + 1) if low <= high else (0, RANGE_CELLS)
        ranges[place] = [end * width - UNIT for end in inside]
    return ranges


def _on_lattice(centers: NDArray[np.float64]) -> IntArray:
    return np.clip(np.rint(centers * UNIT), -UNIT, UNIT).astype(np.int64)

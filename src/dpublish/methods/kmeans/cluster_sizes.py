"""How many records each cluster has, and which centers may be noise; from a noisy grid alone."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dpublish.accuracy.intervals import half_width
from dpublish.methods.kmeans.dense_regions import likely_cells, standing_out
from dpublish.methods.kmeans.synopsis import GridSynopsis


class ClusterSize(NamedTuple):
    """An estimated number of records.

    Attributes:
        records: Noisy counts of the cluster's cells that stand out, added up.
        half_width: How far the noise of these cells moves the sum, at most, with probability
            95 %; that a cell was taken because its noise was large is not allowed for.
        may_be_noise: Whether noise alone might look like this.
    """

    records: float
    half_width: float
    may_be_noise: bool


def estimate_sizes(grid: GridSynopsis, centers: NDArray[np.float64]) -> tuple[ClusterSize, ...]:
    """Add up the cells that stand out from the noise around each center (between -1 and 1)."""
    counts = grid.counts.astype(np.float64)
    dense = np.flatnonzero(likely_cells(grid).marked)
    _, nearest = cKDTree(centers).query(grid.cell_centers()[dense])
    cells = np.bincount(nearest, minlength=len(centers))
    sums = np.bincount(nearest, counts[dense], minlength=len(centers))
    least = standing_out(grid.size) * grid.deviation
    return tuple(
        ClusterSize(
            records=max(float(total), 0.0),
            half_width=half_width(grid.rate, np.ones(number), 0.95) if number else 0.0,
            may_be_noise=bool(total <= least * np.sqrt(max(number, 1))),
        )
        for number, total in zip(cells.tolist(), sums.tolist(), strict=True)
    )

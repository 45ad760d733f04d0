"""How far noise moves the center of a cluster: models of the squared error, from public facts.

All distances are measured in the box, from -1 to 1, and summed over the columns.  Clusters are
taken to hold equally many records; for a grid also to fill equal cubes.  They are checked against
simulated centers in the tests, and by the figure `error-model` of the experiment `kmeans`.

Reference: D. Su, PhD thesis, Purdue, 2016, sections 4.2 to 4.5.
"""

from fractions import Fraction
from math import sqrt

MEAN_COORDINATE = 0.225
"""How far from the middle of the box a cluster's mean lies, as a part of its width (rho)."""


def round_error(
    records: float,
    dimensions: int,
    clusters: int,
    *,
    count_weight: float | Fraction = 1,
    mean_coordinate: float = MEAN_COORDINATE,
) -> float:
    """Model the squared error that the noise of one round makes (Eqs. 4.5 and 4.6).

    `records` are multiplied by what the round spends.  The counts get `count_weight` of that
    where the sums of each column get 1.

    >>> round(round_error(10_000.0, 2, 5), 9)
    1.0823e-05
    """
    weight = float(count_weight)
    noise = 2 * dimensions * (1 + 4 * mean_coordinate**2 / weight**2)
    return float(noise * (clusters * (dimensions + weight) / records) ** 2)


def grid_variance(records: float, cells: float, dimensions: int, clusters: int) -> float:
    """Model the squared error that the noise of a grid's cells makes (Eq. 4.15).

    `records` are multiplied by what the counts spend.
    """
    shape = 2 * dimensions * clusters ** ((dimensions - 2) / dimensions)
    return float(shape * cells / (3 * records**2))


def grid_bias(cells: float, dimensions: int) -> float:
    """Bound the squared error that the width of a grid's cells makes (Eq. 4.16)."""
    return float(dimensions / cells ** (2 / dimensions))


def grid_cells(records: float, dimensions: int, theta: float | Fraction) -> float:
    """Compute the cells of an extended uniform grid, unrounded (Eq. 4.13)."""
    return float((records / float(theta)) ** (2 * dimensions / (2 + dimensions)))


def grid_error(
    records: float, dimensions: int, clusters: int, theta: float | Fraction = 10
) -> float:
    """Model the noise of centers in an extended uniform grid (Eq. 4.18).

    >>> round(grid_error(10_000.0, 2, 5), 9)
    1.3333e-05
    """
    cells = grid_cells(records, dimensions, theta)
    return grid_variance(records, cells, dimensions, clusters)


def block_error(blocks: float, epsilon: float, dimensions: int, clusters: int) -> float:
    """Compute the squared error that the noise on a mean over blocks makes (Eq. 4.10, r = 1)."""
    return float(2 * dimensions * (2 * clusters * dimensions / (blocks * epsilon)) ** 2)


def blocks_like_rounds(records: float, rounds: int, dimensions: int) -> float:
    """Compute in how many blocks the noise is that of each of so many equal rounds of k-means.

    It grows as the number of records over that of rounds: blocks of a few records each.

    >>> round(blocks_like_rounds(5_000, 5, 2))
    1216
    """
    ratio = 2 * dimensions / ((dimensions + 1) * sqrt(1 + 4 * MEAN_COORDINATE**2))
    return ratio * records / rounds

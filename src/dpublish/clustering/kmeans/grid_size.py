"""How finely to cut the box, from public facts and a noisy number of records."""

from fractions import Fraction
from math import log, sqrt
from typing import Literal

from dpublish.aggregates.box_grid import MOST_CELLS

GridRule = Literal["ug", "mkm", "eug"]
RECORDS_PER_CELL = 10
"""What ε times a number of records is divided by; the papers' constant."""
DENSE_RECORDS_PER_CELL = 2
"""The same where only dense regions are clustered, which can tell noise from records."""


def grid_side(
    rule: GridRule,
    size: int,
    dimensions: int,
    clusters: int,
    epsilon: Fraction | float,
    *,
    records_per_cell: float = RECORDS_PER_CELL,
) -> int:
    """Choose the number of cells along each column.

    There are at least as many cells as clusters, unless these would be too many to count.

    >>> grid_side("eug", 10_000, 2, 5, 1.0), grid_side("eug", 10_000, 6, 5, 1.0)
    (32, 6)
    >>> grid_side("eug", -7, 2, 5, 1.0), grid_side("ug", 10**9, 10, 5, 1.0)
    (3, 4)
    """
    useful = max(size, 1) * float(epsilon) / records_per_cell
    wanted = round(min(_wanted(rule, max(size, 1), dimensions, useful), MOST_CELLS))
    most = round(MOST_CELLS ** (1 / dimensions))
    if most**dimensions > MOST_CELLS:
        most -= 1
    return int(min(max(wanted, _root(clusters, dimensions)), most))


def _wanted(rule: GridRule, size: int, dimensions: int, useful: float) -> float:
    if rule == "mkm":
        return float((size / sqrt(log(size))) ** (2 / (2 + dimensions))) if size >= 3 else 1.0
    power = 1 / dimensions if rule == "ug" else 2 / (2 + dimensions)
    return float(useful**power)


def _root(clusters: int, dimensions: int) -> int:
    """Find the least side of a grid that has as many cells as there are clusters."""
    side = 1
    while side**dimensions < clusters:
        side += 1
    return side

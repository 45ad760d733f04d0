"""How finely to cut the box, from public facts and a noisy number of records."""

from fractions import Fraction
from math import ceil, log, sqrt
from typing import Literal

from dpublish.aggregates.box_grid import MOST_CELLS
from dpublish.data.box import Box

GridRule = Literal["ug", "mkm", "eug"]
RECORDS_PER_CELL = 10
"""What ε times a number of records is divided by; the papers' constant."""
DENSE_RECORDS_PER_CELL = 2
"""The same where only dense regions are clustered, which can tell noise from records."""

_NEAR = 1.5  # how far an even number of cells may be from the wanted one, as a factor
_MANY_INTEGERS = 50  # in a cell: one more or less is not seen


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


def even_sizes(box: Box, side: int) -> tuple[int, ...]:
    """Choose the cells along each column so that cells hold equally many integers.

    A column of numbers gets `side` cells.  Where cells of an integer column would hold a few
    integers each, some one more than others, the noisy counts would show stripes: then the
    nearest divisor of the number of its values is taken, if it is within a factor of 1.5.
    Public: it depends on the bounds alone.

    >>> from dpublish.data.schema import Schema, column
    >>> box = Box.of(Schema((column("age", "integer", bounds=[0, 99]),)))
    >>> even_sizes(box, 37), even_sizes(box, 400), even_sizes(box, 4)
    ((50,), (100,), (4,))
    """
    return tuple(
        _even_side(int(column.bounds[1]) - int(column.bounds[0]) + 1, side)
        if column.kind == "integer"
        else side
        for column in box.columns
    )


def _even_side(values: int, side: int) -> int:
    if values <= side:
        return values
    if values >= _MANY_INTEGERS * side:
        return side
    most = min(int(side * _NEAR), values)
    divisors = [n for n in range(max(ceil(side / _NEAR), 1), most + 1) if values % n == 0]
    return min(divisors, key=lambda n: abs(log(n / side)), default=side)


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

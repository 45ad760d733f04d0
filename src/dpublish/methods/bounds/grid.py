"""The public points among which bounds are chosen: round numbers, or firsts of months."""

from functools import cache

import numpy as np

from dpublish.data.column import NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.periods import DAY_SECONDS
from dpublish.types import FloatArray

STEPS = ("1", "1.5", "2", "3", "5", "7")
LEAST_POWER, MOST_POWER = -9, 15
WIDEST = 10.0**MOST_POWER
"""The largest point, and the smallest one with a minus before it."""
EARLIEST, LATEST = "1900-01-01", "2100-12-31"
"""The days between which bounds of dates are looked for."""


def grid_points(column: NumberColumn) -> FloatArray:
    """List the points within a column's declared bounds, and the bounds themselves.

    Six points for every power of ten, from a billionth to 10^15, zero, and the same with a minus
    before them; integers alone if the column holds integers.  Of dates, the first of every
    month.  Nothing here depends on rows.

    >>> from dpublish.data.schema import column
    >>> grid_points(column("age", "integer", bounds=[0, 24])).tolist()
    [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 24.0]
    """
    low, high = column.bounds
    points = _months(column) if isinstance(column, DateColumn) else _all_points()
    inside = points[(low < points) & (points < high)]
    if column.kind == "integer":
        inside = inside[inside == np.floor(inside)]
    return np.unique(np.concatenate(([low], inside, [high])))


@cache
def _all_points() -> FloatArray:
    powers = range(LEAST_POWER, MOST_POWER)
    positive = [float(f"{step}e{power}") for power in powers for step in STEPS]
    one_side = np.array([*positive, WIDEST])
    return np.concatenate((-one_side[::-1], [0.0], one_side))


def _months(column: DateColumn) -> FloatArray:
    """List the first days of all months, in days or in seconds."""
    months = np.arange(EARLIEST[:7], LATEST[:7], dtype="M8[M]")
    days = months.astype("M8[D]").astype(np.float64)
    return days if column.kind == "date" else days * DAY_SECONDS

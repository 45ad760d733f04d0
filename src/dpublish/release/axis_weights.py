"""From conditions on a column to the part of each cell that satisfies them."""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.errors import InvalidQuery
from dpublish.release.query import Condition

_RANGES = ("<", "<=", ">", ">=", "in range")


def axis_weights(axis: Axis, conditions: tuple[Condition, ...]) -> NDArray[np.float64]:
    """Weigh each cell of `axis` by the part of it that satisfies all `conditions`.

    A cell that lies inside weighs 1, one outside 0, one covered in part something between.
    """
    weights = np.ones(axis.size)
    numeric_ranges = [c for c in conditions if c.operator in _RANGES and axis.edges is not None]
    if numeric_ranges:
        weights = _covered(axis, numeric_ranges)
    for condition in conditions:
        if condition in numeric_ranges:
            continue
        further = _one(axis, condition)
        if np.any(_is_partial(weights) & _is_partial(further)):
            # How two parts of one cell overlap cannot be told from their sizes.
            raise InvalidQuery(
                f"the conditions on {axis.column!r} cut the same cell twice; ask a simpler question"
            )
        weights = weights * further
    return weights


def _is_partial(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (weights > 0) & (weights < 1)


class _Range(NamedTuple):
    """What several ranges of numbers have in common; an end is included or left out."""

    low: float
    high: float
    include_low: bool
    include_high: bool


def _intersection(axis: Axis, ranges: list[Condition]) -> _Range:
    # An end that is left out lies further inside than the same end included.
    low, high = (-inf, False), (inf, True)
    for condition in ranges:
        for value, operator in _ends(condition):
            number = _number(axis, value)
            if operator.startswith(">"):
                low = max(low, (number, operator == ">"))
            else:
                high = min(high, (number, operator == "<="))
    return _Range(low[0], high[0], not low[1], high[1])


def _covered(axis: Axis, ranges: list[Condition]) -> NDArray[np.float64]:
    """Intersect ranges of numbers first: two parts of one cell are then one part of it."""
    low, high, include_low, include_high = _intersection(axis, ranges)
    if low > high:
        return np.zeros(axis.size)
    return axis.cover(
        None if low == -inf else low,
        None if high == inf else high,
        include_low=include_low,
        include_high=include_high,
    )


def assumption(
    axis: Axis, conditions: tuple[Condition, ...], weights: NDArray[np.float64]
) -> str | None:
    """Say what an answer assumes beyond the noise: where values lie within a cell, or beyond."""
    if np.any(_is_partial(weights)):
        return "records are assumed to be spread evenly within partly covered cells"
    ranges = [c for c in conditions if c.operator in _RANGES]
    if axis.edges is None or not ranges:
        return None
    asked = _intersection(axis, ranges)
    first, last = axis.edges[0], axis.edges[-1] - axis.holds_whole_numbers
    if asked.low > last or asked.high < first or (asked.low == last and not asked.include_low):
        return f"values of {axis.column} beyond {first:g} to {last:g} were counted at these ends"
    # A cell holds one of its ends; whether just this value is asked for cannot be honoured.
    starts_odd = asked.low in axis.edges and asked.include_low != (axis.closed == "left")
    ends_odd = asked.high in axis.edges and asked.include_high != (axis.closed == "right")
    ends_odd = ends_odd and asked.high != last
    if not axis.holds_whole_numbers and (starts_odd or ends_odd):
        return f"no record is assumed to lie exactly at the end of the range of {axis.column}"
    return None


def _ends(condition: Condition) -> list[tuple[str, str]]:
    if condition.operator == "in range":
        return [(condition.operands[0], ">="), (condition.operands[1], "<=")]
    return [(condition.operands[0], condition.operator)]


def _number(axis: Axis, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = inf
    if abs(number) == inf or number != number:
        raise InvalidQuery(f"column {axis.column!r} holds numbers, and {text!r} is none")
    return number


def _one(axis: Axis, condition: Condition) -> NDArray[np.float64]:
    operator, operands = condition.operator, condition.operands
    if operator in ("=", "in set"):
        return axis.match(*operands)
    if operator == "!=":
        return 1.0 - axis.match(*operands)
    if operator == "in range":
        return axis.cover(operands[0], operands[1])
    if operator in (">", ">="):
        return axis.cover(low=operands[0], include_low=operator == ">=")
    return axis.cover(high=operands[0], include_high=operator == "<=")

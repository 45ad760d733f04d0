"""From conditions on a column to the part of each cell that satisfies them."""

from math import inf

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


def _covered(axis: Axis, ranges: list[Condition]) -> NDArray[np.float64]:
    """Intersect ranges of numbers first: two parts of one cell are then one part of it."""
    # An end that is left out lies further inside than the same end included.
    low, high = (-inf, False), (inf, True)
    for condition in ranges:
        for value, operator in _ends(condition):
            number = _number(axis, value)
            if operator.startswith(">"):
                low = max(low, (number, operator == ">"))
            else:
                high = min(high, (number, operator == "<="))
    if low[0] > high[0]:
        return np.zeros(axis.size)
    return axis.cover(
        None if low[0] == -inf else low[0],
        None if high[0] == inf else high[0],
        include_low=not low[1],
        include_high=high[1],
    )


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

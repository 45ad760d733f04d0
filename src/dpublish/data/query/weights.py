"""From conditions on a column to the part of each cell that satisfies them."""

from dataclasses import replace
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.query.language import Condition
from dpublish.errors import InvalidQuery

RANGES = ("<", "<=", ">", ">=", "in range")
"""Operators that compare by order."""
_ROUNDING = 1e-9  # of a cell: less of it is a rounding error of its edges


def axis_weights(axis: Axis, conditions: tuple[Condition, ...]) -> NDArray[np.float64]:
    """Weigh each cell of `axis` by the part of it that satisfies all `conditions`.

    A cell that lies inside weighs 1, one outside 0, one covered in part something between.
    """
    if not conditions:
        return np.ones(axis.size)
    if axis.edges is None:
        return _listed_weights(axis, conditions)
    ranges = [condition for condition in conditions if condition.operator in RANGES]
    weights = _covered(axis, ranges) if ranges else np.ones(axis.size)
    for condition in dict.fromkeys(conditions):
        if condition.operator in RANGES:
            continue
        further = _settled(_matched(axis, condition))
        if np.any(is_partial(weights) & is_partial(further)):
            # How two parts of one cell overlap does not follow from their sizes.
            raise InvalidQuery(
                f"the conditions on {axis.column!r} cut the same cell twice; write a simpler query"
            )
        weights = weights * further
    return weights


def is_partial(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the cells that are covered in part."""
    return (weights > 0) & (weights < 1)


def _settled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Forgive rounding: an edge written in decimals may miss the cell's by the last digit."""
    weights = np.where(weights < _ROUNDING, 0.0, weights)
    return np.where(weights > 1 - _ROUNDING, 1.0, weights)


def _listed_weights(axis: Axis, conditions: tuple[Condition, ...]) -> NDArray[np.float64]:
    """Decide on every listed value first: a cell weighs the part of its values that is covered."""
    finest = replace(axis, level=axis.taxonomy.height)
    covered = np.ones(finest.size)
    for condition in dict.fromkeys(conditions):
        covered *= _matched(finest, condition)
    shares = np.bincount(axis.leaf_to_cell, weights=covered, minlength=axis.size)
    return np.asarray(shares / np.diff(axis.leaf_starts))


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
        for value, operator in range_ends(condition):
            number = query_number(axis, value, operator)
            if operator.startswith(">"):
                low = max(low, (number, operator == ">"))
            else:
                high = min(high, (number, operator == "<="))
        _refuse_backwards(axis, condition)
    return _Range(low[0], high[0], not low[1], high[1])


def query_range(axis: Axis, ranges: list[Condition]) -> tuple[float, float]:
    """Return where the numbers begin that satisfy all ranges, and where they end.

    The end of integers is the first one that is too large.

    >>> from dpublish.data.query.language import parse_query
    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 99], bins=10).axis()
    >>> query_range(age, list(parse_query("age > 30 and age <= 65").conditions))
    (31.0, 66.0)
    """
    low, high, include_low, include_high = _intersection(axis, ranges)
    if not axis.holds_integers:
        return low, high
    first = low if low == -inf else float(ceil(low) if include_low else floor(low) + 1)
    stop = high if high == inf else float(floor(high) + 1 if include_high else ceil(high))
    return first, stop


def _refuse_backwards(axis: Axis, condition: Condition) -> None:
    ends = [query_number(axis, value, operator) for value, operator in range_ends(condition)]
    if ends[0] > ends[-1]:
        raise _backwards(axis, condition)


def _backwards(axis: Axis, condition: Condition) -> InvalidQuery:
    shown = "..".join(condition.operands)
    return InvalidQuery(f"the range {shown!r} of column {axis.column!r} ends before it starts")


def _covered(axis: Axis, ranges: list[Condition]) -> NDArray[np.float64]:
    """Intersect ranges of numbers first: two parts of one cell are then one part of it."""
    low, high, include_low, include_high = _intersection(axis, ranges)
    if low > high:
        return np.zeros(axis.size)
    return _settled(
        axis.cover(
            None if low == -inf else low,
            None if high == inf else high,
            include_low=include_low,
            include_high=include_high,
        )
    )


def assumption(
    axis: Axis, conditions: tuple[Condition, ...], weights: NDArray[np.float64]
) -> str | None:
    """State what an answer assumes beyond the noise: where values lie within a cell, or beyond."""
    if np.any(is_partial(weights)):
        return "records are assumed to be evenly distributed within partly covered cells"
    ranges = [c for c in conditions if c.operator in RANGES]
    if axis.edges is None or not ranges:
        return None
    wanted = _intersection(axis, ranges)
    first, last = axis.edges[0], axis.edges[-1] - axis.holds_integers
    if wanted.low > last or wanted.high < first or (wanted.low == last and not wanted.include_low):
        ends = f"{_shown(axis, first)} to {_shown(axis, last)}"
        return f"values of {axis.column} beyond {ends} were counted at these ends"
    # A cell holds one of its ends, the outermost both; a query for the other cannot be honored.
    holds_low = axis.closed == "left" or wanted.low <= first
    holds_high = axis.closed == "right" or wanted.high >= last
    starts_odd = _is_edge(axis, wanted.low) and wanted.include_low != holds_low
    ends_odd = _is_edge(axis, wanted.high) and wanted.include_high != holds_high
    if not axis.holds_integers and (starts_odd or ends_odd):
        return f"no record is assumed to lie exactly at the end of the range of {axis.column}"
    return None


def _is_edge(axis: Axis, number: float) -> bool:
    edges = np.asarray(axis.edges)
    return bool(np.any(np.abs(edges - number) <= _ROUNDING * np.diff(edges).min()))


def range_ends(condition: Condition) -> list[tuple[str, str]]:
    """Split a range into its ends: a number and an operator each."""
    if condition.operator == "in range":
        return [(condition.operands[0], ">="), (condition.operands[1], "<=")]
    return [(condition.operands[0], condition.operator)]


def _shown(axis: Axis, number: float) -> str:
    return f"{number:g}" if axis.date_kind is None else axis.write(number)


def query_number(axis: Axis, text: str, operator: str = ">=") -> float:
    """Read a number that a column is compared with.

    A period of a column of dates is inside or outside as a whole: up to its last day if it is
    included, or from the day after it if it is not.
    """
    if axis.date_kind is not None:
        return axis.limit(text, at_start=operator in (">=", "<"))
    try:
        number = float(text)
    except ValueError:
        number = inf
    if abs(number) == inf or number != number:
        raise InvalidQuery(f"column {axis.column!r} holds numbers, and {text!r} is none")
    return number


def _matched(axis: Axis, condition: Condition) -> NDArray[np.float64]:
    operator, operands = condition.operator, condition.operands
    if operator in ("=", "in set"):
        return axis.match(*operands)
    if operator == "!=":
        return 1.0 - axis.match(*operands)
    if operator == "in range":
        covered = axis.cover(operands[0], operands[1])
        if not covered.any():  # both ends are listed values, so this is the one reason
            raise _backwards(axis, condition)
        return covered
    if operator in (">", ">="):
        return axis.cover(low=operands[0], include_low=operator == ">=")
    return axis.cover(high=operands[0], include_high=operator == "<=")

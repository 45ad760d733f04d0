"""From conditions on a column to the part of each cell that satisfies them.

A part is a size: a bin of 10 years that a query covers by half weighs a half.  How many of its
records satisfy the query does not follow from that, so `axis_extent` tells besides which cells
hold no other records than those asked for, and which may hold some of them.
"""

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


class Extent(NamedTuple):
    """Which cells hold records that all satisfy a query, and which hold any that may.

    Attributes:
        inner: Cells of which every possible value satisfies the conditions.
        outer: Cells of which some possible value does.
    """

    inner: NDArray[np.bool_]
    outer: NDArray[np.bool_]


def axis_extent(axis: Axis, conditions: tuple[Condition, ...], *, rounding: float = 0.0) -> Extent:
    """Find the cells that satisfy all `conditions` as a whole, and those that do in part.

    Whatever the records are, those that satisfy the conditions are at least all in the inner
    cells and at most all in the outer ones.  A value is one that was counted: numbers are
    clipped to their bounds before.

    Args:
        axis: The cells.
        conditions: The conditions.
        rounding: How far beyond its edges a cell of numbers may hold some, as rounding has it.

    >>> from dpublish.data.query.language import parse_query
    >>> from dpublish.data.schema import column
    >>> height = column("height", "numeric", bounds=[100, 160], bins=3).axis()
    >>> axis_extent(height, parse_query("height <= 120").conditions).outer.tolist()
    [True, True, False]
    >>> axis_extent(height, parse_query("height < 120").conditions).outer.tolist()
    [True, False, False]
    """
    finest = replace(axis, level=axis.taxonomy.height)
    found = _leaf_extent(finest, conditions, rounding)
    cells = axis.leaf_to_cell
    has_other = np.bincount(cells, weights=~found.inner, minlength=axis.size) > 0
    has_some = np.bincount(cells, weights=found.outer, minlength=axis.size) > 0
    return Extent(~has_other, has_some)


def _leaf_extent(axis: Axis, conditions: tuple[Condition, ...], rounding: float) -> Extent:
    inner, outer = np.ones((2, axis.size), dtype=np.bool_)
    ranges = []
    for condition in dict.fromkeys(conditions):
        if axis.edges is not None and condition.operator in RANGES:
            ranges.append(condition)
            continue
        weights = _matched(axis, condition)  # as it is: one of 10^10 integers is some of them
        inner &= weights >= 1
        outer &= weights > 0
    if ranges:
        within = _range_extent(axis, ranges, rounding)
        inner, outer = inner & within.inner, outer & within.outer
    return Extent(inner, outer)


def _range_extent(axis: Axis, ranges: list[Condition], rounding: float) -> Extent:
    """Compare ranges with the values that each bin can hold, ends included or not."""
    edges = np.array(axis.edges)
    inner, outer = np.zeros((2, axis.size), dtype=np.bool_)
    bins = slice(edges.size - 1)
    if axis.holds_integers:
        first, stop = query_range(axis, ranges)
        starts, stops = np.ceil(edges[:-1]), np.ceil(edges[1:])
        inner[bins] = (first <= starts) & (stops <= stop)
        outer[bins] = np.maximum(first, starts) < np.minimum(stop, stops)
        return Extent(inner, outer)
    low, high, include_low, include_high = _intersection(axis, ranges)
    starts, ends = edges[:-1] - rounding, edges[1:] + rounding
    has_start = np.full(starts.size, axis.closed == "left" or rounding > 0)
    has_end = np.full(starts.size, axis.closed == "right" or rounding > 0)
    has_start[0] = has_end[-1] = True
    after_low = (starts > low) | ((starts == low) & (include_low | ~has_start))
    before_high = (ends < high) | ((ends == high) & (include_high | ~has_end))
    inner[bins] = after_low & before_high
    ends_after_low = (ends > low) | ((ends == low) & include_low & has_end)
    starts_before_high = (starts < high) | ((starts == high) & include_high & has_start)
    is_range = low < high or (low == high and include_low and include_high)
    outer[bins] = ends_after_low & starts_before_high & is_range
    return Extent(inner & outer, outer)


def assumption(
    axis: Axis,
    conditions: tuple[Condition, ...],
    weights: NDArray[np.float64],
    extent: Extent | None = None,
) -> str | None:
    """State what an estimate assumes beyond the noise: where values lie within a cell, or beyond.

    An interval between the inner and the outer cells of `axis_extent` assumes nothing of it.
    """
    if np.any(is_partial(weights)):
        return "records are assumed to be evenly distributed within partly covered cells"
    ranges = [c for c in conditions if c.operator in RANGES]
    if axis.edges is None or not ranges:
        return None
    wanted = _intersection(axis, ranges)
    first, last = axis.edges[0], axis.edges[-1] - axis.holds_integers
    is_above = wanted.low > last or (wanted.low == last and not wanted.include_low)
    is_below = wanted.high < first or (wanted.high == first and not wanted.include_high)
    if is_above or is_below:
        ends = f"{_shown(axis, first)} to {_shown(axis, last)}"
        return f"values of {axis.column} beyond {ends} were counted at these ends"
    found = axis_extent(axis, conditions) if extent is None else extent
    if np.any(found.inner != found.outer):
        return f"no record is assumed to lie exactly at the end of the range of {axis.column}"
    return None


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

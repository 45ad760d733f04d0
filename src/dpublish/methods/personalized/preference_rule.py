"""A rule that gives records their level by another column: `0..17=0.01, 18..=1`.

A rule is a public look-up from the leaves of a column to levels.  It places every leaf, so
that nobody is left out by an oversight; level 0 leaves people out on purpose.
"""

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.column import Column
from dpublish.data.interval import Interval, parse_interval
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon, quoted

REST = "*"
"""Stands for all values that no other part of the rule names."""

_COMMA = re.compile(r",(?![^\[(]*[\])])")  # one that is not inside an interval such as [0, 5)
_RANGE = re.compile(r"(.*?)\s*\.\.\s*(.*)")


class RulePart(NamedTuple):
    """Some values of a column, as they were written, and the level of their records."""

    values: str
    level: Fraction


def parse_rule(text: str) -> tuple[RulePart, ...]:
    """Read a rule: parts `values=level`, apart by commas, or by semicolons if there are any.

    >>> parse_rule("..17=0, [18, 65)=0.1, *=1")[1:]
    (RulePart(values='[18, 65)', level=Fraction(1, 10)), RulePart(values='*', level=Fraction(1, 1)))
    >>> [part.values for part in parse_rule("Self-employed, no staff=0.1; *=1")]
    ['Self-employed, no staff', '*']
    """
    return tuple(map(_parse_part, text.split(";") if ";" in text else _COMMA.split(text)))


def write_rule(parts: Sequence[RulePart]) -> str:
    """Write a rule in one spelling, whatever the order and spacing of its parts.

    >>> write_rule(parse_rule("18.. = 1,  ..17=0.10"))
    '..17=0.1; 18..=1'
    """
    told = (f"{canonical_text(part.values)}={format_epsilon(part.level)}" for part in parts)
    return "; ".join(sorted(told))


def digest_rule(parts: Sequence[RulePart], column: Column) -> str:
    """Sum up which values have which level, so that a rule cannot come to mean another thing.

    A group of values may be defined anew in the schema, and the rule that names it stays the
    same.  How finely numbers are cut does not matter; where the level changes does.

    >>> from dpublish.data.schema import column
    >>> fine, coarse = (column("age", "integer", bounds=[0, 99], bins=n) for n in (100, 4))
    >>> rule = parse_rule("..24=0.1, *=1")
    >>> digest_rule(rule, fine) == digest_rule(rule, coarse)
    True
    """
    axis, levels = column.axis(), list(map(format_epsilon, look_up(parts, column)))
    named = list(zip(axis.leaf_labels, levels, strict=True))
    cuts: list[tuple[float, str]] = []
    if axis.leaf_edges is not None:
        steps = pairwise(levels[: axis.ordinary_leaves])
        changes = [place for place, (low, high) in enumerate(steps, start=1) if low != high]
        cuts = [(axis.leaf_edges[place], levels[place]) for place in changes]
        named = [("", levels[0]), *named[axis.ordinary_leaves :]]
    # Where an unlisted value goes is in no label, since `other` may name a listed one.
    other = getattr(column, "other", None)
    beyond = [None if other is None else canonical_text(other), column.missing]
    told = [axis.kind, axis.closed, cuts, sorted(named), beyond]
    return sha256(json.dumps(told).encode("ascii")).hexdigest()[:16]


def levels_of(parts: Sequence[RulePart]) -> tuple[Fraction, ...]:
    """List the levels that a rule gives, rising; level 0 is none."""
    return tuple(sorted({part.level for part in parts if part.level}))


def look_up(parts: Sequence[RulePart], column: Column) -> tuple[Fraction, ...]:
    """Find the level of every leaf of `column`; 0 leaves its records out.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 99], bins=4)
    >>> list(map(str, look_up(parse_rule("0..24=0, 25..49=0.5, *=1"), age)))
    ['0', '1/2', '1', '1']
    """
    axis = column.axis()
    owners = np.full(column.size, -1, dtype=np.int64)
    ordered = sorted(parts, key=lambda part: part.values == REST)  # what is left is known last
    for number, part in enumerate(ordered):
        leaves = owners < 0 if part.values == REST else _find_leaves(part.values, axis)
        if (owners[leaves] >= 0).any():
            raise InvalidParameter(
                f"the rule's part {quoted(part.values)} names a value that another part has too"
            )
        owners[leaves] = number
    if (owners < 0).any():
        lacking = axis.leaf_labels[int(np.argmin(owners))]
        raise InvalidParameter(
            f"the rule gives {lacking!r} of column {column.name!r} no level; add for example "
            f"{REST}=0, which leaves all other records out"
        )
    return tuple(ordered[owner].level for owner in owners.tolist())


def _parse_part(text: str) -> RulePart:
    values, equals, level = (piece.strip() for piece in text.rpartition("="))
    if not equals or not values:
        raise InvalidParameter(
            f"the rule's part {quoted(text.strip())} is not of the form values=level, "
            "such as 18..=1"
        )
    nothing = canonical_text(level) == "0"
    return RulePart(values, Fraction(0) if nothing else parse_epsilon(level, "a level of the rule"))


def _find_leaves(values: str, axis: Axis) -> NDArray[np.bool_]:
    """Mark the leaves that hold some values, and refuse values that share a leaf with others."""
    weights = _weigh(values, axis)
    shared = np.flatnonzero((weights > 0) & (weights < 1))
    if shared.size:
        label = axis.leaf_labels[int(shared[0])]
        raise InvalidParameter(
            f"the rule's part {quoted(values)} takes in only some of {label!r}, the finest "
            f"that the schema tells apart in column {axis.column!r}; move its ends"
        )
    if not weights.any():
        raise InvalidParameter(
            f"the rule's part {quoted(values)} holds no value of column {axis.column!r}"
        )
    return weights > 0


def _weigh(values: str, axis: Axis) -> NDArray[np.float64]:
    if axis.kind == "category" or canonical_text(values) in axis.taxonomy.runs:
        return axis.match(values)
    if axis.kind == "ordinal":
        ends = _RANGE.fullmatch(values)
        return axis.cover(ends[1] or None, ends[2] or None) if ends else axis.match(values)
    span = parse_interval(values) or _parse_range(values)
    if span is None:
        return axis.match(values)
    if axis.kind == "numeric":
        _check_ends(values, span, axis)
    return axis.cover(span.low, span.high, span.include_low, span.include_high)


def _parse_range(values: str) -> Interval | None:
    """Read `18..`, `..17` or `0.5..2`: both ends belong to it, and one of them may be open."""
    ends = _RANGE.fullmatch(values)
    if ends is None:
        return None
    try:
        return Interval(float(ends[1] or -inf), float(ends[2] or inf), True, True)
    except ValueError:
        return None


def _check_ends(values: str, span: Interval, axis: Axis) -> None:
    """Refuse an end that belongs to another cell than the rule says.

    Whoever sits on it would have a level that the owner gave to others.
    """
    edges = axis.leaf_edges or ()
    takes_low = axis.closed == "left" or span.low == edges[0]
    takes_high = axis.closed == "right" or span.high == edges[-1]
    low_differs = edges[0] <= span.low and span.include_low != takes_low
    high_differs = span.high <= edges[-1] and span.include_high != takes_high
    if low_differs or high_differs:
        raise InvalidParameter(
            f"the rule's part {quoted(values)} has an end that belongs to another cell of column "
            f"{axis.column!r}; write intervals like its cells, such as {axis.leaf_labels[0]}"
        )

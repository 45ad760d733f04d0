"""What a query covers of each axis of a release that counts cells of several columns."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.query.language import parse_query, require_columns
from dpublish.data.query.weights import assumption, axis_extent, axis_weights
from dpublish.errors import InvalidQuery

NOT_IN_INTERVAL = "the interval does not rest on that"
"""Said of what an estimate assumes, beside an interval that holds whatever the records are."""


class Coverage(NamedTuple):
    """The part of each cell that a query covers, axis by axis, and what the answer assumes.

    Attributes:
        weights: The part of each cell that is covered.
        assumption: What the estimate takes for granted of the records.
        inner: 1 for cells all of whose records satisfy the query, whatever they are; else 0.
        outer: 1 for cells some of whose records may satisfy it.
    """

    weights: tuple[NDArray[np.float64], ...]
    assumption: str | None
    inner: tuple[NDArray[np.float64], ...]
    outer: tuple[NDArray[np.float64], ...]

    @property
    def is_cut(self) -> bool:
        """Whether the query covers some cell in part, be it by an end alone."""
        pairs = zip(self.inner, self.outer, strict=True)
        return any(bool(np.any(inner != outer)) for inner, outer in pairs)

    @property
    def note(self) -> str | None:
        """The assumption, beside an interval from the inner cells to the outer ones."""
        if self.assumption is None or not self.is_cut:
            return self.assumption
        return f"{self.assumption}; {NOT_IN_INTERVAL}"


class BoxBounds(NamedTuple):
    """Boxes of codes: low <= code < high along every axis, one row for each box."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]


def read_query(
    axes: Sequence[Axis], query: str, *, roundings: Sequence[float] | None = None
) -> Coverage:
    """Parse a query and weigh the cells of every axis by it.

    `roundings` tell how far beyond its edges a cell of each axis may hold numbers; not at all, as a
    rule.
    """
    parsed = parse_query(query)
    names = [axis.column for axis in axes]
    require_columns(parsed, names)
    conditions = [parsed.about(name) for name in names]
    weights = tuple(axis_weights(axis, c) for axis, c in zip(axes, conditions, strict=True))
    extents = [
        axis_extent(axis, c, rounding=rounding)
        for axis, c, rounding in zip(axes, conditions, roundings or [0.0] * len(names), strict=True)
    ]
    notes = [assumption(*about) for about in zip(axes, conditions, weights, extents, strict=True)]
    return Coverage(
        weights,
        "; ".join(dict.fromkeys(n for n in notes if n)) or None,
        tuple(extent.inner.astype(np.float64) for extent in extents),
        tuple(extent.outer.astype(np.float64) for extent in extents),
    )


def read_boxes(
    axes: Sequence[Axis], columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
) -> BoxBounds:
    """Complete boxes over some columns to boxes over all axes, and cut them to the domain.

    >>> from dpublish.data.schema import column
    >>> axes = [column(name, "integer", bounds=[0, 9]).axis() for name in "ab"]
    >>> read_boxes(axes, ["b"], np.array([[2]]), np.array([[99]])).highs
    array([[10, 10]])
    """
    names = [axis.column for axis in axes]
    shape = (len(lows), len(columns))
    if lows.shape != shape or highs.shape != shape or len(set(columns)) != len(columns):
        raise InvalidQuery("boxes need a low and a high end for each column, each column once")
    sizes = np.array([axis.size for axis in axes], dtype=np.int64)
    all_lows = np.zeros((len(lows), len(axes)), dtype=np.int64)
    all_highs = np.repeat(sizes[None, :], len(lows), axis=0)
    for index, name in enumerate(columns):
        if name not in names:
            raise InvalidQuery(f"this release knows nothing of {name!r}, only of {names}")
        which = names.index(name)
        all_lows[:, which] = np.clip(lows[:, index], 0, sizes[which])
        all_highs[:, which] = np.clip(highs[:, index], all_lows[:, which], sizes[which])
    return BoxBounds(all_lows, all_highs)

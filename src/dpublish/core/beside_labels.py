"""Columns beside labels: the ends of bins as numbers or dates, and the intervals of counts.

A label such as "30..39" is for people.  Whoever reads a published file without dpublish needs 30
and 39, and how far noise may have moved a count.  All of it follows from the schema, the noise
and the published numbers, so it is free; a release is read without these columns.
"""

from collections.abc import Sequence, Set
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.axis_rows import whole_array
from dpublish.core.released import ABOUT, DERIVED, describe_field, field_description
from dpublish.data.axis import Axis
from dpublish.types import FloatArray

CONFIDENCE = 0.95
"""Probability with which the intervals of published tables hold."""
LOW, HIGH = "count_low", "count_high"
"""Names of the ends of a count's interval."""
_ONE = "with probability 95 %"
_ALL = "for all rows of the table at once with probability 95 %"
_DATE = "_date"

Cells = NDArray[np.integer[Any]]


class Ends(NamedTuple):
    """The ends of bins, row by row; null where a row is no interval."""

    low: pa.Array
    high: pa.Array


class Piece(NamedTuple):
    """Consecutive rows of a table that are about one column: its axis, first and last cells."""

    axis: Axis
    first: Cells
    last: Cells


class Along(NamedTuple):
    """The cells of one column of a joint table: their labels, and their ends if they have any."""

    column: str
    labels: pa.Array
    ends: Ends | None = None

    @classmethod
    def of(cls, axis: Axis) -> "Along":
        """Name the cells of an axis."""
        cells = np.arange(axis.size)
        return cls(axis.column, pa.array(axis.labels, pa.string()), bin_ends(axis, cells, cells))


def bin_ends(axis: Axis, first: Cells, last: Cells) -> Ends | None:
    """Return the ends of the bins that reach from a first to a last cell; None without numbers.

    Integers and dates are the first and the last in the bin.  Cells of missing values have no
    ends, and do not move those of a bin that holds them too.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 99], bins=10).axis()
    >>> [end.to_pylist() for end in bin_ends(age, np.array([3, 0]), np.array([3, 9]))]
    [[30, 0], [39, 99]]
    """
    if axis.edges is None:
        return None
    edges = np.asarray(axis.edges)
    intervals = len(edges) - 1
    absent = np.asarray(first) >= intervals
    low = edges[np.minimum(first, intervals - 1)]
    high = edges[np.minimum(last, intervals - 1) + 1]
    if not axis.holds_integers:
        return Ends(pa.array(low, mask=absent), pa.array(high, mask=absent))
    whole = (low.astype(np.int64), high.astype(np.int64) - 1)
    return Ends(*(whole_array(axis.kind, end, absent) for end in whole))


def with_bins(
    table: pa.Table, axes: Sequence[Axis], cells: Sequence[Cells], labels: Sequence[str] = ()
) -> pa.Table:
    """Put the ends of its bins beside the labels of every column of numbers or dates.

    The labels are in the columns of the axes' names, unless others are named.
    """
    for axis, along, label in zip(axes, cells, labels or [x.column for x in axes], strict=True):
        table = with_ends(table, label, axis, along, along)
    return table


def with_ends(
    table: pa.Table, after: str, axis: Axis, first: Cells, last: Cells, stem: str = ""
) -> pa.Table:
    """Insert the ends of one column's bins after a column; they are called after the `stem`."""
    ends = bin_ends(axis, first, last)
    return table if ends is None else insert_ends(table, after, axis, ends, stem or after)


def insert_ends(table: pa.Table, after: str, axis: Axis, ends: Ends, stem: str) -> pa.Table:
    """Insert the ends of bins of an axis, with descriptions, after a column."""
    fields = [
        _derived(f"{stem}_{end}", array, words, about=axis.column)
        for end, array, words in zip(("low", "high"), ends, _end_words(axis), strict=True)
    ]
    return _insert(table, after, fields, ends)


def with_listed_bins(table: pa.Table, label: str, pieces: Sequence[Piece]) -> pa.Table:
    """Put the ends of bins beside labels of several columns, which follow one another."""
    return with_listed_ends(
        table, label, [(piece.axis, bin_ends(*piece), len(piece.first)) for piece in pieces]
    )


def with_listed_ends(
    table: pa.Table, label: str, runs: Sequence[tuple[Axis | None, Ends | None, int]]
) -> pa.Table:
    """Put ends beside labels of several columns: runs of rows about one column, or about none.

    Ends of numbers are in two columns, those of dates in two more, if there are dates.
    """
    kinds = {axis.date_kind for axis, ends, _ in runs if axis is not None and ends is not None}
    after = label
    for suffix, kind in _listed_kinds(kinds):
        parts = [
            ends if axis is not None and (axis.date_kind is None) == (not suffix) else None
            for axis, ends, _ in runs
        ]
        sizes = [size for _, _, size in runs]
        table, after = _insert_joined(table, after, f"{label}_{{}}{suffix}", parts, sizes, kind)
    return table


def _listed_kinds(kinds: Set[str | None]) -> list[tuple[str, pa.DataType]]:
    """List the pairs of columns that ends of these kinds need: their endings and types."""
    found = [("", pa.float64())] if None in kinds else []
    if kinds - {None}:
        found.append((_DATE, pa.timestamp("s") if "datetime" in kinds else pa.date32()))
    return found


def _insert_joined(
    table: pa.Table,
    after: str,
    name: str,
    parts: Sequence[Ends | None],
    sizes: Sequence[int],
    kind: pa.DataType,
    about: str | None = None,
) -> tuple[pa.Table, str]:
    """Insert ends that are put together from parts, and return the name of the last column."""
    ends = Ends(
        *(
            _joined(
                [
                    pa.nulls(size, kind) if part is None else pc.cast(part[end], kind)
                    for part, size in zip(parts, sizes, strict=True)
                ],
                kind,
            )
            for end in (0, 1)
        )
    )
    fields = [
        _derived(name.format(end), array, words, about=about)
        for end, array, words in zip(("low", "high"), ends, _LISTED, strict=True)
    ]
    last = _free_name(table, fields[-1].name)
    return _insert(table, after, fields, ends), last


def with_joints(
    table: pa.Table, after: str, joints: Sequence[Sequence[Along]], names: Sequence[str]
) -> pa.Table:
    """Put labels and ends of bins of every column beside the cells of several joint tables.

    The cells of each joint follow one another, the last column's counting fastest.  A column is
    null in the rows of joints that do not have it.
    """
    sizes = [prod(len(along.labels) for along in joint) for joint in joints]
    found = {name: [_of_joint(joint, name) for joint in joints] for name in names}
    called: dict[str, str] = {}
    for name, parts in found.items():
        labels = _joined([labels for labels, _ in parts], pa.string()).dictionary_encode()
        words = f"Value of {name} in the cell; null where the joint does not have it."
        called[name] = _free_name(table, name)
        table = _insert(table, after, [_derived(name, labels, words, about=name)], [labels])
        after = called[name]
    for name, parts in found.items():
        ends = [ends for _, ends in parts]
        kinds = [each.low.type for each in ends if each is not None]
        if kinds:
            stem = f"{name}_{{}}"
            table, _ = _insert_joined(table, called[name], stem, ends, sizes, kinds[0], about=name)
    return table


def _of_joint(joint: Sequence[Along], name: str) -> tuple[pa.Array, Ends | None]:
    """Return the labels and ends of one column in all cells of a joint table."""
    sizes = [len(along.labels) for along in joint]
    found = next((number for number, along in enumerate(joint) if along.column == name), None)
    if found is None:
        return pa.nulls(prod(sizes), pa.string()), None
    codes = pa.array(np.arange(prod(sizes)) // prod(sizes[found + 1 :]) % sizes[found])
    labels, ends = joint[found].labels, joint[found].ends
    return labels.take(codes), None if ends is None else Ends(*(end.take(codes) for end in ends))


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.nulls(0, kind), *parts])


def as_derived(table: pa.Table) -> pa.Table:
    """Mark all columns of a table as derived from others."""
    fields = [
        describe_field(field, field_description(field), **{DERIVED: "yes"})
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def every_cell(axes: Sequence[Axis]) -> list[Piece]:
    """List all cells of some axes, one axis after the other."""
    return [Piece(axis, np.arange(axis.size), np.arange(axis.size)) for axis in axes]


def cell_width(rate: Fraction) -> float:
    """Return how far the noise of one count reaches with probability 95 %."""
    return float(sum_quantile(rate, 1, CONFIDENCE))


def with_interval(
    table: pa.Table,
    width: float | FloatArray | None,
    *,
    of: str = "noisy_count",
    around: FloatArray | None = None,
    at_once: bool = False,
) -> pa.Table:
    """Put the ends of its confidence interval beside every count; it covers noise alone.

    Args:
        table: The table.
        width: Half-width of the intervals, or of each; NaN where no honest one is known.
        of: The column after which they are put, and around which they lie.
        around: What they lie around instead.
        at_once: Whether all of them hold at once, as they must where rows were published
            because their noisy counts are large.
    """
    if width is None:
        return table
    counts = table[of].to_numpy() if around is None else around
    widths = np.broadcast_to(np.asarray(width, dtype=np.float64), counts.shape)
    unknown = np.isnan(widths)
    is_whole = counts.dtype.kind == "i"
    far = np.ceil(np.where(unknown, 0, widths)).astype(np.int64) if is_whole else widths
    ends = Ends(
        *(pa.array(np.maximum(end, 0), mask=unknown) for end in (counts - far, counts + far))
    )
    return insert_interval(table, of, ends, _ALL if at_once else _ONE)


def insert_interval(table: pa.Table, after: str, ends: Ends, holds: str = _ONE) -> pa.Table:
    """Insert the ends of intervals of counts, with descriptions, after a column."""
    fields = [
        _derived(
            name, array, f"{word} end of the interval that holds the count without noise, {holds}."
        )
        for name, word, array in zip((LOW, HIGH), ("Lower", "Upper"), ends, strict=True)
    ]
    return _insert(table, after, fields, ends)


def label_positions(axis: Axis, labels: Sequence[str]) -> Cells:
    """Find the cell of each label; a label that is none of them stands after all cells.

    >>> from dpublish.data.schema import column
    >>> axis = column("age", "integer", bounds=[0, 99], bins=2).axis()
    >>> label_positions(axis, ["50..99", "(all)"]).tolist()
    [1, 2]
    """
    known = {label: cell for cell, label in enumerate(axis.labels)}
    return np.array([known.get(label, axis.size) for label in labels], dtype=np.int64)


_LISTED = (
    "Lower end of the bin, included; null where the value is no bin.",
    "Upper end of the bin; of integers and dates the last one in the bin.",
)


def _end_words(axis: Axis) -> tuple[str, str]:
    if axis.holds_integers:
        what = "date" if axis.date_kind else "integer"
        return f"First {what} of the bin of {axis.column}.", f"Last {what} of the bin."
    low, high = (
        ("included", "not included, but in the last bin")
        if axis.closed == "left"
        else ("not included, but in the first bin", "included")
    )
    return f"Lower end of the bin of {axis.column}; {low}.", f"Upper end of the bin; {high}."


def _derived(name: str, array: pa.Array, words: str, about: str | None = None) -> pa.Field:
    return describe_field(pa.field(name, array.type), words, **{DERIVED: "yes", ABOUT: about})


def _insert(
    table: pa.Table, after: str, fields: Sequence[pa.Field], arrays: Sequence[pa.Array]
) -> pa.Table:
    """Insert columns after another; a name that is taken gets an underscore."""
    at = table.schema.get_field_index(after) + 1
    for number, (field, array) in enumerate(zip(fields, arrays, strict=True)):
        named = field.with_name(_free_name(table, field.name))
        table = table.add_column(at + number, named, array)
    return table


def _free_name(table: pa.Table, name: str) -> str:
    while name in table.column_names:
        name += "_"
    return name

"""Published marginals: how the records are distributed over the values of each column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.beside_labels import (
    CONFIDENCE,
    cell_width,
    every_cell,
    with_interval,
    with_listed_bins,
)
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.query.cells import around
from dpublish.core.released import Metadata, Release, Tables, whole_column
from dpublish.data.axis import Axis, Value
from dpublish.data.query.language import parse_query
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery, require_known
from dpublish.methods.histogram.released import Marginal
from dpublish.methods.marginals.noisy_marginal import MOST_MERGED, NoisyMarginal
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

SMOOTHED = (
    "neighbors were merged or smoothed, so the estimate is biased; the interval is what the noisy "
    "numbers as published allow"
)
_LEAST_VARIANCE = 1e-12  # noise that is never there still leaves a number to divide by


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalsRelease(Release):
    """A noisy marginal for each column of the schema, at its finest level."""

    kind: ClassVar[str] = "marginals"
    report: ClassVar[str] = "dpublish.methods.marginals.report:section"

    receipt: Receipt
    schema: Schema
    marginals: tuple[NoisyMarginal, ...]

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        sizes = [axis.size for axis in self.axes]
        if not sizes or [marginal.leaves for marginal in self.marginals] != sizes:
            raise InvalidParameter("there must be a marginal for each column, of all its values")

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """All columns, each at its finest level."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def records(self) -> float:
        """Estimate of the number of records: the totals, weighted by their precision."""
        precisions = np.array([1 / max(m.total_variance, _LEAST_VARIANCE) for m in self.marginals])
        totals = np.array([marginal.total for marginal in self.marginals])
        return max(float(precisions @ totals / precisions.sum()), 0.0)

    def noisy_marginal(self, column: str) -> NoisyMarginal:
        """Look up the marginal of a column."""
        require_known("column", column, self.schema.names)
        return self.marginals[self.schema.names.index(column)]

    def marginal(self, column: str) -> Marginal:
        """Return the estimated counts of a column's values, rounded, with their half-width (95 %).

        Where there is no confidence interval the half-width is not a number.
        """
        noisy = self.noisy_marginal(column)
        first = np.zeros(noisy.leaves)
        first[0] = 1  # no value of a tree has more noise than its first
        width = noisy.half_width(first, 0.95)
        counts = np.rint(noisy.bins).astype(np.int64)
        labels = self.schema[column].axis().labels
        return Marginal(labels, counts, float("nan") if width is None else width)

    def quantile(self, column: str, part: float) -> Value:
        """Find the value that a part of the records lies below, unlisted and missing left out.

        Numbers are assumed to be evenly distributed within a bin.
        """
        noisy = self.noisy_marginal(column)
        axis = self.schema[column].axis()
        if axis.kind == "category":
            raise InvalidQuery(f"column {column!r} has no order, so it has no quantiles")
        if not 0 <= part <= 1:
            raise InvalidParameter(f"part ({part}) must lie between 0 and 1")
        cumulative = np.cumsum(noisy.probabilities[: axis.ordinary_leaves])
        wanted = part * cumulative[-1]
        code = min(int(np.searchsorted(cumulative, wanted)), axis.ordinary_leaves - 1)
        if axis.leaf_edges is None:
            return axis.labels[code]
        below = float(cumulative[code - 1]) if code else 0.0
        probability = float(cumulative[code]) - below
        low, high = axis.leaf_edges[code], axis.leaf_edges[code + 1]
        value = low + (high - low) * ((wanted - below) / probability if probability else 0.0)
        if not axis.holds_integers:
            return value
        whole = min(floor(value), int(high) - 1)
        return whole if axis.date_kind is None else axis.write(whole)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy a query about one column, with a confidence interval.

        Marginals do not show how columns depend on each other, so a query about several is
        refused.
        """
        require_confidence(confidence)
        columns = parse_query(query).columns
        if len(columns) > 1:
            raise InvalidQuery(
                f"marginals answer about one column at a time, not {' and '.join(columns)} "
                "together; publish with synth, or a histogram of both, for that"
            )
        # Without a condition the column whose total has the least variance answers.
        best = min(zip(self.marginals, self.schema.names, strict=True), key=_total_variance)[1]
        name = columns[0] if columns else best
        covered = read_query(self.axes, query)
        noisy = self.noisy_marginal(name)
        weights = covered.weights[self.schema.names.index(name)]
        index = self.schema.names.index(name)
        value = float(weights @ noisy.bins)
        low = noisy.bound(covered.inner[index], confidence, -1)
        high = noisy.bound(covered.outer[index], confidence, 1)
        is_biased = noisy.noise_weights(weights) is None
        notes = [covered.note, SMOOTHED if is_biased else None]
        note = "; ".join(note for note in notes if note) or None
        return around(value, low, high, confidence, note)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate counts of boxes as if columns were independent, as they are in `rows`."""
        boxes = read_boxes(self.axes, columns, lows, highs)
        found = np.full(len(boxes.lows), self.records)
        for index, marginal in enumerate(self.marginals):
            cumulative = np.concatenate([[0.0], np.cumsum(marginal.probabilities)])
            found *= cumulative[boxes.highs[:, index]] - cumulative[boxes.lows[:, index]]
        return found

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw rows whose columns have these marginals and are independent of each other."""
        count = round(self.records) if n is None else n
        rng = self.row_generator(n, seed, counted=self.records)
        return pa.table(
            {
                axis.column: draw_column(
                    axis, rng.choice(axis.size, size=count, p=marginal.probabilities), rng
                )
                for axis, marginal in zip(self.axes, self.marginals, strict=True)
            }
        )

    def tables(self) -> dict[str, pa.Table]:
        """Return the noisy numbers, and the counts and probabilities that follow from them."""
        values = value_table(self.axes, self.marginals)
        probabilities = np.concatenate([m.probabilities for m in self.marginals])
        return {
            "marginals": marginal_table(self.schema.names, self.marginals),
            "probabilities": values.append_column("probability", pa.array(probabilities)),
        }

    def metadata(self) -> dict[str, Any]:
        """Return how each marginal was counted."""
        return {"marginals": [marginal.metadata() for marginal in self.marginals]}

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the marginals: how each was counted, and its noisy numbers."""
        return {"marginals": read_marginals(metadata["marginals"], tables["marginals"])}

    def expected_error(self) -> dict[str, float]:
        """Return the errors of a count of half of a column's values and of the total (95 %)."""
        halves = [m.half_width(middle_half(m.leaves), 0.95) for m in self.marginals]
        totals = [m.half_width(np.ones(m.leaves), 0.95) for m in self.marginals]
        known = [width for width in halves if width is not None]
        figures = {"range_count_95": max(known)} if known else {}
        return figures | {"total_95": min(width for width in totals if width is not None)}

    def summary(self) -> dict[str, str]:
        """Describe columns, methods and error in a few words."""
        errors = self.expected_error()
        methods = (
            f"{axis.column} ({axis.size:,} values, {marginal.method})"
            for axis, marginal in zip(self.axes, self.marginals, strict=True)
        )
        claim = f"the number of records is within {errors['total_95']:,.0f} of the truth"
        if "range_count_95" in errors:
            width = errors["range_count_95"]
            claim = f"a count of half of a column's values is within {width:,.0f}; {claim}"
        return {
            "marginals of": ", ".join(methods),
            "records": f"about {self.records:,.0f}",
            "error": f"{claim} with probability 95 %",
        }


def marginal_table(names: Sequence[str], marginals: Sequence[NoisyMarginal]) -> pa.Table:
    """Build one table of the noisy numbers of several columns' marginals."""
    sizes = [marginal.units.size for marginal in marginals]
    return pa.table(
        {
            "column": _repeat(names, sizes),
            "position": pa.array(np.concatenate([np.arange(size) for size in sizes])),
            "noisy_number": pa.array(np.concatenate([marginal.units for marginal in marginals])),
        }
    )


def value_table(axes: Sequence[Axis], marginals: Sequence[NoisyMarginal]) -> pa.Table:
    """List the values of several columns with their estimated counts and intervals."""
    table = pa.table(
        {
            "column": _repeat([axis.column for axis in axes], [axis.size for axis in axes]),
            "value": pa.array([label for axis in axes for label in axis.labels]),
            "estimated_count": pa.array(np.concatenate([m.bins for m in marginals])),
        }
    )
    table = with_listed_bins(table, "value", every_cell(axes))
    return with_value_intervals(table, marginals, of="estimated_count")


def with_value_intervals(
    table: pa.Table, marginals: Sequence[NoisyMarginal], *, of: str
) -> pa.Table:
    """Put the interval of its count beside every value; null where no honest one is known."""
    none = np.empty(0)
    widths = np.concatenate([none, *(value_widths(marginal) for marginal in marginals)])
    if np.isnan(widths).all():
        return table
    return with_interval(
        table, widths, of=of, around=np.concatenate([none, *(m.bins for m in marginals)])
    )


def value_widths(marginal: NoisyMarginal) -> FloatArray:
    """Return the half-width of the interval of each value's count; NaN where none is known."""
    if marginal.method in ("identity", "efpa") and not marginal.is_transformed:
        return np.full(marginal.leaves, cell_width(marginal.rate))
    widths = np.full(marginal.leaves, np.nan)
    if marginal.method != "hierarchical" or marginal.leaves > MOST_MERGED:
        return widths
    known: dict[bytes, float] = {}  # most values of a tree have the same weights in another order
    for value in range(marginal.leaves):
        one = (np.arange(marginal.leaves) == value).astype(np.float64)
        noise = marginal.noise_weights(one)
        if noise is not None:
            same = np.sort(np.abs(noise)).round(12).tobytes()
            if same not in known:
                known[same] = half_width(marginal.rate, noise, CONFIDENCE)
            widths[value] = known[same]
    return widths


def read_marginals(
    metadata: Sequence[Mapping[str, Any]], table: pa.Table
) -> tuple[NoisyMarginal, ...]:
    """Read marginals from such a table."""
    starts = np.flatnonzero(whole_column(table, "position") == 0)
    parts = np.split(whole_column(table, "noisy_number"), starts[1:])
    if len(parts) != len(metadata):
        raise CorruptRelease("the noisy numbers are not those of the columns")
    return tuple(map(NoisyMarginal.from_metadata, metadata, parts))


def middle_half(size: int) -> FloatArray:
    """Weigh the values in the middle half by 1, the others by 0.

    >>> middle_half(6).tolist()
    [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    """
    weights = np.zeros(size)
    weights[size // 4 : size // 4 + -(-size // 2)] = 1
    return weights


def _total_variance(item: tuple[NoisyMarginal, str]) -> float:
    return item[0].total_variance


def _repeat(names: Sequence[str], sizes: Sequence[int]) -> pa.Array:
    codes = np.repeat(np.arange(len(names), dtype=np.int32), sizes)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names))

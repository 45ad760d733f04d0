"""Published boxes: noisy counts of boxes that lie within each other, down to a partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import mixed_half_width, require_confidence
from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.accuracy.projection import round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.beside_labels import cell_width, with_ends, with_interval
from dpublish.core.codecs import BOOL, NOISY_SIZE, RATE, Codec, optional
from dpublish.core.noisy_size import NoisySize
from dpublish.core.query.axes import NOT_IN_INTERVAL, read_query
from dpublish.core.query.cells import around
from dpublish.core.released import Metadata, Release, Tables, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.spatial.box_tree import BoxTree
from dpublish.methods.spatial.boxes import BoxOverlap, end_columns, read_ends, require_boxes
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

PARTIAL = "records in no box were not counted, so there is no confidence interval"
EVENLY = "records are assumed to be evenly distributed within partly covered boxes"
_LEVEL_RATE = optional(RATE)
_RATES = Codec(
    lambda rates: [_LEVEL_RATE.write(rate) for rate in rates],
    lambda plain, schema: tuple(_LEVEL_RATE.read(rate, schema) for rate in plain),
)
"""Rates of noise by level; None for a level without counts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SpatialRelease(Release):
    """Noisy counts of boxes of codes, which lie within each other.

    Box i holds the codes `lows[i, j] <= code < highs[i, j]` of each column j of the schema.

    Attributes:
        lows: First code of each box along each column.
        highs: The code after the last.
        parents: The box around each, listed before it; -1 for a top box.
        levels: Which of `rates` the noise of each box has.
        rates: Rates of the noise (two-sided geometric); None for boxes without a count.
        counts: Noisy counts as they were drawn; 0 where there is none.
        size: Noisy number of records, if it was paid for apart from the counts.
        partial: Whether some of the domain is in no box; it then counts as empty.
    """

    kind: ClassVar[str] = "boxes"
    report: ClassVar[str] = "dpublish.methods.spatial.report:section"

    receipt: Receipt
    schema: Schema
    lows: IntArray
    highs: IntArray
    parents: IntArray = in_table("boxes", "parent")
    levels: IntArray = in_table("boxes", "level")
    rates: tuple[Fraction | None, ...] = in_metadata(_RATES)
    counts: IntArray = in_table("boxes", "noisy_count")
    size: NoisySize | None = in_metadata(optional(NOISY_SIZE), key="records", default=None)
    partial: bool = in_metadata(BOOL, default=False)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_boxes(
            np.array([column.size for column in self.schema.columns]),
            self.lows,
            self.highs,
            self.parents,
            partial=self.partial,
        )
        for array in (self.levels, self.counts):
            if array.dtype != np.int64 or array.shape != self.parents.shape:
                raise InvalidParameter("levels and counts are integers, one for each box")
        for rate in [*self.rates, None if self.size is None else self.size.rate]:
            if rate is not None:
                require_rate(rate)
        if self.levels.min() < 0 or self.levels.max() >= len(self.rates):
            raise InvalidParameter("every box has one of the rates")
        uncounted = np.isin(self.levels, [k for k, r in enumerate(self.rates) if r is None])
        if np.any(uncounted[self.ends]) or np.any(self.counts[uncounted]):
            raise InvalidParameter("a box without a noisy count has parts and counts 0")
        if self.size is not None and type(self.size.value) is not int:
            raise InvalidParameter("the noisy number of records must be an integer")

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """All columns, each at its finest level."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def ends(self) -> IntArray:
        """The boxes without parts: together these are a partition."""
        return np.setdiff1d(np.arange(self.parents.size), self.parents)

    @cached_property
    def tree(self) -> BoxTree:
        """All boxes below a root that stands for the whole table."""
        variances = np.array([np.inf if r is None else noise_variance(r) for r in self.rates])
        return BoxTree(
            np.concatenate(([-1], self.parents + 1)),
            np.concatenate(
                ([noise_variance(r) for r in self._root_rate] or [np.inf], variances[self.levels])
            ),
        )

    @property
    def _root_rate(self) -> tuple[Fraction, ...]:
        """The rate of the noise of the number of records, where boxes add up to it."""
        return () if self.size is None or self.partial else (self.size.rate,)

    @cached_property
    def box_estimates(self) -> FloatArray:
        """Best linear estimates of all boxes; those of the parts of a box add up to its own."""
        root = float(self.size.value) if self.size and self._root_rate else 0.0
        return self.tree.estimate(np.concatenate(([root], self.counts)))[1:]

    @cached_property
    def estimates(self) -> FloatArray:
        """Best linear estimates of the boxes without parts; some may be negative."""
        return self.box_estimates[self.ends]

    @property
    def total(self) -> float:
        """Estimate the number of records in all boxes."""
        return float(self.estimates.sum())

    @cached_property
    def plausible(self) -> FloatArray:
        """Non-negative counts of the boxes without parts that add up as the estimates do."""
        every = np.concatenate(([self.total], self.box_estimates))
        return self.tree.nonnegative(every)[self.ends + 1]

    @cached_property
    def _overlap(self) -> BoxOverlap:
        return BoxOverlap(self.lows[self.ends], self.highs[self.ends])

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval.

        Where boxes are covered in part, the estimate takes the part of their size, and the
        interval goes from the boxes that are covered as a whole to all that are touched.
        """
        require_confidence(confidence)
        covered = read_query(self.axes, query)
        shares = self._overlap.shares(covered.weights)
        inner = (self._overlap.shares(covered.inner) >= 1).astype(np.float64)
        outer = (self._overlap.shares(covered.outer) > 0).astype(np.float64)
        is_cut = bool(np.any(inner != outer))
        value = float(shares @ self.estimates)
        notes = [note for note in (covered.assumption, EVENLY if is_cut else None) if note]
        if self.partial:
            notes.append(PARTIAL)
            return Answer(value, None, None, confidence, "; ".join(notes))
        notes += [NOT_IN_INTERVAL] if is_cut else []
        low = float(inner @ self.estimates) - self.noise_half_width(inner, confidence)
        high = float(outer @ self.estimates) + self.noise_half_width(outer, confidence)
        return around(value, low, high, confidence, "; ".join(notes) or None)

    def noise_half_width(self, weights: FloatArray, confidence: float) -> float:
        """Bound the noise of the sum of `weights` times the estimates."""
        on_all = np.zeros(self.parents.size + 1)
        on_all[self.ends + 1] = weights
        if not weights.any():
            return 0.0
        found = self.tree.adjoint(on_all)
        # What rounding leaves of a weight that cancels out is no weight.
        found[np.abs(found) < 1e-12 * np.abs(found).max()] = 0
        pairs = [
            (rate, found[1:][self.levels == level])
            for level, rate in enumerate(self.rates)
            if rate is not None
        ]
        pairs += [(rate, found[:1]) for rate in self._root_rate]
        return mixed_half_width(tuple(r for r, _ in pairs), tuple(w for _, w in pairs), confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many other boxes at once."""
        for column in columns:
            require_known("column", column, self.schema.names)
        indices = [self.schema.names.index(column) for column in columns]
        return self._overlap.sums(self.estimates, indices, lows, highs)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Without `n` every box gives its estimated count; with `n`, boxes are drawn in
        proportion (evenly over the domain if every estimate is zero).
        """
        rng = self.row_generator(n, seed, counted=float(self.plausible.sum()))
        if n is None:
            picked = np.repeat(self.ends, round_to_total(self.plausible))
        else:
            picked = rng.choice(self.ends, size=n, p=self._probabilities())
        codes = rng.integers(self.lows[picked], self.highs[picked])
        columns = zip(self.axes, codes.T, strict=True)
        return pa.table({axis.column: draw_column(axis, along, rng) for axis, along in columns})

    def _probabilities(self) -> FloatArray:
        weights = self.plausible
        if not weights.any():
            extents = self.highs[self.ends] - self.lows[self.ends]
            weights = np.prod(extents / [axis.size for axis in self.axes], axis=1)
        return np.asarray(weights / weights.sum())

    def tables(self) -> dict[str, pa.Table]:
        """Return the boxes with their ends, by code and by label, and their counts."""
        columns: dict[str, pa.Array] = {
            "parent": pa.array(self.parents),
            "level": pa.array(self.levels),
            "noisy_count": pa.array(self.counts),
            "estimated_count": pa.array(self.box_estimates),
        }
        table = pa.table(columns | end_columns(self.axes, self.lows, self.highs))
        for axis, first, after in zip(self.axes, self.lows.T, self.highs.T, strict=True):
            beside = f"last value of {axis.column}"
            table = with_ends(table, beside, axis, first, after - 1, stem=axis.column)
        widths = np.array([np.nan if rate is None else cell_width(rate) for rate in self.rates])
        return {"boxes": with_interval(table, widths[self.levels])}

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields and the ends of the boxes."""
        lows, highs = read_ends(tables["boxes"], schema.names)
        return super().read_parts(schema, metadata, tables) | {"lows": lows, "highs": highs}

    def expected_error(self) -> dict[str, float]:
        """Return the errors of the count of one box and of the total, with probability 95 %."""
        finest = [rate for rate in self.rates if rate is not None][-1]
        return {
            "one_box_95": float(sum_quantile(finest, 1, 0.95)),
            "total_95": 1.96 * sqrt(self.tree.total_variance),
        }

    def summary(self) -> dict[str, str]:
        """Describe columns, boxes and error in a few words."""
        errors = self.expected_error()
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size:,})" for axis in self.axes),
            "published": f"{self.parents.size:,} boxes, {self.ends.size:,} of them without parts",
            "records": f"about {max(self.total, 0):,.0f}",
            "error": f"the count of a box without parts is within {errors['one_box_95']:,.0f} of "
            "the truth with probability 95 %; within a box records count as evenly distributed",
        }

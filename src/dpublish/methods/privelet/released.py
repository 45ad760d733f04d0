"""A published histogram held as noisy Haar coefficients: long ranges add up few of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import prod, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width, require_confidence, terms_half_width
from dpublish.accuracy.noise_distribution import Terms, noise_variance
from dpublish.accuracy.projection import project_nonnegative, round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_rows
from dpublish.core.beside_labels import CONFIDENCE, every_cell, with_interval, with_listed_bins
from dpublish.core.codecs import RATE, Codec
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.query.cells import around, bounded
from dpublish.core.released import Metadata, Release, Tables, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.privelet.haar import coefficient_weights, depth_of, invert, mean_square
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

_MOST_CORNERS = 1 << 10  # of a box; a box with more is added up cell by cell


class WaveletMarginal(NamedTuple):
    """Estimated counts along one axis."""

    labels: tuple[str, ...]
    counts: FloatArray


def coefficient_shape(axes: Sequence[Axis], haar: Sequence[bool]) -> tuple[int, ...]:
    """Return the number of coefficients along each axis: a power of two if it is transformed."""
    return tuple(
        2 ** depth_of(axis.size) if is_haar else axis.size
        for axis, is_haar in zip(axes, haar, strict=True)
    )


def coefficients_moved(axes: Sequence[Axis], haar: Sequence[bool]) -> int:
    """Count the coefficients that one record moves, each by 1: the sensitivity.

    Along a transformed axis these are the total and one difference on each level.
    """
    return prod(
        1 + depth_of(axis.size) if is_haar else 1 for axis, is_haar in zip(axes, haar, strict=True)
    )


def range_errors(
    axes: Sequence[Axis], haar: Sequence[bool], rate: Fraction, records: int | None = None
) -> dict[str, float]:
    """Predict the error of a random range of all columns, and of the total (95 %)."""
    squares = prod(
        mean_square(depth_of(axis.size)) if is_haar else (axis.size + 2) / 3
        for axis, is_haar in zip(axes, haar, strict=True)
    )
    cells = prod(1 if is_haar else axis.size for axis, is_haar in zip(axes, haar, strict=True))
    deviation = sqrt(noise_variance(rate))
    figures = {"random_range_95": 1.96 * deviation * sqrt(squares)}
    figures["total_95"] = 1.96 * deviation * sqrt(cells)
    if records:
        figures["records_per_cell"] = records / prod(axis.size for axis in axes)
    return figures


@dataclass(frozen=True, eq=False, kw_only=True)
class PriveletRelease(Release):
    """Noisy coefficients of the counts of all combinations of values of all columns.

    `haar` states for each column whether it was transformed.  `coefficients` has one dimension
    for each column; each of them has two-sided geometric noise of rate `noise_rate`.
    """

    kind: ClassVar[str] = "wavelet-histogram"
    report: ClassVar[str] = "dpublish.methods.privelet.report:section"

    receipt: Receipt
    schema: Schema
    haar: tuple[bool, ...] = in_metadata(Codec(list, lambda plain, _: tuple(plain)))
    coefficients: IntArray = in_table("coefficients", "noisy_coefficient")
    noise_rate: Fraction = in_metadata(RATE)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.noise_rate)
        if len(self.haar) != len(self.schema.columns) or not set(self.haar) <= {True, False}:
            raise InvalidParameter("haar must state for each column whether it is transformed")
        shape = coefficient_shape(self.axes, self.haar)
        if self.coefficients.dtype != np.int64 or self.coefficients.shape != shape:
            raise InvalidParameter("there must be one integer coefficient for each position")

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns, each on its finest level."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def estimates(self) -> FloatArray:
        """Unbiased estimates of the count of every cell; some are negative."""
        counts = self.coefficients.astype(np.float64)
        for which, (axis, is_haar) in enumerate(zip(self.axes, self.haar, strict=True)):
            if is_haar:
                inside, beyond = np.split(invert(counts, which), [axis.size], axis=which)
                # Cells beyond the last are empty: their noise, as in every range up to the
                # end, is counted with it (`coefficient_weights`).
                last = (slice(None),) * which + (slice(-1, None),)
                inside[last] += beyond.sum(axis=which, keepdims=True)
                counts = inside
        return np.ascontiguousarray(counts)

    @cached_property
    def plausible(self) -> IntArray:
        """Whole, non-negative counts nearest to the estimates, with the estimated total."""
        total = max(self.count().value, 0.0)
        return round_to_total(project_nonnegative(self.estimates, total))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with the quantile of its noise.

        The answer is unbiased unless cells are covered in part; the interval then goes from the
        cells that are covered as a whole to all that are touched.
        """
        require_confidence(confidence)
        covered = read_query(self.axes, query)
        value, width = self._sum(covered.weights, confidence)
        if not covered.is_cut:
            return bounded(value, value - width, value + width, confidence, covered.note)
        least, below = self._sum(covered.inner, confidence)
        most, above = self._sum(covered.outer, confidence)
        return around(value, least - below, most + above, confidence, covered.note)

    def _sum(self, weights: Sequence[FloatArray], confidence: float) -> tuple[float, float]:
        """Add up the estimates by the weights along each axis; with the half-width of the noise."""
        if not all(along.any() for along in weights):
            return 0.0, 0.0
        per_axis = [
            coefficient_weights(along) if is_haar else along
            for along, is_haar in zip(weights, self.haar, strict=True)
        ]
        used = [np.flatnonzero(along) for along in per_axis]
        parts = [along[kept] for along, kept in zip(per_axis, used, strict=True)]
        total: NDArray[Any] = self.coefficients[np.ix_(*used)].astype(np.float64)
        for part in parts:
            total = np.tensordot(part, total, axes=(0, 0))
        noise = reduce(np.multiply.outer, parts).ravel()
        return float(total), half_width(self.noise_rate, noise, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        bounds = read_boxes(self.axes, columns, lows, highs)
        named = [which for which, axis in enumerate(self.axes) if axis.column in columns]
        others = tuple(which for which in range(len(self.axes)) if which not in named)
        counts = self.estimates.sum(axis=others)
        return box_sums(counts, bounds.lows[:, named], bounds.highs[:, named])

    def marginal(self, column: str) -> WaveletMarginal:
        """Add up the estimates along all other axes."""
        names = [axis.column for axis in self.axes]
        require_known("column", column, names)
        which = names.index(column)
        others = tuple(other for other in range(len(names)) if other != which)
        return WaveletMarginal(self.axes[which].labels, self.estimates.sum(axis=others))

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted."""
        counts = self.plausible.ravel()
        total = int(counts.sum())
        rng = self.row_generator(n, seed, counted=total)
        if n is None:
            cells = np.repeat(np.arange(counts.size), counts)
        else:
            cells = rng.choice(counts.size, size=n, p=counts / total if total else None)
        return draw_rows(self.axes, np.unravel_index(cells, [a.size for a in self.axes]), rng)

    def tables(self) -> dict[str, pa.Table]:
        """Return the noisy coefficients in row-major order, and the marginals as estimated."""
        marginals = [self.marginal(axis.column) for axis in self.axes]
        names = [axis.column for axis in self.axes for _ in axis.labels]
        labels = [label for marginal in marginals for label in marginal.labels]
        counts = np.concatenate([marginal.counts for marginal in marginals])
        return {
            "coefficients": pa.table({"noisy_coefficient": self.coefficients.ravel()}),
            "marginals": with_interval(
                with_listed_bins(
                    pa.table({"column": names, "value": labels, "estimated_count": counts}),
                    "value",
                    every_cell(self.axes),
                ),
                np.concatenate([self._widths(which) for which in range(len(self.axes))]),
                of="estimated_count",
            ),
        }

    def _widths(self, which: int) -> FloatArray:
        """Return the half-width of the interval (95 %) of the count of each value of a column."""
        others = [
            coefficient_weights(np.ones(axis.size)) if is_haar else np.ones(axis.size)
            for axis, is_haar in zip(self.axes, self.haar, strict=True)
        ]
        known: dict[bytes, float] = {}  # values differ in the signs of their weights, most of them
        widths = np.empty(self.axes[which].size)
        for value in range(widths.size):
            one = (np.arange(widths.size) == value).astype(np.float64)
            own = np.sort(np.abs(coefficient_weights(one) if self.haar[which] else one))
            if own.tobytes() not in known:
                weights = [*others[:which], own, *others[which + 1 :]]
                terms = Terms.of_products(weights, float(self.noise_rate))
                known[own.tobytes()] = terms_half_width(terms, CONFIDENCE)
            widths[value] = known[own.tobytes()]
        return widths

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields, and give the coefficients their shape."""
        found = super().read_parts(schema, metadata, tables)
        shape = coefficient_shape([column.axis() for column in schema.columns], found["haar"])
        if found["coefficients"].size != prod(shape):
            raise InvalidParameter("there must be one coefficient for each position")
        return found | {"coefficients": found["coefficients"].reshape(shape)}

    def expected_error(self) -> dict[str, float]:
        """Return the error of a random range and of the total, with probability 95 %."""
        return range_errors(self.axes, self.haar, self.noise_rate)

    def summary(self) -> dict[str, str]:
        """Describe axes, transform and error in a few words."""
        turned = [a.column for a, is_haar in zip(self.axes, self.haar, strict=True) if is_haar]
        width = self.expected_error()["random_range_95"]
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "published": f"{self.coefficients.size:,} noisy coefficients",
            "transformed": ", ".join(turned) or "no column: none is long enough to gain by it",
            "error": f"a random range of all columns is within about {width:,.0f} of the truth "
            "with probability 95 %",
        }


def box_sums(counts: FloatArray, lows: IntArray, highs: IntArray) -> FloatArray:
    """Add up the cells of each box, from running sums at its corners.

    >>> box_sums(np.arange(6.0).reshape(2, 3), np.array([[0, 1]]), np.array([[2, 3]]))
    array([12.])
    """
    if 2**counts.ndim > _MOST_CORNERS:
        ends = zip(lows.tolist(), highs.tolist(), strict=True)
        boxes = (tuple(map(slice, low, high)) for low, high in ends)
        return np.array([counts[box].sum() for box in boxes], dtype=np.float64)
    running = np.pad(counts, [(1, 0)] * counts.ndim)
    for axis in range(counts.ndim):
        np.cumsum(running, axis=axis, out=running)
    sums = np.zeros(len(lows))
    for corner in product((False, True), repeat=counts.ndim):
        ends_here = np.where(corner, highs, lows)
        sign = (-1) ** (counts.ndim - sum(corner))
        sums += sign * running[tuple(ends_here.T)]
    return sums

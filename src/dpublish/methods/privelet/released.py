"""A published histogram held as noisy Haar coefficients: long ranges add up few of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import prod, sqrt
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative, round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.query.axes import read_boxes, read_question
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.privelet.haar import coefficient_weights, depth_of, invert, mean_square
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

_MOST_CORNERS = 1 << 10  # of a box; a box with more is added up cell by cell


class WaveletMarginal(NamedTuple):
    """Estimated counts along one axis."""

    labels: tuple[str, ...]
    counts: NDArray[np.float64]


def coefficient_shape(axes: Sequence[Axis], haar: Sequence[bool]) -> tuple[int, ...]:
    """Give the number of coefficients along each axis: a power of two where it is transformed."""
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
    spread = sqrt(noise_variance(rate))
    figures = {"random_range_95": 1.96 * spread * sqrt(squares)}
    figures["total_95"] = 1.96 * spread * sqrt(cells)
    if records:
        figures["records_per_cell"] = records / prod(axis.size for axis in axes)
    return figures


@dataclass(frozen=True, eq=False, kw_only=True)
class PriveletRelease(Release):
    """Noisy coefficients of the counts of all leaves of all columns.

    `haar` says of each column whether it was transformed.  `coefficients` has one dimension
    for each column; each of them has two-sided geometric noise of rate `noise_rate`.
    """

    kind: ClassVar[str] = "wavelet-histogram"

    receipt: Receipt
    schema: Schema
    haar: tuple[bool, ...]
    coefficients: NDArray[np.int64]
    noise_rate: Fraction

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.noise_rate)
        if len(self.haar) != len(self.schema.columns) or not set(self.haar) <= {True, False}:
            raise InvalidParameter("haar must say of each column whether it is transformed")
        shape = coefficient_shape(self.axes, self.haar)
        if self.coefficients.dtype != np.int64 or self.coefficients.shape != shape:
            raise InvalidParameter("there must be one whole coefficient for each place")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PriveletRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.schema == other.schema
            and np.array_equal(self.coefficients, other.coefficients)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns at their leaves."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """Unbiased estimates of the count of every cell; some are negative."""
        counts = self.coefficients.astype(np.float64)
        for place, (axis, is_haar) in enumerate(zip(self.axes, self.haar, strict=True)):
            if is_haar:
                inside, beyond = np.split(invert(counts, place), [axis.size], axis=place)
                # Leaves beyond the last are empty: their noise, as in every range up to the
                # end, is counted with it (`coefficient_weights`).
                last = (slice(None),) * place + (slice(-1, None),)
                inside[last] += beyond.sum(axis=place, keepdims=True)
                counts = inside
        return np.ascontiguousarray(counts)

    @cached_property
    def plausible(self) -> NDArray[np.int64]:
        """Whole, non-negative counts nearest to the estimates, with the estimated total."""
        total = max(self.count().value, 0.0)
        return round_to_total(project_nonnegative(self.estimates, total))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`: unbiased, with the quantile of its noise."""
        require_confidence(confidence)
        question = read_question(self.axes, query)
        per_axis = [
            coefficient_weights(along) if is_haar else along
            for along, is_haar in zip(question.weights, self.haar, strict=True)
        ]
        used = [np.flatnonzero(along) for along in per_axis]
        parts = [along[places] for along, places in zip(per_axis, used, strict=True)]
        total: NDArray[Any] = self.coefficients[np.ix_(*used)].astype(np.float64)
        for part in parts:
            total = np.tensordot(part, total, axes=(0, 0))
        value = float(total)
        reach = half_width(self.noise_rate, reduce(np.multiply.outer, parts).ravel(), confidence)
        low, high = max(value - reach, 0.0), max(value + reach, 0.0)
        return Answer(value, low, high, confidence, question.assumption)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        bounds = read_boxes(self.axes, columns, lows, highs)
        named = [place for place, axis in enumerate(self.axes) if axis.column in columns]
        others = tuple(place for place in range(len(self.axes)) if place not in named)
        counts = self.estimates.sum(axis=others)
        return box_sums(counts, bounds.lows[:, named], bounds.highs[:, named])

    def marginal(self, column: str) -> WaveletMarginal:
        """Add up the estimates along all other axes."""
        names = [axis.column for axis in self.axes]
        require_known("column", column, names)
        which = names.index(column)
        others = tuple(place for place in range(len(names)) if place != which)
        return WaveletMarginal(self.axes[which].labels, self.estimates.sum(axis=others))

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted."""
        require_count(seed=0 if seed is None else seed, n=0 if n is None else n, at_least=0)
        counts = self.plausible.ravel()
        total = int(counts.sum())
        if (total if n is None else n) > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        if n is None:
            cells = np.repeat(np.arange(counts.size), counts)
        else:
            cells = rng.choice(counts.size, size=n, p=counts / total if total else None)
        positions = np.unravel_index(cells, [axis.size for axis in self.axes])
        drawn = [draw_column(*pair, rng) for pair in zip(self.axes, positions, strict=True)]
        return pa.table(drawn, names=[axis.column for axis in self.axes])

    def tables(self) -> dict[str, pa.Table]:
        """Give the noisy coefficients in row-major order, and the marginals as estimated."""
        marginals = [self.marginal(axis.column) for axis in self.axes]
        names = [axis.column for axis in self.axes for _ in axis.labels]
        labels = [label for marginal in marginals for label in marginal.labels]
        counts = np.concatenate([marginal.counts for marginal in marginals])
        return {
            "coefficients": pa.table({"noisy_coefficient": self.coefficients.ravel()}),
            "marginals": pa.table({"column": names, "value": labels, "estimated_count": counts}),
        }

    def metadata(self) -> dict[str, Any]:
        """Give which columns are transformed, and the noise rate."""
        return {"haar": [*self.haar], "noise_rate": format_epsilon(self.noise_rate)}

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the histogram of a release folder."""
        haar = tuple(metadata["haar"])
        flat = whole_column(tables["coefficients"], "noisy_coefficient")
        shape = coefficient_shape([column.axis() for column in schema.columns], haar)
        if flat.size != prod(shape):
            raise InvalidParameter("there must be one coefficient for each place")
        return cls(
            receipt=receipt,
            schema=schema,
            haar=haar,
            coefficients=flat.reshape(shape),
            noise_rate=parse_epsilon(metadata["noise_rate"]),
        )

    def expected_error(self) -> dict[str, float]:
        """Give the error of a random range and of the total, with probability 95 %."""
        return range_errors(self.axes, self.haar, self.noise_rate)

    def summary(self) -> dict[str, str]:
        """Describe axes, transform and error in a few words."""
        turned = [a.column for a, is_haar in zip(self.axes, self.haar, strict=True) if is_haar]
        reach = self.expected_error()["random_range_95"]
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "published": f"{self.coefficients.size:,} noisy coefficients",
            "transformed": ", ".join(turned) or "no column: none is long enough to gain by it",
            "error": f"a random range of all columns is within about {reach:,.0f} of the truth "
            "with probability 95 %",
        }


def box_sums(
    counts: NDArray[np.float64], lows: NDArray[np.int64], highs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Add up the cells of each box, from running sums at its corners.

    >>> box_sums(np.arange(6.0).reshape(2, 3), np.array([[0, 1]]), np.array([[2, 3]]))
    array([12.])
    """
    if 2**counts.ndim > _MOST_CORNERS:
        ends = zip(lows.tolist(), highs.tolist(), strict=True)
        boxes = (tuple(map(slice, low, high)) for low, high in ends)
        return np.array([counts[box].sum() for box in boxes], dtype=np.float64)
    running = np.pad(counts, [(1, 0)] * counts.ndim)
    for place in range(counts.ndim):
        np.cumsum(running, axis=place, out=running)
    sums = np.zeros(len(lows))
    for corner in product((False, True), repeat=counts.ndim):
        ends_here = np.where(corner, highs, lows)
        sign = (-1) ** (counts.ndim - sum(corner))
        sums += sign * running[tuple(ends_here.T)]
    return sums

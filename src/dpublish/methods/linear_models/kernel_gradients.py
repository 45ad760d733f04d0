"""Loss, gradient and curvature of one linear model over the records, for exact minimizers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal, NamedTuple

import numpy as np

from dpublish.aggregates.kernel import CodeSums
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.linear_models.fourier_features import FourierFeatures
from dpublish.methods.linear_models.signed_records import SignedBlock, SignedRecords
from dpublish.types import FloatArray, IntArray

SLOPE_BITS = 50
"""Slopes of a record, at most 1, are integers of 2^-50."""

LOSS_BITS = 40
"""Losses of a record are integers of 2^-40."""

CURVATURE_BITS = 42
"""Curvatures of a record are integers of 2^-42, rounded up."""

HUBER_WIDTH = 0.5
"""The Huber loss is a parabola for margins within this of 1 (h), unless another width is given."""

LARGEST_MARGIN = float(1 << 20)
SLOPE_ERROR = 2.0**-48
"""Bound of the error of a slope at a given margin, its rounding included."""

_HALF = SLOPE_BITS // 2  # sums of halves stay below 2^53, so floats hold them exactly
_PART = 14  # bits of a curvature that are added up at a time, for the same reason
_PARTS = CURVATURE_BITS // _PART
_ROWS = 1 << 13
_NODES = 1 << 10  # nodes of the table of exp(-t) per unit of t
_NOTHING = 48  # exp(-t) counts as that of this t from here on: below 2^-69

Loss = Literal["logistic", "huber"]
Slopes = tuple[FloatArray, FloatArray, FloatArray]
"""Loss, how fast it falls (from 0 to 1) and curvature, at each margin."""


class Gradient(NamedTuple):
    """Sums over the records.

    Attributes:
        loss: Sum of losses.
        slope: Gradient of that sum.
        curvature: Bound from above of its second derivative (tight to 2^-42 a record); None
            if it was not requested.
    """

    loss: float
    slope: FloatArray
    curvature: FloatArray | None


@dataclass(frozen=True, eq=False)
class LinearGradients(CodeSums):
    """Kernel: add up loss, gradient and curvature of one model, on a lattice.

    Features are divided by `features.norms`, so that every record has an L2 norm of at most 1:
    x = features / norms, and its margin is sign * (sum of x * w).

    The margin of a record is found by look-ups that are added in a fixed order, its loss and
    slope by operations on one number at a time, and both are rounded.  What is added up are
    integers, exact for up to 2^27 records.  So the answer does not depend on the cut into
    batches.

    >>> from dpublish.data.schema import column
    >>> columns = (column("sex", "category", values=["F", "M"]),
    ...            column("income", "category", values=["low", "high"]))
    >>> schema = Schema(columns)
    >>> kernel = LinearGradients(schema, Features.of(schema, "income"), "income", (1,), np.zeros(3))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(2, codes={"sex": np.array([0, 1], dtype=np.uint8),
    ...                            "income": np.array([0, 1], dtype=np.uint8)}), answer)
    >>> found = kernel.read(answer)
    >>> round(found.loss, 6), (found.slope * 2**0.5).round(6).tolist()
    (1.386294, [0.5, -0.5, 0.0])
    """

    schema: Schema
    features: Features | FourierFeatures
    target: str
    positive: tuple[int, ...]
    weights: FloatArray = field(repr=False)
    loss: Loss = "logistic"
    second: bool = False
    width: float = HUBER_WIDTH

    def __post_init__(self) -> None:
        require_known("loss", self.loss, _SLOPES)
        if not 0 < self.width <= HUBER_WIDTH:
            raise InvalidParameter(f"width ({self.width}) must be above 0 and at most 1/2")
        _ = self._records  # refuses columns that do not fit
        if self.weights.dtype != np.float64 or self.weights.shape != (self.features.size,):
            raise InvalidParameter("there must be a weight for each feature")
        if not np.isfinite(self.weights).all() or self._largest_margin > LARGEST_MARGIN:
            raise InvalidParameter("weights must be finite, and margins at most 2^20")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return self._records.codes

    @property
    def error_bound(self) -> float:
        """Bound of the L2 error of one record's gradient, against exact real numbers.

        A margin adds one look-up for each column and the intercept, each a sum of products
        itself: with m terms in all its error is below (m + 4) * 2^-52 times the sum of their
        sizes.  A slope changes by at most `curvature_bound` times that, and its own evaluation
        and rounding add `SLOPE_ERROR`.  Features have an L2 norm of at most 1.
        """
        sizes = np.abs(self.weights).sum() / self.features.norms
        margin = (self.features.size + 4) * 2.0**-52 * float(sizes)
        return curvature_bound(self.loss, self.width) * margin + SLOPE_ERROR

    def zero(self) -> IntArray:
        """Build the answer for no records."""
        size = self.features.size
        return np.zeros((2 + (_PARTS * size if self.second else 0), size + 1), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add up the records of `batch`, some at a time."""
        for block in self._records.blocks(batch, _ROWS):
            self._add_block(block, out)

    def read(self, answer: IntArray) -> Gradient:
        """Turn the answer into numbers."""
        high, low = answer[:2].astype(np.float64)
        whole = high * 2.0**_HALF + low
        scale = FEATURE_UNIT * self.features.norms
        curvature = None
        if self.second:
            parts = answer[2:, :-1].astype(np.float64).reshape(_PARTS, -1, self.features.size)
            scales = 2.0 ** (_PART * np.arange(_PARTS) - CURVATURE_BITS)
            # A Huber loss is bent equally wherever it is bent: there the sum is of ones.
            bend = curvature_bound(self.loss, self.width) if self.loss == "huber" else 1.0
            curvature = np.tensordot(scales, parts, axes=1) * (bend / scale**2)
        return Gradient(
            float(whole[-1]) * 2.0**-LOSS_BITS, whole[:-1] * 2.0**-SLOPE_BITS / scale, curvature
        )

    def _add_block(self, block: SignedBlock, out: IntArray) -> None:
        losses, slopes, curvatures = _SLOPES[self.loss](self._margins(block), self.width)
        matrix = self.features.matrix(block.codes)
        # A record's gradient is an integer (its slope) times integers (its features).
        steps = np.floor(slopes * 2.0**SLOPE_BITS + 0.5)
        for row, part in enumerate(_halves(steps)):
            signed = -block.signs * block.counts * part
            out[row, :-1] += (signed @ matrix).astype(np.int64)
        for row, part in enumerate(_halves(np.floor(losses * 2.0**LOSS_BITS + 0.5))):
            out[row, -1] += int(block.counts @ part)
        if self.second:
            bent = np.flatnonzero(curvatures)  # of a hinge, few records
            self._add_curvature(matrix[bent], curvatures[bent], block.counts[bent], out)

    def _add_curvature(
        self, matrix: FloatArray, curvatures: FloatArray, counts: FloatArray, out: IntArray
    ) -> None:
        left = np.ceil(curvatures * 2.0**CURVATURE_BITS)
        size = self.features.size
        for digit in range(_PARTS):
            rest = np.floor(left * 2.0**-_PART) if digit < _PARTS - 1 else np.zeros_like(left)
            bent = (left - rest * 2.0**_PART) * counts
            left = rest
            if bent.any():
                rows = slice(2 + digit * size, 2 + (digit + 1) * size)
                out[rows, :-1] += (matrix.T @ (matrix * bent[:, None])).astype(np.int64)

    def _margins(self, block: SignedBlock) -> FloatArray:
        if isinstance(self.features, FourierFeatures):
            margins = self.features.sums(block.codes, self.weights / self.features.norms)
        else:
            *columns, (intercept,) = self._products
            margins = np.full(len(block.signs), intercept)
            for name, products in zip(self.features.columns, columns, strict=True):
                margins += products[block.codes[name]]
        margins *= block.signs
        return margins

    @cached_property
    def _records(self) -> SignedRecords:
        return SignedRecords(self.schema, self.features, self.target, self.positive)

    @cached_property
    def _products(self) -> tuple[FloatArray, ...]:
        if isinstance(self.features, FourierFeatures):
            raise TypeError("Fourier features are not found by look-up")
        return self.features.products(self.weights / self.features.norms)

    @cached_property
    def _largest_margin(self) -> float:
        return float(self.features.largest_sum(self.weights)) / self.features.norms


def curvature_bound(loss: Loss, width: float = HUBER_WIDTH) -> float:
    """Bound the second derivative of a loss by the margin (c); `width` is that of a Huber loss."""
    return 0.25 if loss == "logistic" else 1 / (2 * width)


def _halves(steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split integers into an upper and a lower half, each of few enough bits to add up."""
    high = np.floor(steps * 2.0**-_HALF)
    return high, steps - high * 2.0**_HALF


@cache
def _nodes() -> FloatArray:
    return np.exp(-np.arange(_NOTHING * _NODES + 1) / _NODES)


def _logistic(margins: FloatArray, _width: float) -> Slopes:
    """Evaluate log(1 + exp(-margin)).

    The library's own exp might round differently at the end of an array than in its middle; a
    table and a few terms of a series, in plain arithmetic, do not.
    """
    size = np.minimum(np.abs(margins), _NOTHING)
    node = np.floor(size * _NODES)
    rest = size - node / _NODES  # below 2^-10, exact
    series = 1 - rest * (1 - rest / 2 * (1 - rest / 3 * (1 - rest / 4)))  # off by 2^-56
    shrunk = _nodes()[node.astype(np.intp)] * series
    small = shrunk / (1 + shrunk)  # the slope on the flat side
    slopes = np.where(margins >= 0, small, 1 - small)
    return np.maximum(-margins, 0) + _log_of_more(shrunk), slopes, small * (1 - small)


def _log_of_more(share: FloatArray) -> FloatArray:
    """Evaluate log(1 + share) for shares from 0 to 1, in plain arithmetic.

    With s = share / (2 + share) it is 2 * (s + s^3 / 3 + s^5 / 5 + ...); s is at most 1 / 3, so
    sixteen terms leave less than 2^-50.
    """
    part = share / (2 + share)
    square = part * part
    found = np.full_like(part, 1 / 31)
    for odd in range(29, 0, -2):
        found = found * square + 1 / odd
    return np.asarray(2 * part * found)


def _huber(margins: FloatArray, width: float = HUBER_WIDTH) -> Slopes:
    """Evaluate the hinge max(0, 1 - margin) with its corner rounded off; 1 where it is bent."""
    short = 1 + width - margins
    inside = np.clip(short, 0, 2 * width)
    slopes = inside / (2 * width)
    losses = inside * slopes / 2 + np.maximum(short - 2 * width, 0)
    is_bent = (short > 0) & (short < 2 * width)
    return losses, slopes, np.where(is_bent, 1.0, 0.0)


_SLOPES: dict[str, Callable[[FloatArray, float], Slopes]] = {"logistic": _logistic, "huber": _huber}

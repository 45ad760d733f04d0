"""How badly each of many linear models fits the records: sums of their losses."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.kernel import CodeSums, unbounded
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.linear_models.signed_records import SignedRecords
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

WEIGHT_UNIT = 1 << 10
"""A weight of 1 as an integer."""

LOSS_UNIT = 1 << 10
"""A loss of 1, and a margin of 1, as an integer."""

Loss = Literal["logistic", "hinge"]

_WIDEST = 256 * LOSS_UNIT  # beyond this margin a loss counts as a straight line
_LARGEST_MARGIN = float(1 << 30)
_BLOCK = 1 << 21  # margins at a time: 16 MB


@dataclass(frozen=True, eq=False)
class LinearLosses(CodeSums):
    """Kernel: add up each record's loss, for every candidate model, in 1 / `LOSS_UNIT`.

    A record of features x and sign s has the margin s * (sum of x * w), rounded down to whole
    units; its loss is looked up: log(1 + exp(-margin)) or max(0, 1 - margin).

    >>> from dpublish.data.schema import column
    >>> columns = (column("sex", "category", values=["F", "M"]),
    ...            column("income", "category", values=["low", "high"]))
    >>> schema = Schema(columns)
    >>> features = Features.of(schema, "income")
    >>> candidates = np.array([[0, 0, 0], [-2, 2, 0]]) * WEIGHT_UNIT
    >>> kernel = LinearLosses(schema, features, "income", (1,), candidates, "hinge")
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, codes={"sex": np.array([0, 1, 1], dtype=np.uint8),
    ...                            "income": np.array([0, 1, 0], dtype=np.uint8)}), answer)
    >>> (answer / LOSS_UNIT).tolist()
    [3.0, 3.0]
    """

    schema: Schema
    features: Features
    target: str
    positive: tuple[int, ...]
    candidates: IntArray = field(repr=False)
    loss: Loss = "logistic"

    def __post_init__(self) -> None:
        require_known("loss", self.loss, _LOSSES)
        _ = self._records  # refuses columns that do not fit
        if self.candidates.dtype != np.int64 or self.candidates.ndim != 2:
            raise InvalidParameter("candidates are integers: a row for each model")
        if not len(self.candidates) or self.candidates.shape[1] != self.features.size:
            raise InvalidParameter("each candidate has a weight for each feature")
        if (
            np.abs(self.candidates).max() > _LARGEST_MARGIN
            or self._largest_margin > _LARGEST_MARGIN
        ):
            raise InvalidParameter("weights are too large")  # for floats to hold exact sums

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return self._records.codes

    def zero(self) -> IntArray:
        """Build the answer for no records."""
        return np.zeros(len(self.candidates), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the losses of the records of `batch` to `out`, some records at a time."""
        weights, index = self._distinct
        losses = np.zeros(weights.shape[1], dtype=np.int64)
        rows = max(_BLOCK // max(weights.shape), 256)
        for codes, signs, counts in self._records.blocks(batch, rows):
            signed = self.features.matrix(codes)
            signed *= (signs / FEATURE_UNIT)[:, None]
            # All products and partial sums are multiples of 2^-10 below 2^42: floats hold them
            # exactly, in whatever order they are added.
            found = look_up_losses(signed @ weights, self._largest_margin, self.loss)
            losses += (counts @ found).astype(np.int64)
        out += losses[index]

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return by how much the changes of two losses differ at most (R), in whole units.

        An added record adds its own losses.  For two candidates whose margins lie at most d
        apart anywhere in the domain, the first of them at least -r, their losses differ by at
        most loss(-r) - loss(-r + d), since a loss is convex and falls; and by at most d.  The
        records do not enter.  Proof, with the rounding: docs/proofs/linear_losses.md.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "add up losses of single records")
        apart = np.ceil(self.features.distances(self.candidates))
        worst = -np.ceil(self.features.largest_sum(self.candidates))[:, None]
        value = _LOSSES[self.loss]
        drop = LOSS_UNIT * (value(worst / LOSS_UNIT) - value((worst + apart) / LOSS_UNIT))
        # Each look-up rounds by half a unit; the rest covers the rounding of floats.
        bounds = np.minimum(apart, np.floor(drop + 1.001))
        return max(int(bounds.max()), 1)

    def largest_loss(self, neighbors: Neighbors) -> int:
        """Return the largest loss of any record under any candidate (R1), in whole units.

        An added record lowers every score by its loss, which is not negative: two changes differ
        by at most this.  It is the range of the plain exponential mechanism.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "add up losses of single records")
        worst = -np.ceil(np.array(self._largest_margin))
        largest = LOSS_UNIT * _LOSSES[self.loss](worst / LOSS_UNIT)
        return max(int(np.floor(largest + 0.501)), 1)  # a look-up rounds by half a unit

    @cached_property
    def _records(self) -> SignedRecords:
        return SignedRecords(self.schema, self.features, self.target, self.positive)

    @cached_property
    def _distinct(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """The distinct candidates, a column each, and the index of every candidate there."""
        rows, index = np.unique(self.candidates, axis=0, return_inverse=True)
        return np.ascontiguousarray(rows.T, dtype=np.float64), index.reshape(-1)

    @cached_property
    def _largest_margin(self) -> float:
        return float(self.features.largest_sum(self.candidates).max())


def look_up_losses(margins: FloatArray, largest: float, loss: Loss) -> FloatArray:
    """Round margins down to whole units and look up their losses; margins are overwritten.

    Args:
        margins: In units of 1 / `LOSS_UNIT`.
        largest: A public bound of their size, which decides how large a table is needed.
        loss: Name of the loss.
    """
    width = LOSS_UNIT
    while width < min(largest, _WIDEST):
        width *= 2
    beyond = None
    if largest > width:
        beyond = np.maximum(-width - np.floor(margins), 0)
        np.clip(margins, -width, width, out=margins)
    margins += width
    found = loss_table(loss, width).take(margins.astype(np.intp), mode="clip")
    if beyond is not None:
        found += beyond
    return found


@cache
def loss_table(loss: Loss, width: int) -> FloatArray:
    """Tabulate a loss for all margins from -width to width: integers, held as floats.

    Neighbors differ by at most 1, since no loss changes faster than the margin.
    """
    margins = np.arange(-width, width + 1) / LOSS_UNIT
    table = np.floor(LOSS_UNIT * _LOSSES[loss](margins) + 0.5)
    table.flags.writeable = False
    return table


def _logistic(margins: FloatArray) -> FloatArray:
    return np.logaddexp(0.0, -margins)


def _hinge(margins: FloatArray) -> FloatArray:
    return np.maximum(1.0 - margins, 0.0)


_LOSSES = {"logistic": _logistic, "hinge": _hinge}

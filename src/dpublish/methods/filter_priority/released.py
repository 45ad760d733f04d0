"""A published sample of the largest noisy cells of a domain that may be huge."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import count_errors, require_confidence
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_rows, label_columns
from dpublish.core.beside_labels import with_bins, with_interval
from dpublish.core.codecs import FLOAT, RATE
from dpublish.core.noisy_size import RESERVED
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.released import CellRelease, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.sparse_counts import require_sparse
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

TABLE_COLUMNS = RESERVED | {"weight"}
"""Column names that the published table uses itself."""
_HIDDEN = "records in cells whose noisy count is below the threshold are not counted"


class SampleMarginal(NamedTuple):
    """Weights of the sampled cells, added up along one axis."""

    labels: tuple[str, ...]
    counts: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class FilterPriorityRelease(CellRelease):
    """A priority sample of the cells whose noisy count reached `threshold`.

    `cells` and `counts` are parallel: cell numbers in row-major order over the codes of all
    columns, and their noisy counts (two-sided geometric noise of rate `noise_rate`).  A cell
    of noisy count c was kept with a probability of about c / `cutoff`, or for sure if c is
    greater, so it stands for max(c, cutoff) records.  A cutoff of 0: all cells were kept.
    """

    kind: ClassVar[str] = "cell-sample"
    report: ClassVar[str] = "dpublish.methods.filter_priority.report:section"

    receipt: Receipt
    schema: Schema
    cells: IntArray = in_table("sample", "cell_number")
    counts: IntArray = in_table("sample", "noisy_count")
    cutoff: float = in_metadata(FLOAT)
    sample: int = in_metadata()
    threshold: int = in_metadata()
    noise_rate: Fraction = in_metadata(RATE)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_sparse(self.size, self.threshold, self.noise_rate)
        require_count(sample=self.sample)
        for array in (self.cells, self.counts):
            if array.dtype != np.int64 or array.shape != (self.cells.size,):
                raise InvalidParameter("cells and counts must be parallel integers")
        inside = self.cells.size == 0 or (self.cells[0] >= 0 and self.cells[-1] < self.size)
        if not inside or np.any(np.diff(self.cells) <= 0) or np.any(self.counts < self.threshold):
            raise InvalidParameter("a sample lists cells in order, none below the threshold")
        if type(self.cutoff) is not float or not isfinite(self.cutoff) or self.cutoff < 0:
            raise InvalidParameter("the cutoff must be a number of at least 0")
        if self.cells.size > self.sample or (self.cutoff and self.cells.size < self.sample):
            raise InvalidParameter("a sample is full if there is a cutoff, and never overfull")

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns, each on its finest level."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def weights(self) -> FloatArray:
        """How many records each sampled cell stands for."""
        return np.maximum(self.counts.astype(np.float64), self.cutoff)

    @cached_property
    def indices(self) -> tuple[IntArray, ...]:
        """Position of each sampled cell along each axis."""
        return tuple(i.astype(np.int64) for i in np.unravel_index(self.cells, self.shape))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, without a confidence interval.

        What lies in cells below the threshold is not seen, and how much that is is not known.
        """
        require_confidence(confidence)
        covered = read_query(self.axes, query)
        parts = self.weights.copy()
        for index, along in zip(self.indices, covered.weights, strict=True):
            parts *= along[index]
        notes = "; ".join(note for note in (covered.assumption, _HIDDEN) if note)
        return Answer(float(parts.sum()), None, None, confidence, notes)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        bounds = read_boxes(self.axes, columns, lows, highs)
        named = [which for which, axis in enumerate(self.axes) if axis.column in columns]
        sums = np.zeros(len(lows))
        for box, (low, high) in enumerate(zip(bounds.lows, bounds.highs, strict=True)):
            inside = np.ones(self.cells.size, dtype=np.bool_)
            for which in named:
                index = self.indices[which]
                inside &= (index >= low[which]) & (index < high[which])
            sums[box] = self.weights[inside].sum()
        return sums

    def marginal(self, column: str) -> SampleMarginal:
        """Add up the weights along all other axes."""
        names = [axis.column for axis in self.axes]
        require_known("column", column, names)
        which = names.index(column)
        sums = np.zeros(self.shape[which])
        np.add.at(sums, self.indices[which], self.weights)
        return SampleMarginal(self.axes[which].labels, sums)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as the sample stands for.

        Cells are drawn in proportion to their weights; without any, evenly from the domain.
        """
        counted = round(float(self.weights.sum()))
        rng = self.row_generator(n, seed, counted=counted)
        number = counted if n is None else n
        if self.cells.size:
            picked = rng.choice(self.cells.size, size=number, p=self.weights / self.weights.sum())
            positions = [index[picked] for index in self.indices]
        else:
            positions = [rng.integers(size, size=number) for size in self.shape]
        return draw_rows(self.axes, positions, rng)

    def tables(self) -> dict[str, pa.Table]:
        """Return the sampled cells with their labels, noisy counts and weights."""
        columns: dict[str, pa.Array] = {
            "cell_number": pa.array(self.cells),
            **label_columns(self.axes, self.indices),
            "noisy_count": pa.array(self.counts),
            "weight": pa.array(self.weights),
        }
        table = with_bins(pa.table(columns), self.axes, self.indices)
        width = self.expected_error()["all_cells_95"]
        return {"sample": with_interval(table, width, at_once=True)}

    def expected_error(self) -> dict[str, float]:
        """Return the errors of the noisy counts, with probability 95 %."""
        return count_errors(self.noise_rate, self.size, self.threshold)

    def summary(self) -> dict[str, str]:
        """Describe axes, sample and error in a few words."""
        errors = self.expected_error()
        sampled = f", those below {self.cutoff:,.0f} at random" if self.cutoff else ""
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "published": f"{self.cells.size:,} of {self.size:,} cells, noisy count at least "
            f"{self.threshold:,}{sampled}",
            "error": f"noisy counts are within {errors['all_cells_95']:,.0f} of the truth with "
            "probability 95 %; records in unpublished cells are missing",
        }

"""Records as a linear model sees them: features, and a class that is 1 or -1.

The kernels of model fitting share this.  They read the codes of all columns they use, so that
a record which a missing rule leaves out in one of them is left out everywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import cell_keys
from dpublish.data.features import Features
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.linear_models.fourier_features import FourierFeatures
from dpublish.types import FloatArray

_FEW_CELLS = 1 << 13
"""Domains of at most so many combinations of values are counted first: a public choice."""


class SignedBlock(NamedTuple):
    """Some records, or some distinct ones with their number.

    Attributes:
        codes: Codes of each predictor.
        signs: 1 for records of the class that counts as positive, -1 for others.
        counts: How many records each stands for.
    """

    codes: Mapping[str, NDArray[Any]]
    signs: FloatArray
    counts: FloatArray


@dataclass(frozen=True)
class SignedRecords:
    """The columns of a two-class problem, and how a batch is cut into blocks.

    Attributes:
        schema: Columns of the table.
        features: Features of the predictors.
        target: Class column.
        positive: Codes of the target that count as 1; all others count as -1.
    """

    schema: Schema
    features: Features | FourierFeatures
    target: str
    positive: tuple[int, ...]

    def __post_init__(self) -> None:
        require_known("column", self.target, self.schema.names)
        if self.target in self.features.columns:
            raise InvalidParameter(f"{self.target!r} cannot predict itself")
        size = self.schema[self.target].size
        if not all(0 <= code < size for code in self.positive):
            raise InvalidParameter(f"{self.target!r} has the codes 0 to {size - 1}")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that are read as codes."""
        return (*self.features.columns, self.target)

    def blocks(self, batch: Batch, rows: int) -> Iterator[SignedBlock]:
        """Yield the records of a batch, at most `rows` at a time; equal ones once, if few.

        The counts of a block add up to at most `BATCH_ROWS`.
        """
        for records in batch.cut():
            whole = self._grouped(records) if self._is_small else self._listed(records)
            for start in range(0, len(whole.signs), rows):
                part = slice(start, start + rows)
                codes = {name: column[part] for name, column in whole.codes.items()}
                yield SignedBlock(codes, whole.signs[part], whole.counts[part])

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return (*(column.size for column in self.features.predictors), 2)

    @cached_property
    def _is_small(self) -> bool:
        return prod(self._shape) <= _FEW_CELLS

    @cached_property
    def _is_positive(self) -> NDArray[np.uint8]:
        found = np.zeros(self.schema[self.target].size, dtype=np.uint8)
        found[list(self.positive)] = 1
        return found

    def _listed(self, batch: Batch) -> SignedBlock:
        signs = np.where(self._is_positive[batch.codes(self.target)], 1.0, -1.0)
        codes = {name: batch.codes(name) for name in self.features.columns}
        return SignedBlock(codes, signs, np.ones(len(batch)))

    def _grouped(self, batch: Batch) -> SignedBlock:
        cells = [batch.codes(name) for name in self.features.columns]
        cells.append(self._is_positive[batch.codes(self.target)])
        keys = cell_keys(cells, self._shape, len(batch))
        counts = np.bincount(keys, minlength=prod(self._shape))
        occupied = np.flatnonzero(counts)
        *codes, positive = np.unravel_index(occupied, self._shape)
        named = dict(zip(self.features.columns, codes, strict=True))
        return SignedBlock(
            named, np.where(positive, 1.0, -1.0), counts[occupied].astype(np.float64)
        )

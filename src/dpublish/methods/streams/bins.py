"""The bins in which a stream counts at every step: public, and the same for all steps."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Self

import numpy as np
import pyarrow as pa

from dpublish.core.noisy_size import RESERVED as RESERVED_BY_HISTOGRAMS
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema, parse_columns
from dpublish.errors import InvalidParameter

MAX_BINS = 2_000_000
RESERVED = RESERVED_BY_HISTOGRAMS | {"estimate", "time"}
"""Column names that the published tables use themselves."""


@dataclass(frozen=True)
class Bins:
    """The cells of `axes`, numbered in row-major order: the last axis counts fastest.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 99], bins=10)
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> bins = Bins.of(Schema((age, sex), unit="person"), ("age", "sex"))
    >>> bins.shape, bins.size, bins.names
    ((10, 2), 20, ('age', 'sex'))
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise InvalidParameter("columns must name at least one column")
        taken = sorted(RESERVED.intersection(self.names))
        if taken:
            raise InvalidParameter(
                f"column {taken[0]!r} is called as one that a stream publishes itself; rename it"
            )
        if self.size > MAX_BINS:
            raise InvalidParameter(
                f"{self.size:,} bins are too many to publish at every step (at most "
                f"{MAX_BINS:,}); take fewer columns, or coarsen them with name@level"
            )

    @classmethod
    def of(cls, schema: Schema, columns: str | Iterable[str]) -> Self:
        """Find the bins of some columns, each with an optional level (`age@2`)."""
        chosen = parse_columns(columns, schema)
        if schema.unit in {name for name, _ in chosen}:
            raise InvalidParameter(
                f"column {schema.unit!r} tells units apart, and is nothing to count by"
            )
        return cls(tuple(schema[name].axis(level) for name, level in chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(axis.column for axis in self.axes)

    @property
    def columns(self) -> tuple[tuple[str, int], ...]:
        """The columns and their levels, as kernels want them."""
        return tuple((axis.column, axis.level) for axis in self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of bins along each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def size(self) -> int:
        """Number of bins."""
        return prod(self.shape)

    def cells(self) -> pa.Table:
        """List the bins in order, with the label of each along each axis."""
        positions = np.unravel_index(np.arange(self.size), self.shape)
        labels = [
            pa.DictionaryArray.from_arrays(pa.array(at.astype(np.int32)), pa.array(axis.labels))
            for at, axis in zip(positions, self.axes, strict=True)
        ]
        return pa.table(labels, names=list(self.names))

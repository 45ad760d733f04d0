"""The domain that boxes are cut from, and into how many cells to cut it.

Few enough cells for the noise, many enough for the shape: a query that covers a given part of
the domain touches cells in proportion to their number M, so their noise grows like
sqrt(M) / epsilon.  The cells that it covers in part are those at its surface; the error from
records that do not lie evenly within them grows like N / M^(1/d).  The sum is least where M is
in proportion to (N epsilon)^(2d / (2 + d)).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpublish.core.method import Method, Run, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.domain import (
    counted_columns,
    counted_names,
    require_names,
    require_ordered,
)
from dpublish.methods.spatial.kernels import BoxCells, GridRoute
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray, IntArray

MOST_BOXES = 1 << 18
"""Most boxes that a release lists."""
SIZE_SHARE = Fraction(1, 50)
"""Part of epsilon that is spent on the noisy number of records."""
UNIFORM_CONSTANT = 10
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class BoxMethod(Method[SpatialRelease]):
    """What methods share that cut columns into boxes."""

    task: ClassVar[str] = "counting"

    columns: tuple[str, ...] = setting(
        "Columns to cut; all numeric, integer and ordinal ones unless named.", default=()
    )

    def __post_init__(self) -> None:
        require_names(self.columns)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return counted_names(schema, self.columns)


@dataclass(frozen=True)
class BoxDomain:
    """The public domain of some columns; a box is a range of codes along each of them."""

    schema: Schema

    @classmethod
    def choose(cls, columns: tuple[str, ...], schema: Schema, epsilon: Fraction) -> "BoxDomain":
        """Choose the named columns, or all that have an order; refuse what cannot be hidden."""
        require_rate(epsilon * SIZE_SHARE)
        chosen = counted_columns(schema, columns)
        require_ordered(chosen)
        return cls(replace(schema, columns=chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        return tuple(column.size for column in self.schema.columns)

    @property
    def dimensions(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def low(self) -> IntArray:
        """First codes of the box that holds everything, as a list of one box."""
        return np.zeros((1, self.dimensions), dtype=np.int64)

    @property
    def high(self) -> IntArray:
        """The codes after its last."""
        return np.array([self.sizes], dtype=np.int64)

    def grid(self, sides: IntArray) -> BoxCells:
        """Build the kernel that counts a grid, each column cut into ranges of nearly equal size."""
        nowhere = GridRoute(self.sizes, (1,) * self.dimensions)
        return BoxCells(self.names, nowhere, self.low, self.high, sides.reshape(1, -1))


def release_size(run: Run, domain: BoxDomain, *, budget: Budget) -> NoisySize:
    """Add noise to the number of records that have all columns.

    Privacy:
        That of `noisy_size`: one record added or removed changes the number by 1 at most,
        and whether it is counted depends on the record alone.
    """
    rate = budget.epsilon
    exact = run.sum(domain.grid(np.ones(domain.dimensions, dtype=np.int64)))
    return NoisySize(run.noisy_size(int(exact[0]), budget=budget), rate)


def wanted_cells(sizes: IntArray, epsilon: Fraction, dimensions: int, constant: int) -> FloatArray:
    """Compute into how many cells to cut boxes with these noisy numbers of records; 1 at least.

    >>> wanted_cells(np.array([-5, 40_000]), Fraction(1), 2, 10).tolist()
    [1.0, 4000.0]
    """
    filled = np.maximum(sizes, 0) * (float(epsilon) / constant)
    return np.maximum(filled ** (2 * dimensions / (2 + dimensions)), 1.0)


def side_lengths(wanted: FloatArray, extents: IntArray) -> IntArray:
    """Compute into how many ranges to cut each column of each box, for about `wanted` cells.

    Columns are cut alike as far as they have codes.  With one or two columns the number is
    rounded up; with more, that would double the cells many times over, so it is rounded down
    and then raised column by column, the longest first, while the cells are not too many.

    >>> side_lengths(np.array([10.0, 20.0]), np.array([[9, 9], [2, 100]])).tolist()
    [[4, 4], [2, 10]]
    >>> side_lengths(np.array([20.0]), np.array([[8, 9, 8]])).tolist()
    [[3, 3, 2]]
    """
    full = np.zeros(extents.shape, dtype=np.bool_)
    ideal = np.ones(wanted.shape)
    for _ in range(extents.shape[1]):
        free = np.maximum((~full).sum(axis=1), 1)
        rest = wanted / np.prod(np.where(full, extents, 1), axis=1)
        ideal = np.maximum(rest, 1.0) ** (1 / free)
        full |= extents <= ideal[:, None]
    few = extents.shape[1] <= 2
    rounded = np.ceil(ideal - _ROUNDING) if few else np.floor(ideal + _ROUNDING)
    sides = np.where(full, extents, rounded.astype(np.int64)[:, None])
    return _fill_up(np.minimum(sides, extents), wanted, extents)


def _fill_up(sides: IntArray, wanted: FloatArray, extents: IntArray) -> IntArray:
    """Raise sides one by one, the fewest ranges first, of these the longest column."""
    while True:
        cells = np.prod(sides, axis=1)[:, None]
        may = (sides < extents) & (cells // sides * (sides + 1) <= wanted[:, None] + _ROUNDING)
        rows = np.flatnonzero(may.any(axis=1))
        if not rows.size:
            return sides
        order = np.where(may[rows], sides[rows] - extents[rows] / (extents[rows] + 1.0), np.inf)
        sides[rows, np.argmin(order, axis=1)] += 1

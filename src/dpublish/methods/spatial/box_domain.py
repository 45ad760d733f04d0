"""The columns that boxes are cut from, each seen as a row of leaves."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.noise import noisy_size
from dpublish.methods.histogram.domain import counted_columns, require_ordered
from dpublish.methods.spatial.kernels import BoxCells, GridRoute
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MOST_BOXES = 1 << 18
"""Most boxes that a release lists."""


@dataclass(frozen=True)
class BoxDomain:
    """The public domain of some columns; a box is a run of leaves along each of them."""

    schema: Schema

    @classmethod
    def choose(cls, columns: tuple[str, ...], schema: Schema) -> "BoxDomain":
        """Take the named columns, or all that have an order; refuse what cannot be hidden."""
        chosen = counted_columns(schema, columns)
        require_ordered(chosen)
        return cls(replace(schema, columns=chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.schema.names

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of leaves of each column."""
        return tuple(column.size for column in self.schema.columns)

    @property
    def dimensions(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def low(self) -> NDArray[np.int64]:
        """First leaves of the box that holds everything, as a list of one box."""
        return np.zeros((1, self.dimensions), dtype=np.int64)

    @property
    def high(self) -> NDArray[np.int64]:
        """The leaves after its last."""
        return np.array([self.sizes], dtype=np.int64)

    def grid(self, sides: NDArray[np.int64]) -> BoxCells:
        """Ask for the counts of a grid, each column cut into nearly equal runs of leaves."""
        nowhere = GridRoute(self.sizes, (1,) * self.dimensions)
        return BoxCells(self.names, nowhere, self.low, self.high, sides.reshape(1, -1))


def release_size(
    table: Table, domain: BoxDomain, *, budget: Budget, rng: RandomSource
) -> NoisySize:
    """Perturb the number of records that have all columns.

    Privacy:
        That of `noisy_size`: one record added or removed changes the number by 1 at most,
        and whether it is counted depends on the record alone.
    """
    rate = budget.epsilon
    exact = table.sum(domain.grid(np.ones(domain.dimensions, dtype=np.int64)))
    return NoisySize(noisy_size(int(exact[0]), budget=budget, rng=rng), rate)

"""The grid of a wave-clusters release: its cells, and the coefficients that stand for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.data.batch import Batch
from dpublish.data.box import Box
from dpublish.errors import InvalidParameter, require_count
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.types import FloatArray, IntArray


@dataclass(frozen=True)
class WaveGrid:
    """Cells of a box and the wavelet coefficients that they belong to; all of it is public.

    Attributes:
        box: The columns and their bounds.
        sizes: Number of cells along each column.
        shape: Number of coefficients along each column.
        owners: For each column, the coefficient to which each cell along it belongs.
        wavelet: Name of the wavelet.
        levels: How often each axis was halved.
        percentile: Part of the positive coefficients that is not significant (p).
        adjacency: Which coefficients are neighbors.
    """

    box: Box
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    owners: tuple[tuple[int, ...], ...]
    wavelet: str
    levels: int
    percentile: Fraction
    adjacency: str

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        _ = self.kernel  # refuses sizes that are no sizes, or too large
        require_count(levels=self.levels)
        if not isinstance(self.percentile, Fraction) or not 0 < self.percentile < 1:
            raise InvalidParameter("percentile must lie between 0 and 1")
        if not all(isinstance(text, str) for text in (self.wavelet, self.adjacency)):
            raise InvalidParameter("wavelet and adjacency must be names")
        if not len(self.owners) == len(self.sizes) == len(self.shape):
            raise InvalidParameter("there must be a list of owners and an axis for every column")
        for owner, cells, coefficients in zip(self.owners, self.sizes, self.shape, strict=True):
            require_count(coefficients=coefficients)
            if coefficients > cells:
                raise InvalidParameter("there cannot be more coefficients than cells")
            if len(owner) != cells or not all(type(place) is int for place in owner):
                raise InvalidParameter("every cell along a column belongs to one coefficient")
            if min(owner) < 0 or max(owner) >= coefficients:
                raise InvalidParameter("a cell belongs to a coefficient that does not exist")

    @cached_property
    def kernel(self) -> BoxGrid:
        """The kernel that counts records by cell."""
        return BoxGrid(self.box, self.sizes)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.sizes)

    def spread(self, values: IntArray) -> IntArray:
        """Give every cell, row by row, the value of its coefficient."""
        return np.asarray(values[np.ix_(*map(np.asarray, self.owners))]).ravel()

    def centers(self) -> FloatArray:
        """Give the middle of every cell in the owner's units, a row for each."""
        lines = [(2 * np.arange(size) + 1) / size - 1 for size in self.sizes]
        middles = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        return self.box.unscale(middles.reshape(-1, len(self.sizes)))

    def locate(self, values: Mapping[str, FloatArray], size: int) -> IntArray:
        """Find the cell of each of `size` points, given by the values of the columns."""
        return self.kernel.locate(self.box.lattice(Batch(size, values=values)))

    def draw(self, cells: IntArray, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw a point evenly from each of `cells`, as columns in the owner's units."""
        corners = np.stack(np.unravel_index(cells, self.sizes), axis=1)
        inside = (corners + rng.random(corners.shape)) / np.array(self.sizes)
        drawn = self.box.unscale(2 * inside - 1).T
        return {
            column.name: np.rint(line).astype(np.int64) if column.kind == "integer" else line
            for column, line in zip(self.box.columns, drawn, strict=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """Turn the grid, but for the box, into plain values."""
        return {
            "sizes": list(self.sizes),
            "coefficients": list(self.shape),
            "owners": [list(owner) for owner in self.owners],
            "wavelet": self.wavelet,
            "levels": self.levels,
            "percentile": format_epsilon(self.percentile),
            "adjacency": self.adjacency,
        }

    @classmethod
    def from_dict(cls, box: Box, plain: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        return cls(
            box=box,
            sizes=tuple(plain["sizes"]),
            shape=tuple(plain["coefficients"]),
            owners=tuple(tuple(owner) for owner in plain["owners"]),
            wavelet=plain["wavelet"],
            levels=plain["levels"],
            percentile=parse_epsilon(plain["percentile"]),
            adjacency=plain["adjacency"],
        )

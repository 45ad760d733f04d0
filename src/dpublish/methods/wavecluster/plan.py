"""What the private variants of WaveCluster share: settings, the grid, and the release."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.methods.wavecluster.grid import WaveGrid
from dpublish.methods.wavecluster.released import RESERVED, WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import (
    ADJACENCIES,
    WaveTransform,
    connect,
    require_percentile,
)
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt

AUTO = "auto"
_USUAL_CELLS = 40
_MOST_AUTO_CELLS = 1 << 16
_MOST_PARTS = 1 << 20  # of the percentile: ranks in such parts stay integers of 64 bits


class WaveSettings(Protocol):
    """Settings that every variant has."""

    @property
    def name(self) -> str:
        """Name of the method."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that span the grid."""
        ...

    @property
    def cells(self) -> int | Literal["auto"]:
        """Cells along each column."""
        ...

    @property
    def wavelet(self) -> str:
        """Name of the wavelet."""
        ...

    @property
    def levels(self) -> int:
        """How often each axis is halved."""
        ...

    @property
    def percentile(self) -> Fraction:
        """Part of the positive coefficients that is not significant."""
        ...

    @property
    def adjacency(self) -> str:
        """Which coefficients are neighbors."""
        ...

    @property
    def min_cells(self) -> int:
        """Coefficients that a cluster needs."""
        ...


COLUMNS_HELP = "Columns of numbers that span the grid; all columns of numbers, unless named."
CELLS_HELP = (
    "Cells along each column, a multiple of 2 ** levels; auto takes 40, or fewer where the grid "
    "would have more than 65,536 cells."
)
WAVELET_HELP = "Wavelet that smooths the counts: haar, db2, sym4, coif1, bior2.2 and so on."
LEVELS_HELP = "How often the wavelet halves each axis."
PERCENTILE_HELP = "Part of the positive coefficients that is too small to be significant (p)."
ADJACENCY_HELP = "Whether coefficients that share only a corner or an edge are neighbors (full)."
MIN_CELLS_HELP = "Drop clusters of fewer coefficients than this."


def require_settings(settings: WaveSettings) -> None:
    """Refuse settings that fit no table."""
    if not isinstance(settings.columns, tuple):
        raise InvalidParameter("columns must be names of columns")
    if settings.cells != AUTO:
        require_count(cells=settings.cells)
    require_count(levels=settings.levels, min_cells=settings.min_cells)
    require_percentile(settings.percentile)
    if settings.percentile.denominator > _MOST_PARTS:
        raise InvalidParameter(
            f"percentile ({settings.percentile}) needs a denominator up to {_MOST_PARTS:,}"
        )
    require_known("adjacency", settings.adjacency, ADJACENCIES)


def require_share(share: Fraction) -> None:
    """Refuse a share of the counts that leaves nothing to either side."""
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise InvalidParameter(f"counts_share ({share}) must lie between 0 and 1")


@dataclass(frozen=True)
class WavePlan:
    """A grid over some columns and how to cluster it; all of it is public."""

    settings: WaveSettings
    schema: Schema
    box: Box
    transform: WaveTransform

    @classmethod
    def of(cls, schema: Schema, settings: WaveSettings) -> "WavePlan":
        """Lay the grid out; refuse what cannot be counted or transformed."""
        box = Box.of(schema, settings.columns)
        if RESERVED & set(box.names):
            raise InvalidParameter(f"rename the columns {', '.join(sorted(RESERVED))} first")
        size = settings.cells
        if not isinstance(size, int):
            size = usual_cells(box.dimensions, settings.levels)
        sizes = (size,) * box.dimensions
        BoxGrid(box, sizes)  # too many cells are refused before their transform is laid out
        transform = WaveTransform(sizes, settings.wavelet, settings.levels)
        return cls(settings, replace(schema, columns=box.columns), box, transform)

    @cached_property
    def kernel(self) -> BoxGrid:
        """The kernel that counts records by cell."""
        return BoxGrid(self.box, self.transform.sizes)

    def figures(self) -> dict[str, float]:
        """Say how large the grid is."""
        return {"cells": float(self.kernel.cells), "coefficients": float(self.transform.size)}

    def publish(
        self,
        significant: NDArray[np.bool_],
        counts: NDArray[np.int64] | NDArray[np.float64],
        receipt: Receipt,
        *,
        expected: dict[str, float],
        noise_rate: Fraction | None = None,
        threshold: float | None = None,
        chosen: int | None = None,
    ) -> WaveClusterRelease:
        """Connect significant coefficients and wrap up what may be published."""
        transform, settings = self.transform, self.settings
        return WaveClusterRelease(
            receipt=receipt,
            schema=self.schema,
            grid=WaveGrid(
                box=self.box,
                sizes=transform.sizes,
                shape=transform.shape,
                owners=tuple(tuple(one.owners.tolist()) for one in transform.filters),
                wavelet=settings.wavelet,
                levels=settings.levels,
                percentile=settings.percentile,
                adjacency=settings.adjacency,
            ),
            counts=counts.astype(np.float64).ravel(),
            labels=connect(significant, settings.adjacency, settings.min_cells),
            noise_rate=noise_rate,
            threshold=threshold,
            chosen=chosen,
            expected=expected,
        )


def usual_cells(dimensions: int, levels: int) -> int:
    """Take 40 cells along each column, or as many as keep the grid small.

    >>> [usual_cells(d, 1) for d in (1, 2, 3, 4, 10)]
    [40, 40, 40, 16, 2]
    """
    step = 1 << levels
    most = _USUAL_CELLS // step * step
    while most > step and most**dimensions > _MOST_AUTO_CELLS:
        most -= step
    return max(most, step)


def require_single_records(table: Table, method: str) -> None:
    """Refuse a table whose neighbors differ by more than one record."""
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter(f"{method} hides one record added or removed, nothing else")

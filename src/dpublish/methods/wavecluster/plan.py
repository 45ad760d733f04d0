"""What the private variants of WaveCluster share: settings, the grid, and the release."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import count_errors
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.method import Method, Run, setting
from dpublish.core.setting_values import settle_settings
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.methods.wavecluster.bounds import lifted_share, noise_bound
from dpublish.methods.wavecluster.released import RESERVED, WaveClusterRelease, WaveGrid
from dpublish.methods.wavecluster.wavecluster import (
    ADJACENCIES,
    Adjacency,
    WaveTransform,
    connect,
    require_percentile,
)
from dpublish.types import FloatArray, IntArray

AUTO = "auto"
_USUAL_CELLS = 40
_MOST_AUTO_CELLS = 1 << 16
_MOST_PARTS = 1 << 20  # of the percentile: ranks in such parts stay integers of 64 bits


@dataclass(frozen=True, kw_only=True)
class WaveSettings:
    """The grid and what makes a cluster: the settings that all variants have."""

    columns: tuple[str, ...] = setting(
        "Columns of numbers that span the grid; all columns of numbers, unless named.", default=()
    )
    cells: int | tuple[int, ...] | Literal["auto"] = setting(
        "Cells along each column, a multiple of 2 ** levels: one number for all columns, or one "
        "for each (64,32); auto takes 40, or fewer where the grid would have more than 65,536 "
        "cells.",
        default=AUTO,
    )
    wavelet: str = setting(
        "Wavelet that smooths the counts: haar, db2, sym4, coif1, bior2.2 and so on.",
        default="haar",
    )
    levels: int = setting("How often the wavelet halves each axis.", default=1)
    percentile: Fraction = setting(
        "Part of the positive coefficients that is too small to be significant (p).",
        default=Fraction(1, 10),
    )
    adjacency: Adjacency = setting(
        "Whether coefficients that share only a corner or an edge are neighbors (full).",
        default="full",
    )
    min_cells: int = setting("Drop clusters of fewer coefficients than this.", default=1)

    def __post_init__(self) -> None:
        """Refuse settings that fit no table."""
        settle_settings(self)
        if self.cells != AUTO:
            for size in self.cells if isinstance(self.cells, tuple) else (self.cells,):
                require_count(cells=size)
        require_count(levels=self.levels, min_cells=self.min_cells)
        require_percentile(self.percentile)
        if self.percentile.denominator > _MOST_PARTS:
            raise InvalidParameter(
                f"percentile ({self.percentile}) needs a denominator up to {_MOST_PARTS:,}"
            )
        require_known("adjacency", self.adjacency, ADJACENCIES)


@dataclass(frozen=True, kw_only=True)
class WaveMethod(WaveSettings, Method[WaveClusterRelease]):
    """A private variant of WaveCluster."""

    task: ClassVar[str] = "shapes"

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return Box.names_of(schema, self.columns)


def require_share(name: str, share: Fraction) -> None:
    """Refuse a share of epsilon that leaves nothing to either side."""
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise InvalidParameter(f"{name} ({share}) must lie between 0 and 1")


@dataclass(frozen=True)
class WavePlan:
    """A grid over some columns and how to cluster it; all of it is public."""

    settings: WaveSettings
    schema: Schema
    box: Box
    transform: WaveTransform

    @classmethod
    def of(cls, schema: Schema, settings: WaveSettings) -> "WavePlan":
        """Plan the grid; refuse what cannot be counted or transformed."""
        box = Box.of(schema, settings.columns)
        if RESERVED & set(box.names):
            raise InvalidParameter(f"rename the columns {', '.join(sorted(RESERVED))} first")
        sizes = grid_sizes(settings.cells, box.names, settings.levels)
        BoxGrid(box, sizes)  # too many cells are refused before their transform is planned
        transform = WaveTransform(sizes, settings.wavelet, settings.levels)
        return cls(settings, replace(schema, columns=box.columns), box, transform)

    @cached_property
    def kernel(self) -> BoxGrid:
        """The kernel that counts records by cell."""
        return BoxGrid(self.box, self.transform.sizes)

    def figures(self) -> dict[str, float]:
        """Return how large the grid is."""
        return {"cells": float(self.kernel.cells), "coefficients": float(self.transform.size)}

    def noise_figures(self, rate: Fraction) -> dict[str, float]:
        """Predict the errors of the counts, of every coefficient, and how many empty ones rise.

        A coefficient is written as a number of records, all of them in its heaviest cell.
        """
        transform = self.transform
        bound = noise_bound(transform, rate, 0.05) / transform.unit
        return count_errors(rate, self.kernel.cells, None) | {
            "all_coefficients_95": bound / self.heaviest,
            "lifted_share": lifted_share(transform, rate),
        }

    @property
    def heaviest(self) -> int:
        """The largest weight that a count has in a coefficient."""
        return prod(max(map(abs, one.weights)) for one in self.transform.filters)

    def grid(self) -> WaveGrid:
        """Describe the grid, and to which coefficient each cell belongs."""
        transform, settings = self.transform, self.settings
        return WaveGrid(
            box=self.box,
            sizes=transform.sizes,
            shape=transform.shape,
            owners=tuple(tuple(one.owners.tolist()) for one in transform.filters),
            wavelet=settings.wavelet,
            levels=settings.levels,
            percentile=settings.percentile,
            adjacency=settings.adjacency,
        )

    def connect(self, significant: NDArray[np.bool_]) -> IntArray:
        """Number the clusters of significant coefficients."""
        return connect(significant, self.settings.adjacency, self.settings.min_cells)

    def publish(
        self,
        run: Run,
        significant: NDArray[np.bool_],
        counts: IntArray | FloatArray,
        *,
        noise_rate: Fraction | None = None,
        threshold: float | None = None,
        chosen: int | None = None,
    ) -> WaveClusterRelease:
        """Connect significant coefficients and build the release; call it when all is spent."""
        return WaveClusterRelease(
            receipt=run.receipt(),
            schema=self.schema,
            grid=self.grid(),
            counts=counts.astype(np.float64).ravel(),
            labels=self.connect(significant),
            noise_rate=noise_rate,
            threshold=threshold,
            chosen=chosen,
            expected=run.expected,
        )


def grid_sizes(
    cells: int | tuple[int, ...] | str, columns: Sequence[str], levels: int
) -> tuple[int, ...]:
    """Return the number of cells along each of `columns`.

    >>> grid_sizes(64, ["x", "y"], 1), grid_sizes((64, 32), ["x", "y"], 1)
    ((64, 64), (64, 32))
    """
    if isinstance(cells, tuple):
        if len(cells) != len(columns):
            raise InvalidParameter(
                f"cells names {len(cells)} numbers for the {len(columns)} columns "
                f"{', '.join(columns)}; name one for each, or one for all"
            )
        return cells
    size = cells if isinstance(cells, int) else usual_cells(len(columns), levels)
    return (size,) * len(columns)


def usual_cells(dimensions: int, levels: int) -> int:
    """Return 40 cells along each column, or as many as keep the grid small.

    >>> [usual_cells(d, 1) for d in (1, 2, 3, 4, 10)]
    [40, 40, 40, 16, 2]
    """
    step = 1 << levels
    most = _USUAL_CELLS // step * step
    while most > step and most**dimensions > _MOST_AUTO_CELLS:
        most -= step
    return max(most, step)

"""Points in the plane whose clusters have shapes: rings, crescents, spirals, and round ones.

Two sets are public and are read from the data folder; one is simulated, so that comparisons run
anywhere.  Each comes with the grid and the share of cells to leave out for which WaveCluster
without privacy finds the clusters that people see.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.schema import Schema, column
from dpublish.datasets.parquet_files import missing_file, read_file
from dpublish.errors import require_count
from dpublish.randomness import plain_generator

_PERTURB = 0.9
_SHARES = (0.34, 0.08, 0.22, 0.22, 0.14)


def simulated_shapes(records: int = 30_000, seed: int = 2024) -> pa.Table:
    """Simulate a ring around a disc, two interlocking crescents, and a bar.

    >>> simulated_shapes(3).column_names
    ['x', 'y']
    """
    require_count(records=records, at_least=0)
    rng = plain_generator(seed)
    shape = rng.choice(len(_SHARES), size=records, p=_SHARES)
    along = rng.random(records)
    turn = 2 * np.pi * along
    radius = 5 * np.sqrt(rng.random(records))  # the root makes points uniform on a disc
    centers = [
        _circle(27, 73, 20, turn),
        _circle(27, 73, radius, turn),
        _circle(40, 17, 21, turn / 2),
        _circle(63, 26, 21, np.pi + turn / 2),
        np.stack([60 + 32 * along, 58 + 32 * along]),
    ]
    x, y = np.choose(shape, [np.asarray(c) for c in centers]) + rng.normal(
        0, _PERTURB, (2, records)
    )
    return pa.table({"x": np.clip(x, 0, 100), "y": np.clip(y, 0, 100)})


def _circle(
    x: float, y: float, radius: float | NDArray[np.float64], turn: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.stack([x + radius * np.cos(turn), y + radius * np.sin(turn)])


@dataclass(frozen=True)
class ShapeSet:
    """A public set of points, and how WaveCluster is best set for it.

    Attributes:
        name: What the command line calls it.
        title: What it looks like, in words.
        source: Where the points come from, in words.
        records: How many points it has; public, like all of it.
        bounds: Lower and upper bound of each coordinate.
        clusters: How many clusters people see.
        cells: How many cells there are along each side of the grid.
        percentile: Share of the cells with positive values that is left out as too sparse.
        file: Its Parquet file, or None if it is simulated.
        make: Simulates so many points from a seed, or None.
    """

    name: str
    title: str
    source: str
    records: int
    bounds: tuple[tuple[int, int], tuple[int, int]]
    clusters: int
    cells: int
    percentile: str
    file: str | None = None
    make: Callable[[int, int], pa.Table] | None = None

    @property
    def schema(self) -> Schema:
        """The public bounds of both coordinates."""
        across, up = self.bounds
        return Schema(
            (column("x", "numeric", bounds=list(across)), column("y", "numeric", bounds=list(up)))
        )

    def missing_file(self, folder: Path | None) -> str | None:
        """Name the file that the folder lacks, if any."""
        return missing_file(self.file, folder)

    def rows(self, folder: Path | None) -> pa.Table:
        """Read the points, or simulate them."""
        if self.make is not None:
            return self.make(self.records, 2024)
        read = read_file(self.name, self.file, folder, ("x", "y"))
        return read.cast(pa.schema([("x", pa.float64()), ("y", pa.float64())]))


SHAPES = {
    shapes.name: shapes
    for shapes in (
        ShapeSet(
            name="simulated",
            title="a ring around a disc, two crescents and a bar",
            source="Points that this package simulates",
            records=30_000,
            bounds=((0, 100), (0, 100)),
            clusters=5,
            cells=48,
            percentile="0.3",
            make=simulated_shapes,
        ),
        ShapeSet(
            name="ds1",
            title="15 clusters that nearly touch",
            source="DS1 of the WaveCluster paper",
            records=30_000,
            bounds=((20_406, 963_731), (51_397, 972_296)),
            clusters=15,
            cells=64,
            percentile="0.6",
            file="wavecluster_ds1.parquet",
        ),
        ShapeSet(
            name="ds2",
            title="three spirals",
            source="DS2 of the WaveCluster paper",
            records=31_200,
            bounds=((90_045, 964_418), (87_019, 955_379)),
            clusters=3,
            cells=40,
            percentile="0.1",
            file="wavecluster_ds2.parquet",
        ),
    )
}

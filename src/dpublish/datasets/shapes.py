"""Points in the plane whose clusters have shapes: rings, crescents, spirals, and round ones.

One set is simulated, so that comparisons run anywhere; the others are public and are read from
the data folder.  Each comes with the grid and the share of cells to leave out for which
WaveCluster without privacy finds the clusters that people see.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema, column
from dpublish.datasets.parquet_files import missing_file, read_file, read_parquet
from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import plain_generator

_PERTURB = 0.9
_SHARES = (0.34, 0.08, 0.22, 0.22, 0.14)
_COPIES = 40
_SAMPLE = 1_000_000


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


def _copies(folder: Path, file: str) -> pa.Table:
    """Read the points of `aggregation`, each of them 40 times, as DS3 has them."""
    read = read_parquet(folder / file, ("x", "y"), [("dataset", "==", "aggregation")])
    return pa.concat_tables([read] * _COPIES)


def _checkins(folder: Path, file: str) -> pa.Table:
    """Read where people checked in: longitude and latitude."""
    return read_parquet(folder / file, ("lon", "lat")).rename_columns(["x", "y"])


def _sampled_grid(folder: Path, file: str) -> pa.Table:
    """Draw a million check-ins without replacement from a grid of counts.

    Each lies anywhere in its cell.
    """
    named = [("dataset", "==", "GOWALLA")]
    read = read_parquet(folder / file, ("row", "col", "count"), named)
    rng = plain_generator(2024)
    counts = read["count"].to_numpy()
    drawn = rng.multivariate_hypergeometric(counts, _SAMPLE, method="marginals")
    cells = np.repeat(np.arange(counts.size), drawn)
    up, across = (read[name].to_numpy()[cells] for name in ("row", "col"))
    return pa.table({"x": across + rng.random(cells.size), "y": up + rng.random(cells.size)})


@dataclass(frozen=True)
class ShapeSet:
    """A public set of points, and how WaveCluster is best set for it.

    Attributes:
        name: What the command line calls it.
        title: What it looks like, in words.
        source: Where the points come from, in words.
        records: How many points it has; public, like all of it.
        bounds: Lower and upper bound of each coordinate.
        clusters: How many clusters people see, or the plain algorithm finds.
        cells: How many cells there are along each side of the grid, or along both ("128,64").
        percentile: Share of the cells with positive values that is left out as too sparse.
        file: Its Parquet file, or None if it is simulated.
        make: Simulates so many points from a seed, or None.
        read: Reads the points of its file in the folder, if these are not its columns x and y.
    """

    name: str
    title: str
    source: str
    records: int
    bounds: tuple[tuple[int, int], tuple[int, int]]
    clusters: int
    cells: int | str
    percentile: str
    file: str | None = None
    make: Callable[[int, int], pa.Table] | None = None
    read: Callable[[Path, str], pa.Table] | None = None

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
        if self.read is not None and self.file is not None and folder is not None:
            found = self.read(folder, self.file)
        else:
            found = read_file(self.name, self.file, folder, ("x", "y"))
        return found.cast(pa.schema([("x", pa.float64()), ("y", pa.float64())]))


@dataclass(frozen=True, eq=False)
class OwnShapes:
    """A public set of points that a user brings along, in two or more columns of numbers.

    Attributes:
        name: The name of the set.
        points: The columns of numbers.
        schema: Their public bounds.
        cells: How many cells there are along each column; the method's own choice.
        percentile: Share of the cells with positive values that is left out as too sparse.
    """

    name: str
    points: pa.Table
    schema: Schema
    cells: int | str = "auto"
    percentile: str = "0.1"

    @classmethod
    def of(cls, name: str, rows: pa.Table, schema: Schema) -> "OwnShapes":
        """Take the columns of numbers, and the rows that have all of them."""
        numbers = (one for one in schema.columns if isinstance(one, NumberColumn))
        kept = tuple(one for one in numbers if one.holds == "numbers")
        if len(kept) < 2:
            raise InvalidParameter(
                "wavecluster needs a table with two or more columns of numbers (kind numeric or "
                f"integer); {name} has {len(kept)}"
            )
        points = rows.select([one.name for one in kept]).drop_null()
        return cls(name, points, Schema(kept))

    @property
    def title(self) -> str:
        """What it holds."""
        return f"points in {len(self.schema.names)} columns"

    @property
    def source(self) -> str:
        """Where it comes from."""
        return "Your own table"

    @property
    def records(self) -> int:
        """How many points it has."""
        return int(self.points.num_rows)

    def missing_file(self, folder: Path | None) -> str | None:
        """Return nothing: the points are here."""
        return None

    def rows(self, folder: Path | None) -> pa.Table:
        """Return the points."""
        return self.points


SHAPES: dict[str, ShapeSet | OwnShapes] = {
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
        ShapeSet(
            name="ds3",
            title="five shapes, two of them with narrow bridges",
            source="DS3 of the WaveCluster paper, as 40 copies of `aggregation`",
            records=31_520,
            bounds=((0, 40), (0, 30)),
            clusters=5,
            cells=32,
            percentile="0.3",
            file="clustering_shapes_2d.parquet",
            read=_copies,
        ),
        ShapeSet(
            name="gowalla",
            title="the coasts and cities of a world map",
            source="Check-ins of 1,000 users of Gowalla, in place of a million of its 6.4 million "
            "(a point is a check-in: a user may have many)",
            records=157_251,
            bounds=((-180, 180), (-90, 90)),
            clusters=10,
            cells="128,64",
            percentile="0.3",
            file="gowalla_checkins_1000users.parquet",
            read=_checkins,
        ),
        ShapeSet(
            name="gowalla-grid",
            title="the coasts and cities of a world map",
            source="A million of the 6,442,863 check-ins of Gowalla, drawn from their counts on "
            "DPBench's grid of 256 x 256 cells (a point is a check-in: a user may have many)",
            records=_SAMPLE,
            bounds=((0, 256), (0, 256)),
            clusters=14,
            cells=64,
            percentile="0.3",
            file="dpbench_2d.parquet",
            read=_sampled_grid,
        ),
    )
}

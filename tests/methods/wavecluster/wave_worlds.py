"""Small tables in the unit square, and the spirals, for tests of the private variants."""

import pyarrow as pa
import pyarrow.parquet as pq

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.wavecluster.baseline import WaveBaseline
from dpublish.methods.wavecluster.privqt import PrivQT
from dpublish.methods.wavecluster.privthr import PrivTHR
from dpublish.methods.wavecluster.privthr_em import PrivTHREM

CATALOG = (PrivQT, PrivTHR, PrivTHREM, WaveBaseline)
SQUARE = Schema(tuple(column(name, "numeric", bounds=[0, 1], missing="drop") for name in "xy"))
SPIRALS_BOX = {"x": [90_045, 964_418], "y": [87_019, 955_379]}
"""Public constants: the box of the points of DS2."""


def square(points):
    """A table of points in the unit square."""
    columns = {name: [float(point[i]) for point in points] for i, name in enumerate("xy")}
    return open_table(pa.table({n: pa.array(c, pa.float64()) for n, c in columns.items()}), SQUARE)


def spirals(folder):
    """The table of the three spirals (DS2)."""
    schema = Schema(
        tuple(column(name, "numeric", bounds=bounds) for name, bounds in SPIRALS_BOX.items())
    )
    return open_table(pq.read_table(folder / "wavecluster_ds2.parquet"), schema)


def line(dimensions, rows=()):
    """A table of any number of columns between 0 and 1."""
    names = [f"c{i}" for i in range(dimensions)]
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1]) for name in names))
    columns = {n: pa.array([r[i] for r in rows], pa.float64()) for i, n in enumerate(names)}
    return open_table(pa.table(columns), schema)

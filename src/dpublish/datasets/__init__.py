"""Simulated data and public benchmarks, each with its schema.

`hospital`, `census`, `loans`, `baskets`, `point_cloud` and `simulated_shapes` simulate rows;
`table` opens them with their schema, ready for a method.  No person in them exists.

>>> from dpublish import Budget, Histogram, datasets, seeded
>>> people = datasets.table("census", 1_000)
>>> release = Histogram(columns=("sex",)).release(
...     people, budget=Budget.seeded("1"), rng=seeded(7)
... )
>>> release.count("sex = Female").value
520.0
"""

import tomllib
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from dpublish.data.schema import Schema
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.datasets.baskets import baskets, baskets_schema
from dpublish.datasets.census import SCHEMA as _CENSUS
from dpublish.datasets.census import census
from dpublish.datasets.clinic import clinic, write_clinic
from dpublish.datasets.hospital import SCHEMA as _HOSPITAL
from dpublish.datasets.hospital import hospital
from dpublish.datasets.loans import SCHEMA as _LOANS
from dpublish.datasets.loans import loans
from dpublish.datasets.point_clouds import POINT_SETS, point_cloud
from dpublish.datasets.shapes import SHAPES, simulated_shapes
from dpublish.errors import require_known

__all__ = [
    "NAMES",
    "baskets",
    "census",
    "clinic",
    "hospital",
    "loans",
    "point_cloud",
    "schema",
    "simulated_shapes",
    "table",
    "write_clinic",
]


class _Simulated(NamedTuple):
    rows: Callable[[int, int], pa.Table]
    schema: Schema


def _parsed(text: str) -> Schema:
    return from_dict(tomllib.loads(text))


def _baskets(records: int, seed: int) -> pa.Table:
    return baskets(records, seed=seed)


def _hospital(patients: int, seed: int) -> pa.Table:
    return hospital(patients, seed=seed)


def _points(records: int, seed: int) -> pa.Table:
    return point_cloud(5, 4, records, seed=seed)


_SIMULATED = {
    "hospital": _Simulated(_hospital, _parsed(_HOSPITAL)),
    "census": _Simulated(census, _parsed(_CENSUS)),
    "loans": _Simulated(loans, _parsed(_LOANS)),
    "baskets": _Simulated(_baskets, _parsed(baskets_schema())),
    "points": _Simulated(_points, POINT_SETS["simulated"].schema),
    "shapes": _Simulated(simulated_shapes, SHAPES["simulated"].schema),
}
NAMES = tuple(_SIMULATED)
"""The simulated datasets that `table` and `schema` know."""


def table(name: str, records: int = 20_000, *, seed: int = 2024) -> Table:
    """Simulate a dataset and open it with its schema, ready for a method.

    Args:
        name: `"hospital"` (visits; a patient is protected as a whole), `"census"` (people),
            `"loans"` (with a class to predict), `"baskets"` (of items; a basket is protected as
            a whole), `"points"` (five clusters in four dimensions) or `"shapes"` (five clusters
            of different shapes in the plane).
        records: Number of patients, people, loans, baskets or points.
        seed: The same seed simulates the same rows.

    >>> people = table("census", 100)
    >>> people.schema.names
    ('age', 'sex', 'education', 'work', 'hours', 'region', 'income')
    """
    require_known("dataset", name, NAMES)
    return open_table(_SIMULATED[name].rows(records, seed), schema(name))


def schema(name: str) -> Schema:
    """Return the schema of a simulated dataset.

    >>> schema("census")["sex"].axis().labels
    ('Female', 'Male')
    """
    require_known("dataset", name, NAMES)
    return _SIMULATED[name].schema

"""Simulated data and public benchmarks, each with its schema.

`census`, `loans` and `baskets` simulate rows; `table` opens them with their schema, ready for a
method.  No person in them exists.

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
from dpublish.datasets.loans import SCHEMA as _LOANS
from dpublish.datasets.loans import loans
from dpublish.errors import require_known

__all__ = ["NAMES", "baskets", "census", "loans", "schema", "table"]


class _Simulated(NamedTuple):
    rows: Callable[[int, int], pa.Table]
    schema: str


def _make_baskets(count: int, seed: int) -> pa.Table:
    return baskets(count, seed=seed)


_SIMULATED = {
    "census": _Simulated(census, _CENSUS),
    "loans": _Simulated(loans, _LOANS),
    "baskets": _Simulated(_make_baskets, baskets_schema()),
}
NAMES = tuple(_SIMULATED)
"""The simulated datasets that `table` and `schema` know."""


def table(name: str, records: int = 20_000, *, seed: int = 2024) -> Table:
    """Simulate a dataset and open it with its schema, ready for a method.

    Args:
        name: `"census"`, `"loans"` or `"baskets"`.
        records: Number of people, loans or baskets.
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
    return from_dict(tomllib.loads(_SIMULATED[name].schema))

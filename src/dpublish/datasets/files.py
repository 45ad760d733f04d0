"""Simulated tables as files, with their schema: what the examples of the documentation read."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from dpublish.data.schema_file import dumps_toml
from dpublish.datasets.baskets import baskets, baskets_schema
from dpublish.datasets.census import SCHEMA as CENSUS
from dpublish.datasets.census import census
from dpublish.datasets.hospital import SCHEMA as HOSPITAL
from dpublish.datasets.hospital import hospital
from dpublish.datasets.loans import SCHEMA as LOANS
from dpublish.datasets.loans import loans
from dpublish.datasets.point_clouds import POINT_SETS, point_cloud
from dpublish.datasets.shapes import SHAPES, simulated_shapes
from dpublish.errors import InputError, InvalidParameter, require_count, require_known
from dpublish.randomness import plain_generator

LEVELS = ("0.01", "0.2", "1")
"""What the people of `town` accept."""
ACCEPTED = "accepted"
ZONES = ("north", "east", "south", "west")
HOURS = 24
_SHARES = (0.05, 0.35, 0.6)
_ODDS = (0.4, 0.3, 0.2, 0.1)
_JUMP = 16
TAXIS = """# Where taxis are, hour by hour.
name = "taxis"
unit = "driver"  # all rows of one driver are hidden together

[columns.zone]
kind = "category"
values = ["north", "east", "south", "west"]
"""


class Sample(NamedTuple):
    """A simulated table that can be written to files: rows, schema text, and what it is."""

    rows: Callable[[int, int], pa.Table]
    schema: Callable[[], str]
    records: int
    about: str


def town(records: int = 10_000, seed: int = 2024) -> pa.Table:
    """Simulate people of whom each accepts an epsilon of their own, in the column `accepted`.

    Of 10,000 people 500 accept 0.01, 3,500 accept 0.2 and 6,000 accept 1.

    >>> town(20).column("accepted").to_pylist().count(1.0)
    12
    """
    first, second = (round(records * share) for share in _SHARES[:2])
    sizes = [first, second, records - first - second]
    drawn = np.repeat([float(level) for level in LEVELS], sizes)
    own = plain_generator(seed).permutation(drawn)
    return census(records, seed).append_column(ACCEPTED, pa.array(own))


def taxi_hours(drivers: int = 5_000, seed: int = 2024) -> Iterator[tuple[str, pa.Table]]:
    """Simulate 24 snapshots of drivers in four zones; from hour 16 on the odds are reversed.

    >>> name, rows = next(taxi_hours(3))
    >>> name, rows.column_names
    ('hour-00', ['driver', 'zone'])
    """
    rng = plain_generator(seed)
    for hour in range(HOURS):
        odds = _ODDS if hour < _JUMP else _ODDS[::-1]
        zones = np.array(ZONES)[rng.choice(len(ZONES), drivers, p=odds)]
        yield f"hour-{hour:02}", pa.table({"driver": np.arange(drivers), "zone": zones})


def _baskets(records: int, seed: int) -> pa.Table:
    return baskets(records, seed=seed)


def _hospital(patients: int, seed: int) -> pa.Table:
    return hospital(patients, seed=seed)


def _points(records: int, seed: int) -> pa.Table:
    return point_cloud(5, 4, records, seed=seed)


SAMPLES = {
    "hospital": Sample(
        _hospital, lambda: HOSPITAL, 20_000, "visits of patients; a patient has several"
    ),
    "census": Sample(census, lambda: CENSUS, 20_000, "people with age, work and income"),
    "loans": Sample(loans, lambda: LOANS, 20_000, "loans, of which some were not paid back"),
    "baskets": Sample(_baskets, baskets_schema, 5_000, "baskets of items in a shop"),
    "points": Sample(
        _points,
        lambda: dumps_toml(POINT_SETS["simulated"].schema),
        20_000,
        "five clusters in four dimensions",
    ),
    "shapes": Sample(
        simulated_shapes,
        lambda: dumps_toml(SHAPES["simulated"].schema),
        20_000,
        "five clusters of different shapes in the plane",
    ),
    "town": Sample(town, lambda: CENSUS, 10_000, "people who each accept an epsilon of their own"),
    "taxis": Sample(
        lambda drivers, seed: next(taxi_hours(drivers, seed))[1],
        lambda: TAXIS,
        5_000,
        "24 snapshots of drivers in four zones",
    ),
}
"""What `dpublish datasets` writes, by name."""
STREAMS = ("taxis",)
"""Samples that are a folder of snapshots."""


class Written(NamedTuple):
    """What was written: the table or the folder of snapshots, the schema, and how many rows."""

    data: Path
    schema: Path
    records: int


def write_dataset(
    name: str,
    path: Path,
    *,
    records: int | None = None,
    seed: int = 2024,
    overwrite: bool = False,
) -> Written:
    """Write a simulated dataset as CSV or Parquet, and its schema beside it.

    Args:
        name: One of `SAMPLES`.
        path: The table's file, or for a stream the folder of its snapshots.
        records: How many rows, patients, baskets or drivers; each dataset has its own default.
        seed: The same seed simulates the same rows.
        overwrite: Replace files that are there.
    """
    require_known("dataset", name, SAMPLES)
    sample = SAMPLES[name]
    count = sample.records if records is None else records
    require_count(records=count, at_least=0)
    folder = path.parent
    text = folder / f"{name if name in STREAMS else path.stem}.toml"
    taken = [] if overwrite else [each for each in (path, text) if each.exists()]
    if taken:
        raise InvalidParameter(f"{taken[0]} exists; name another file, or add --fresh")
    writer = _writer(path, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = writer(path, sample.rows(count, seed), name, seed)
        text.write_text(_named(sample.schema(), name), "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path} ({error.strerror or error})") from None
    return Written(path, text, written)


def _named(schema: str, name: str) -> str:
    """Call a schema by the name of its dataset, where it has none of its own."""
    return schema.replace('name = "table"', f'name = "{name}"', 1)


def _writer(path: Path, name: str) -> Callable[[Path, pa.Table, str, int], int]:
    if name in STREAMS:
        return _write_hours
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidParameter(f"{path}: name a file that ends in .csv or .parquet")
    return _write_table


def _write_table(path: Path, rows: pa.Table, name: str, seed: int) -> int:
    if path.suffix == ".csv":
        csv.write_csv(rows, path)
    else:
        parquet.write_table(rows, path)
    return int(rows.num_rows)


def _write_hours(path: Path, rows: pa.Table, name: str, seed: int) -> int:
    path.mkdir(exist_ok=True)
    for time, each in taxi_hours(rows.num_rows, seed):
        csv.write_csv(each, path / f"{time}.csv")
    return HOURS * int(rows.num_rows)

"""Public streams of counts from a data folder: taxis of Beijing, taxis and bikes of New York.

They come as counts, not as rows, so it is unknown whether a person is counted more than once at
a step; the streams assume that each is counted once.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.datasets.parquet_files import read_parquet
from dpublish.datasets.streams import CountStream
from dpublish.errors import InvalidParameter, require_count

TDRIVE = "tdrive_grid_stream.parquet"
NYC = "nyc_zone_hourly_flows.parquet"


def read_columns(
    path: Path, names: Sequence[str], filters: Any = None
) -> dict[str, NDArray[np.float64]]:
    """Read columns of numbers from a Parquet file."""
    rows = read_parquet(path, names, filters)
    return {name: rows[name].to_numpy() for name in names}


def tdrive_stream(folder: Path, steps: int = 168) -> CountStream:
    """Read where taxis of Beijing were last seen in each of 168 hours: 10 x 10 squares."""
    require_count(steps=steps)
    read = read_columns(folder / TDRIVE, ("hour", "ix", "iy", "n_taxis"))
    counts = np.zeros((int(read["hour"].max()) + 1, 10, 10), dtype=np.int64)
    counts[read["hour"], read["ix"], read["iy"]] = read["n_taxis"]
    return _first("tdrive", (10, 10), counts.reshape(len(counts), -1), steps)


def nyc_stream(
    folder: Path,
    mode: Literal["taxi", "bike"] = "taxi",
    start: str = "2019-03-04",
    steps: int = 336,
) -> CountStream:
    """Read how many arrived in each of 69 zones of Manhattan in each hour from `start` on."""
    require_count(steps=steps)
    filters = [("mode", "=", mode), ("time", ">=", datetime.fromisoformat(start))]
    read = read_columns(folder / NYC, ("time", "zone_id", "inflow"), filters)
    hours, hour = np.unique(read["time"], return_inverse=True)
    zones, zone = np.unique(read["zone_id"], return_inverse=True)
    counts = np.zeros((len(hours), len(zones)), dtype=np.int64)
    counts[hour, zone] = read["inflow"]
    return _first(f"nyc-{mode}", (len(zones),), counts, steps)


def _first(name: str, shape: tuple[int, ...], counts: NDArray[np.int64], steps: int) -> CountStream:
    if steps > len(counts):
        raise InvalidParameter(f"{name} has {len(counts)} steps from there on, not {steps}")
    return CountStream(name, "real", shape, counts[:steps])

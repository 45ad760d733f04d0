"""The streams of the comparisons, by name.

Some are simulated; the others are read from a data folder: people of Census-Income, taxis of
Beijing, taxis and bikes of New York.  Taxis and bikes come as counts, not as rows, so it is
unknown whether a person is counted more than once at a step; the streams assume that each is
counted once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.datasets.moving_objects import EDGES, NODES, grid_roads, moving_objects, oldenburg
from dpublish.datasets.parquet_files import read_columns
from dpublish.datasets.pool_streams import CENSUS_INCOME, census_pool_stream
from dpublish.datasets.streams import (
    CountStream,
    bursty_stream,
    census_stream,
    drifting_stream,
    static_stream,
)
from dpublish.errors import InvalidParameter, UnreadableData, require_count
from dpublish.randomness import plain_generator

TDRIVE = "tdrive_grid_stream.parquet"
NYC = "nyc_zone_hourly_flows.parquet"
RAISED_TAXIS = 110_357
"""To how many taxis the thesis raises T-Drive."""


def tdrive_stream(folder: Path, steps: int = 168) -> CountStream:
    """Read where taxis of Beijing were last seen in each of 168 hours: 10 x 10 squares."""
    require_count(steps=steps)
    read = read_columns(folder / TDRIVE, ("hour", "ix", "iy", "n_taxis"))
    counts = np.zeros((int(read["hour"].max()) + 1, 10, 10), dtype=np.int64)
    counts[read["hour"], read["ix"], read["iy"]] = read["n_taxis"]
    return _first("tdrive", (10, 10), counts.reshape(len(counts), -1), steps)


def raised_tdrive_stream(
    folder: Path, people: int = RAISED_TAXIS, steps: int = 168, seed: int = 2024
) -> CountStream:
    """Raise the taxis of Beijing to `people` in each hour by dummy points, as the thesis does.

    All 598 taxis stay as they are.  The squares of the dummies are drawn anew in each hour, half
    by where the taxis were in that hour and half by where they were in the whole week (all by
    the week, in hours without data): so sparse hours and squares are filled and the pattern of
    the week stays.  The thesis does not say how it draws its dummies.
    """
    real = tdrive_stream(folder, steps)
    require_count(people=people, at_least=int(real.counts.sum(axis=1).max()))
    rng = plain_generator(seed)
    week = real.counts.sum(axis=0) / max(1, int(real.counts.sum()))
    counts = []
    for hour in real.counts:
        seen = int(hour.sum())
        profile = (hour / seen + week) / 2 if seen else week
        counts.append(hour + rng.multinomial(people - seen, profile))
    return CountStream("tdrive-raised", "real", real.shape, np.stack(counts))


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


@dataclass(frozen=True)
class StreamSet:
    """A stream of counts, and where it comes from.

    Attributes:
        name: What the command line calls it.
        kind: How it changes, in a word.
        title: What it is, in words.
        make: Simulates it with a seed, or reads it from a folder.
        files: The files of the data folder that it needs.
        is_drawn: Whether another seed simulates another stream of the same kind.
        knobs: The parameters of `make` that users may set.
        window: Steps of a window, where methods hide people within windows.
    """

    name: str
    kind: str
    title: str
    make: Callable[..., CountStream]
    files: tuple[str, ...] = ()
    is_drawn: bool = True
    knobs: tuple[str, ...] = ("steps",)
    window: int = 40

    def missing_file(self, folder: Path | None) -> str | None:
        """Name a file that is needed and not in the folder; None if all are there."""
        for name in self.files:
            if folder is None or not (folder / name).is_file():
                return name
        return None

    def stream(self, folder: Path | None, changes: Mapping[str, Any] | None = None) -> CountStream:
        """Simulate or read the stream; `changes` are parameters of `make`."""
        missing = self.missing_file(folder)
        if missing is not None:
            raise UnreadableData(f"{self.name} needs a data folder that holds {missing}")
        given = (folder,) if self.files else ()
        return self.make(*given, **(changes or {}))


def _on_grid_roads(
    objects: int = 20_000, steps: int = 300, cells: int = 20, seed: int = 2024
) -> CountStream:
    return moving_objects(grid_roads(), cells, objects, steps, seed)


def _on_oldenburg(
    folder: Path, objects: int = 20_000, steps: int = 300, cells: int = 20, seed: int = 2024
) -> CountStream:
    return moving_objects(oldenburg(folder), cells, objects, steps, seed)


def _long_on_oldenburg(
    folder: Path, objects: int = 20_000, steps: int = 1_000, cells: int = 32, seed: int = 2024
) -> CountStream:
    found = moving_objects(oldenburg(folder), cells, objects, steps, seed)
    return replace(found, name="oldenburg-long")


_SIMULATED_KNOBS = ("people", "steps")
_ROAD_KNOBS = ("objects", "steps", "cells")
TABLE_KNOBS = ("people", "steps", "rate", "columns", "copies")
"""What may be set of a stream that exchanges the rows of a table with a pool."""
STREAM_SETS = {
    chosen.name: chosen
    for chosen in (
        StreamSet(
            name="static",
            kind="static",
            title="100,000 simulated people in 10 x 10 squares, who never move",
            make=static_stream,
            knobs=_SIMULATED_KNOBS,
        ),
        StreamSet(
            name="drift",
            kind="drift",
            title="100,000 simulated people in 10 x 10 squares, 1 % of whom move at each step",
            make=drifting_stream,
            knobs=(*_SIMULATED_KNOBS, "rate"),
        ),
        StreamSet(
            name="bursts",
            kind="bursts",
            title="100,000 simulated people in 10 x 10 cells, half of whom move at 5 of 500 steps",
            make=bursty_stream,
            knobs=_SIMULATED_KNOBS,
        ),
        StreamSet(
            name="census",
            kind="drift",
            title="100,000 simulated people by age and hours, 1 % of whom update at each step",
            make=census_stream,
            knobs=(*_SIMULATED_KNOBS, "rate", "columns"),
        ),
        StreamSet(
            name="census-pool",
            kind="exchange",
            title="50,000 people of Census-Income by six columns (27,648 bins), who are exchanged "
            "with a pool",
            make=census_pool_stream,
            files=(CENSUS_INCOME,),
            knobs=TABLE_KNOBS,
        ),
        StreamSet(
            name="grid-roads",
            kind="drift",
            title="20,000 objects that travel in a simulated town, in 20 x 20 squares",
            make=_on_grid_roads,
            knobs=_ROAD_KNOBS,
        ),
        StreamSet(
            name="oldenburg",
            kind="drift",
            title="20,000 objects that travel on the roads of Oldenburg, in 20 x 20 squares",
            make=_on_oldenburg,
            knobs=_ROAD_KNOBS,
            files=(NODES, EDGES),
        ),
        StreamSet(
            name="oldenburg-long",
            kind="drift",
            title="20,000 objects that travel on the roads of Oldenburg for 1,000 steps, in "
            "32 x 32 squares, with windows of 800 steps",
            make=_long_on_oldenburg,
            knobs=_ROAD_KNOBS,
            files=(NODES, EDGES),
            window=800,
        ),
        StreamSet(
            name="tdrive",
            kind="real",
            title="598 taxis of Beijing in 10 x 10 squares over 168 hours (T-Drive)",
            make=tdrive_stream,
            files=(TDRIVE,),
            is_drawn=False,
        ),
        StreamSet(
            name="tdrive-raised",
            kind="real",
            title="110,357 taxis of Beijing in 10 x 10 squares over 168 hours: 598 of T-Drive, "
            "the others drawn",
            make=raised_tdrive_stream,
            files=(TDRIVE,),
            knobs=("people", "steps"),
        ),
        StreamSet(
            name="nyc-taxi",
            kind="real",
            title="arrivals of taxis in 69 zones of Manhattan over 336 hours of March 2019",
            make=partial(nyc_stream, mode="taxi"),
            files=(NYC,),
            is_drawn=False,
        ),
        StreamSet(
            name="nyc-bike",
            kind="real",
            title="arrivals of bikes in 69 zones of Manhattan over 336 hours of March 2019",
            make=partial(nyc_stream, mode="bike"),
            files=(NYC,),
            is_drawn=False,
        ),
    )
}

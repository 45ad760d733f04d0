"""The streams of the comparisons, by name.

Some are simulated; the others are read from a data folder.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpublish.datasets.moving_objects import EDGES, NODES, grid_roads, moving_objects, oldenburg
from dpublish.datasets.real_streams import NYC, TDRIVE, nyc_stream, tdrive_stream
from dpublish.datasets.streams import (
    CountStream,
    bursty_stream,
    census_stream,
    drifting_stream,
    static_stream,
)
from dpublish.errors import UnreadableData


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
    """

    name: str
    kind: str
    title: str
    make: Callable[..., CountStream]
    files: tuple[str, ...] = ()
    is_drawn: bool = True

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


def _on_grid_roads(steps: int = 300, seed: int = 2024) -> CountStream:
    return moving_objects(grid_roads(), steps=steps, seed=seed)


def _on_oldenburg(folder: Path, steps: int = 300, seed: int = 2024) -> CountStream:
    return moving_objects(oldenburg(folder), steps=steps, seed=seed)


STREAM_SETS = {
    chosen.name: chosen
    for chosen in (
        StreamSet(
            name="static",
            kind="static",
            title="100,000 simulated people in 10 x 10 squares, who never move",
            make=static_stream,
        ),
        StreamSet(
            name="drift",
            kind="drift",
            title="100,000 simulated people in 10 x 10 squares, 1 % of whom move at each step",
            make=drifting_stream,
        ),
        StreamSet(
            name="bursts",
            kind="bursts",
            title="100,000 simulated people in 10 x 10 cells, half of whom move at 5 of 500 steps",
            make=bursty_stream,
        ),
        StreamSet(
            name="census",
            kind="drift",
            title="100,000 simulated people by age and hours, 1 % of whom update at each step",
            make=census_stream,
        ),
        StreamSet(
            name="grid-roads",
            kind="drift",
            title="20,000 objects that travel in a simulated town, in 20 x 20 squares",
            make=_on_grid_roads,
        ),
        StreamSet(
            name="oldenburg",
            kind="drift",
            title="20,000 objects that travel on the roads of Oldenburg, in 20 x 20 squares",
            make=_on_oldenburg,
            files=(NODES, EDGES),
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

"""Objects that travel along shortest paths of a road map, counted in the squares of a grid.

The idea is Brinkhoff's (GeoInformatica, 2002): an object that arrives sets out again, for one of
the crossings that are popular at that time.  The map is simulated, or the road map of Oldenburg
from a data folder.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from dpublish.datasets.parquet_files import read_columns
from dpublish.datasets.streams import CountStream, require_memory
from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

NODES, EDGES = "oldenburg_road_nodes.parquet", "oldenburg_road_edges.parquet"
_HUBS = 60  # crossings that objects travel to
_POPULAR = 15  # of them at any time; they take turns
_TURN = 10  # steps after which another hub replaces the oldest of the popular ones
_SPEEDS = (20.0, 60.0, 120.0)  # in a step, on a map with sides of 10,000
_SIDE = 10_000.0


@dataclass(frozen=True, eq=False)
class RoadMap:
    """Crossings with their points, and roads between them with their lengths."""

    name: str
    points: FloatArray
    roads: IntArray
    lengths: FloatArray

    def graph(self) -> coo_array:
        """Return the lengths of the roads as a sparse matrix."""
        count = len(self.points)
        starts, ends = self.roads.T
        return coo_array((self.lengths, (starts, ends)), shape=(count, count))


def grid_roads(side: int = 40, seed: int = 2024) -> RoadMap:
    """Simulate a town: streets across and along, bent a little, a fifth of the blocks merged.

    >>> grid_roads(5).points.shape[1]
    2
    """
    require_count(side=side, at_least=2)
    rng = plain_generator(seed)
    numbers = np.arange(side * side).reshape(side, side)
    across = np.stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()], axis=1)
    along = np.stack([numbers[:-1].ravel(), numbers[1:].ravel()], axis=1)
    roads = np.concatenate([across, along])
    roads = roads[rng.random(len(roads)) < 0.8]
    gap = _SIDE / side
    rows, columns = np.divmod(np.arange(side * side), side)
    middles = np.stack([columns, rows], axis=1) * gap + gap / 2
    points = middles + rng.uniform(-gap / 4, gap / 4, middles.shape)
    return _connected("grid-roads", points, roads)


def oldenburg(folder: Path) -> RoadMap:
    """Read the road map of Oldenburg: 6,105 crossings and 7,035 roads."""
    nodes = read_columns(folder / NODES, ("node_id", "x", "y"))
    edges = read_columns(folder / EDGES, ("node_a", "node_b"))
    order = np.argsort(nodes["node_id"])
    points = np.stack([nodes["x"][order], nodes["y"][order]], axis=1)
    numbers = nodes["node_id"][order]
    ends = [np.searchsorted(numbers, edges[name]) for name in ("node_a", "node_b")]
    return _connected("oldenburg", points, np.stack(ends, axis=1))


def _connected(name: str, points: FloatArray, roads: IntArray) -> RoadMap:
    """Keep the largest connected part of a map."""
    roads = np.unique(np.sort(roads, axis=1), axis=0)  # a sparse graph would add up duplicates
    lengths = np.linalg.norm(points[roads[:, 0]] - points[roads[:, 1]], axis=1)
    whole = RoadMap(name, points, roads, lengths)
    _, parts = connected_components(whole.graph(), directed=False)
    kept = parts == np.bincount(parts).argmax()
    numbers = np.cumsum(kept) - 1
    inside = kept[roads[:, 0]] & (lengths > 0)  # to a sparse graph 0 means "no road"
    return RoadMap(name, points[kept], numbers[roads[inside]], lengths[inside])


def moving_objects(
    road_map: RoadMap,
    sides: int = 20,
    objects: int = 20_000,
    steps: int = 300,
    seed: int = 2024,
) -> CountStream:
    """Simulate objects that travel, and count them in `sides` x `sides` squares at each step.

    >>> moving_objects(grid_roads(6), sides=4, objects=9, steps=3).counts.sum(axis=1)
    array([9, 9, 9])
    """
    require_count(sides=sides, objects=objects, steps=steps)
    require_memory(steps, sides * sides)
    if not len(road_map.roads):
        raise InvalidParameter("a road map needs at least one road")
    fleet = _Fleet(road_map, objects, plain_generator(seed))
    counts = np.empty((steps, sides * sides), dtype=np.int64)
    for step in range(steps):
        if step:
            fleet.travel()
        squares = np.clip(fleet.points() / _SIDE * sides, 0, sides - 1).astype(np.int64)
        bins = squares[:, 0] * sides + squares[:, 1]
        counts[step] = np.bincount(bins, minlength=sides * sides)
    return CountStream(road_map.name, "drift", (sides, sides), counts)


class _Fleet:
    """Traveling objects: the last crossing of each, its goal, and how far it is from there."""

    def __init__(self, road_map: RoadMap, objects: int, rng: np.random.Generator) -> None:
        self._map = road_map
        self._rng = rng
        count = len(road_map.points)
        hubs = rng.choice(count, size=min(_HUBS, count), replace=False)
        # On the shortest path from a hub, the predecessor of a crossing is the next one toward it.
        _, self._toward = dijkstra(
            road_map.graph(), directed=False, indices=hubs, return_predecessors=True
        )
        self._node = rng.integers(count, size=objects)
        self._steps = 0
        self._goal = self._goals(objects)
        self._speed = rng.choice(_SPEEDS, size=objects)
        self._gone = np.zeros(objects)
        self._next = self._node.copy()
        self._length = np.zeros(objects)
        self._turn(np.arange(objects))

    def travel(self) -> None:
        """Move all objects one step, past as many crossings as their speed allows."""
        self._steps += 1
        self._gone += self._speed
        while True:
            passing = np.flatnonzero(self._gone >= self._length)
            if not len(passing):
                return
            self._gone[passing] -= self._length[passing]
            self._node[passing] = self._next[passing]
            self._turn(passing)

    def points(self) -> FloatArray:
        """Compute the coordinates of all objects."""
        start, end = self._map.points[self._node], self._map.points[self._next]
        share = self._gone / self._length
        return np.asarray(start + (end - start) * share[:, None])

    def _turn(self, who: IntArray) -> None:
        """Find the next crossing; an object that has arrived chooses another hub first."""
        after = self._toward[self._goal[who], self._node[who]]
        while (arrived := after < 0).any():
            self._goal[who[arrived]] = self._goals(int(arrived.sum()))
            after = self._toward[self._goal[who], self._node[who]]
        self._next[who] = after
        gap = self._map.points[after] - self._map.points[self._node[who]]
        self._length[who] = np.linalg.norm(gap, axis=1)

    def _goals(self, count: int) -> IntArray:
        hubs = len(self._toward)
        turns = self._rng.integers(min(_POPULAR, hubs), size=count)
        return np.asarray((self._steps // _TURN + turns) % hubs)

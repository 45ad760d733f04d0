"""Simulated streams of histograms: people in bins, who stay, drift, jump or update.

Every person is in one bin at every step: the contribution is bounded by one row for each person
and step.  The same seed simulates the same stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.schema import Schema, column
from dpublish.datasets.census import census
from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

Kind = Literal["static", "drift", "bursts", "exchange", "real"]
PERSON = "person"
MOST_COUNTS = 2**28
"""Most counts of a stream, over all steps and bins: 2 GB of memory."""
CENSUS_SHAPE = (16, 10, 6, 4, 2)
"""Bins of age, weekly hours, education, region and sex."""
_CLUSTERS = 4
_STRIDE = 0.03  # how far the popular points move in a step; the box has sides of 1
_YOUNGEST = 16
_YEARS = 5  # an update makes people so many years older: one bin of age
_LEARNING, _MOVING, _SHIFTING = 0.15, 0.1, 0.3
_LISTS = {
    "education": ("Primary", "Secondary", "Vocational", "Bachelor", "Master", "Doctorate"),
    "region": ("North", "East", "South", "West"),
    "sex": ("Female", "Male"),
}


@dataclass(frozen=True, eq=False)
class CountStream:
    """True counts of every bin at every step: public or simulated, never private.

    Attributes:
        name: Name of the stream.
        kind: How it changes.
        shape: Number of bins along each axis.
        counts: A row for each step, bins in C order.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    counts: IntArray

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or self.counts.shape[1] != np.prod(self.shape, dtype=np.int64):
            raise InvalidParameter("a stream of counts has a row for each step, a column a bin")

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.counts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(f"x{number}" for number in range(1, len(self.shape) + 1))

    @cached_property
    def schema(self) -> Schema:
        """The bins as columns of integers, and the column that identifies a person."""
        axes = zip(self.columns, self.shape, strict=True)
        columns = (column(name, "integer", bounds=[0, size - 1]) for name, size in axes)
        return Schema(tuple(columns), unit=PERSON, name=self.name)


def static_stream(
    shape: tuple[int, ...] = (10, 10),
    people: int = 100_000,
    steps: int = 500,
    seed: int = 2024,
) -> CountStream:
    """Simulate people who never move.

    >>> static_stream(people=7, steps=3).counts.sum(axis=1)
    array([7, 7, 7])
    """
    rng = _checked(people, steps, seed)
    start = rng.multinomial(people, _profile(shape, rng.random((_CLUSTERS, len(shape)))))
    return CountStream("static", "static", shape, np.repeat(start[None, :], steps, axis=0))


def drifting_stream(
    shape: tuple[int, ...] = (10, 10),
    people: int = 100_000,
    steps: int = 500,
    rate: float = 0.01,
    seed: int = 2024,
) -> CountStream:
    """Simulate people of whom a share moves at each step, to points that move themselves.

    >>> drifting_stream(people=7, steps=3).counts.shape
    (3, 100)
    """
    rng = _checked(people, steps, seed, rate=rate)
    points = rng.random((_CLUSTERS, len(shape)))
    bins = _draw_bins(people, _profile(shape, points), rng)
    counts = [_count(bins, shape)]
    for _ in range(steps - 1):
        walked = points + rng.normal(0, _STRIDE, points.shape)
        points = np.abs(1 - np.abs(1 - walked))  # the walls of the box reflect them
        moving = rng.random(people) < rate
        bins[moving] = _draw_bins(int(moving.sum()), _profile(shape, points), rng)
        counts.append(_count(bins, shape))
    return CountStream("drift", "drift", shape, np.stack(counts))


def bursty_stream(
    shape: tuple[int, ...] = (10, 10),
    people: int = 100_000,
    steps: int = 500,
    bursts: int = 5,
    seed: int = 2024,
) -> CountStream:
    """Simulate people half of whom move at once, at a few steps; no one moves in between.

    >>> counts = bursty_stream(people=1_000, steps=50, bursts=3).counts
    >>> int((np.abs(np.diff(counts, axis=0)).sum(axis=1) > 0).sum())
    3
    """
    rng = _checked(people, steps, seed)
    if not 0 <= bursts < steps:
        raise InvalidParameter(f"bursts ({bursts}) must be from 0 to one less than the steps")
    times = set(rng.choice(np.arange(1, steps), size=bursts, replace=False).tolist())
    bins = _draw_bins(people, _profile(shape, rng.random((_CLUSTERS, len(shape)))), rng)
    counts = []
    for step in range(steps):
        if step in times:
            profile = _profile(shape, rng.random((_CLUSTERS, len(shape))))
            moving = rng.random(people) < 0.5
            bins[moving] = _draw_bins(int(moving.sum()), profile, rng)
        counts.append(_count(bins, shape))
    return CountStream("bursts", "bursts", shape, np.stack(counts))


def census_stream(
    columns: int = 2,
    people: int = 100_000,
    steps: int = 500,
    rate: float = 0.01,
    seed: int = 2024,
) -> CountStream:
    """Simulate a census of whose people a share updates its record at each step.

    An update makes a person a bin of age older (the oldest become the youngest), and may change
    education, hours of work or region.

    >>> census_stream(3, people=7, steps=3).shape
    (16, 10, 6)
    """
    rng = _checked(people, steps, seed, rate=rate)
    if not 1 <= columns <= len(CENSUS_SHAPE):
        raise InvalidParameter(f"columns ({columns}) must be from 1 to {len(CENSUS_SHAPE)}")
    shape = CENSUS_SHAPE[:columns]
    codes = _census_codes(people, seed)
    counts = []
    for step in range(steps):
        if step:
            updating = rng.random(people) < rate
            codes[:, updating] = _updated(codes[:, updating], rng)
        bins = np.ravel_multi_index(tuple(codes[:columns]), shape)
        counts.append(_count(bins, shape))
    return CountStream("census", "drift", shape, np.stack(counts))


def snapshots(stream: CountStream) -> Iterator[pa.Table]:
    """Simulate rows for each step: person and bin, with as few people moving as possible.

    People who are no longer needed leave, and new ones come, where the total changes.

    >>> [table.to_pydict() for table in snapshots(static_stream((2,), people=2, steps=1))]
    [{'person': [0, 1], 'x1': [1, 1]}]
    """
    people = bins = np.zeros(0, dtype=np.int64)
    known = 0
    for counts in stream.counts:
        order = np.argsort(bins, kind="stable")
        bins, people = bins[order], people[order]
        rank = np.arange(len(bins)) - np.searchsorted(bins, bins)
        staying = rank < counts[bins]
        free = people[~staying]
        bins = bins[staying]
        gaps = np.repeat(np.arange(counts.size), counts - np.bincount(bins, minlength=counts.size))
        newcomers = np.arange(known, known + max(0, len(gaps) - len(free)))
        known += len(newcomers)
        people = np.concatenate([people[staying], free[: len(gaps)], newcomers])
        bins = np.concatenate([bins, gaps])
        codes = np.unravel_index(bins, stream.shape)
        yield pa.table({PERSON: people, **dict(zip(stream.columns, codes, strict=True))})


def require_memory(steps: int, bins: int) -> None:
    """Refuse a stream whose counts would not fit into memory."""
    if steps * bins > MOST_COUNTS:
        raise InvalidParameter(
            f"{steps:,} steps of {bins:,} bins are more counts than are kept at once (at most "
            f"{MOST_COUNTS:,}); take fewer steps, or fewer bins"
        )


def _checked(people: int, steps: int, seed: int, rate: float = 0.0) -> np.random.Generator:
    require_count(people=people, at_least=0)
    require_count(steps=steps)
    if not 0 <= rate <= 1:
        raise InvalidParameter(f"rate ({rate}) must be from 0 to 1")
    return plain_generator(seed)


def _profile(shape: tuple[int, ...], popular: FloatArray) -> FloatArray:
    """Compute the probability of each bin: clusters around popular points, and a few anywhere."""
    ticks = np.meshgrid(*((np.arange(size) + 0.5) / size for size in shape), indexing="ij")
    points = np.stack([tick.ravel() for tick in ticks], axis=1)
    distances = ((points[:, None, :] - popular[None, :, :]) ** 2).sum(axis=2)
    weights = np.exp(-distances / (2 * 0.12**2)).sum(axis=1) + 0.02
    return np.asarray(weights / weights.sum())


def _draw_bins(people: int, profile: FloatArray, rng: np.random.Generator) -> IntArray:
    return rng.choice(len(profile), size=people, p=profile)


def _count(bins: IntArray, shape: tuple[int, ...]) -> IntArray:
    return np.bincount(bins, minlength=int(np.prod(shape)))


def _census_codes(people: int, seed: int) -> IntArray:
    """Assign the people of a simulated census to bins: a row for each axis."""
    rows = census(people, seed)
    hours = rows["hours"].fill_null(0).to_numpy() // 8
    ages = (rows["age"].to_numpy() - _YOUNGEST) // _YEARS
    listed = (pc.index_in(rows[name], pa.array(values)) for name, values in _LISTS.items())
    codes = [ages, np.minimum(hours, CENSUS_SHAPE[1] - 1), *(found.to_numpy() for found in listed)]
    return np.stack([code.astype(np.int64) for code in codes])


def _updated(codes: IntArray, rng: np.random.Generator) -> IntArray:
    ages, hours, schools, regions, sexes = codes
    probabilities = rng.random((3, codes.shape[1]))
    return np.stack(
        [
            (ages + 1) % CENSUS_SHAPE[0],
            np.where(probabilities[0] < _SHIFTING, np.abs(hours - 1), hours),
            np.minimum(schools + (probabilities[1] < _LEARNING), CENSUS_SHAPE[2] - 1),
            (regions + (probabilities[2] < _MOVING)) % CENSUS_SHAPE[3],
            sexes,
        ]
    )

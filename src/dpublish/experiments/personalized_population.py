"""People with levels and queries about them: what the comparison of personalized methods is on.

What each person accepts is drawn independently of their record, so that levels tell nothing
about the other values.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.prediction import encode_rows
from dpublish.data.schema import Schema
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

PREFERENCE = "own_epsilon"
Draw = Callable[[np.random.Generator, int], FloatArray]
_LOWEST = Fraction("0.01")
_FIRST_SEED = 2024


@dataclass(frozen=True)
class Distribution:
    """How what people accept is distributed, and from where to where the levels go.

    Attributes:
        title: The distribution, in words.
        high: Where the levels end; people with more have the highest of them.
        draw: Draws the numbers of so many people.
    """

    title: str
    high: Fraction
    draw: Draw

    def levels(self, count: int) -> tuple[Fraction, ...]:
        """Cut the range into equal parts, each of which starts with a level.

        >>> [float(level) for level in DISTRIBUTIONS["uniform-0.1"].levels(3)]
        [0.01, 0.04, 0.07]
        """
        return tuple(_LOWEST + (self.high - _LOWEST) * i / count for i in range(count))


def _uniform(high: str) -> Distribution:
    limits = (float(_LOWEST), float(high))
    title = f"uniform between {limits[0]:g} and {limits[1]:g}"
    return Distribution(title, Fraction(high), lambda rng, count: rng.uniform(*limits, count))


def _clipped_normal(rng: np.random.Generator, count: int) -> FloatArray:
    return np.asarray(np.clip(rng.normal(0.1, 0.1, count), float(_LOWEST), 1.0))


RANGES = ("0.02", "0.05", "0.1", "0.2", "0.5", "1")
DISTRIBUTIONS = {f"uniform-{high}": _uniform(high) for high in RANGES} | {
    "normal": Distribution(
        "normal with mean 0.1 and standard deviation 0.1, clipped to lie between 0.01 and 1",
        Fraction("0.3"),
        _clipped_normal,
    )
}


class Population(NamedTuple):
    """The numbers that people accept, the levels, and how many people each level has."""

    numbers: FloatArray
    levels: tuple[Fraction, ...]
    sizes: tuple[int, ...]

    @classmethod
    def draw(cls, preferences: str, levels: int, people: int, seed: int) -> "Population":
        """Draw what `people` accept; the same seed gives the same numbers."""
        chosen = DISTRIBUTIONS[preferences]
        numbers = chosen.draw(plain_generator(_FIRST_SEED + seed), people)
        grid = chosen.levels(levels)
        indices = np.searchsorted(np.array(grid, dtype=np.float64), numbers, side="right") - 1
        sizes = np.bincount(indices, minlength=levels)
        return cls(numbers, grid, tuple(sizes.tolist()))

    def join(self, rows: pa.Table) -> pa.Table:
        """Append people's numbers to their rows."""
        return rows.append_column(PREFERENCE, pa.array(self.numbers))


def draw_queries(
    rows: pa.Table, schema: Schema, count: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    """Draw predicates on one or two columns; return for each which rows satisfy it.

    Of an ordered column a range of values is queried, of another a set of them; never all.
    """
    rng = plain_generator(_FIRST_SEED + seed)
    names = [name for name in schema.names if schema[name].size > 1]
    seen: dict[str, NDArray[np.int64]] = {}
    for _ in range(count):
        chosen = rng.choice(
            len(names), size=min(int(rng.integers(1, 3)), len(names)), replace=False
        )
        queried = [names[index] for index in chosen]
        seen |= encode_rows(rows, schema, [name for name in queried if name not in seen])
        yield np.logical_and.reduce([_satisfied(seen, name, schema, rng) for name in queried])


def _satisfied(
    codes: Mapping[str, NDArray[np.int64]], name: str, schema: Schema, rng: np.random.Generator
) -> NDArray[np.bool_]:
    column = schema[name]
    wanted = int(rng.integers(1, column.size))
    if column.kind == "category":
        return np.isin(codes[name], rng.choice(column.size, size=wanted, replace=False))
    first = int(rng.integers(0, column.size - wanted + 1))
    return np.asarray((codes[name] >= first) & (codes[name] < first + wanted))

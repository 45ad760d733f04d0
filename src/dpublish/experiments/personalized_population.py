"""People with levels and queries about them: what the comparison of personalized methods is on.

What each person accepts is drawn independently of their record, so that levels tell nothing
about the other values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special

from dpublish.core.prediction import encode_rows
from dpublish.data.schema import Schema
from dpublish.errors import require_count, require_known
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


def _truncated_normal(rng: np.random.Generator, count: int) -> FloatArray:
    """Draw from N(0.1, 1), given that it lies between 0.01 and 1."""
    low, high = special.ndtr([float(_LOWEST) - 0.1, 1.0 - 0.1])
    return np.asarray(0.1 + special.ndtri(rng.uniform(low, high, count)))


RANGES = ("0.02", "0.05", "0.1", "0.2", "0.5", "1")
DISTRIBUTIONS = {f"uniform-{high}": _uniform(high) for high in RANGES} | {
    "normal": Distribution(
        "normal with mean 0.1 and standard deviation 0.1, clipped to lie between 0.01 and 1",
        Fraction("0.3"),
        _clipped_normal,
    ),
    "truncated-normal": Distribution(
        "normal with mean 0.1 and standard deviation 1, given that it lies between 0.01 and 1",
        Fraction(1),
        _truncated_normal,
    ),
}
SUBSETS = {
    "adult": (
        "age",
        "sex",
        "education",
        "income",
        "marital_status",
        "native_country",
        "hours_per_week",
        "occupation",
    ),
    "census": (
        "age",
        "sex",
        "education",
        "income",
        "marital_stat",
        "citizenship",
        "weeks_worked_in_year",
        "family_members_under_18",
    ),
    "acs": ("AGEP", "SEX", "EDU", "income", "MSP", "RAC1P", "OWN_RENT", "NOC"),
}
"""Columns like the four and eight that the thesis takes, in their order."""


def chosen_columns(dataset: str, schema: Schema, wanted: int | str) -> tuple[str, ...]:
    """Return the columns that are queried: so many, or those that are named.

    >>> from dpublish.datasets import schema
    >>> chosen_columns("people", schema("census"), 2)
    ('age', 'sex')
    """
    if isinstance(wanted, str):
        names = tuple(name.strip() for name in wanted.split(","))
        for name in names:
            require_known("column", name, schema.names)
        return names
    known = SUBSETS.get(dataset, ())
    order = [*known, *(name for name in schema.names if name not in known)]
    require_count(columns=wanted)
    return tuple(order[:wanted])


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
    rows: pa.Table, schema: Schema, count: int, seed: int, every: Sequence[str] = ()
) -> Iterator[NDArray[np.bool_]]:
    """Draw predicates on one or two columns, or on `every` one of those that are named.

    Return for each which rows satisfy it.  Of an ordered column a range of values is queried,
    of another a set of them; never all.
    """
    rng = plain_generator(_FIRST_SEED + seed)
    names = [name for name in schema.names if schema[name].size > 1]
    seen: dict[str, NDArray[np.int64]] = {}
    for _ in range(count):
        size = min(int(rng.integers(1, 3)), len(names))
        drawn = () if every else rng.choice(len(names), size=size, replace=False)
        queried = list(every) or [names[index] for index in drawn]
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

"""How a release is planned: how many tables, and which share of epsilon each step gets.

Everything here follows from the schema, the settings, epsilon and the noisy number of records.
The shares add up to the whole, whatever that number is.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from dpublish.data.column import Column

SIZE_SHARE = Fraction(1, 100)
"""Part of epsilon for the noisy number of records, which decides on all that follows."""
PRIOR_SHARE = Fraction(1, 100)
"""Part of epsilon for the choice between a public prior and none, if there is one."""
FEW = 6
"""Below so many records times epsilon for each value, columns are left independent."""
MUCH = 38
"""From how many records times epsilon for each value on a second look is worth its cost."""
EDGES = Fraction(1, 28)
"""Edges of the forest for each record times epsilon, divided by the mean values of a column."""
FURTHER = Fraction(1, 300)
"""Further tables for each record times epsilon, divided by the mean values of a column."""
FIRST_TABLES = 12
"""So many further tables by `FURTHER`, and then fewer, by `LATE`."""
LATE = Fraction(1, 1500)
MOST_TABLES = 200
LOOKS = 6
"""How often the model is looked at again."""
FEW_VALUES = 4
"""If columns have at most so many values on average, a table may have up to `MOST_IN_TABLE`."""
MOST_IN_TABLE = 6
TRIPLES_FROM = 1_000
"""From so many records times epsilon for each value on, a table may have three columns."""
_MOST_VALUES = 32
"""Values of a column beyond so many do not make its table larger: they are joined."""

_MUCH_WEIGHTS = {"marginals": 27, "choices": 10, "tables": 63}
_MUCH_WEIGHTS_OF_LONG = {"marginals": 38, "choices": 9, "tables": 53}
LONG = 20
"""If columns have more values than this on average, marginals need more: sums over many values
have much noise."""
_LITTLE_WEIGHTS = {"marginals": 68, "choices": 13, "tables": 19}
_MOST_WEIGHED = 256
"""Values of a column beyond so many do not add to its share."""


@dataclass(frozen=True)
class Plan:
    """What follows from a noisy number of records.

    Attributes:
        edges: How many tables of the first look: a forest over the columns.
        further: How many tables of each later look.
        weights: The weights of marginals, choices and tables.
        most_in_table: Most columns of a table.
    """

    edges: int
    further: tuple[int, ...]
    weights: dict[str, int]
    most_in_table: int

    @property
    def least_weights(self) -> dict[str, int]:
        """The weights that leave marginals the least: what to expect of any number of records."""
        return dict(_MUCH_WEIGHTS)

    @property
    def tables(self) -> int:
        """Number of tables in all."""
        return self.edges + sum(self.further)

    @property
    def batches(self) -> tuple[int, ...]:
        """How many tables are chosen at each look."""
        return tuple(number for number in (self.edges, *self.further) if number)


def count_values(columns: tuple[Column, ...]) -> int:
    """Count the values of all columns, of long ones as many as classes matter."""
    return sum(min(column.size, _MOST_VALUES) for column in columns)


def are_long(columns: tuple[Column, ...]) -> bool:
    """Return whether columns have many values on average; public."""
    return sum(min(column.size, _MOST_WEIGHED) for column in columns) > LONG * len(columns)


def make_plan(
    columns: int, values: int, records: int, epsilon: Fraction, *, is_long: bool = False
) -> Plan:
    """Plan the tables of so many columns and values, for about so many records.

    >>> make_plan(15, 220, 39_000, Fraction(1)).batches
    (14, 2, 2, 1, 1, 1, 1)
    >>> make_plan(15, 220, 39_000, Fraction(1, 10)).batches
    (9,)
    >>> make_plan(15, 220, 100, Fraction(1)).batches
    ()
    """
    pairs = columns * (columns - 1) // 2
    worth = max(records, 1) * epsilon / max(values, 1)
    edges = min(columns - 1, int(worth * columns * EDGES), MOST_TABLES) if worth >= FEW else 0
    further = 0
    if edges and worth >= MUCH:
        further = min(FIRST_TABLES, int(worth * columns * FURTHER))
        further += int(max(worth * columns - FIRST_TABLES / FURTHER, Fraction(0)) * LATE)
    further = max(0, min(further, pairs - edges, MOST_TABLES - edges))
    parts = min(LOOKS, further)
    batches = tuple(further // parts + (i < further % parts) for i in range(parts))
    if not edges:
        weights = {"marginals": 100}
    else:
        much = _MUCH_WEIGHTS_OF_LONG if is_long else _MUCH_WEIGHTS
        weights = much if worth >= MUCH else _LITTLE_WEIGHTS
    if columns > 2 and values <= FEW_VALUES * columns:
        most = MOST_IN_TABLE
    else:
        most = 3 if worth >= TRIPLES_FROM else 2
    return Plan(edges, batches, dict(weights), most)


def column_weights(columns: tuple[Column, ...]) -> list[int]:
    """Weigh the marginals: half equally, half by the root of the number of values.

    Integers, so that shares are exact fractions.
    """
    roots = [isqrt(min(column.size, _MOST_WEIGHED) << 40) for column in columns]
    total, number = sum(roots), len(columns)
    return [total + number * root for root in roots]


def table_weights(cells: list[int]) -> list[int]:
    """Weigh tables that are counted together by the root of their number of cells.

    This makes the sum of their noise the smallest.
    """
    return [max(1, isqrt(size << 20)) for size in cells]

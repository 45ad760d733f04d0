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
MUCH = 8_000
"""From how many records times epsilon on a second look is worth its cost."""
RECORDS_PER_EDGE = 300
"""Records times epsilon that each edge of the forest needs."""
RECORDS_PER_TABLE = 2_200
"""Records times epsilon that each further table needs."""
FIRST_TABLES = 12
"""So many further tables, and then one for every `RECORDS_PER_LATE_TABLE`."""
RECORDS_PER_LATE_TABLE = 20_000
MOST_TABLES = 200
BATCHES = 6
"""How often the model is looked at again."""
TRIPLES_FROM = 150_000
"""From how many records times epsilon on tables of three columns are candidates, too."""

_MUCH_WEIGHTS = {"marginals": 27, "choices": 10, "tables": 63}
_LITTLE_WEIGHTS = {"marginals": 59, "choices": 10, "tables": 31}
_MOST_WEIGHED = 256
"""Values of a column beyond so many do not add to its share."""


@dataclass(frozen=True)
class Plan:
    """What follows from a noisy number of records.

    Attributes:
        edges: How many tables of the first look: a forest over the columns.
        further: How many tables of each later look.
        weights: The weights of marginals, choices and tables.
        has_triples: Whether tables of three columns are candidates.
    """

    edges: int
    further: tuple[int, ...]
    weights: dict[str, int]
    has_triples: bool

    @property
    def tables(self) -> int:
        """Number of tables in all."""
        return self.edges + sum(self.further)

    @property
    def batches(self) -> tuple[int, ...]:
        """How many tables are chosen at each look."""
        return tuple(number for number in (self.edges, *self.further) if number)


def make_plan(columns: int, records: int, epsilon: Fraction) -> Plan:
    """Plan the tables of so many columns, for about so many records.

    >>> make_plan(15, 39_000, Fraction(1)).batches
    (14, 2, 2, 2, 2, 2, 2)
    >>> make_plan(15, 39_000, Fraction(1, 10)).batches, make_plan(15, 100, Fraction(1)).batches
    ((13,), ())
    """
    pairs = columns * (columns - 1) // 2
    worth = int(max(records, 1) * epsilon)
    edges = min(columns - 1, worth // RECORDS_PER_EDGE, MOST_TABLES)
    further = 0
    if worth >= MUCH:
        further = min(FIRST_TABLES, worth // RECORDS_PER_TABLE)
        further += max(0, worth - FIRST_TABLES * RECORDS_PER_TABLE) // RECORDS_PER_LATE_TABLE
    further = min(further, pairs - edges, MOST_TABLES - edges)
    parts = min(BATCHES, further)
    batches = tuple(further // parts + (i < further % parts) for i in range(parts))
    if not edges:
        weights = {"marginals": 100}
    else:
        weights = _MUCH_WEIGHTS if worth >= MUCH else _LITTLE_WEIGHTS
    return Plan(edges, batches, dict(weights), worth >= TRIPLES_FROM and columns > 2)


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

"""Streams whose people are exchanged with a pool: from any table, and from Census-Income.

After H. Li's thesis (section 4.5.1): some people of a table take part at first, and the others
are the pool.  At each step m of those who take part leave and m of the pool come; who has left
may come again.  The steps are cut into ten periods, each with an m of its own.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpublish.datasets.parquet_files import read_parquet
from dpublish.datasets.streams import CountStream, require_memory
from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import plain_generator
from dpublish.types import IntArray

CENSUS_INCOME = "census_income_kdd_test.parquet"
POOL_SHAPE = (96, 2, 12, 2, 2, 3)
"""Bins of age, sex, education, work, marriage and income: 27,648 in all."""
PERIODS = 10
DEVIATION = 0.2
_ADULT_AGE = 20
_DEGREES = (
    ("Children",),
    ("Less than 1st grade", "1st 2nd 3rd or 4th grade"),
    ("5th or 6th grade", "7th and 8th grade"),
    ("9th grade", "10th grade"),
    ("11th grade", "12th grade no diploma"),
    ("High school graduate",),
    ("Some college but no degree",),
    ("Associates degree-occup /vocational", "Associates degree-academic program"),
    ("Bachelors degree(BA AB BS)",),
    ("Masters degree(MA MS MEng MEd MSW MBA)",),
    ("Prof school degree (MD DDS DVM LLB JD)",),
    ("Doctorate degree(PhD EdD)",),
)
_MARRIED = ("Married-civilian spouse present", "Married-A F spouse present")


def pool_stream(
    counts: IntArray,
    shape: tuple[int, ...],
    people: int | None = None,
    steps: int = 300,
    rate: float = 0.5,
    copies: int = 1,
    seed: int = 2024,
    name: str = "pool",
) -> CountStream:
    """Simulate a stream from the histogram of a table, by exchanging people with a pool.

    In a period m is normal with mean rate * people / 2, and between 0 and what both sides have.
    Its standard deviation is a fifth of the people: the thesis prints a variance of 100,000 for
    500,000 people, by which all periods would be alike within 1 %, and so is read as printing
    the standard deviation.

    Args:
        counts: Rows of the table in each bin, in C order.
        shape: Number of bins along each axis.
        people: How many take part at each step; half of the rows unless given.
        steps: Number of steps.
        rate: The thesis's update rate r.
        copies: How often each row is in the pool, for more people than the table has.
        seed: The same seed simulates the same stream.
        name: What the stream is called.

    >>> stream = pool_stream(np.array([5, 0, 15]), (3,), people=8, steps=4)
    >>> stream.counts.sum(axis=1)
    array([8, 8, 8, 8])
    >>> stream.counts[:, 1]
    array([0, 0, 0, 0])
    """
    require_count(steps=steps, copies=copies)
    if not 0 <= rate <= 2:
        raise InvalidParameter(f"rate ({rate}) must be from 0 to 2: twice the part that changes")
    rows = np.repeat(np.arange(counts.size), counts * copies)
    people = rows.size // 2 if people is None else people
    require_count(people=people)
    if people >= rows.size:
        raise InvalidParameter(
            f"{people:,} people leave no one in the pool: the table has {rows.size:,} rows, "
            "each so often as `copies` says"
        )
    require_memory(steps, counts.size)
    rng = plain_generator(seed)
    rng.shuffle(rows)
    found = np.empty((steps, counts.size), dtype=np.int64)
    found[0] = np.bincount(rows[:people], minlength=counts.size)
    moves = np.repeat(_exchanged(people, rows.size, rate, rng), -(-(steps - 1) // PERIODS))
    for step, count in enumerate(moves[: steps - 1].tolist(), start=1):
        leaving = rng.choice(people, size=count, replace=False, shuffle=False)
        coming = people + rng.choice(rows.size - people, size=count, replace=False, shuffle=False)
        left, came = rows[leaving], rows[coming]
        rows[leaving], rows[coming] = came, left
        change = np.bincount(came, minlength=counts.size) - np.bincount(left, minlength=counts.size)
        found[step] = found[step - 1] + change
    return CountStream(name, "exchange", shape, found)


def census_pool_stream(
    folder: Path,
    people: int = 50_000,
    steps: int = 300,
    rate: float = 0.5,
    columns: int = 6,
    copies: int = 1,
    seed: int = 2024,
) -> CountStream:
    """Simulate the thesis's census stream from the 99,762 people of Census-Income.

    The columns have the thesis's sizes (96, 2, 12, 2, 2, 3) and, but for one, its meanings:
    whether a person worked in the year stands for health insurance, which is not in the table.
    """
    if not 1 <= columns <= len(POOL_SHAPE):
        raise InvalidParameter(f"columns ({columns}) must be from 1 to {len(POOL_SHAPE)}")
    shape = POOL_SHAPE[:columns]
    codes = _census_codes(folder)[:columns]
    counts = np.bincount(np.ravel_multi_index(tuple(codes), shape), minlength=int(np.prod(shape)))
    return pool_stream(counts, shape, people, steps, rate, copies, seed, name="census-pool")


def _exchanged(people: int, rows: int, rate: float, rng: np.random.Generator) -> IntArray:
    """Draw how many people are exchanged at a step of each period; none if the rate is 0."""
    drawn = rng.normal(rate * people / 2, DEVIATION * people, PERIODS)
    most = min(people, rows - people)
    return np.clip(np.rint(drawn), 0, most).astype(np.int64) * bool(rate)


def _census_codes(folder: Path) -> list[IntArray]:
    names = (
        "age",
        "sex",
        "education",
        "weeks_worked_in_year",
        "marital_stat",
        "income",
    )
    rows = read_parquet(folder / CENSUS_INCOME, names)
    ages = np.clip(rows["age"].to_numpy(), 0, POOL_SHAPE[0] - 1).astype(np.int64)
    groups = {degree: at for at, several in enumerate(_DEGREES) for degree in several}
    degrees = _listed(rows["education"], list(groups))
    grouped = np.array(list(groups.values()))[degrees]
    incomes = np.where(ages < _ADULT_AGE, 0, 1 + _listed(rows["income"], ("<=50K", ">50K")))
    return [
        ages,
        _listed(rows["sex"], ("Female", "Male")),
        grouped,
        (rows["weeks_worked_in_year"].to_numpy() > 0).astype(np.int64),
        _is_listed(rows["marital_stat"], _MARRIED),
        incomes,
    ]


def _listed(column: pa.ChunkedArray, values: Sequence[str]) -> IntArray:
    """Number the values of a column by a list that holds them all."""
    found = pc.index_in(column.cast(pa.string()), pa.array(values))
    return np.asarray(found.to_numpy()).astype(np.int64)


def _is_listed(column: pa.ChunkedArray, values: Sequence[str]) -> IntArray:
    found = pc.is_in(column.cast(pa.string()), pa.array(values))
    return np.asarray(found.to_numpy()).astype(np.int64)

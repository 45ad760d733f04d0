"""Publish the mean of what any function finds in random blocks of the records.

The function may do what it likes inside a block: one record lies in one block only, and what
a block says is moved into a public box before it counts.

Known as: sample and aggregate, GUPT.
Reference: K. Nissim, S. Raskhodnikova, A. Smith, "Smooth Sensitivity and Sampling in Private
Data Analysis", STOC 2007; P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: Privacy
Preserving Data Analysis Made Easy", SIGMOD 2012.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpublish.core.method import Progress
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray

Estimator = Callable[[Table], ArrayLike]
"""Finds some numbers in a table, always equally many; a function of its records alone."""

STEPS = 1 << 20
"""Steps of the lattice between the ends of the box, in each coordinate."""
FEWEST_BLOCKS, MOST_BLOCKS = 2, 20_000


def block_average(
    table: Table,
    estimate: Estimator,
    *,
    low: FloatArray,
    high: FloatArray,
    blocks: int,
    columns: tuple[str, ...],
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> FloatArray:
    """Publish the noisy mean over blocks of what `estimate` finds, within a public box.

    Args:
        table: Private rows.
        estimate: What is to be found.  Wherever it fails or finds no finite number, the
            middle of the box counts instead, since an error would tell of the records.
        low: Lowest value of each coordinate, public.
        high: Highest value of each coordinate.
        blocks: Number of blocks, public or found privately.
        columns: Columns that `estimate` reads; a record must be complete in them.
        budget: Budget to empty; all coordinates together cost exactly this.
        rng: Source of the blocks and of the noise.
        progress: Told of every block.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Every
        record draws its block by itself, so fix the draws of the others: one block changes,
        in whatever way.  Its answer is moved into the box and counted in whole steps, of
        which a coordinate has 0 to STEPS.  So the sums over blocks of all q coordinates
        change by at most q STEPS (L1), attained, and get geometric noise for it.  Assumes
        that `estimate` neither keeps nor sends anything.  Proof: docs/proofs/block_average.md.
    """
    require_blocks(blocks)
    require_box(low, high)
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter("a mean over blocks hides one record added or removed, nothing else")
    require_average_rate(low.size, budget.epsilon)
    # Opened before any row is read: a share that is already used stops here.
    share = budget.split(answers=1)["answers"]
    total = np.zeros(low.shape, dtype=np.int64)
    for number, block in enumerate(table.split(blocks, rng, columns), start=1):
        total += answer_in_steps(block, estimate, low, high)
        if progress is not None:
            progress(number, blocks, "blocks")
    noisy = add_geometric(total, sensitivity=low.size * STEPS, budget=share, rng=rng)
    part = np.clip(noisy / (blocks * STEPS), 0, 1)
    return np.asarray(low + part * (high - low))


def answer_in_steps(
    block: Table, estimate: Estimator, low: FloatArray, high: FloatArray
) -> NDArray[np.int64]:
    """Ask one block, and say where in the box its answer lies; exact and therefore private."""
    middle = (low + high) / 2
    try:
        found = np.asarray(estimate(block), dtype=np.float64).reshape(low.shape)
    except Exception:  # noqa: BLE001 - whatever goes wrong in a block must not be seen outside
        found = middle
    inside = np.clip(np.where(np.isfinite(found), found, middle), low, high)
    return np.rint((inside - low) / (high - low) * STEPS).astype(np.int64)


def average_deviation(coordinates: int, blocks: int, epsilon: Fraction) -> float:
    """Predict the noise of a coordinate, as a part of its range (standard deviation).

    >>> round(average_deviation(10, 100, Fraction(1)), 3)
    0.141
    """
    return 2**0.5 * coordinates / (blocks * float(epsilon))


def require_average_rate(coordinates: int, epsilon: Fraction) -> None:
    """Refuse so little budget that the noise would not fit."""
    require_rate(epsilon / (coordinates * STEPS))


def require_blocks(blocks: int) -> None:
    """Refuse a number of blocks that is too small or too large."""
    require_count(blocks=blocks, at_least=FEWEST_BLOCKS)
    if blocks > MOST_BLOCKS:
        raise InvalidParameter(f"blocks must be at most {MOST_BLOCKS:,}")


def require_box(low: FloatArray, high: FloatArray) -> None:
    """Refuse a box that has no width or no end."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(high - low).all()
    if low.shape != high.shape or low.size == 0 or not finite or not (low < high).all():
        raise InvalidParameter("the box must have a finite low end below the high end everywhere")

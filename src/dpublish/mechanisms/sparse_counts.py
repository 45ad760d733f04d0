"""Publish the large counts of a domain far too large to visit, empty cells included.

Every cell of the domain gets noise, and those that reach a public threshold are published.
Cells that are empty and stay below it, nearly all, are never touched: the gaps between those
that rise above it are drawn directly.  What is published has the very same distribution.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpublish.errors import InvalidParameter, require_count, require_positive
from dpublish.mechanisms.exact.enclosures import SkipRate
from dpublish.mechanisms.exact.lattice import UNIT_LIMIT
from dpublish.mechanisms.exact.sampler import (
    LARGEST_BOUND,
    discrete_laplace,
    geometric,
    require_rate,
    skip_positions,
)
from dpublish.mechanisms.noise import add_and_clip, require_whole
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray, WholeArray

MOST_FALSE_CELLS = 20_000_000


class NoisyCells(NamedTuple):
    """The published cells, by ascending key, and their noisy counts."""

    keys: IntArray
    counts: IntArray


def sparse_counts(
    keys: WholeArray,
    counts: WholeArray,
    *,
    domain_size: int,
    threshold: int,
    sensitivity: int = 1,
    budget: Budget,
    rng: RandomSource,
) -> NoisyCells:
    """Perturb every count of the domain and publish those of at least `threshold`.

    Args:
        keys: Cells that may hold something, as numbers from 0 to domain_size - 1.  Others
            are empty.  A key that occurs twice stands for the exact sum of its counts.
        counts: The count of each of those cells.
        domain_size: Public number of all cells, below 2**62.
        threshold: Public least count that is published, from 1 to 2**60 (`auto_threshold`).
        sensitivity: Most that all counts together can change (L1) between neighbors.
        budget: Budget to empty; the whole domain costs exactly this.
        rng: Source of the noise.

    Privacy:
        `budget.epsilon`-differentially private for neighbors whose counts differ by at most
        `sensitivity` in L1, cells that become empty or cease to be so included.  The result
        has the distribution of `add_geometric` on the whole domain followed by dropping what is
        below the threshold, which is post-processing: noise on an empty cell reaches the threshold
        with probability p = a^threshold / (1 + a), a = exp(-epsilon / sensitivity), and then
        exceeds it by a geometric number.  Candidates are drawn with probability p over the
        whole domain, and those that fall on listed cells are ignored (docs/proofs/exact.md).
    """
    cells, whole = require_whole(keys, "keys"), require_whole(counts)
    if cells.shape != whole.shape or cells.ndim != 1:
        raise InvalidParameter("keys and counts must be two flat arrays, one count for each key")
    require_count(sensitivity=sensitivity)
    require_sparse(domain_size, threshold, budget.epsilon / int(sensitivity))
    rate = budget.spend() / int(sensitivity)
    listed, true = _merge(cells.astype(np.int64), whole, int(domain_size))
    noisy = add_and_clip(true, discrete_laplace(rate, true.size, rng))
    candidates = skip_positions(int(domain_size), rate, int(threshold), rng)
    excess = geometric(rate, candidates.size, rng)
    is_empty = ~_is_among(candidates, listed)
    is_large = noisy >= int(threshold)
    found = np.concatenate([listed[is_large], candidates[is_empty]])
    risen = np.minimum(int(threshold) + excess[is_empty], UNIT_LIMIT)
    values = np.concatenate([noisy[is_large], risen])
    order = np.argsort(found, kind="stable")
    return NoisyCells(found[order], values[order])


def auto_threshold(domain_size: int, rate: Fraction, expected_false: int | Fraction = 1) -> int:
    """Find the least threshold that at most `expected_false` empty cells reach on average.

    It depends on public facts only.  `rate` is epsilon / sensitivity.

    >>> auto_threshold(10**12, Fraction(1, 2))
    55
    """
    require_rate(rate)
    require_count(domain_size=domain_size)
    require_positive(expected_false=expected_false)
    domain_size = int(domain_size)  # a NumPy integer would overflow
    low, high = 0, 1
    while _exceeds(domain_size, rate, high, Fraction(expected_false)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _exceeds(domain_size, rate, middle, Fraction(expected_false)):
            low = middle
        else:
            high = middle
    return high


def _exceeds(domain_size: int, rate: Fraction, threshold: int, limit: Fraction) -> bool:
    """Check whether over `limit` of `domain_size` empty cells reach the threshold on average."""
    skip = SkipRate(Fraction(rate), threshold)
    precision = 64
    while True:
        bounds = skip.success(precision)
        if domain_size * bounds.low > limit * 2**precision:
            return True
        if domain_size * bounds.high <= limit * 2**precision:
            return False
        precision *= 2


def require_sparse(domain_size: int, threshold: int, rate: Fraction) -> None:
    """Refuse settings of `sparse_counts` that cannot work; all of them are public."""
    require_rate(rate)
    require_count(domain_size=domain_size, threshold=threshold)
    domain_size, threshold = int(domain_size), int(threshold)  # NumPy integers would overflow
    if domain_size >= LARGEST_BOUND:
        raise InvalidParameter(f"domain_size ({domain_size}) must be below 2**62")
    if threshold > UNIT_LIMIT:
        raise InvalidParameter(f"threshold ({threshold}) must be at most 2**60")
    if _exceeds(domain_size, rate, threshold, Fraction(MOST_FALSE_CELLS)):
        enough = auto_threshold(domain_size, rate, MOST_FALSE_CELLS)
        raise InvalidParameter(
            f"threshold ({threshold}) would publish more than {MOST_FALSE_CELLS:,} empty cells; "
            f"{enough} is the least that will do, {auto_threshold(domain_size, rate)} leaves one"
        )


def _merge(keys: IntArray, counts: WholeArray, domain_size: int) -> NoisyCells:
    """Sort the cells, add up counts of the same key, and leave out keys outside the domain.

    Totals are exact before they are moved to 2**60 if they lie beyond: upper and lower halves
    of the counts are added up apart, so that nothing wraps.
    """
    inside = (keys >= 0) & (keys < domain_size)
    distinct, positions = np.unique(keys[inside], return_inverse=True)
    wide = counts[inside].astype(np.uint64 if counts.dtype.kind == "u" else np.int64)
    upper, lower = np.zeros((2, distinct.size), dtype=np.int64)
    np.add.at(upper, positions, (wide >> 32).astype(np.int64))
    np.add.at(lower, positions, (wide & 0xFFFFFFFF).astype(np.int64))
    upper += lower >> 32
    # Beyond 2**29 the upper half alone decides on which side of 2**60 the total lies.
    totals = (np.clip(upper, -(1 << 29), 1 << 29) << 32) + (lower & 0xFFFFFFFF)
    return NoisyCells(distinct, np.clip(totals, -UNIT_LIMIT, UNIT_LIMIT))


def _is_among(candidates: IntArray, listed: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Check of each candidate whether it is among the `listed`, both being sorted."""
    if listed.size == 0:
        return np.zeros(candidates.size, dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(listed, candidates), listed.size - 1)
    return np.asarray(listed[nearest] == candidates)

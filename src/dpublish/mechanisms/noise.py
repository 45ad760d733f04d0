"""Perturb numbers with exact noise, paid for from a budget.

Integers get two-sided geometric noise, P(N = k) proportional to exp(-epsilon |k| /
sensitivity).  Real numbers are first floored onto a lattice, where they are integers
too: the digits of a float would otherwise tell what the noise was added to.

Known as: discrete Laplace mechanism, geometric mechanism.
Reference: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy
Mechanisms", SIAM J. Comput. 41(6), 2012; I. Mironov, "On Significance of the Least
Significant Bits for Differential Privacy", CCS 2012.
"""

from operator import index

import numpy as np
from numpy.typing import ArrayLike

from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.lattice import (
    UNIT_LIMIT,
    LatticeValues,
    choose_exponent,
    exponent_of,
    floor_units,
    lattice_sensitivity,
    require_reals,
)
from dpublish.mechanisms.exact.sampler import discrete_laplace, require_rate
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import ExactNumber, parse_exact
from dpublish.randomness import RandomSource
from dpublish.types import IntArray, WholeArray


def add_geometric(
    counts: WholeArray, *, sensitivity: int, budget: Budget, rng: RandomSource
) -> IntArray:
    """Add two-sided geometric noise to every one of `counts`.

    Args:
        counts: Integers in a NumPy array of any shape; shape and type are public.
        sensitivity: Most that all counts together can change (L1) between neighbors.
        budget: Budget to empty; the whole array costs exactly this.
        rng: Source of the noise.

    Privacy:
        `budget.epsilon`-differentially private for neighbors whose counts differ by at most
        `sensitivity` in L1.  A noisy array y has probability proportional to
        exp(-rate * |y - counts|_1) with rate = epsilon / sensitivity, and the distance
        changes by at most `sensitivity`.  Noise is exact.  Counts beyond 2**60 are moved
        there first, which only brings neighbors closer, and noisy counts afterward, which
        is a function of the exact noisy array (docs/proofs/exact.md).

    >>> from dpublish.randomness import seeded
    >>> counts = np.array([10, 0, 250])
    >>> add_geometric(counts, sensitivity=1, budget=Budget.seeded("0.5"), rng=seeded(7)).shape
    (3,)
    """
    whole = require_whole(counts)
    require_count(sensitivity=sensitivity)
    require_rate(budget.epsilon / int(sensitivity))
    rate = budget.spend() / int(sensitivity)
    noise = discrete_laplace(rate, whole.size, rng).reshape(whole.shape)
    return add_and_clip(clip_counts(whole), noise)


def add_laplace(
    values: ArrayLike,
    *,
    sensitivity: ExactNumber,
    budget: Budget,
    rng: RandomSource,
    granularity: ExactNumber | None = None,
    touched: int | None = None,
) -> LatticeValues:
    """Add noise to real numbers, on a lattice of powers of two.

    Args:
        values: One number or an array of floats or Fractions; the shape is public.  The
            caller clips: what is not a finite number counts as 0.
        sensitivity: Most that all values together, as computed, can change (L1).
        budget: Budget to empty; all values together cost exactly this.
        rng: Source of the noise.
        granularity: Step of the lattice, a power of two; about a millionth of the noise
            unless given.
        touched: Most values that change between neighbors; all of them unless given.

    Privacy:
        `budget.epsilon`-differentially private for neighbors whose values differ by at most
        `sensitivity` in L1 and in at most `touched` entries.  Floors on the lattice are whole
        numbers that differ by at most ceil(sensitivity / granularity) + touched - 1 in L1
        (`lattice_sensitivity`), so `add_geometric`'s argument applies.  Every multiple of the
        granularity is possible whatever the values, so low digits tell nothing.  Assumes
        that `sensitivity` covers rounding errors in how the values were computed.

    >>> from dpublish.randomness import seeded
    >>> noisy = add_laplace(0.25, sensitivity=1, budget=Budget.seeded(1), rng=seeded(7))
    >>> noisy.exponent, noisy.values.shape
    (-20, ())
    """
    reals = require_reals(values)
    real_sensitivity = parse_exact(sensitivity, "sensitivity")
    coordinates = max(reals.size, 1)
    if touched is not None:
        require_count(touched=touched)
        coordinates = min(coordinates, int(touched))
    if granularity is None:
        exponent = choose_exponent(real_sensitivity, budget.epsilon, coordinates)
    else:
        exponent = exponent_of(granularity)
    unit_sensitivity = lattice_sensitivity(real_sensitivity, exponent, coordinates)
    require_rate(budget.epsilon / unit_sensitivity)
    rate = budget.spend() / unit_sensitivity
    noise = discrete_laplace(rate, reals.size, rng).reshape(reals.shape)
    return LatticeValues(add_and_clip(floor_units(reals, exponent), noise), exponent)


def noisy_size(size: int, *, budget: Budget, rng: RandomSource) -> int:
    """Perturb the number of records.  The result may be 0 or less: callers decide what that means.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a count
        of sensitivity 1 with two-sided geometric noise (`add_geometric`).
    """
    try:
        whole = index(size)
    except TypeError:
        raise InvalidParameter("size must be an integer") from None
    inside = np.array(max(-UNIT_LIMIT, min(whole, UNIT_LIMIT)), dtype=np.int64)
    return int(add_geometric(inside, sensitivity=1, budget=budget, rng=rng))


def require_whole(counts: WholeArray, name: str = "counts") -> WholeArray:
    """Refuse anything but an array of integers; floats would be cut off without a word.

    A plain list is refused, since its type would depend on the (private) values in it.
    """
    if type(counts) is not np.ndarray or counts.dtype.kind not in "iu":
        raise InvalidParameter(f"{name} must be integers in a NumPy array of integers")
    return counts


def add_and_clip(whole: IntArray, noise: IntArray) -> IntArray:
    """Add noise, and move what is then beyond 2**60 there."""
    return np.asarray(np.clip(whole + noise, -UNIT_LIMIT, UNIT_LIMIT))


def clip_counts(whole: WholeArray) -> IntArray:
    """Move counts beyond 2**60 there, whatever their width, so that noise on top fits.

    No table has so many records; the rule saves a check that would depend on the data.
    """
    if whole.dtype.kind == "u":
        return np.minimum(whole.astype(np.uint64), np.uint64(UNIT_LIMIT)).astype(np.int64)
    return np.clip(whole.astype(np.int64), -UNIT_LIMIT, UNIT_LIMIT)

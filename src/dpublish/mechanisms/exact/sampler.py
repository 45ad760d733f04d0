"""Draw noise exactly: integers and fractions only, no float, no rejection, no lost tail.

A draw is the number of k >= 1 with U < S(k), where S is the survival function of the distribution
and U a uniform real number of which 64 bits are known.  A table of floor(2**64 * S(k)) decides
this unless those bits equal an entry (once in about 10**17 draws); then more bits are read.
A geometric number too wide for a table is put together from independent digits.
Why every probability is exact: docs/proofs/exact.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.enclosures import (
    Distribution,
    ExpRate,
    Rate,
    SkipRate,
    floor_survival,
    floor_survivals,
)
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

WORD_BITS = 64  # bits of a word that are compared first; tests lower it to force ties
SMALLEST_RATE = Fraction(1, 1 << 40)  # wider noise would not fit 64-bit integers
LARGEST_BOUND = 1 << 62
LARGEST_NOISE = (1 << 62) - 1  # wider noise counts as this wide; with a sign bit it fits int64

_GUIDE_BITS = 16
_RADIX = 256
_STEEP = 63 << 58  # a factor above 63/64 (times 2**64) is split into digits
_CHUNK = 1 << 14  # keeps every array of a step in the processor's cache


def require_rate(rate: Fraction | int) -> None:
    """Refuse a rate that is not an exact fraction, or whose noise is too wide for int64."""
    if isinstance(rate, bool) or not isinstance(rate, (int, Fraction)):
        raise InvalidParameter(f"rate ({rate}) must be an exact Fraction, not a float")
    if rate < SMALLEST_RATE:
        raise InvalidParameter(
            f"rate ({rate}) must be at least 2**-40: the noise would not fit 64-bit integers; "
            "use a larger epsilon, a smaller sensitivity or a coarser lattice"
        )


def geometric(rate: Fraction, count: int, rng: RandomSource) -> IntArray:
    """Draw `count` values with P(G = k) = (1 - e^-rate) e^(-rate k), k >= 0.

    What would exceed `LARGEST_NOISE` is `LARGEST_NOISE`: less than one draw in 10^1,800,000.
    """
    require_rate(rate)
    require_count(count=count, at_least=0)
    distributions = _digit_distributions(ExpRate(Fraction(rate)), below=LARGEST_NOISE)
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        part = out[start : start + _CHUNK]
        joined = _join_digits(distributions, part.size, rng).view(np.int64)
        np.minimum(joined, LARGEST_NOISE, out=part)
    return out


def discrete_laplace(rate: Fraction, count: int, rng: RandomSource) -> IntArray:
    """Draw `count` values with P(N = k) proportional to e^(-rate |k|), k any integer.

    What lies outside -LARGEST_NOISE - 1, ..., LARGEST_NOISE is moved to the nearer end.
    """
    require_rate(rate)
    require_count(count=count, at_least=0)
    lowest, *higher = _digit_distributions(
        ExpRate(Fraction(rate)), signed=True, below=LARGEST_NOISE
    )
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        part = out[start : start + _CHUNK]
        digit = _invert(_table(lowest, WORD_BITS), part.size, rng)
        magnitude = (digit >> 1) + _join_digits(tuple(higher), part.size, rng).view(np.int64)
        np.minimum(magnitude, LARGEST_NOISE, out=magnitude)
        # The sign bit turns G into -1 - G, which is its bitwise complement.
        np.bitwise_xor(magnitude, -(digit & 1), out=part)
    return out


def bernoulli_exp(rate: Fraction, distance: IntArray, rng: RandomSource) -> NDArray[np.bool_]:
    """Flip independent coins with P(True) = exp(-rate * distance[i]).

    A geometric number reaches the distance with just this probability, and is drawn in the
    same way for every distance, which lies between 0 and `LARGEST_NOISE`.
    """
    drawn = geometric(rate, distance.size, rng).reshape(distance.shape)
    return np.asarray(drawn >= distance)


def uniform_below(bound: int, count: int, rng: RandomSource) -> IntArray:
    """Draw `count` values, each uniform on 0, ..., bound - 1; the bound is below 2**62."""
    require_count(bound=bound)
    require_count(count=count, at_least=0)
    bound = int(bound)  # a NumPy integer would overflow
    if bound >= LARGEST_BOUND:
        raise InvalidParameter(f"bound ({bound}) must be below 2**62")
    last_fair = np.uint64((1 << 64) - (1 << 64) % bound - 1)
    words = rng.words(count).copy()
    while (unfair := np.flatnonzero(words > last_fair)).size:
        words[unfair] = rng.words(unfair.size)
    return (words % np.uint64(bound)).astype(np.int64)


def skip_positions(size: int, rate: Fraction, threshold: int, rng: RandomSource) -> IntArray:
    """Draw the positions in 0, ..., size - 1 at which noise on an empty cell reaches `threshold`.

    Every position is drawn independently with probability a^threshold / (1 + a), where
    a = e^-rate: the probability that two-sided geometric noise is at least `threshold`.  Work
    is proportional to the number of positions drawn, not to the size, which is below 2**62.
    """
    require_rate(rate)
    require_count(size=size, at_least=0)
    require_count(threshold=threshold)
    size = int(size)  # a NumPy integer would overflow
    if size >= LARGEST_BOUND:
        raise InvalidParameter(f"size ({size}) must be below 2**62")
    if size == 0:
        return np.empty(0, dtype=np.int64)
    skip = SkipRate(Fraction(rate), int(threshold))
    batch = min((size * skip.success(64).high >> 64) + 16, _CHUNK)
    found: list[IntArray] = []
    last = -1
    while True:
        # A gap is geometric; one that is at least the size ends the walk, however long.
        gaps = np.minimum(_gaps(skip, size, batch, rng), np.uint64(size)).view(np.int64)
        # Sums stay below 2**63 up to the first that leaves the range; later ones may wrap.
        ahead = last + np.cumsum(gaps + 1)
        outside = np.flatnonzero(ahead >= size)
        if outside.size:
            found.append(ahead[: outside[0]])
            return np.concatenate(found)
        found.append(ahead)
        last = int(ahead[-1])


def _gaps(skip: SkipRate, size: int, count: int, rng: RandomSource) -> NDArray[np.uint64]:
    """Draw the numbers of misses before a success; those of `size` or more only count as such."""
    return _join_digits(_digit_distributions(skip, below=size), count, rng, enough=size)


@lru_cache(maxsize=256)
def _digit_distributions(
    rate: Rate, *, signed: bool = False, below: int
) -> tuple[Distribution, ...]:
    """Split a geometric distribution into independent digits, lowest first, until a table fits.

    Values of at least `below` need not be told apart, which bounds the digits.
    """
    distributions: list[Distribution] = []
    scale = 1
    while rate.power(scale, 64).low > _STEEP and scale < below:
        radix = min(_RADIX, -(-below // scale))
        distributions.append(Distribution(rate, scale, radix=radix, signed=signed and scale == 1))
        scale *= radix
    return (
        *distributions,
        Distribution(rate, scale, cap=-(-below // scale), signed=signed and scale == 1),
    )


def _join_digits(
    distributions: tuple[Distribution, ...],
    count: int,
    rng: RandomSource,
    enough: int | None = None,
) -> NDArray[np.uint64]:
    """Add up the digits, highest first; stop early if all values are `enough` already."""
    total = np.zeros(count, dtype=np.uint64)
    for distribution in reversed(distributions):
        digits = _invert(_table(distribution, WORD_BITS), count, rng).view(np.uint64)
        total += digits * np.uint64(distribution.scale)
        if enough is not None and bool((total >= enough).all()):
            break
    return total


@dataclass(frozen=True, eq=False)
class _Table:
    """Thresholds floor(2**bits * S(k)), ascending, and a guide from leading bits to values."""

    distribution: Distribution
    bits: int
    thresholds: NDArray[np.uint64]
    guide: NDArray[np.int16]  # -1: a threshold shares these leading bits, so search
    guide_shift: np.uint64


@lru_cache(maxsize=128)
def _table(distribution: Distribution, bits: int) -> _Table:
    thresholds = np.array(floor_survivals(distribution, bits)[::-1], dtype=np.uint64)
    guide_bits = min(bits, _GUIDE_BITS)
    shift = np.uint64(bits - guide_bits)
    held = np.bincount((thresholds >> shift).view(np.int64), minlength=1 << guide_bits)
    guide = (thresholds.size - np.cumsum(held)).astype(np.int16)
    guide[held > 0] = -1
    return _Table(distribution, bits, thresholds, guide, shift)


def _invert(table: _Table, count: int, rng: RandomSource) -> IntArray:
    """Draw from the distribution of the table: one word each, and more only on a tie."""
    words = rng.words(count)
    if table.bits < 64:
        words = words >> np.uint64(64 - table.bits)
    values = table.guide[(words >> table.guide_shift).view(np.int64)].astype(np.int64)
    hard = np.flatnonzero(values < 0)
    if hard.size:
        values[hard] = _search(table, words[hard], rng)
    return values


def _search(table: _Table, words: NDArray[np.uint64], rng: RandomSource) -> IntArray:
    passed = np.searchsorted(table.thresholds, words, side="right")
    values = table.thresholds.size - passed
    # A word equal to a threshold says nothing yet about U < S(k).
    ties = np.flatnonzero(table.thresholds[np.maximum(passed - 1, 0)] == words)
    for index in ties:
        values[index] = _refine(table.distribution, int(words[index]), table.bits, rng)
    return values


def _refine(distribution: Distribution, prefix: int, bits: int, rng: RandomSource) -> int:
    """Count the k >= 1 with U < S(k), where `prefix` holds the first bits of U, reading more."""

    def is_below(value: int) -> bool:
        nonlocal prefix, bits
        while prefix == (threshold := floor_survival(distribution, value, bits)):
            prefix = prefix << 64 | int(rng.words(1)[0])
            bits += 64
        return prefix < threshold

    low, high = 0, 1  # U < S(low), and not U < S(high) once the first loop is over
    while (distribution.largest is None or high <= distribution.largest) and is_below(high):
        low, high = high, 2 * high
    if distribution.largest is not None:
        high = min(high, distribution.largest + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low

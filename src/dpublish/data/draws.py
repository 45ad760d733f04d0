"""Exact random choices about records: kept or not, and in which block.

A record is kept with a probability that is a ratio of whole numbers, exactly: the uniform
number it is compared with is drawn only as far as the comparison needs.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import RandomSource

_WORD = 1 << 64


def require_rate(rate: Fraction) -> Fraction:
    """Refuse a sampling rate that is not an exact fraction above 0, up to 1."""
    if not isinstance(rate, Fraction) or not 0 < rate <= 1:
        raise InvalidParameter(f"rate ({rate}) must be a Fraction above 0, and at most 1")
    return rate


def choose(rate: Fraction, count: int, rng: RandomSource) -> NDArray[np.bool_]:
    """Say yes with probability `rate`, exactly and independently, `count` times.

    The first 64 bits of a uniform number decide unless they equal those of the rate; then
    the rest of the number is compared with the rest of the rate, in the same way.

    >>> from dpublish.randomness import seeded
    >>> choose(Fraction(1, 3), 6, seeded(1)).shape
    (6,)
    """
    whole, rest = divmod(rate.numerator * _WORD, rate.denominator)
    if whole == _WORD:
        return np.ones(count, dtype=np.bool_)
    words = rng.words(count)
    chosen = words < np.uint64(whole)
    tied = np.flatnonzero(words == np.uint64(whole))
    if tied.size and rest:
        chosen[tied] = choose(Fraction(rest, rate.denominator), tied.size, rng)
    return chosen


def draw_blocks(blocks: int, count: int, rng: RandomSource) -> NDArray[np.int64]:
    """Draw `count` independent numbers, uniform among `0 .. blocks - 1`.

    >>> from dpublish.randomness import seeded
    >>> set(draw_blocks(2, 64, seeded(1)).tolist())
    {0, 1}
    """
    require_count(blocks=blocks)
    fair = np.uint64(_WORD - _WORD % blocks - 1)  # words above would favour the first blocks
    words = rng.words(count)
    while (unfair := np.flatnonzero(words > fair)).size:
        words = words.copy()  # the source may hand out memory that cannot be written
        words[unfair] = rng.words(unfair.size)
    return (words % np.uint64(blocks)).astype(np.int64)

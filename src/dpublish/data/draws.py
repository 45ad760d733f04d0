"""Exact random choices about records: kept or not, and in which block.

A record is kept with a probability that is a ratio of integers, exactly: the uniform
number it is compared with is drawn only as far as the comparison needs.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.data.encoding import Codes
from dpublish.errors import InvalidParameter, require_count
from dpublish.randomness import RandomSource

_WORD = 1 << 64


def require_rate(rate: Fraction) -> Fraction:
    """Refuse a sampling rate that is not an exact fraction above 0, up to 1."""
    if not isinstance(rate, Fraction) or not 0 < rate <= 1:
        raise InvalidParameter(f"rate ({rate}) must be a Fraction above 0, and at most 1")
    return rate


def require_rates(rates: Sequence[Fraction], leaves: int) -> tuple[Fraction, ...]:
    """Refuse rates that are not one for each leaf, from 0 to 1, in whole steps of 2^-64."""
    for rate in rates:
        if not isinstance(rate, Fraction) or not 0 <= rate <= 1 or _WORD % rate.denominator:
            raise InvalidParameter(
                "each rate must be a Fraction from 0 to 1 whose denominator is a power of 2, "
                "at most 2^64"
            )
    if len(rates) != leaves:
        raise InvalidParameter(f"there must be a rate for each of the {leaves} leaves")
    return tuple(rates)


def choose(rate: Fraction, count: int, rng: RandomSource) -> NDArray[np.bool_]:
    """Draw True with probability `rate`, exactly and independently, `count` times.

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


def choose_by(rates: Sequence[Fraction], codes: Codes, rng: RandomSource) -> NDArray[np.bool_]:
    """Draw True for each code with the probability `rates[code]`, exactly and independently.

    A rate is an integer of steps of 2^-64, so one word decides.  A word is drawn for every
    code: what is drawn for one record does not depend on the others.

    >>> from dpublish.randomness import seeded
    >>> choose_by([Fraction(0), Fraction(1)], np.array([0, 1, 1], dtype=np.uint8), seeded(1))
    array([False,  True,  True])
    """
    steps = [int(rate * _WORD) for rate in rates]
    last = np.array([max(step - 1, 0) for step in steps], dtype=np.uint64)  # 2^64 is no word
    possible = np.array([step > 0 for step in steps], dtype=np.bool_)
    yes: NDArray[np.bool_] = rng.words(codes.size) <= last[codes]
    return yes & possible[codes]


def draw_blocks(blocks: int, count: int, rng: RandomSource) -> NDArray[np.int64]:
    """Draw `count` independent numbers, uniform among `0 .. blocks - 1`.

    >>> from dpublish.randomness import seeded
    >>> set(draw_blocks(2, 64, seeded(1)).tolist())
    {0, 1}
    """
    require_count(blocks=blocks)
    fair = np.uint64(_WORD - _WORD % blocks - 1)  # words above would favor the first blocks
    words = rng.words(count)
    while (unfair := np.flatnonzero(words > fair)).size:
        words = words.copy()  # the source may hand out memory that cannot be written
        words[unfair] = rng.words(unfair.size)
    return (words % np.uint64(blocks)).astype(np.int64)

"""The only maker of randomness: `secure()` for releases, `seeded(n)` for experiments and tests.

A source hands out uniform 64-bit words; the exact samplers turn them into noise.
`secure()` asks the operating system afresh for every word: there is no state to copy, to
save, or to share between two processes after a fork.  Whoever knows the seed of a `seeded`
source can subtract the noise, so what it draws is stamped not private.
"""

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import require_count


class RandomSource(Protocol):
    """Where mechanisms get their randomness from."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw `count` independent uniform 64-bit words."""
        ...


class SystemSource:
    """The operating system's cryptographic generator; stateless and safe to fork."""

    __slots__ = ()  # nothing can replace `words` on one source

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw `count` independent uniform 64-bit words."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededSource:
    """A reproducible stream of words.  Not private: the seed gives the noise away."""

    def __init__(self, seed: int) -> None:
        require_count(seed=seed, at_least=0)
        self._bits = np.random.Philox(key=seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw the next `count` words of the stream."""
        return self._bits.random_raw(count) if count else np.empty(0, dtype=np.uint64)


def secure() -> SystemSource:
    """Make the source for releases."""
    return SystemSource()


def seeded(seed: int) -> SeededSource:
    """Make a reproducible source for experiments and tests.

    >>> seeded(1).words(2).tolist() == seeded(1).words(2).tolist()
    True
    """
    return SeededSource(seed)


def is_secure(source: RandomSource) -> bool:
    """Check whether noise from `source` hides anything; a subclass does not count."""
    return type(source) is SystemSource


def plain_generator(seed: int | None = None) -> np.random.Generator:
    """Make an ordinary NumPy generator, for public data and post-processing only."""
    return np.random.default_rng(seed)  # noqa: TID251 - this is the only call that may

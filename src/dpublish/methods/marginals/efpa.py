"""EFPA: real Fourier coefficients of a column's counts, lowest frequencies first, in integers.

The orthonormal coefficients of a vector of U numbers are: its sum over sqrt(U); then, for each
frequency, a cosine and a sine one; for even U at last that of the highest frequency.

What meets the data is an integer: the transform is rounded to integers beforehand, so
coefficients, scores and their sensitivities are exact.  Noise is added to real coefficients.
(Noise on the magnitude of complex ones, with the exact phase kept, is not private.)

Reference: G. Ács, C. Castelluccia, R. Chen, "Differentially Private Histogram Publishing
through Lossy Compression", ICDM 2012.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt, sqrt

import numpy as np

from dpublish.types import FloatArray, IntArray

WHOLE_BITS = 16
"""Fineness of `whole_basis`: its entries are integer multiples of 2**-16."""
_TOTAL_LIMIT = 1 << 41  # times an entry of the transform, below 2**17, it stays in an int64
_ROWS_AT_ONCE = 256


def coefficients(values: FloatArray) -> FloatArray:
    """Compute all coefficients; their squares add up to those of the values.

    >>> abs(coefficients(np.array([3.0, 1.0, 3.0, 1.0])).round(9)).tolist()
    [4.0, 0.0, 0.0, 2.0]
    """
    size = values.size
    complex_ones = np.fft.rfft(values) / sqrt(size)
    found = np.empty(2 * complex_ones.size)
    found[0::2] = complex_ones.real
    found[1::2] = -complex_ones.imag
    found[2 : size + size % 2] *= sqrt(2)
    # The first has no sine, and neither has the last of an even number.
    return np.delete(found, [1, found.size - 1]) if size % 2 == 0 else np.delete(found, 1)


def from_coefficients(kept: FloatArray, size: int) -> FloatArray:
    """Compute the `size` values whose first coefficients are `kept` and the others zero.

    >>> from_coefficients(np.array([4.0]), 4).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    padded = np.zeros(2 * (size // 2 + 1))
    padded[0] = kept[0]
    padded[2 : kept.size + 1] = kept[1:]
    complex_ones = padded[0::2] - 1j * padded[1::2]
    complex_ones[1 : (size + 1) // 2] /= sqrt(2)
    return np.asarray(np.fft.irfft(complex_ones * sqrt(size), size))


def whole_basis(size: int, rows: range) -> IntArray:
    """Compute some rows of the transform as integers: 2**16 sqrt(size) times it, rounded.

    Every entry is looked up by (frequency * position) mod size, so no angle is rounded before.

    >>> whole_basis(4, range(2)).tolist()
    [[65536, 65536, 65536, 65536], [92682, 0, -92682, 0]]
    """
    turns = 2 * np.pi * np.arange(size) / size
    height = sqrt(2) * 2**WHOLE_BITS
    cosines = np.rint(height * np.cos(turns)).astype(np.int64)
    sines = np.rint(height * np.sin(turns)).astype(np.int64)
    positions = np.arange(size)
    basis = np.empty((len(rows), size), dtype=np.int64)
    for index, row in enumerate(rows):
        frequency = (row + 1) // 2
        waves = cosines if row % 2 else sines
        basis[index] = waves[frequency * positions % size]
        if row == 0:
            basis[index] = 2**WHOLE_BITS
        elif 2 * frequency == size:
            basis[index] = 2**WHOLE_BITS * (1 - 2 * (positions % 2))
    return basis


@dataclass(frozen=True)
class Spectrum:
    """The transform of counts of so many values, in integers, and what one record does to it."""

    size: int

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Numbers of coefficients to choose from: odd, growing by two fifths, to size^(2/3).

        >>> Spectrum(100).candidates
        (1, 3, 5, 7, 11, 17)
        """
        found = [1]
        while (following := -(-found[-1] * 7 // 5) // 2 * 2 + 1) ** 3 <= self.size**2:
            found.append(following)
        return tuple(found)

    @cached_property
    def sensitivities(self) -> dict[int, int]:
        """Most that one record moves the first coefficients, all together (L1), in units."""
        sums = np.cumsum(np.abs(self._basis(range(self.candidates[-1]))), axis=0)
        return {kept: int(sums[kept - 1].max()) for kept in self.candidates}

    @cached_property
    def choice_range(self) -> int:
        """Range sensitivity of the costs: most that one record moves two of them apart, in units.

        Let K keep fewer coefficients than L, and let p be what a record adds to the
        coefficients that only L keeps, q to those that neither keeps.  The norms left out
        differ by sqrt(x^2 + y^2) - y, where x and y are the norms of these two groups.  That
        grows with x at a rate between 0 and 1 and falls with y likewise, so it moves by at most
        |p| + |q|; counts by value leave nothing out.  Rounding norms down adds less than 2.
        """
        squares = self._squares_up_to((self.candidates[0], *self.candidates[1:], self.size))
        largest = 0
        for kept in range(1, len(squares)):
            gained = squares[kept] - squares[0]
            left_out = squares[-1] - squares[kept]
            for pair in np.unique(np.stack([gained, left_out]), axis=1).T.tolist():
                largest = max(largest, sum(_root_above(square) for square in pair))
        return largest + 1

    def _squares_up_to(self, ends: tuple[int, ...]) -> list[IntArray]:
        """Add up the squares of the first rows of the transform, by value, for each end."""
        sums, total = [], np.zeros(self.size, dtype=np.int64)
        for start, end in zip((0, *ends), ends, strict=False):
            for rows in self._blocks(start, end):
                total = total + (self._basis(rows) ** 2).sum(axis=0)
            sums.append(total)
        return sums

    def transform(self, counts: IntArray) -> IntArray:
        """Compute all coefficients in units, exactly.

        Counts so high that the sums would not fit are moved to a limit, which brings
        neighbors no farther apart.
        """
        limit = _TOTAL_LIMIT // self.size
        inside = np.clip(counts, -limit, limit)
        return np.concatenate([self._basis(rows) @ inside for rows in self._blocks(0, self.size)])

    def norms_left_out(self, coefficients: IntArray) -> list[int]:
        """Compute, for each candidate, the norm of all other coefficients, rounded down."""
        squares = [value * value for value in coefficients.tolist()]
        return [isqrt(sum(squares[kept:])) for kept in self.candidates]

    def noise_norms(self, epsilon: Fraction) -> list[int]:
        """Predict the norm of the noise for each candidate, and for counts by value, in units."""
        coefficients = [sqrt(2 * kept) * moved for kept, moved in self.sensitivities.items()]
        by_value = sqrt(2 * self.size) * 2**WHOLE_BITS * sqrt(self.size)
        return [round(norm / float(epsilon)) for norm in (*coefficients, by_value)]

    def _blocks(self, start: int, end: int) -> list[range]:
        starts = range(start, end, _ROWS_AT_ONCE)
        return [range(first, min(first + _ROWS_AT_ONCE, end)) for first in starts]

    def _basis(self, rows: range) -> IntArray:
        return whole_basis(self.size, rows)


def _root_above(square: int) -> int:
    """Return the smallest integer whose square is at least `square`."""
    root = isqrt(square)
    return root if root * root == square else root + 1


@lru_cache(maxsize=64)
def spectrum(size: int) -> Spectrum:
    """Build the transform, or take it from those built before."""
    return Spectrum(size)

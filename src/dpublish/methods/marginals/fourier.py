"""Real orthonormal Fourier coefficients, lowest frequencies first.

The coefficients of a vector of U numbers are: its sum over sqrt(U); then, for each frequency,
a cosine and a sine one; for even U at last that of the highest frequency.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

WHOLE_BITS = 16
"""Fineness of `whole_basis`: its entries are whole multiples of 2**-16."""


def coefficients(values: NDArray[np.float64]) -> NDArray[np.float64]:
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


def from_coefficients(kept: NDArray[np.float64], size: int) -> NDArray[np.float64]:
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


def whole_basis(size: int, rows: range) -> NDArray[np.int64]:
    """Give some rows of the transform as integers: 2**16 sqrt(size) times it, rounded.

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
    for place, row in enumerate(rows):
        frequency = (row + 1) // 2
        waves = cosines if row % 2 else sines
        basis[place] = waves[frequency * positions % size]
        if row == 0:
            basis[place] = 2**WHOLE_BITS
        elif 2 * frequency == size:
            basis[place] = 2**WHOLE_BITS * (1 - 2 * (positions % 2))
    return basis

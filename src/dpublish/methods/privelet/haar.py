"""The Haar transform of whole counts: one total, and differences of halves.

Sums stand in for the averages of the usual transform, so that every coefficient is an
integer and one record moves each coefficient above it by exactly 1.  Along an axis of
2^h cells the coefficients are numbered as a heap: 0 is the total, 2^k + i is the left half
less the right half of node i on level k.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def depth_of(cells: int) -> int:
    """Find h, the least number with 2^h >= `cells`.

    >>> [depth_of(cells) for cells in (1, 2, 3, 100)]
    [0, 1, 2, 7]
    """
    return (cells - 1).bit_length()


def transform(counts: NDArray[Any], axis: int) -> NDArray[Any]:
    """Transform `counts` along an axis, whose length is a power of two.

    >>> transform(np.array([5, 1, 0, 2]), 0)
    array([ 8,  4,  4, -2])
    """
    sums = np.moveaxis(counts, axis, -1)
    out = np.empty_like(sums)
    while sums.shape[-1] > 1:
        left, right = sums[..., 0::2], sums[..., 1::2]
        half = left.shape[-1]
        out[..., half : 2 * half] = left - right
        sums = left + right
    out[..., 0] = sums[..., 0]
    return np.moveaxis(out, -1, axis)


def invert(coefficients: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """Find the counts whose transform along an axis is `coefficients`.

    >>> invert(np.array([8, 4, 4, -2]), 0)
    array([5., 1., 0., 2.])
    """
    given = np.moveaxis(coefficients, axis, -1).astype(np.float64)
    sums = given[..., :1]
    while (length := sums.shape[-1]) < given.shape[-1]:
        differences = given[..., length : 2 * length]
        halves = np.stack([sums + differences, sums - differences], axis=-1) / 2
        sums = halves.reshape(*sums.shape[:-1], 2 * length)
    return np.moveaxis(sums, -1, axis)


def coefficient_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn weights of cells into weights of coefficients that have the same sum.

    Cells beyond the last, up to a power of two, are empty, so they may weigh anything; like
    the last cell, they lie within every range that includes the end.

    >>> coefficient_weights(np.array([1.0, 1.0, 1.0])), coefficient_weights(np.array([0.0, 1.0]))
    (array([1., 0., 0., 0.]), array([ 0.5, -0.5]))
    """
    depth = depth_of(weights.size)
    padded = np.pad(weights, (0, 2**depth - weights.size), mode="edge")
    sizes = np.ones(2**depth)
    sizes[0] = 2**depth
    for level in range(depth):
        sizes[2**level : 2 ** (level + 1)] = 2 ** (depth - level)
    return np.asarray(transform(padded, 0) / sizes)


def mean_square(depth: int) -> float:
    """Average the sum of squared weights of the coefficients over all ranges of 2^depth cells.

    With P the running sum of a coefficient's signs, a range from a to b weighs it by
    (P(b) - P(a)) / size, and the sum over all N(N - 1)/2 ranges of (P(b) - P(a))² is
    N ΣP² - (ΣP)², over the N = 2^depth + 1 ends.

    >>> round(mean_square(0), 6), round(mean_square(1), 6)
    (1.0, 0.666667)
    """
    cells = 2**depth
    ends = cells + 1
    ranges = ends * cells / 2
    squares = cells * ends * (2 * cells + 1) / 6
    total = (ends * squares - (cells * ends / 2) ** 2) / cells**2
    for level in range(depth):
        half = cells / 2 ** (level + 1)
        one = ends * half * (2 * half**2 + 1) / 3 - half**4
        total += 2**level * one / (2 * half) ** 2
    return float(total / ranges)

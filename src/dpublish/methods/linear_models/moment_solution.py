"""Weights of least squares from noisy moments, and how far noise alone makes them stray.

A noisy matrix need not be positive definite.  It gets a ridge as high as its noise, and
directions that are still not positive are left out (spectral trimming).  Nothing is drawn
again until it fits: that would be a choice that nobody pays for.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.methods.linear_models.kernel_moments import LinearMoments
from dpublish.types import FloatArray

RIDGE_DEVIATIONS = 4.0
"""The ridge is at least so many standard deviations of the noise of a product."""


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Published moments, in units of records: features and responses lie between -1 and 1.

    Attributes:
        kernel: What was summed up.
        matrix: Sums of x xᵀ, symmetric.
        vectors: Sums of r x, a row for each response.
        matrix_variance: Of the noise of each product that was published.
        vector_variance: Of the noise of each entry of a vector.
    """

    kernel: LinearMoments
    matrix: FloatArray
    vectors: FloatArray
    matrix_variance: float
    vector_variance: float

    @property
    def ridge(self) -> float:
        """What is added to the diagonal: 4 deviations of the noise, or more for many features.

        The eigenvalues of symmetric noise with deviation σ in p x p places are spread with
        deviation σ √p, so 4 σ would leave about half of the noisy directions in.
        """
        deviations = max(RIDGE_DEVIATIONS, sqrt(len(self.matrix)))
        return deviations * sqrt(self.matrix_variance)

    @cached_property
    def means(self) -> FloatArray:
        """Mean of each feature, which the intercept's products tell."""
        sums = self.matrix[-1]
        return np.asarray(np.clip(sums / max(sums[-1], 1.0), -1, 1))

    @cached_property
    def kept(self) -> FloatArray:
        """How much of each product is believed, from 0 to 1, the same for two whole columns.

        Independent columns would have the products n μ μᵀ.  What differs from these may be
        noise: of a block of m products with noise of variance σ² and a sum of squared
        differences Q, the part 1 - m σ² / Q is kept (James and Stein's rule).
        """
        difference = self.matrix - self.independent
        squares = self._by_columns(difference**2)
        sizes = self._by_columns(np.ones_like(difference))
        noise = sizes * self.matrix_variance
        part = 1 - np.divide(noise, squares, out=np.ones_like(noise), where=squares > noise)
        np.fill_diagonal(part, 1.0)  # within a column, and with the intercept: all of it
        part[-1], part[:, -1] = 1.0, 1.0
        return np.asarray(part[np.ix_(self._columns, self._columns)])

    @cached_property
    def independent(self) -> FloatArray:
        """The products that independent columns would have."""
        return np.asarray(max(self.matrix[-1, -1], 1.0) * np.outer(self.means, self.means))

    @property
    def shrunk(self) -> FloatArray:
        """The products with no more of their differences than is believed."""
        return self.independent + self.kept * (self.matrix - self.independent)

    @cached_property
    def _columns(self) -> NDArray[np.int64]:
        groups = self.kernel.features.groups
        return np.repeat(np.arange(len(groups)), [len(group) for group in groups])

    def _by_columns(self, products: FloatArray) -> FloatArray:
        """Add up the products of every two columns."""
        starts = np.flatnonzero(np.diff(self._columns, prepend=-1))
        rows = np.add.reduceat(products, starts, axis=0)
        return np.asarray(np.add.reduceat(rows, starts, axis=1))


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights, a row for each response, and the standard deviation that noise gives them."""

    weights: FloatArray
    spread: FloatArray


def solve(moments: NoisyMoments, *, factor: float, longest: float) -> Solution:
    """Minimize the noisy objective: factor (M + ridge I)⁻¹ v, cut to a length of `longest`.

    The spread is that of the first order in the noise (delta method) with the ridge, the
    directions and the parts that are kept held fixed: δw = (M + ridge I)⁻¹ (factor δv - δM w).
    It tells of noise only, not of what the ridge takes away.
    """
    inverse = trimmed_inverse(moments.shrunk, moments.ridge)
    weights = factor * moments.vectors @ inverse
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    shrink = longest / np.maximum(lengths, longest)
    spread = np.empty_like(weights)
    for row, one in zip(spread, weights, strict=True):
        noise = moments.matrix_variance * product_noise(one, moments)
        noise[np.diag_indices_from(noise)] += factor**2 * moments.vector_variance
        row[:] = np.sqrt(np.maximum(np.sum((inverse @ noise) * inverse, axis=1), 0))
    return Solution(weights * shrink, spread * shrink)


def trimmed_inverse(matrix: FloatArray, ridge: float) -> FloatArray:
    """Invert a symmetric matrix plus a ridge in the directions in which that is positive.

    >>> trimmed_inverse(np.diag([3.0, -9.0]), 1.0)
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    values, vectors = np.linalg.eigh(matrix)
    raised = values + ridge
    # What is positive by rounding only is not: its inverse would be huge.
    positive = raised > 1e-12 * np.abs(raised).max(initial=1.0)
    inverses = np.where(positive, 1 / np.where(positive, raised, 1.0), 0.0)
    return np.asarray((vectors * inverses) @ vectors.T)


def product_noise(weights: FloatArray, moments: NoisyMoments) -> FloatArray:
    """Compute the covariance of δM w where every published product has noise of variance 1.

    A product of features i < j of two columns stands in two places of M: it adds κ w_j to
    place i and κ w_i to place j, κ being the part that is kept.  The intercept's products
    (sums of features) also stand on the diagonal, if the feature is an indicator, and in the
    products n μ μᵀ of independent columns.
    """
    size = len(weights)
    published = np.zeros((size, size))
    published[moments.kernel.places] = 1.0
    squares = np.diag(published).copy()
    squares[-1] = 0.0
    pairs = np.triu(published, 1)
    pairs[:, -1] = 0.0
    pairs = (pairs + pairs.T) * moments.kept**2
    noise = pairs * np.outer(weights, weights)
    noise[np.diag_indices(size)] += pairs @ weights**2 + squares * weights**2
    sums = _sum_effects(weights, moments)
    return np.asarray(noise + sums @ sums.T)


def _sum_effects(weights: FloatArray, moments: NoisyMoments) -> FloatArray:
    """Say how much noise in the sum of each feature (a column) adds to each place of δM w."""
    means, lost = moments.means, 1 - moments.kept
    reliance = lost @ (means * weights)
    effects = np.diag(reliance) + lost * np.outer(means, weights)
    effects[:, -1] -= means * reliance  # n also divides
    effects[np.diag_indices_from(effects)] += weights[-1]
    effects[-1, :-1] += weights[:-1]
    indicators = moments.kernel.indicators
    effects[indicators, indicators] += weights[indicators]
    return effects

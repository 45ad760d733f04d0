"""The distribution of a weighted sum of independent noise: how far it strays, and how likely.

Each term is two-sided geometric noise of a known rate, times a known weight.  A part that is
normal may be added.  Nothing here draws noise.
"""

from collections.abc import Sequence
from math import ceil, log, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.types import FloatArray

_STEEPEST = 600.0  # beyond this rate noise is 0 but for 1 in e^600 draws, and sinh overflows
_SHARES = np.concatenate([np.geomspace(1e-6, 0.5, 48), 1 - np.geomspace(1e-4, 0.4, 12)])
_MOST_SIZES = 1024
_RATIO = 1.01  # weights that differ by less are taken for one if there are too many
_TINY = 1e-8  # part of the variance that weights too small to matter may have together
_SET_ASIDE = 0.01  # part of the risk that is spent on what this leaves out
_SMOOTHING = (
    128  # the distribution is perturbed by this part of the bound, and the answer widened by it
)
_UNIFORMS = 6  # the perturb is a sum of so many uniform numbers, so its waves die out quickly
_LAST_ANGLE = 10.0  # waves beyond this angle of the perturb are left out
_BLOCK = 1 << 18
_NEGLIGIBLE = 1e-12  # a wave smaller than that is left out
_WRAPPED = 1e-10  # mass that may lie beyond half a period
_ROUNDING = 2e-7  # more than all that is left out can add up to


class Terms(NamedTuple):
    """Terms of a sum: sizes of weights (above 0), rates of noise, and how many are alike."""

    sizes: FloatArray
    rates: FloatArray
    repeats: FloatArray

    @classmethod
    def gather(cls, weights: FloatArray, rates: FloatArray) -> "Terms":
        """Count terms of the same weight and rate once; leave out those without weight."""
        kept = weights != 0
        pairs = np.stack([np.abs(weights[kept]), np.minimum(rates[kept], _STEEPEST)], axis=1)
        if np.all(pairs[:, 1] == pairs[:1, 1]):  # much quicker than pairs
            sizes, repeats = np.unique(pairs[:, 0], return_counts=True)
            return cls(sizes, np.resize(pairs[:1, 1], sizes.size), _floats(repeats))
        distinct, repeats = np.unique(pairs, axis=0, return_counts=True)
        return cls(distinct[:, 0], distinct[:, 1], _floats(repeats))

    @classmethod
    def of_products(cls, per_axis: Sequence[FloatArray], rate: float) -> "Terms":
        """Gather the products of one weight from each axis, in every combination.

        >>> Terms.of_products([np.array([1.0, 0.0, 0.5]), np.array([0.5, 0.5])], 0.1).repeats
        array([2., 2.])
        """
        found = cls(np.ones(1), np.full(1, min(rate, _STEEPEST)), np.ones(1))
        for along in per_axis:
            sizes, repeats = np.unique(np.abs(along[along != 0]), return_counts=True)
            products = np.multiply.outer(found.sizes, sizes).ravel()
            many = np.multiply.outer(found.repeats, repeats).ravel()
            found = _merge(cls(products, np.resize(found.rates, products.size), many))
        return found

    @property
    def variances(self) -> FloatArray:
        """Variance of all terms that are alike, together."""
        return np.asarray(self.repeats * self.sizes**2 / (2 * np.sinh(self.rates / 2) ** 2))


def stray(terms: Terms, confidence: float, spread: float = 0.0) -> float:
    """Bound how far the sum strays from 0 with probability `confidence`.

    It is the quantile of the sum's distribution, widened by about 1 % of itself; where the
    confidence is too close to 1 for that, Chernoff's bound.

    Args:
        terms: The noise.
        confidence: Probability with which the bound holds.
        spread: Standard deviation of a normal number that is added to the sum.
    """
    if terms.sizes.size > _MOST_SIZES:
        return _stray_of_many(terms, confidence, spread)
    return _quantile(terms, confidence, spread)


def _stray_of_many(terms: Terms, confidence: float, spread: float) -> float:
    """Replace weights by a few that are nearly the same, and bound what that changes."""
    largest = float(terms.sizes.max())
    steps = np.rint(np.log(terms.sizes / largest) / log(_RATIO))
    order = np.argsort(terms.sizes)
    running = np.empty_like(terms.sizes)
    running[order] = np.cumsum(terms.variances[order])
    matters = running > _TINY * running[order[-1]]
    rounded = np.where(matters, largest * _RATIO**steps, 0.0)
    apart = np.abs(terms.sizes - rounded)
    left_out = Terms(apart[apart > 0], terms.rates[apart > 0], terms.repeats[apart > 0])
    few = _merge(Terms(rounded[matters], terms.rates[matters], terms.repeats[matters]))
    risk = (1 - confidence) * _SET_ASIDE
    extra = _chernoff(left_out, 0.0, risk)[0] if left_out.sizes.size else 0.0
    return _quantile(few, confidence + risk, spread) + extra


def _merge(terms: Terms) -> Terms:
    """Add up the repeats of terms of the same weight and rate."""
    pairs = np.stack([terms.sizes, terms.rates], axis=1)
    distinct, places = np.unique(pairs, axis=0, return_inverse=True)
    repeats = np.bincount(places.ravel(), weights=terms.repeats, minlength=len(distinct))
    return Terms(distinct[:, 0], distinct[:, 1], _floats(repeats))


def _floats(numbers: NDArray[Any]) -> FloatArray:
    return numbers.astype(np.float64)


def _chernoff(terms: Terms, spread: float, *risks: float) -> list[float]:
    """Bound the stray for each risk: the least of (log M(s) + log(2 / risk)) / s over some s.

    M is the moment generating function; every s gives a true bound.
    """
    points = _SHARES * float((terms.rates / terms.sizes).min())
    half = np.outer(points / 2, terms.sizes)
    # E exp(tN) = 1 / (1 - sinh²(t/2) / sinh²(rate/2))
    logs = -np.log1p(-((np.sinh(half) / np.sinh(terms.rates / 2)) ** 2)) @ terms.repeats
    logs += (spread * points) ** 2 / 2
    return [float(((logs + log(2 / risk)) / points).min()) for risk in risks]


def _quantile(terms: Terms, confidence: float, spread: float) -> float:
    """Find the quantile of the sum's distribution from its characteristic function.

    The sum is perturbed by a number of at most `perturb` on either side, which the answer is
    widened by, and wrapped around a circle that holds all but a negligible part of it.  The
    mass between -x and x is then x / half + sum of 2 / (pi k) c_k sin(pi k x / half), where
    c_k is the characteristic function at pi k / half.
    """
    bound, far = _chernoff(terms, spread, 1 - confidence, _WRAPPED)
    perturb = bound / _SMOOTHING
    half = far + perturb
    steps, heights = _waves(terms, spread, half, perturb)

    def inside(reach: float) -> float:
        return reach / half + float(heights @ np.sin(steps * reach)) - _ROUNDING

    low, high = 0.0, bound + perturb
    if inside(high) < confidence:
        return bound
    while high - low > perturb / 64:
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= confidence else (middle, high)
    return min(high + perturb, bound)


class _Waves(NamedTuple):
    steps: FloatArray
    heights: FloatArray


def _waves(terms: Terms, spread: float, half: float, perturb: float) -> _Waves:
    """Compute the waves of the mass between -x and x that are not negligible."""
    orders = np.arange(1, ceil(_LAST_ANGLE * _UNIFORMS * half / (pi * perturb)) + 1)
    steps = pi / half * orders
    perturbed = np.abs(np.sinc(steps * perturb / (_UNIFORMS * pi))) + 1e-300  # no logarithm of 0
    logs = _UNIFORMS * np.log(perturbed) - (spread * steps) ** 2 / 2 + np.log(2 / (pi * orders))
    # Terms of large variance come first: they damp most waves, which are then left out.
    order = np.argsort(-terms.variances)
    start = 0
    while start < order.size:
        alive = logs > log(_NEGLIGIBLE)
        steps, logs = steps[alive], logs[alive]
        some = order[start : start + max(_BLOCK // max(steps.size, 1), 1)]
        waves = np.sin(np.outer(steps / 2, terms.sizes[some]))
        # A term has 1 / (1 + sin²(t/2) / sinh²(rate/2)), t being the weight times the step.
        logs -= np.log1p((waves / np.sinh(terms.rates[some] / 2)) ** 2) @ terms.repeats[some]
        start += some.size
    return _Waves(_floats(steps), _floats(np.exp(logs)))

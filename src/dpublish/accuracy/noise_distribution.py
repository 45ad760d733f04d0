"""The distribution of noise in floats: for confidence intervals, never for drawing noise.

One draw of two-sided geometric noise has P(N = k) = (1 - a) / (1 + a) * a^|k| with
a = exp(-rate).  `Terms` describes a weighted sum of independent draws, and `quantile` is the
one way to its quantiles:

- terms that all weigh the same lie on a lattice, and their quantile is exact;
- other sums, and sums with a normal error on top, get the quantile of the sum's distribution,
  rounded outwards by about 1 %;
- where neither can be computed, Chernoff's bound.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, log, log1p, pi, sinh
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpublish.errors import InvalidParameter, require_count, require_positive
from dpublish.types import FloatArray

_STEEPEST = 600.0  # beyond this rate noise is 0 but for 1 in e^600 draws, and sinh overflows


# --- One draw ----------------------------------------------------------------------------------


def noise_pmf(rate: Fraction | float, values: ArrayLike) -> FloatArray:
    """Compute P(N = k) for every k of `values`."""
    decay = float(rate)
    height = -expm1(-decay) / (1 + exp(-decay))
    return np.asarray(height * np.exp(-decay * np.abs(np.asarray(values, dtype=np.float64))))


def noise_survival(rate: Fraction | float, values: ArrayLike) -> FloatArray:
    """Compute P(N >= k) for every k of `values`."""
    decay = float(rate)
    whole = np.asarray(values, dtype=np.float64)
    upper = np.exp(-decay * np.maximum(whole, 0)) / (1 + exp(-decay))
    lower = 1 - np.exp(-decay * np.maximum(1 - whole, 0)) / (1 + exp(-decay))
    return np.asarray(np.where(whole > 0, upper, lower))


def noise_variance(rate: Fraction | float) -> float:
    """Compute the variance of one draw, 2a / (1 - a)^2.

    >>> round(noise_variance(Fraction(1, 10)), 2)
    199.83
    """
    half = float(rate) / 2
    return 0.5 / sinh(half) ** 2 if half < 300 else 0.0


# --- Sums of draws -----------------------------------------------------------------------------


class Terms(NamedTuple):
    """Terms of a sum: sizes of weights (above 0), rates of noise, and how many are alike."""

    sizes: FloatArray
    rates: FloatArray
    repeats: FloatArray

    @classmethod
    def alike(cls, rate: Fraction | float, number: int) -> "Terms":
        """Return the plain sum of a number of draws of one rate."""
        return cls(np.ones(1), np.full(1, min(float(rate), _STEEPEST)), np.full(1, float(number)))

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
        found = cls.alike(rate, 1)
        for along in per_axis:
            sizes, repeats = np.unique(np.abs(along[along != 0]), return_counts=True)
            products = np.multiply.outer(found.sizes, sizes).ravel()
            many = np.multiply.outer(found.repeats, repeats).ravel()
            found = cls(products, np.resize(found.rates, products.size), many).merged()
        return found

    def merged(self) -> "Terms":
        """Add up the repeats of terms of the same weight and rate."""
        pairs = np.stack([self.sizes, self.rates], axis=1)
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
        repeats = np.bincount(which.ravel(), weights=self.repeats, minlength=len(distinct))
        return Terms(distinct[:, 0], distinct[:, 1], _floats(repeats))

    def only(self, kept: NDArray[np.bool_]) -> "Terms":
        """Return some of the terms."""
        return Terms(self.sizes[kept], self.rates[kept], self.repeats[kept])

    @property
    def variances(self) -> FloatArray:
        """Variance of all terms that are alike, together."""
        return np.asarray(self.repeats * self.sizes**2 / (2 * np.sinh(self.rates / 2) ** 2))


def quantile(terms: Terms, confidence: float, deviation: float = 0.0) -> float:
    """Return the least bound on |sum| that holds with probability `confidence`, or a bit more.

    Args:
        terms: The noise.
        confidence: Probability with which the bound holds.
        deviation: Standard deviation of a normal number that is added to the sum.

    >>> quantile(Terms.alike(Fraction(1, 10), 100), 0.95)
    277.0
    >>> half = Terms.gather(np.array([1.0] * 100 + [0.5]), np.full(101, 0.1))
    >>> 277 < quantile(half, 0.95) < 281
    True
    """
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence ({confidence}) must lie between 0 and 1")
    if terms.sizes.size == 0:
        return deviation * NormalDist().inv_cdf((1 + confidence) / 2)
    if deviation == 0 and np.all(terms.sizes == terms.sizes[0]):
        rates, repeats = tuple(terms.rates.tolist()), tuple(terms.repeats.tolist())
        return float(terms.sizes[0]) * _lattice_quantile(rates, repeats, confidence)
    if terms.sizes.size > _MOST_SIZES:
        return _quantile_of_many(terms, confidence, deviation)
    return _wave_quantile(terms, confidence, deviation)


def sum_quantile(rate: Fraction | float, terms: int, confidence: float) -> int:
    """Return the quantile of the plain sum of `terms` draws of one rate.

    >>> sum_quantile(Fraction(1, 10), 1, 0.95), sum_quantile(Fraction(1, 10), 100, 0.95)
    (30, 277)
    """
    require_positive(rate=rate)
    require_count(terms=terms)
    return int(quantile(Terms.alike(rate, terms), confidence))


_FINE = np.concatenate([np.geomspace(1e-6, 0.5, 500), 1 - np.geomspace(1e-6, 0.5, 500)])
_ROUGH = np.concatenate([np.geomspace(1e-6, 0.5, 48), 1 - np.geomspace(1e-4, 0.4, 12)])
_FEW_SIZES = 4  # for which a fine search costs little


def _chernoff(terms: Terms, deviation: float, *risks: float) -> list[float]:
    """Bound |sum| for each risk: the least of (log M(s) + log(2 / risk)) / s over some s.

    M is the moment generating function; every s gives a true bound, so it does no harm to try
    only some.
    """
    shares = _FINE if terms.sizes.size <= _FEW_SIZES else _ROUGH
    points = shares * float((terms.rates / terms.sizes).min())
    half = np.outer(points / 2, terms.sizes)
    # E exp(tN) = 1 / (1 - sinh²(t/2) / sinh²(rate/2))
    logs = -np.log1p(-((np.sinh(half) / np.sinh(terms.rates / 2)) ** 2)) @ terms.repeats
    logs += (deviation * points) ** 2 / 2
    return [float(((logs + log(2 / risk)) / points).min()) for risk in risks]


def _floats(numbers: NDArray[Any]) -> FloatArray:
    return numbers.astype(np.float64)


# --- Terms that weigh the same: exact, on a lattice --------------------------------------------

LONGEST_LATTICE = 1 << 22
_NEGLIGIBLE_MASS = 1e-18  # that may wrap around the lattice
_LAST_RISK = 1e-11  # sums of floats are not trusted further into the tail


@lru_cache(maxsize=4096)  # wide tables need the same one column after column
def _lattice_quantile(
    rates: tuple[float, ...], repeats: tuple[float, ...], confidence: float
) -> int:
    """Find the smallest q with P(|sum| <= q) >= confidence, up to float rounding.

    In closed form for one draw, else from the characteristic function by a fast Fourier
    transform.  Where that would take more than 2**22 points, or the confidence is within 1e-11
    of 1, it is a proven upper bound instead: the better of Chernoff's and of a coarser lattice.
    """
    if repeats == (1.0,):
        return _single_quantile(rates[0], confidence)
    terms = Terms(np.ones(len(rates)), np.array(rates), np.array(repeats))
    bound, far = map(ceil, _chernoff(terms, 0.0, 1 - confidence, _NEGLIGIBLE_MASS))
    if 1 - confidence < _LAST_RISK:
        return bound
    if 2 * far < LONGEST_LATTICE:
        return _summed_quantile(terms, confidence, far)
    return min(bound, _coarse_quantile(terms, confidence, far))


def _single_quantile(rate: float, confidence: float) -> int:
    """Invert P(|N| > q) = 2 a^(q+1) / (1 + a)."""
    steps = (log(2) - log1p(exp(-rate)) - log1p(-confidence)) / rate
    # Forgive the last digit, so that a confidence that is met exactly counts as met.
    return max(ceil(steps * (1 - 1e-15)) - 1, 0)


def _summed_quantile(terms: Terms, confidence: float, far: int) -> int:
    """Sum up the distribution of the sum on -far..far, whose complement is negligible."""
    points = 1 << (2 * far + 1).bit_length()
    sines = np.sin(np.arange(points // 2 + 1) * (np.pi / points))
    # The characteristic function is 1 / (1 + sin²(angle / 2) / sinh²(rate / 2)) per term.
    logs = np.zeros(sines.size)
    for rate, number in zip(terms.rates, terms.repeats, strict=True):
        logs -= number * np.log1p((sines / sinh(rate / 2)) ** 2)
    distribution = np.maximum(np.fft.irfft(np.exp(logs), points)[: far + 1], 0)
    distribution[1:] *= 2
    # As above: a confidence met up to rounding counts as met.
    return int(np.searchsorted(np.cumsum(distribution), confidence - 1e-13))


def _coarse_quantile(terms: Terms, confidence: float, far: int) -> int:
    """Bound the quantile by that of noise on a lattice `factor` times coarser.

    A geometric number with a small rate is floor(E / rate) for an exponential E.  Let
    c = factor; then c floor(E / (c rate)) falls short of it by at most c - 1.  A two-sided
    number is the difference of two such, so it differs by at most c - 1 from c times the
    coarse one, and a sum of n by at most n (c - 1).
    """
    factor = ceil(4 * far / LONGEST_LATTICE)
    coarse = terms._replace(rates=terms.rates * factor)
    coarse_far = ceil(_chernoff(coarse, 0.0, _NEGLIGIBLE_MASS)[0])
    found = _summed_quantile(coarse, confidence, coarse_far)
    return factor * found + int(terms.repeats.sum()) * (factor - 1)


# --- Other sums: from the characteristic function, smoothed ------------------------------------

_MOST_SIZES = 1024
_RATIO = 1.01  # weights that differ by less are taken for one if there are too many
_TINY = 1e-8  # part of the variance that weights too small to matter may have together
_SET_ASIDE = 0.01  # part of the risk that is spent on what this leaves out
_SMOOTHING = 128  # the sum is smoothed by this part of the bound, and the answer widened by it
_UNIFORMS = 6  # the smoothing is a sum of so many uniform numbers, so its waves die out quickly
_LAST_ANGLE = 10.0  # waves beyond this angle of the smoothing are left out
_BLOCK = 1 << 18
_NEGLIGIBLE_WAVE = 1e-12  # a wave smaller than that is left out
_WRAPPED = 1e-10  # mass that may lie beyond half a period
_ROUNDING = 2e-7  # more than all that is left out can add up to


def _quantile_of_many(terms: Terms, confidence: float, deviation: float) -> float:
    """Replace weights by a few that are nearly the same, and bound what that changes."""
    largest = float(terms.sizes.max())
    steps = np.rint(np.log(terms.sizes / largest) / log(_RATIO))
    order = np.argsort(terms.sizes)
    running = np.empty_like(terms.sizes)
    running[order] = np.cumsum(terms.variances[order])
    matters = running > _TINY * running[order[-1]]
    rounded = np.where(matters, largest * _RATIO**steps, 0.0)
    apart = np.abs(terms.sizes - rounded)
    left_out = terms._replace(sizes=apart).only(apart > 0)
    few = terms._replace(sizes=rounded).only(matters).merged()
    risk = (1 - confidence) * _SET_ASIDE
    extra = _chernoff(left_out, 0.0, risk)[0] if left_out.sizes.size else 0.0
    return _wave_quantile(few, confidence + risk, deviation) + extra


def _wave_quantile(terms: Terms, confidence: float, deviation: float) -> float:
    """Find the quantile of the sum's distribution from its characteristic function.

    A number of at most `smoothing` on either side is added to the sum, which the answer is
    widened by, and the sum is wrapped around a circle that holds all but a negligible part of
    it.  The mass between -x and x is then x / half + sum of 2 / (pi k) c_k sin(pi k x / half),
    where c_k is the characteristic function at pi k / half.  Where the confidence is too close
    to 1 for that, the answer is Chernoff's bound.
    """
    bound, far = _chernoff(terms, deviation, 1 - confidence, _WRAPPED)
    smoothing = bound / _SMOOTHING
    half = far + smoothing
    steps, heights = _waves(terms, deviation, half, smoothing)

    def inside(limit: float) -> float:
        return limit / half + float(heights @ np.sin(steps * limit)) - _ROUNDING

    low, high = 0.0, bound + smoothing
    if inside(high) < confidence:
        return bound
    while high - low > smoothing / 64:
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= confidence else (middle, high)
    return min(high + smoothing, bound)


class _Waves(NamedTuple):
    steps: FloatArray
    heights: FloatArray


def _waves(terms: Terms, deviation: float, half: float, smoothing: float) -> _Waves:
    """Compute the waves of the mass between -x and x that are not negligible."""
    orders = np.arange(1, ceil(_LAST_ANGLE * _UNIFORMS * half / (pi * smoothing)) + 1)
    steps = pi / half * orders
    smoothed = np.abs(np.sinc(steps * smoothing / (_UNIFORMS * pi))) + 1e-300  # no logarithm of 0
    logs = _UNIFORMS * np.log(smoothed) - (deviation * steps) ** 2 / 2 + np.log(2 / (pi * orders))
    # Terms of large variance come first: they damp most waves, which are then left out.
    order = np.argsort(-terms.variances)
    start = 0
    while start < order.size:
        alive = logs > log(_NEGLIGIBLE_WAVE)
        steps, logs = steps[alive], logs[alive]
        some = order[start : start + max(_BLOCK // max(steps.size, 1), 1)]
        waves = np.sin(np.outer(steps / 2, terms.sizes[some]))
        # A term has 1 / (1 + sin²(t/2) / sinh²(rate/2)), t being the weight times the step.
        logs -= np.log1p((waves / np.sinh(terms.rates[some] / 2)) ** 2) @ terms.repeats[some]
        start += some.size
    return _Waves(_floats(steps), _floats(np.exp(logs)))

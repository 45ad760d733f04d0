"""How far noise leads the number of significant coefficients astray, and which cells are safe.

Theorems 4 to 6 of the WaveCluster paper with the constants that belong to the noise in use.  The
first section needs public settings only and serves the expected errors; the second one takes
the true coefficients, so what it returns is private unless the points are public.
Proofs: docs/proofs/wavecluster.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log, prod, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from dpublish.accuracy.noise_distribution import Terms, noise_pmf, quantile, sum_quantile
from dpublish.errors import InvalidParameter
from dpublish.methods.wavecluster.wavecluster import Coefficients, WaveTransform
from dpublish.types import FloatArray

_MOST_STEPS = 1 << 20
_FAR = 1e-12  # noise beyond the points that are computed is rarer than this


# --- From public settings ----------------------------------------------------------------------


def noise_bound(transform: WaveTransform, rate: Fraction, risk: float) -> float:
    """Bound the noise of all coefficients at once, but for a probability of `risk` (γ/2).

    It is in the usual scale of the wavelet.  The paper bounds every count by itself, which gives
    2/ε · ln(4 (|L| + |Z|)/ω) for Haar in the plane; here a coefficient is bounded by the
    distribution of its own noise, which is less than half of that.

    >>> round(noise_bound(WaveTransform((40, 40)), Fraction(1), 0.05), 3)
    6.5
    """
    _require_risk(risk)
    weights = [np.array(one.weights, dtype=np.float64) * one.unit for one in transform.filters]
    return quantile(Terms.of_products(weights, float(rate)), 1 - risk / transform.size)


def lifted_share(transform: WaveTransform, rate: Fraction) -> float:
    """Compute the probability that noise makes an empty coefficient positive.

    It is just below one half: noise is as often positive as negative, and sometimes 0.  For
    wavelets with unequal weights it is rounded up.

    >>> round(lifted_share(WaveTransform((40, 40)), Fraction(1)), 3)
    0.416
    """
    terms = sum_of_terms(transform)
    if terms is not None:
        return (1 - float(SumNoise.of(rate, terms).pmf[0])) / 2
    height = float(noise_pmf(rate, 0))
    return float(1 - height ** prod(len(one.weights) for one in transform.filters)) / 2


def sum_of_terms(transform: WaveTransform) -> int | None:
    """Return how many counts a coefficient adds up, or None if it weighs them unequally.

    >>> sum_of_terms(WaveTransform((8, 8))), sum_of_terms(WaveTransform((8, 8), "db2"))
    (4, None)
    """
    if any(set(one.weights) != {1} for one in transform.filters):
        return None
    return prod(len(one.weights) for one in transform.filters)


def _require_risk(risk: float) -> None:
    if not 0 < risk < 1:
        raise InvalidParameter(f"risk ({risk}) must lie between 0 and 1")


class SumNoise(NamedTuple):
    """The noise of a plain sum of noisy counts: P(N = 0), P(N = 1), ... and P(N >= 0), ..."""

    pmf: FloatArray
    survival: FloatArray

    @classmethod
    def of(cls, rate: Fraction | float, terms: int) -> "SumNoise":
        """Compute the distribution from its characteristic function.

        >>> noise = SumNoise.of(1, 1)
        >>> round(float(noise.pmf[0]), 6), round(float(noise.survival[1]), 6)
        (0.462117, 0.268941)
        """
        far = 2 * sum_quantile(rate, terms, 1 - _FAR) + 16
        steps = 1 << int(far).bit_length() + 1
        if steps > _MOST_STEPS:
            raise InvalidParameter(f"the noise of rate {float(rate):.2g} is too large to compute")
        decay = exp(-float(rate))
        turns = 2 * np.pi * np.arange(steps) / steps
        one = (1 - decay) ** 2 / (1 - 2 * decay * np.cos(turns) + decay**2)
        pmf = np.maximum(np.fft.ifft(one**terms).real[: steps // 2], 0)
        return cls(pmf, np.cumsum(pmf[::-1])[::-1])

    def at_least(self, values: FloatArray) -> FloatArray:
        """Compute P(N >= v) for integers v of 0 or more."""
        inside = values < len(self.survival)
        found = self.survival[np.where(inside, values, 0).astype(np.int64)]
        return np.asarray(np.where(inside, found, 0.0))


def rank_bound(
    epsilon: Fraction | float, sensitivity: Fraction, candidates: float, right: float, risk: float
) -> float:
    """Bound how far the rank of a chosen threshold is from the wanted one (η of Theorem 6).

    The exponential mechanism takes a threshold whose rank is off by t or more with probability
    at most candidates / right · exp(−ε t / (2 Δ)): `candidates` thresholds there are, `right`
    of them have the wanted rank.

    >>> round(rank_bound(0.3, Fraction(1), 1000, 10, 0.05), 1)
    50.7
    """
    _require_risk(risk)
    return 2 * float(sensitivity) / float(epsilon) * log(max(candidates / right, 1) / risk)


# --- From the true coefficients; not private -----------------------------------------------------


class Taken(NamedTuple):
    """How many coefficients are taken (k'): expected, and between which numbers."""

    expected: float
    least: int
    most: int


@dataclass(frozen=True)
class AfterNoise:
    """How many coefficients reach a value after noise, from the true ones.

    Each empty coefficient is lifted, and each other one sinks, with a known probability, and
    independently of each other; those farther away than noise goes stay where they are.
    """

    values: FloatArray
    repeats: FloatArray
    noise: SumNoise

    @classmethod
    def of(cls, coefficients: Coefficients, terms: int, rate: Fraction) -> "AfterNoise":
        """Count coefficients that are alike once."""
        values, repeats = np.unique(np.asarray(coefficients, dtype=np.float64), return_counts=True)
        return cls(values, repeats.astype(np.float64), SumNoise.of(rate, terms))

    def probabilities(self, least: int) -> FloatArray:
        """Compute for each value the probability that it is `least` or more after noise."""
        gap = least - self.values
        return np.where(
            gap > 0,
            self.noise.at_least(np.maximum(gap, 0)),
            1 - self.noise.at_least(np.maximum(1 - gap, 1)),
        )

    def expected(self, least: int, *, zeros: float = 0.0) -> float:
        """Compute the expected number of those that reach `least`, and `zeros` of those below.

        Those below are those that come out as `least` - 1.
        """
        odds = self.probabilities(least)
        if zeros:
            odds = odds + zeros * (self.probabilities(least - 1) - odds)
        return float(self.repeats @ odds)

    def odds_of_part(self, least: int, part: float) -> float:
        """Compute how probably a `part` of the positive ones reach `least` (normal limit)."""
        above_it, positive = self.probabilities(least), self.probabilities(1)
        mean = above_it - part * positive
        square = above_it * (1 - part) ** 2 + (positive - above_it) * part**2
        deviation = sqrt(max(float(self.repeats @ (square - mean**2)), 0.0))
        above = float(self.repeats @ mean)
        return NormalDist().cdf(above / deviation) if deviation > 0 else float(above >= 0)

    def apart(self, risk: float, *, at_all: bool = False) -> float:
        """Bound how far such a number is from the expected one (Hoeffding's inequality).

        With `at_all` it holds for every value at once (Bretagnolle's form of the inequality of
        Dvoretzky, Kiefer and Wolfowitz, for draws that are not alike).
        """
        _require_risk(risk)
        odds = self.probabilities(1)
        moved = self.repeats[(odds > _FAR) & (odds < 1 - _FAR)].sum()
        if at_all:
            moved = self.repeats.sum()
        return sqrt(float(moved) * (log(2 / risk) + at_all) / 2)


def taken_by_privqt(
    coefficients: Coefficients, percentile: Fraction, rate: Fraction, terms: int, risk: float
) -> Taken:
    """Compute how many coefficients PrivQT takes (Theorem 4): 1 − p of those above 0 after noise.

    Values are integers, so that more than one may be the last that is taken: all of those are,
    which the paper's continuous noise has not.
    """
    noisy_values = AfterNoise.of(coefficients, terms, rate)
    rest = float(1 - percentile)
    positive, apart = noisy_values.expected(1), noisy_values.apart(risk, at_all=True)
    expected, least, odds = 0.0, 1, 1.0  # that the last one taken is `least` or more
    while odds > _FAR:
        further = noisy_values.odds_of_part(least + 1, rest)
        expected += noisy_values.expected(least) * (odds - further)
        least, odds = least + 1, further
    first = 1
    while noisy_values.expected(first + 1) - apart >= rest * (positive + apart):
        first += 1
    return Taken(
        expected,
        max(int(rest * (positive - noisy_values.apart(risk))), 0),
        min(ceil(noisy_values.expected(first) + apart), coefficients.size),
    )


def taken_by_privthr(
    coefficients: Coefficients,
    percentile: Fraction,
    *,
    counts_rate: Fraction,
    rank_rate: Fraction,
    terms: int,
    risk: float,
    variant: Literal["direct", "paper"] = "paper",
) -> Taken:
    """Compute how many coefficients PrivTHR takes (Theorem 5).

    The noise of the number of empty coefficients is within β = ln(1/ω)/ε_2 in the paper's own
    terms, which prints 2/ε_2 · ln(1/ω); the variant of the paper takes half of that number off,
    so that half of β counts.
    """
    rest = float(1 - percentile)
    empty = int(np.count_nonzero(coefficients <= 0))
    beta = sum_quantile(rank_rate, 1, 1 - risk)
    if variant == "direct":
        true = coefficients.size - empty
        return Taken(rest * true, max(int(rest * (true - beta)), 0), ceil(rest * (true + beta)))
    noisy_values = AfterNoise.of(coefficients, terms, counts_rate)
    # A coefficient that comes out as 0 counts as half lifted, which makes up for such noise.
    positive, apart = (
        noisy_values.expected(1, zeros=0.5) - empty / 2,
        noisy_values.apart(risk) + beta / 2,
    )
    return Taken(
        max(rest * positive, 0.0),
        max(int(rest * (positive - apart)), 0),
        max(ceil(rest * (positive + apart)), 0),
    )


class Safe(NamedTuple):
    """Coefficients above `inside` are all taken, and none below `outside` is."""

    inside: float
    outside: float


def safe_values(coefficients: Coefficients, taken: Taken, noise: float) -> Safe:
    """Compute which coefficients are taken and left whatever the noise (both claims).

    Noise within `noise` moves a value by no more; so whatever is above the least number of
    largest values by twice as much still is among them, and whatever is below the largest
    number of them by twice as much is not.  `noise` is in the units of `coefficients`.

    >>> safe_values(np.array([9, 7, 5, 3, 1, 0, 0]), Taken(3, 2, 4), 1.0)
    Safe(inside=9.0, outside=1.0)
    """
    values = np.sort(np.asarray(coefficients, dtype=np.float64).ravel())[::-1]

    def ranked(number: int) -> float:
        return float(values[min(max(number, 1), values.size) - 1])

    inside = ranked(taken.least) + 2 * noise if taken.least > 0 else np.inf
    outside = ranked(taken.most) - 2 * noise if taken.most < values.size else -np.inf
    return Safe(float(inside), float(outside))

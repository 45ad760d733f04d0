"""How useful a stream is: bounds on the error of a step, and how many people decisions need.

They are Lemmas 4.3.1 to 4.3.3 and Theorems 4.3.1 to 4.3.3 of H. Li's dissertation (Emory, 2017),
corrected; docs/proofs/stream_usefulness.md derives them.  All of it is arithmetic on public
settings.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from statistics import NormalDist

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.sparse_vector.calibration import Calibration

RIGHT = 0.95
"""Probability with which a decision is right, where a plan says how many people that needs."""


def sum_bound(scale: float, terms: int, failure: float) -> float:
    """Bound a sum of Laplace variables of one scale, but for a probability of `failure`.

    Lemma 4.3.1 in a form that can be used: with L = ln(2 / failure) the sum is within
    scale * sqrt(8 L) * max(sqrt(terms), sqrt(L)).  It holds for two-sided geometric noise, too.

    >>> round(sum_bound(10, 100, 0.05), 1)
    543.2
    """
    _require_probability(failure)
    level = log(2 / failure)
    return scale * sqrt(8 * level) * max(sqrt(terms), sqrt(level))


def published_error(epsilon: Fraction, contribution: int, bins: int, failure: float) -> int:
    """Return what a count over `bins` bins is within at a step that publishes with `epsilon`.

    The first part of Theorem 4.3.1, by the distribution of the noise itself instead of a bound.
    """
    _require_probability(failure)
    return sum_quantile(epsilon / contribution, bins, 1 - failure)


def repeated_error(threshold: int, terms: Calibration, failure: float) -> int:
    """Return what every count is within at a step whose comparison with `threshold` is negative.

    The second part of Theorems 4.3.1 and 4.3.2.  But for a probability of `failure` it holds at
    all negative steps of a run of comparisons at once.
    """
    _require_probability(failure)
    return threshold + terms.offset + ceil(log(1 / failure) / terms.threshold_rate)


@dataclass(frozen=True)
class Decisions:
    """What makes the decisions of a stream uncertain.

    Attributes:
        terms: Noise of the comparisons.
        floor_deviation: Standard deviation of the distance of an unchanged snapshot.
    """

    terms: Calibration
    floor_deviation: float

    def noise(self, failure: float) -> float:
        """Return how far noise moves a decision either way, but for a probability of `failure`."""
        _require_probability(failure)
        level = log(2 / failure)
        up = level / self.terms.answer_rate - self.terms.offset
        down = level / self.terms.threshold_rate + self.terms.offset
        return max(up, down) + NormalDist().inv_cdf(1 - failure / 2) * self.floor_deviation

    def people(self, threshold: float, failure: float = 1 - RIGHT) -> int:
        """Return how many people make a decision right but for a probability of `failure`.

        Theorem 4.3.3: with a threshold of T times the people beyond the floor, an unchanged
        snapshot is not published, and one at twice the threshold is.
        """
        return ceil(self.noise(failure) / threshold)


def _require_probability(failure: float) -> None:
    if not 0 < failure < 1:
        raise InvalidParameter(f"failure ({failure}) must be between 0 and 1")

"""Confidence intervals of a copula's counts: noise and sampling, if the model holds.

Four things part an answer from the truth: the noise of each marginal, the noise of the number of
records, the noise of the correlations, and that the records are a sample: even under the true
marginals and correlations their number in a box would vary.  Each is followed to first order, and
their reaches are added as independent errors are, by their squares.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.methods.dpcopula.correlation_repair import repair_correlation
from dpublish.methods.dpcopula.normal_boxes import lattice
from dpublish.methods.dpcopula.query import Question
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal, joint_half_width
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

_SAMPLE = 8192
_REDRAWS = 48
_SEED = 1  # any: equal questions should have equal answers
_LEAST_PART = 0.02  # of the binomial variance: no model is quite so good


class TotalEvidence(NamedTuple):
    """All that was published about the number of records, and the best estimate from it."""

    marginals: Sequence[NoisyMarginal]
    size: int
    size_rate: Fraction

    @property
    def pulls(self) -> FloatArray:
        """Say how much each estimate counts: marginals' totals first, the noisy size last."""
        variances = [marginal.total_variance for marginal in self.marginals]
        precisions = 1 / np.maximum([*variances, noise_variance(self.size_rate)], 1e-9)
        return np.asarray(precisions / precisions.sum())

    @property
    def records(self) -> float:
        """The mean of all estimates, weighed by the inverse of their variances."""
        totals = [*(marginal.total for marginal in self.marginals), float(self.size)]
        return max(float(self.pulls @ totals), 0.0)

    def reach(self, confidence: float) -> float:
        """Find how far noise reaches in `records`."""
        *pulls, last = self.pulls
        weights = [np.full(m.leaves, pull) for m, pull in zip(self.marginals, pulls, strict=True)]
        size = (self.size_rate, np.array([last]))
        # A total is unbiased, so it always has a reach.
        return joint_half_width(self.marginals, weights, confidence, others=[size]) or 0.0


def count_reach(
    question: Question,
    asked: Sequence[int],
    spread: FloatArray,
    evidence: TotalEvidence,
    confidence: float,
) -> float | None:
    """Find how far a count of several columns may be from the truth.

    Args:
        question: What was asked about the columns.
        asked: Their places among the marginals of `evidence`.
        spread: Standard deviation that noise gives each of their correlations; 0 for columns
            that were taken to be independent.
        evidence: The marginals and the noisy number of records.
        confidence: Probability with which the truth is within reach.

    Returns:
        The reach, or None where a marginal's own error is not known.
    """
    records = evidence.records
    least = 0.5 / max(records, 1.0)
    influences = [question.influence(which, least) for which in range(len(asked))]
    tangled = records * dependence_deviation(question, spread)
    heavy = -log(1 - confidence) / sqrt(2)  # the quantile of Laplace noise of variance 1
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    left = records * sampling_variance(question, influences)
    # Noise of correlations has wider tails than a normal error of its variance.
    beyond = sqrt((max(heavy / normal, 1.0) * tangled) ** 2 + left)
    reach = _marginal_reach(question, influences, asked, evidence, confidence, beyond)
    if reach is None:
        return None
    # A count is whole and, where it is small, skewed: a normal distribution misses it by about
    # this.
    return reach + 0.5 + max(normal**2 - 1, 0) / 6


def dependence_deviation(question: Question, spread: FloatArray) -> float:
    """Find by how much the noise of correlations moves the share (root mean square).

    Correlations are redrawn around the published ones: their noise may be large, and how
    the share moves is then far from a straight line.
    """
    if not np.any(spread):
        return 0.0
    rng = plain_generator(_SEED)
    moves = rng.standard_normal((_REDRAWS // 2, *spread.shape))
    moves = np.triu(moves, 1) * np.minimum(spread, 1)
    moves = moves + moves.transpose(0, 2, 1)
    redrawn = [
        question.share_under(repair_correlation(question.matrix + move))
        for move in np.concatenate([moves, -moves])  # in pairs, which makes for a steadier mean
    ]
    errors = np.array(redrawn) - question.share_under(question.matrix)
    return float(np.sqrt(np.mean(errors**2)))


def _marginal_reach(
    question: Question,
    influences: Sequence[FloatArray],
    asked: Sequence[int],
    evidence: TotalEvidence,
    confidence: float,
    spread: float,
) -> float | None:
    """Follow the noise of marginals and size: each moves the share, and all the total."""
    *pulls, last = evidence.pulls
    weights = []
    for place, (marginal, pull) in enumerate(zip(evidence.marginals, pulls, strict=True)):
        own = np.full(marginal.leaves, question.share * pull)
        weights.append(own + influences[list(asked).index(place)] if place in asked else own)
    size = (evidence.size_rate, np.array([question.share * last]))
    return joint_half_width(
        evidence.marginals, weights, confidence, others=[size], deviation=spread
    )


def sampling_variance(question: Question, influences: Sequence[FloatArray]) -> float:
    """Find the variance of a record's part in the count that its marginals do not explain.

    The marginals were counted on the same records, so a record's influence on them is no error
    and is taken off.  What correlations explain is left in: it is little.
    """
    even = ndtri(np.clip(lattice(len(question.distributions), _SAMPLE), 1e-9, 1 - 1e-9))
    normals = np.linalg.cholesky(question.matrix) @ even
    rng = plain_generator(_SEED)
    codes = [
        distribution.choose(values, rng)
        for distribution, values in zip(question.distributions, normals, strict=True)
    ]
    counted = np.prod([w[c] for w, c in zip(question.weights, codes, strict=True)], axis=0)
    explained = np.sum([one[c] for one, c in zip(influences, codes, strict=True)], axis=0)
    whole = question.share * (1 - question.share)
    covariance = np.cov(counted, explained)
    # The record itself is counted or not, so its own variance needs no sample.
    left = whole - 2 * covariance[0, 1] + covariance[1, 1]
    return max(float(left), _LEAST_PART * whole, 0.0)

"""Confidence intervals of a copula's counts: noise and sampling, if the model holds.

An answer has four sources of error: the noise of each marginal, the noise of the number of
records, the noise of the correlations, and that the records are a sample: even under the true
marginals and correlations their number in a box would vary.  Each is followed to first order, and
the half-widths are added as those of independent errors, by their squares.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.methods.dpcopula.correlation import repair_correlation
from dpublish.methods.dpcopula.gaussian_copula import CopulaQuery
from dpublish.methods.dpcopula.multivariate_normal import lattice
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal, joint_half_width
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

_SAMPLE = 8192
_REDRAWS = 48
_SEED = 1  # any: equal queries should have equal answers
_LEAST_PART = 0.02  # of the binomial variance: no model explains more


class TotalEvidence(NamedTuple):
    """All that was published about the number of records, and the best estimate from it."""

    marginals: Sequence[NoisyMarginal]
    size: int
    size_rate: Fraction

    @property
    def weights(self) -> FloatArray:
        """Weight of each estimate: marginals' totals first, the noisy size last."""
        variances = [marginal.total_variance for marginal in self.marginals]
        precisions = 1 / np.maximum([*variances, noise_variance(self.size_rate)], 1e-9)
        return np.asarray(precisions / precisions.sum())

    @property
    def records(self) -> float:
        """The mean of all estimates, weighted by the inverse of their variances."""
        totals = [*(marginal.total for marginal in self.marginals), float(self.size)]
        return max(float(self.weights @ totals), 0.0)

    def half_width(self, confidence: float) -> float:
        """Return the half-width of the confidence interval of `records`."""
        *own, last = self.weights
        weights = [np.full(m.leaves, weight) for m, weight in zip(self.marginals, own, strict=True)]
        size = (self.size_rate, np.array([last]))
        # A total is unbiased, so it always has an interval.
        return joint_half_width(self.marginals, weights, confidence, others=[size]) or 0.0


def count_half_width(
    query: CopulaQuery,
    columns: Sequence[int],
    deviations: FloatArray,
    evidence: TotalEvidence,
    confidence: float,
) -> float | None:
    """Return the half-width of the confidence interval of a count over several columns.

    Args:
        query: The conditions on the columns.
        columns: Their indices among the marginals of `evidence`.
        deviations: Standard deviation that noise gives each of their correlations; 0 for
            columns that were assumed to be independent.
        evidence: The marginals and the noisy number of records.
        confidence: Probability with which the interval holds the truth.

    Returns:
        The half-width, or None where a marginal's own error is not known.
    """
    records = evidence.records
    least = 0.5 / max(records, 1.0)
    influences = [query.influence(which, least) for which in range(len(columns))]
    dependence = records * dependence_deviation(query, deviations)
    heavy = -log(1 - confidence) / sqrt(2)  # the quantile of Laplace noise of variance 1
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    sampling = records * sampling_variance(query, influences)
    # Noise of correlations has wider tails than a normal error of its variance.
    further = sqrt((max(heavy / normal, 1.0) * dependence) ** 2 + sampling)
    width = _marginal_half_width(query, influences, columns, evidence, confidence, further)
    if width is None:
        return None
    # A count is an integer and, where it is small, skewed: a normal distribution misses it by
    # about this.
    return width + 0.5 + max(normal**2 - 1, 0) / 6


def dependence_deviation(query: CopulaQuery, deviations: FloatArray) -> float:
    """Return the standard deviation that the noise of correlations gives the share.

    Correlations are redrawn around the published ones: their noise may be large, and the share
    is then far from linear in them.
    """
    if not np.any(deviations):
        return 0.0
    rng = plain_generator(_SEED)
    moves = rng.standard_normal((_REDRAWS // 2, *deviations.shape))
    moves = np.triu(moves, 1) * np.minimum(deviations, 1)
    moves = moves + moves.transpose(0, 2, 1)
    redrawn = [
        query.share_under(repair_correlation(query.matrix + move))
        for move in np.concatenate([moves, -moves])  # antithetic pairs: less variance
    ]
    errors = np.array(redrawn) - query.share_under(query.matrix)
    return float(np.sqrt(np.mean(errors**2)))


def _marginal_half_width(
    query: CopulaQuery,
    influences: Sequence[FloatArray],
    columns: Sequence[int],
    evidence: TotalEvidence,
    confidence: float,
    further: float,
) -> float | None:
    """Follow the noise of marginals and size, with `further` as normal error on top."""
    *totals, last = evidence.weights
    weights = []
    for index, (marginal, weight) in enumerate(zip(evidence.marginals, totals, strict=True)):
        own = np.full(marginal.leaves, query.share * weight)
        weights.append(own + influences[list(columns).index(index)] if index in columns else own)
    size = (evidence.size_rate, np.array([query.share * last]))
    return joint_half_width(
        evidence.marginals, weights, confidence, others=[size], deviation=further
    )


def sampling_variance(query: CopulaQuery, influences: Sequence[FloatArray]) -> float:
    """Return the variance of a record's part in the count that its marginals do not explain.

    The marginals were counted on the same records, so a record's influence on them is no error
    and is taken off.  What correlations explain is left in: it is little.
    """
    even = ndtri(np.clip(lattice(len(query.distributions), _SAMPLE), 1e-9, 1 - 1e-9))
    normals = np.linalg.cholesky(query.matrix) @ even
    rng = plain_generator(_SEED)
    codes = [
        distribution.choose(values, rng)
        for distribution, values in zip(query.distributions, normals, strict=True)
    ]
    counted = np.prod([w[c] for w, c in zip(query.weights, codes, strict=True)], axis=0)
    explained = np.sum([one[c] for one, c in zip(influences, codes, strict=True)], axis=0)
    whole = query.share * (1 - query.share)
    covariance = np.cov(counted, explained)
    # The record itself is counted or not, so its own variance needs no sample.
    left = whole - 2 * covariance[0, 1] + covariance[1, 1]
    return max(float(left), _LEAST_PART * whole, 0.0)

"""Confidence intervals of counts from a copula: each part alone, and their coverage."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.methods.dpcopula import intervals
from dpublish.methods.dpcopula.correlation import NoisyCorrelation
from dpublish.methods.dpcopula.gaussian_copula import CopulaQuery, ValueDistribution, draw_codes
from dpublish.methods.dpcopula.intervals import (
    TotalEvidence,
    count_half_width,
    dependence_deviation,
    sampling_variance,
)
from dpublish.methods.dpcopula.latent_correlation import SCORE_UNIT, score_table
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

MATRIX = np.array([[1, 0.6, -0.3], [0.6, 1, 0.2], [-0.3, 0.2, 1]])
PROBABILITIES = (
    np.array([0.1, 0.2, 0.3, 0.25, 0.15]),
    np.array([0.3, 0.1, 0.25, 0.15, 0.2]),  # the last leaf is special
    np.array([0.5, 0.5]),
)
WEIGHTS = (
    np.array([0, 1, 1, 0.5, 0]),
    np.array([1, 1, 0, 0, 1.0]),
    np.array([0, 1.0]),
)
ORDINARY = (5, 4, 2)


@pytest.fixture
def draws():
    return np.random.Generator(np.random.Philox(5))


def make_query(probabilities=PROBABILITIES, matrix=MATRIX):
    distributions = [
        ValueDistribution(part, size) for part, size in zip(probabilities, ORDINARY, strict=True)
    ]
    return CopulaQuery(matrix, distributions, WEIGHTS)


def geometric(rate, size, draws):
    decay = np.exp(-float(rate))
    return draws.geometric(1 - decay, size) - draws.geometric(1 - decay, size)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_influence_is_how_the_share_moves_with_a_leaf(which):
    query = make_query()
    influence = query.influence(which, 1e-9)
    assert influence @ PROBABILITIES[which] == pytest.approx(0, abs=2e-4)
    step = 1e-3
    for leaf in range(PROBABILITIES[which].size):
        moved = []
        for sign in (-1, 1):
            probabilities = PROBABILITIES[which].copy()
            probabilities[leaf] += sign * step
            changed = [
                *PROBABILITIES[:which],
                probabilities / probabilities.sum(),
                *PROBABILITIES[which + 1 :],
            ]
            moved.append(make_query(changed).share)
        assert influence[leaf] == pytest.approx((moved[1] - moved[0]) / (2 * step), abs=5e-3)


def test_a_share_is_the_part_of_drawn_rows(draws):
    query = make_query()
    distributions = {str(j): distribution for j, distribution in enumerate(query.distributions)}
    codes = draw_codes(MATRIX, distributions, 400_000, draws)
    counted = np.prod([w[codes[str(j)]] for j, w in enumerate(WEIGHTS)], axis=0)
    assert query.share == pytest.approx(counted.mean(), abs=5 * counted.std() / 400_000**0.5)
    alone = np.prod([w @ c for w, c in zip(WEIGHTS, PROBABILITIES, strict=True)])
    assert abs(alone - query.share) > 0.003  # a twin that forgets the correlations


def test_probability_moves_a_count_less_than_a_sample_without_known_marginals(draws):
    # Two independent halves: given the marginals, only the cross of both varies.
    halves = np.array([0.5, 0.5])
    distributions = [ValueDistribution(halves, 2)] * 2
    query = CopulaQuery(np.eye(2), distributions, [np.array([1.0, 0.0])] * 2)
    influences = [query.influence(which, 1e-6) for which in (0, 1)]
    assert sampling_variance(query, influences) == pytest.approx(1 / 16, rel=0.02)
    flat = [np.zeros(2)] * 2  # without marginals it is binomial
    assert sampling_variance(query, flat) == pytest.approx(3 / 16)
    tables = draws.integers(0, 2, (2, 4000, 400))
    counts = (tables.sum(axis=0) == 0).sum(axis=0)
    told = (tables == 0).sum(axis=1).prod(axis=0) / 4000
    assert np.var(counts - told) / 4000 == pytest.approx(1 / 16, rel=0.25)


def test_noise_of_correlations_moves_the_share_as_redrawing_says():
    halves = [ValueDistribution(np.array([0.5, 0.5]), 2)] * 2
    query = CopulaQuery(np.eye(2), halves, [np.array([1.0, 0.0])] * 2)
    deviations = np.array([[0, 0.1], [0.1, 0]])
    # The probability of a quadrant is 1/4 + asin(r) / 2π, so its slope at 0 is 1/2π.
    assert dependence_deviation(query, deviations) == pytest.approx(0.1 / (2 * np.pi), rel=0.25)
    assert dependence_deviation(query, np.zeros((2, 2))) == 0


def test_the_number_of_records_is_the_mean_by_precision():
    marginals = [
        NoisyMarginal("identity", 2, np.array([30, 20]), Fraction(1, 10)),
        NoisyMarginal("identity", 4, np.array([20, 20, 20, 20]), Fraction(1, 10)),
    ]
    evidence = TotalEvidence(marginals, 100, Fraction(1, 20))
    cell, size = noise_variance(Fraction(1, 10)), noise_variance(Fraction(1, 20))
    precisions = np.array([1 / (2 * cell), 1 / (4 * cell), 1 / size])
    assert evidence.records == pytest.approx(
        precisions @ [50, 80, 100] / precisions.sum(), rel=1e-9
    )
    assert evidence.half_width(0.95) == pytest.approx(2 / np.sqrt(precisions.sum()), rel=0.15)
    negative = TotalEvidence(marginals[:0], -5, Fraction(1, 20))
    assert negative.records == 0


LEAVES = 50
COLUMNS = 4
SCHEMA = Schema(tuple(column(f"c{j}", "integer", bounds=[0, LEAVES - 1]) for j in range(COLUMNS)))


def published(codes, epsilon, draws):
    """Publish a copula with noise drawn by NumPy, which is quicker."""
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="copula",
        settings={},
        budget=budget,
        neighbors=SCHEMA.neighbors,
        rng=seeded(1),
    )
    rate, pairs = epsilon * Fraction(8, 9) / COLUMNS, COLUMNS * (COLUMNS - 1) // 2
    marginals = tuple(
        NoisyMarginal(
            "identity",
            LEAVES,
            np.bincount(one, minlength=LEAVES) + geometric(rate, LEAVES, draws),
            rate,
        )
        for one in codes.T
    )
    size = NoisySize(len(codes) + int(geometric(epsilon / 50, 1, draws)[0]), epsilon / 50)
    scores = [
        score_table(marginal.probabilities, 1.0)[one]
        for marginal, one in zip(marginals, codes.T, strict=True)
    ]
    scale = epsilon / 9 / (pairs * SCORE_UNIT**2)
    products = [scores[j] @ scores[k] for j, k in zip(*np.triu_indices(COLUMNS, 1), strict=True)]
    noise = draws.laplace(0, 1 / float(scale), pairs)
    correlation = NoisyCorrelation(
        "spearman",
        SCHEMA.names,
        np.array(products) + np.rint(noise).astype(np.int64),
        0,
        scale,
        {"kept": [1.0] * COLUMNS, "steepness": "1"},
    )
    return DPCopulaRelease(
        receipt=receipt, schema=SCHEMA, marginals=marginals, correlation=correlation, size=size
    )


def simulate(records, epsilon, releases, queries, draws):
    """Return answers of releases of normal data to random queries, and the truths."""
    for _ in range(releases):
        loads = draws.normal(size=(COLUMNS, COLUMNS + 2))
        scale = np.sqrt((loads**2).sum(axis=1))
        normals = draws.standard_normal((records, COLUMNS + 2)) @ (loads / scale[:, None]).T
        skewed = ndtr(normals) ** draws.choice([0.5, 1, 3], COLUMNS)
        codes = np.minimum((LEAVES * skewed).astype(np.int64), LEAVES - 1)
        release = published(codes, epsilon, draws)
        for _ in range(queries):
            chosen = draws.choice(COLUMNS, draws.integers(2, COLUMNS + 1), replace=False)
            ends = np.sort(draws.integers(0, LEAVES, (2, chosen.size)), axis=0)
            query = " and ".join(
                f"c{j} in {low}..{high}" for j, low, high in zip(chosen, *ends, strict=True)
            )
            inside = (codes[:, chosen] >= ends[0]) & (codes[:, chosen] <= ends[1])
            yield release.count_by_model(query), int(inside.all(axis=1).sum())


def coverage(pairs):
    return float(np.mean([answer.low <= truth <= answer.high for answer, truth in pairs]))


@pytest.mark.parametrize(
    ("records", "epsilon"), [(5000, Fraction(1)), (20_000, Fraction(10)), (3000, Fraction(1, 4))]
)
def test_intervals_hold_the_truth_as_often_as_they_claim(records, epsilon, draws, monkeypatch):
    assert 0.93 <= coverage(simulate(records, epsilon, 8, 15, draws)) <= 0.99
    # Twins that leave out the noise of marginals, or that the records are a sample.
    if epsilon < 1:
        monkeypatch.setattr(intervals, "_marginal_half_width", lambda *_: 0.0)
    else:
        monkeypatch.setattr(intervals, "sampling_variance", lambda *_: 0.0)
    assert coverage(simulate(records, epsilon, 4, 15, draws)) < 0.9


def test_more_confidence_and_less_budget_make_wider_intervals(draws):
    codes = draws.integers(0, LEAVES, (2000, COLUMNS))
    widths = [
        published(codes, epsilon, draws).count_by_model(
            "c0 < 20 and c1 < 20", confidence=confidence
        )
        for epsilon, confidence in [(Fraction(4), 0.9), (Fraction(4), 0.99), (Fraction(1, 4), 0.99)]
    ]
    for narrow, wide in pairwise(answer.high - answer.value for answer in widths):
        assert narrow < wide


def test_there_is_no_interval_where_a_marginal_has_none():
    distributions = [ValueDistribution(np.full(8, 1 / 8), 8)] * 2
    half = (np.arange(8) < 4).astype(float)
    merged = NoisyMarginal("noise-first", 8, np.full(8, 10), Fraction(1, 2))
    plain = NoisyMarginal("identity", 8, np.full(8, 10), Fraction(1, 2))
    query = CopulaQuery(np.eye(2), distributions, [half, half])
    deviations = np.zeros((2, 2))
    evidence = TotalEvidence([merged, plain, plain], 80, Fraction(1, 2))
    assert count_half_width(query, [0, 1], deviations, evidence, 0.95) is None
    assert count_half_width(query, [1, 2], deviations, evidence, 0.95) is not None

"""Theorem 3.2.3 of the thesis: with more and more records a release comes to the truth."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from dpublish.data.sources import open_table
from dpublish.datasets.gaussian_copula import (
    correlation_matrix,
    gaussian_copula,
    gaussian_copula_schema,
    marginal_probabilities,
)
from dpublish.methods.dpcopula.dpcopula import DPCopula
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

COLUMNS, VALUES = 3, 60
SIZES = (1_000, 10_000, 100_000)


def publish(records, correlation, marginal):
    rows = gaussian_copula(records, COLUMNS, values=VALUES, marginal=marginal)
    table = open_table(rows, gaussian_copula_schema(COLUMNS, VALUES))
    method = DPCopula(correlation=correlation, shrink=False)
    return method.release(table, budget=Budget.seeded("1"), rng=seeded(records))


@pytest.mark.parametrize("marginal", ["gaussian", "uniform", "zipf"])
@pytest.mark.parametrize("correlation", ["spearman", "kendall", "mle"])
def test_marginals_and_correlations_come_to_the_true_ones(correlation, marginal):
    true, edges = correlation_matrix(COLUMNS), np.cumsum(marginal_probabilities(marginal, VALUES))
    gaps, distances = [], []
    for records in SIZES:
        release = publish(records, correlation, marginal)
        gaps.append(
            max(np.abs(np.cumsum(one.probabilities) - edges).max() for one in release.marginals)
        )
        distances.append(np.abs(release.matrix - true).max())
    assert gaps[2] < 0.3 * gaps[0]
    assert gaps[2] < 0.01
    assert distances[2] < 0.5 * distances[0]
    assert distances[2] < 0.05


def test_rows_of_a_large_release_have_the_taus_of_the_table():
    release = publish(SIZES[-1], "kendall", "gaussian")
    drawn = release.rows(5_000, seed=1)
    true = gaussian_copula(5_000, COLUMNS, values=VALUES, seed=2024)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        here, there = (
            kendalltau(rows[first].to_numpy(), rows[second].to_numpy()).statistic
            for rows in (drawn, true)
        )
        assert here == pytest.approx(there, abs=0.04)

"""Audits on the system's own randomness: mechanisms watched from outside, many times over.

They take about a minute and are run by `make audit`.  Unlike the tests with fixed seeds they
draw afresh every time; bounds are so wide (one in a million each) that red means a bug.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.auditing.black_box import DOUBT, least_loss
from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.selection import select
from dpublish.mechanisms.sparse_counts import sparse_counts
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.mechanisms.top_k import top_k
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure
from dpublish.testing import frequency_p_value

pytestmark = pytest.mark.audit
RUNS = 40_000


def shown(run, here, there, runs=RUNS):
    return least_loss(
        Counter(run(here) for _ in range(runs)), Counter(run(there) for _ in range(runs)), runs
    )


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10), Fraction(1, 1000), Fraction(7, 3)])
def test_noise_from_the_system_follows_its_distribution(rate):
    width = int(30 / rate) + 1
    values = np.arange(-width, width + 1)
    distribution = dict(zip(values.tolist(), noise_pmf(rate, values), strict=True))
    assert (
        frequency_p_value(discrete_laplace(rate, 2_000_000, secure()).tolist(), distribution)
        > DOUBT
    )


def test_a_count_shows_its_budget_and_no_more():
    runs = 2_000_000

    def seen(count, sensitivity=1):
        counts = np.full(runs, count)
        # Every cell is a run of its own, so every cell gets the whole budget.
        noisy = add_geometric(
            counts, sensitivity=sensitivity, budget=Budget.seeded(1), rng=secure()
        )
        return Counter((noisy <= 0).tolist())

    assert 0.97 < least_loss(seen(0), seen(1), runs) <= 1
    assert least_loss(seen(0), seen(2), runs) > 1.5  # the twin that forgets a sensitivity of 2


@pytest.mark.parametrize("method", ["permute-and-flip", "exponential"])
def test_a_choice_shows_no_more_than_its_budget(method):
    def run(scores):
        return select(
            np.array(scores),
            sensitivity_range=1,
            method=method,
            budget=Budget.seeded(1),
            rng=secure(),
        )

    assert 0.5 < shown(run, (4, 0, 0), (4, 1, 0)) <= 1
    assert shown(run, (5, 0, 0), (4, 1, 0)) > 1  # no neighbors: their changes differ by 2


def test_a_ranking_shows_no_more_than_its_budget():
    def run(scores):
        options = {"count": 2, "sensitivity_range": 1, "budget": Budget.seeded(1), "rng": secure()}
        return tuple(top_k(np.array(scores), **options))

    assert 0.3 < shown(run, (6, 0, 0, 0), (6, 1, 1, 0)) <= 1


def test_the_sparse_vector_shows_no_more_than_its_budget():
    def run(answers, positives=2, **changes):
        settings = {
            "sensitivity": 1,
            "max_positives": positives,
            "budget": Budget.seeded(1),
        } | changes
        vector = SparseVector(**settings, rng=secure())
        return tuple(vector.above_each(np.array(answers), 0).tolist())

    here, there = (1, 1, 1, -8, -8), (0, 0, 0, -7, -7)
    assert 0.1 < shown(run, here, there) <= 1
    # The twin of Lee and Clifton pays for one positive and gives five.
    assert shown(lambda a: run(a, budget=Budget.seeded(5), positives=5), here, there) > 1


def test_a_sparse_release_shows_no_more_than_its_budget():
    def run(cells):
        keys = np.array(cells, dtype=np.int64)
        found = sparse_counts(
            keys,
            np.ones_like(keys),
            domain_size=3,
            threshold=1,
            budget=Budget.seeded(1),
            rng=secure(),
        )
        return tuple(found.keys.tolist())

    assert 0.5 < shown(run, (), (1,)) <= 1

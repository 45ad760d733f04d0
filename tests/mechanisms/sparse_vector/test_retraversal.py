"""Retraversal: it is one sparse vector run, whatever the number of passes."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.mechanisms.sparse_vector.retraversal import noisy_order_statistic, retraverse
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value
from mechanisms.sparse_vector.sparse_vector_distribution import (
    mass,
    retraversal_distribution,
    variant_of,
)

SCORES = np.array([4, -6, 9])


def choose(seed=1, scores=SCORES, **changes):
    settings = {
        "count": 2,
        "sensitivity": 1,
        "budget": Budget.seeded(1),
        "rng": seeded(seed),
    } | changes
    return retraverse(scores, **settings)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_choices_are_as_frequent_as_the_proof_assumes(noise):
    settings = {"sensitivity": 1, "monotonic": True, "noise": noise}
    calibration = calibrate(max_positives=2, **settings, budget=Budget.seeded(1))
    rise = round(calibration.answer_deviation)
    gaps = (SCORES - rise).tolist()
    expected = retraversal_distribution(variant_of(calibration, 2), gaps, passes=3)
    samples = [
        tuple(choose(seed, threshold=0, deviations=1, max_passes=3, **settings))
        for seed in range(6000)
    ]
    assert frequency_p_value(samples, expected) > 1e-3
    for twin in (
        retraversal_distribution(variant_of(calibration, 2), gaps, passes=2),
        retraversal_distribution(variant_of(calibration, 3), gaps, passes=3),
        retraversal_distribution(variant_of(calibration, 2), SCORES.tolist(), passes=3),
    ):
        assert frequency_p_value(samples, twin) < 1e-20


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_an_order_statistic_has_noise_for_one_sensitivity(rank):
    settings = {"rank": rank, "sensitivity": 2, "rng": seeded(5)}
    values = [
        noisy_order_statistic(SCORES, **settings, budget=Budget.seeded(1)) for _ in range(6000)
    ]
    center = sorted(SCORES.tolist())[-rank]
    points = np.arange(-90, 91)
    for rate, holds in ((0.5, True), (0.35, False), (0.65, False)):
        expected = dict(zip((points + center).tolist(), mass("laplace", rate, points), strict=True))
        p_value = frequency_p_value(values, expected)
        assert p_value > 1e-3 if holds else p_value < 1e-20


def test_no_record_moves_an_order_statistic_by_more_than_it_moves_a_score():
    rng = plain_generator(3)
    scores = rng.integers(0, 20, (500, 7))
    moved = scores + rng.integers(-2, 3, scores.shape)
    assert np.abs(np.sort(scores, axis=1) - np.sort(moved, axis=1)).max() == 2


def test_a_measured_threshold_and_the_search_add_up_to_the_budget():
    budget = Budget.seeded(1, "search")
    choose(budget=budget)
    spent = {leaf.purpose: leaf.epsilon for leaf in budget.account()}
    assert spent["search/level"] == Fraction(1, 10)
    assert len(spent) == 3
    assert budget.cost() == 1
    assert all(leaf.is_used for leaf in budget.account())
    with pytest.raises(BudgetAlreadyUsed):
        choose(budget=budget)


def test_a_given_threshold_leaves_the_whole_budget_to_the_search():
    budget = Budget.seeded(1, "search")
    choose(budget=budget, threshold=3)
    assert {leaf.purpose for leaf in budget.account()} == {"search/threshold", "search/answers"}


def test_high_scores_are_found_in_many_passes_and_never_twice():
    scores = np.concatenate([np.full(5000, 10), np.full(20, 10**5)])
    chosen = choose(scores=scores, count=20, monotonic=True)
    assert sorted(chosen) == list(range(5000, 5020))


def test_everything_may_be_asked_for():
    chosen = choose(scores=np.array([5, 10**6]), count=9, threshold=-(10**6))
    assert sorted(chosen) == [0, 1]


def test_it_is_content_with_fewer_after_the_last_pass():
    assert choose(scores=np.zeros(30, dtype=np.int64), threshold=10**9, max_passes=3) == []


def test_scores_beyond_all_thresholds_are_no_obstacle():
    extremes = np.array([2**63 - 1, -(2**63), 2**63 - 1])
    assert set(choose(scores=extremes, deviations=0, max_passes=500)) <= {0, 2}


@pytest.mark.parametrize(
    "bad",
    [
        {"count": 0},
        {"max_passes": 0},
        {"deviations": 0.5},
        {"deviations": -1},
        {"threshold": 0.5},
        {"threshold_share": Fraction(1)},
        {"threshold_share": 0.1},
        {"noise": "gaussian"},
        {"ratio": 0.5},
        {"sensitivity": 0},
        {"sensitivity": 2**37},
        {"scores": np.array([0.5])},
        {"scores": np.array([], dtype=np.int64)},
    ],
)
def test_a_refused_call_costs_nothing(bad):
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter):
        choose(**bad, budget=budget)
    assert not budget.is_used


def test_a_rank_that_is_not_there_is_refused_for_free():
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match="rank"):
        noisy_order_statistic(SCORES, rank=4, sensitivity=1, budget=budget, rng=seeded(1))
    assert not budget.is_used

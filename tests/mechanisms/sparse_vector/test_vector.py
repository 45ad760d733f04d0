"""Sparse vector: what it hides, what it says, what it costs."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.mechanisms.sparse_vector.textbook import above_threshold_book, calibrate_book
from dpublish.mechanisms.sparse_vector.vector import SparseVector, above_threshold
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from mechanisms.sparse_vector.sparse_vector_distribution import (
    distribution,
    in_turn,
    loss,
    mass,
    variant_of,
)

KINDS = ["exponential", "laplace"]
ANSWERS = [6, -8, 10, 0]
both_kinds = pytest.mark.parametrize("noise", KINDS)


def calibrated(noise, *, monotonic=False, sensitivity=1, max_positives=2, epsilon=1):
    calibration = calibrate(
        sensitivity=sensitivity,
        max_positives=max_positives,
        monotonic=monotonic,
        noise=noise,
        budget=Budget.seeded(epsilon),
    )
    return variant_of(calibration, max_positives)


def vector(seed=1, **changes):
    defaults = {
        "sensitivity": 1,
        "max_positives": 2,
        "budget": Budget.seeded(1),
        "rng": seeded(seed),
    }
    return SparseVector(**(defaults | changes))


@both_kinds
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("sensitivity", "max_positives"), [(1, 1), (1, 2), (3, 2)])
def test_the_worst_neighbors_learn_the_budget_and_no_more(
    noise, monotonic, sensitivity, max_positives
):
    variant = calibrated(
        noise, monotonic=monotonic, sensitivity=sensitivity, max_positives=max_positives
    )
    near, far = variant.offset + 10 * sensitivity, variant.offset - 60 * sensitivity
    fall = 0 if monotonic else sensitivity
    here = [near] * 16 + [far] * max_positives
    there = [near + sensitivity] * 16 + [far - fall] * max_positives
    assert loss(variant, here, there) == pytest.approx(1, abs=0.01)
    assert loss(variant, here, there) <= 1 + 1e-9
    for twin in (
        replace(variant, answer_rate=variant.answer_rate * 3 / 2),
        replace(variant, threshold_rate=variant.threshold_rate * 2),
    ):
        assert loss(twin, here, there) > 1.1


@both_kinds
@settings(max_examples=60, deadline=None, derandomize=True)
@given(pairs=st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 2)), min_size=1, max_size=4))
def test_no_other_neighbors_learn_more(noise, pairs):
    variant = calibrated(noise, sensitivity=2)
    here, moves = zip(*pairs, strict=True)
    there = [answer + move for answer, move in pairs]
    assert loss(variant, here, there) <= 1 + 1e-9
    together = calibrated(noise, sensitivity=2, monotonic=True)
    for sign in (1, -1):
        there = [answer + sign * abs(move) for answer, move in zip(here, moves, strict=True)]
        assert loss(together, here, there) <= 1 + 1e-9


@both_kinds
def test_the_default_split_makes_the_comparison_least_noisy(noise):
    def variance(ratio):
        found = calibrate(
            sensitivity=1,
            max_positives=50,
            monotonic=False,
            noise=noise,
            ratio=ratio,
            budget=Budget.seeded(1),
        )
        # var of one-sided noise: exp(-r) / (1 - exp(-r))^2
        return sum(
            float(np.exp(-r) / np.expm1(-r) ** 2)
            for r in map(float, (found.threshold_rate, found.answer_rate))
        )

    best = Fraction(100 ** (2 / 3))
    assert variance(None) == pytest.approx(variance(best), rel=1e-4)
    assert variance(best) < min(variance(best * 4 / 5), variance(best * 5 / 4))


@pytest.mark.parametrize(
    ("changes", "shares"),
    [
        ({}, {"threshold": "1/5", "answers": "4/5"}),
        ({"ratio": 1}, {"threshold": "1/2", "answers": "1/2"}),
        ({"ratio": 1, "values_share": Fraction(1, 2)}, {"threshold": "1/4", "values": "1/2"}),
        ({"monotonic": True, "max_positives": 8}, {"threshold": "1/5", "answers": "4/5"}),
    ],
)
def test_the_budget_is_split_by_name_and_spent_to_the_last(changes, shares):
    budget = Budget.seeded(1, "run")
    calibrate(
        **({"sensitivity": 1, "max_positives": 4, "monotonic": False} | changes), budget=budget
    )
    spent = {leaf.purpose.removeprefix("run/"): leaf for leaf in budget.account()}
    assert {name: str(spent[name].epsilon) for name in shares} == shares
    assert budget.cost() == 1
    assert all(leaf.is_used for leaf in spent.values())


def test_values_have_noise_for_all_the_positives_together():
    found = calibrate(
        sensitivity=3,
        max_positives=4,
        monotonic=True,
        values_share=Fraction(1, 4),
        budget=Budget.seeded(2),
    )
    assert found.value_rate == Fraction(1, 2) / 12


def one_at_a_time(noise, seed):
    run = vector(seed, noise=noise)
    outcome = ()
    for answer in ANSWERS:
        outcome += (run.above(answer + 7, 7) or None,)
        if not run.positives_left:
            break
    return outcome


def in_a_block(noise, seed):
    flags = vector(seed, noise=noise).above_each(np.array(ANSWERS), 0)
    return tuple(bool(flag) or None for flag in flags)


def in_two_ways(noise, seed):
    run = vector(seed, noise=noise)
    outcome = (run.above(ANSWERS[0], 0) or None,)
    thresholds = np.array([5, 6, 7])
    flags = run.above_each(np.array(ANSWERS[1:]) + thresholds, thresholds)
    return outcome + tuple(bool(flag) or None for flag in flags)


def by_generator(noise, seed):
    settings = {"threshold": 0, "sensitivity": 1, "max_positives": 2, "noise": noise}
    flags = above_threshold(ANSWERS, **settings, budget=Budget.seeded(1), rng=seeded(seed))
    return tuple(flag or None for flag in flags)


@both_kinds
@pytest.mark.parametrize("run", [one_at_a_time, in_a_block, in_two_ways, by_generator])
def test_outcomes_are_as_frequent_as_the_proof_assumes(noise, run):
    expected = distribution(calibrated(noise), in_turn(ANSWERS))
    samples = [run(noise, seed) for seed in range(4000)]
    assert frequency_p_value(samples, expected) > 1e-3


@both_kinds
def test_noise_of_another_width_or_location_would_be_noticed(noise):
    right = calibrated(noise)
    samples = [in_a_block(noise, seed) for seed in range(12_000)]
    assert frequency_p_value(samples, distribution(right, in_turn(ANSWERS))) > 1e-3
    wrong = [replace(right, redraws=True), replace(right, offset=right.offset + 1)]
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        wrong.append(replace(right, answer_rate=right.answer_rate * factor))
        wrong.append(replace(right, threshold_rate=right.threshold_rate * factor))
    for twin in wrong:
        assert frequency_p_value(samples, distribution(twin, in_turn(ANSWERS))) < 1e-20


def test_a_published_value_has_noise_of_its_own_and_not_the_compared_one():
    values = []
    for seed in range(12_000):
        run = vector(
            seed,
            max_positives=1,
            values_share=Fraction(1, 2),
            budget=Budget.seeded(2),
            noise="laplace",
        )
        if run.above(0, 3):  # the compared value of a positive would seldom be below 0
            values.append(run.noisy_value(0))
    assert len(values) > 3000
    points = np.arange(-60, 61)
    expected = dict(zip(points.tolist(), mass("laplace", 1.0, points), strict=True))
    assert frequency_p_value(values, expected) > 1e-3
    for rate in (0.7, 1.3):
        wrong = dict(zip(points.tolist(), mass("laplace", rate, points), strict=True))
        assert frequency_p_value(values, wrong) < 1e-20


def test_the_textbook_run_is_as_frequent_as_its_proof_assumes():
    calibration = calibrate_book(sensitivity=1, max_positives=2, budget=Budget.seeded(1))
    expected = distribution(variant_of(calibration, 2, redraws=True), in_turn(ANSWERS))
    samples = [book_flags(seed) for seed in range(12_000)]
    assert frequency_p_value(samples, expected) > 1e-3
    right = variant_of(calibration, 2, redraws=True)
    for twin in (
        replace(right, redraws=False),
        replace(right, threshold_rate=right.threshold_rate * 2),
        replace(right, answer_rate=right.answer_rate * 2),
    ):
        assert frequency_p_value(samples, distribution(twin, in_turn(ANSWERS))) < 1e-20


def book_flags(seed):
    settings = {"threshold": 9, "sensitivity": 1, "max_positives": 2}
    answers = np.array(ANSWERS) + 9
    flags = above_threshold_book(answers, **settings, budget=Budget.seeded(1), rng=seeded(seed))
    return tuple(bool(flag) or None for flag in flags)

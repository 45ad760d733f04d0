"""Stored vector: it answers as the proved distribution says, and goes on from a file."""

import json
from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate
from dpublish.mechanisms.sparse_vector.stored import StoredVector, comparison_deviation
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from mechanisms.sparse_vector.sparse_vector_distribution import distribution, in_turn, variant_of

ANSWERS = [-3, 4, 0, 2]
TERMS = {"sensitivity": 1, "max_positives": 2}


def ask(rng, answers=ANSWERS, stores=False):
    vector = StoredVector.draw(**TERMS, budget=Budget.seeded(1), rng=rng)
    told = ()
    for answer in answers:
        if not vector.positives_left:
            break
        if stores:
            vector = StoredVector.from_dict(json.loads(json.dumps(vector.to_dict())))
        is_above, vector = vector.above(answer, 0, rng)
        told = (*told, True if is_above else None)
    return told


def test_outcomes_are_as_frequent_as_the_proof_assumes(rng):
    calibration = calibrate(**TERMS, monotonic=False, budget=Budget.seeded(1))
    samples = [ask(rng) for _ in range(4000)]
    assert (
        frequency_p_value(samples, distribution(variant_of(calibration, 2), in_turn(ANSWERS)))
        > 1e-3
    )
    narrower = variant_of(calibration, 2, answer_rate=2 * calibration.answer_rate)
    assert frequency_p_value(samples, distribution(narrower, in_turn(ANSWERS))) < 1e-9


@pytest.mark.parametrize("monotonic", [False, True])
def test_a_run_that_pays_for_values_tells_outcomes_and_values_with_the_noise_of_its_shares(
    rng, monotonic
):
    terms = TERMS | {"monotonic": monotonic, "values_share": Fraction(1, 2)}
    calibration = calibrate(**terms, budget=Budget.seeded(2))
    samples, errors = [], []
    for _ in range(4000):
        vector = StoredVector.draw(**terms, budget=Budget.seeded(2), rng=rng)
        told = ()
        for answer in ANSWERS:
            if vector.positives_left:
                is_above, vector = vector.above(answer, 0, rng)
                told = (*told, True if is_above else None)
                errors.append(vector.value(answer, rng) - answer)
        samples.append(told)
    expected = distribution(variant_of(calibration, 2), in_turn(ANSWERS))
    assert frequency_p_value(samples, expected) > 1e-3
    rate = float(calibration.value_rate)
    assert rate == 2 / 2 / 2  # half of epsilon 2, for two values
    noise = {k: np.tanh(rate / 2) * np.exp(-rate * abs(k)) for k in range(-60, 61)}
    assert frequency_p_value(errors, noise) > 1e-3
    narrower = {k: np.tanh(rate) * np.exp(-2 * rate * abs(k)) for k in range(-60, 61)}
    assert frequency_p_value(errors, narrower) < 1e-9


def test_values_that_were_not_paid_for_are_refused(rng):
    vector = StoredVector.draw(**TERMS, budget=Budget.seeded(1), rng=rng)
    with pytest.raises(InvalidParameter, match="values_share"):
        vector.value(3, rng)


def test_a_vector_that_was_stored_answers_as_one_that_was_not():
    for seed in range(50):
        assert ask(seeded(seed), stores=True) == ask(seeded(seed))


def test_the_budget_is_spent_when_the_threshold_is_drawn(rng):
    budget = Budget.seeded(1)
    StoredVector.draw(**TERMS, budget=budget, rng=rng)
    assert budget.cost() == 1
    with pytest.raises(BudgetAlreadyUsed):
        StoredVector.draw(**TERMS, budget=budget, rng=rng)


def test_positives_are_counted_and_the_last_one_ends_the_run(rng):
    vector = StoredVector.draw(**TERMS, budget=Budget.seeded(1), rng=rng)
    is_above, vector = vector.above(-(10**9), 0, rng)
    assert (is_above, vector.positives_left) == (False, 2)
    for left in (1, 0):
        is_above, vector = vector.above(2**70, 0, rng)
        assert (is_above, vector.positives_left) == (True, left)
    with pytest.raises(BudgetAlreadyUsed):
        vector.above(0, 0, rng)


def test_the_noisy_threshold_is_not_shown(rng):
    vector = StoredVector.draw(**TERMS, budget=Budget.seeded(Fraction(1, 1000)), rng=rng)
    assert str(vector.threshold_noise) not in repr(vector)


def test_the_deviation_of_a_comparison_is_that_of_both_noises():
    steep, wide = Fraction(100), Fraction(1, 100)
    for rates in ((steep, wide), (wide, steep)):
        found = comparison_deviation(Calibration("exponential", *rates))
        assert found == pytest.approx(100, rel=0.01)
    both = comparison_deviation(Calibration("exponential", wide, wide))
    assert both == pytest.approx(100 * 2**0.5, rel=0.01)

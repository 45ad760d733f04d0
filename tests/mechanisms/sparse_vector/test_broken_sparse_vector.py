"""One audit tells the published blunders from the proved algorithms."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest

from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.mechanisms.sparse_vector.textbook import calibrate_book
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from mechanisms.sparse_vector.broken_sparse_vector import (
    audit,
    chen,
    lecture_notes,
    lee_clifton,
    run,
    stoddard,
    telling_neighbors,
    telling_outcomes,
)
from mechanisms.sparse_vector.sparse_vector_distribution import (
    Variant,
    Walk,
    distribution,
    in_turn,
    probability,
    variant_of,
)

EPSILON = Fraction(1)
POSITIVES = 3
BROKEN = {
    "alg-19": lecture_notes(EPSILON, POSITIVES),
    "alg-20": lee_clifton(EPSILON, POSITIVES),
    "alg-21": stoddard(EPSILON),
    "alg-22": chen(EPSILON),
}


def loss(variant: Variant, **changes) -> float:
    return audit(telling_outcomes(variant), telling_neighbors(variant, **changes))


def standard(monotonic: bool, noise: str) -> Variant:
    calibration = calibrate(
        sensitivity=1,
        max_positives=POSITIVES,
        monotonic=monotonic,
        noise=noise,
        budget=Budget.seeded(EPSILON),
    )
    return variant_of(calibration, POSITIVES)


@pytest.mark.parametrize("name", BROKEN)
def test_the_audit_rejects_the_published_blunders(name):
    assert loss(BROKEN[name]) > 1.5


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize("monotonic", [False, True])
def test_the_audit_accepts_the_proved_algorithm_and_finds_its_whole_cost(monotonic, noise):
    found = loss(standard(monotonic, noise), monotonic=monotonic)
    assert 0.99 < found <= 1 + 1e-9


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_calling_answers_monotonic_that_are_not_is_rejected(noise):
    assert loss(standard(True, noise), monotonic=False) > 1.4


def test_the_audit_accepts_the_textbook_algorithm():
    calibration = calibrate_book(
        sensitivity=1, max_positives=POSITIVES, budget=Budget.seeded(EPSILON)
    )
    assert 0.95 < loss(variant_of(calibration, POSITIVES, redraws=True)) <= 1 + 1e-9
    perturbed_once_for_all = variant_of(
        calibration, POSITIVES, redraws=True, threshold_rate=POSITIVES * calibration.threshold_rate
    )
    assert loss(perturbed_once_for_all) > 1.5  # redraws, but with noise for a single draw


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_the_audit_accepts_retraversal_but_no_fresh_start_in_a_pass(noise):
    calibration = calibrate(
        sensitivity=1, max_positives=1, monotonic=False, noise=noise, budget=Budget.seeded(EPSILON)
    )
    variant, size, passes = variant_of(calibration, 1), 4, 5
    walk = Walk(order=tuple(range(size)), passes=passes)
    pools = [
        [near + variant.offset] * 2 + [far + variant.offset] * 2
        for near in (0, 6, 12)
        for far in (0, -36)
    ]
    moved = [([a, b, c, d], [a + 1, b + 1, c - 1, d - 1]) for a, b, c, d in pools]

    def transcripts(pool, positives=1):
        return distribution(
            replace(variant, max_positives=positives), partial(walk.next_score, scores=pool)
        )

    def perturbed_anew_in_each_pass(pool):
        misses = probability(variant, pool, (None,) * size) ** (passes - 1)
        return {"last": misses * probability(variant, pool, (None,) * (size - 1) + (True,))}

    assert 0.95 < audit(transcripts, moved) <= 1 + 1e-9
    assert audit(partial(transcripts, positives=2), moved) > 1.2  # each pass counts from zero
    assert audit(perturbed_anew_in_each_pass, moved) > 1.2


def test_telling_the_compared_value_costs_more_with_every_negative():
    by_length = [loss(BROKEN["alg-19"], lengths=[length]) for length in (16, 64, 256)]
    assert by_length[1] > by_length[0] + 5
    assert by_length[2] > by_length[1] + 25


def test_noise_that_forgets_the_count_costs_what_the_thesis_says():
    general = loss(BROKEN["alg-20"])
    monotonic = loss(BROKEN["alg-20"], monotonic=True)
    assert general == pytest.approx((1 + 6 * POSITIVES) / 4, abs=0.1)
    assert general <= (1 + 6 * POSITIVES) / 4 + 1e-9
    assert monotonic == pytest.approx((1 + 3 * POSITIVES) / 4, abs=0.1)
    assert monotonic <= (1 + 3 * POSITIVES) / 4 + 1e-9


def test_answers_without_noise_give_neighbors_away_for_certain():
    assert loss(BROKEN["alg-21"], lengths=[1]) == float("inf")


def test_never_stopping_costs_more_with_every_query():
    by_length = [loss(BROKEN["alg-22"], lengths=[length]) for length in (4, 16, 64)]
    assert by_length[0] > 2
    assert by_length[1] > by_length[0] + 5
    assert by_length[2] > by_length[1] + 25


@pytest.mark.parametrize("name", BROKEN)
def test_the_audited_distributions_are_those_of_the_algorithms_as_printed(name):
    answers, rng = [1, -2, 2], seeded(19)
    # One positive is enough where every value told is an outcome of its own.
    variant = replace(BROKEN[name], max_positives=1) if name == "alg-19" else BROKEN[name]
    expected = distribution(variant, in_turn(answers))
    samples = [run(variant, answers, rng) for _ in range(4000)]
    assert frequency_p_value(samples, expected) > 1e-3

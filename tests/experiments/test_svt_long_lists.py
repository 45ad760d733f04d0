"""What is drawn at once on long lists has the distribution of the real mechanisms."""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest

from dpublish.experiments.svt_long_lists import choose_at_once, retraverse_at_once
from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.privacy.budget import Budget
from dpublish.testing import frequency_p_value
from mechanisms.sparse_vector.sparse_vector_distribution import (
    retraversal_distribution,
    variant_of,
)

SCORES = [6, 3, 0]


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_retraversal_at_once_chooses_as_passing_again_and_again(rng, noise):
    passes, threshold, terms = 3, 4, {"sensitivity": 1, "monotonic": True, "noise": noise}
    calibration = calibrate(max_positives=2, budget=Budget.seeded(1), **terms)
    rise = round(Fraction(1, 2) * Fraction(calibration.answer_deviation))
    gaps = [score - threshold - rise for score in SCORES]
    expected = retraversal_distribution(variant_of(calibration, 2), gaps, passes)
    samples = [
        tuple(
            retraverse_at_once(
                np.array(SCORES),
                count=2,
                threshold=threshold,
                deviations=Fraction(1, 2),
                max_passes=passes,
                budget=Budget.seeded(1),
                rng=rng,
                **terms,
            )
        )
        for _ in range(4000)
    ]
    assert frequency_p_value(samples, expected) > 1e-3
    wrong = retraversal_distribution(variant_of(calibration, 2), [gap + 2 for gap in gaps], passes)
    assert frequency_p_value(samples, wrong) < 1e-9


def test_a_private_threshold_is_paid_for_with_the_usual_share(rng):
    budget = Budget.seeded(2)
    chosen = retraverse_at_once(
        np.array([900, 1000, 3, 2]),
        count=2,
        threshold=None,
        deviations=0,
        sensitivity=1,
        monotonic=True,
        noise="laplace",
        budget=budget,
        rng=rng,
    )
    assert sorted(chosen) == [0, 1]
    assert budget.cost() == 2


def test_choosing_at_once_is_choosing_one_after_another(rng):
    epsilon, count = 2.0, 2
    weights = [exp(score * epsilon / count / 4) for score in SCORES]

    def probability(order):
        left, product = list(range(len(SCORES))), 1.0
        for index in order:
            product *= weights[index] / sum(weights[one] for one in left)
            left.remove(index)
        return product

    expected = {order: probability(order) for order in permutations(range(3), 2)}
    samples = [
        tuple(choose_at_once(np.array(SCORES), count, epsilon / 4, rng)) for _ in range(4000)
    ]
    assert frequency_p_value(samples, expected) > 1e-3
    assert len(Counter(samples)) == 6

"""The choice of a threshold: exact odds, a public range, and the sensitivity of ranks."""

from fractions import Fraction
from math import exp, inf

import numpy as np
import pytest

from dpublish.mechanisms.rank_threshold import choose_threshold
from dpublish.methods.wavecluster.privthr_em import PrivTHREM, highest_threshold
from dpublish.methods.wavecluster.wavecluster import WaveTransform, rank_sensitivity
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss
from methods.wavecluster.wave_worlds import square

EPSILON = 1
TENTH = Fraction(1, 10)


def threshold_distribution(exact, highest, percentile, sensitivity, step=1):
    """Probabilities of every threshold on the lattice, one by one, from the definition."""
    positive = [value for value in exact.tolist() if value > 0]
    odds = {}
    for x in range(step, highest + 1, step):
        rank = sum(value >= x for value in positive)
        distance = abs(rank - (1 - percentile) * len(positive))
        odds[x] = exp(-EPSILON * float(distance) / (2 * float(sensitivity)))
    total = sum(odds.values())
    return {x: odd / total for x, odd in odds.items()}


def draw(exact, highest, percentile, sensitivity, runs=3000):
    rng = seeded(11)
    return [
        choose_threshold(
            exact,
            highest=highest,
            percentile=percentile,
            sensitivity=sensitivity,
            budget=Budget.seeded(EPSILON),
            rng=rng,
        )
        for _ in range(runs)
    ]


@pytest.mark.parametrize(
    "exact",
    [[3, 3, 8, -2, 0, 15, 30], [40, 50], [0, -1, 0], [7]],
    ids=["mixed", "above the range", "none", "one"],
)
@pytest.mark.parametrize("percentile", [TENTH, Fraction(1, 3)])
def test_thresholds_are_drawn_with_their_exact_odds(exact, percentile):
    coefficients = np.array(exact)
    drawn = draw(coefficients, 20, percentile, Fraction(1, 4))
    distribution = threshold_distribution(coefficients, 20, percentile, Fraction(1, 4))
    assert frequency_p_value(drawn, distribution) > 1e-4


def test_a_choice_of_half_or_twice_the_sensitivity_is_told_apart():
    coefficients = np.array([3, 3, 8, 12, 14, 15, 17])
    drawn = draw(coefficients, 20, TENTH, Fraction(1, 4))
    for sensitivity in (Fraction(1, 8), Fraction(1, 2)):
        assert (
            frequency_p_value(drawn, threshold_distribution(coefficients, 20, TENTH, sensitivity))
            < 1e-20
        )


def test_integers_beyond_64_bits_are_put_on_a_public_lattice():
    exact = np.array([5 << 70, 9 << 70, -(3 << 70), 1], dtype=object)
    highest = (1 << 75) - 1
    drawn = draw(exact, highest, Fraction(1, 2), Fraction(1), runs=300)
    step = 1 << 25
    assert all(x % step == 0 and step <= x <= highest for x in drawn)
    below = np.mean([x <= 5 << 70 for x in drawn])
    distribution = threshold_distribution(np.array([5, 9, -3, 1]), 31, Fraction(1, 2), Fraction(1))
    assert below == pytest.approx(sum(p for x, p in distribution.items() if x <= 5), abs=0.1)


def worst_loss(wavelet, sensitivity, worlds=300):
    """The largest loss of the choice over neighboring small worlds, computed exactly."""
    transform = WaveTransform((4, 4), wavelet)
    rng = plain_generator(9)
    # Thresholds on a coarse lattice, in the usual scale of the wavelet.
    step = max(int(0.05 / transform.unit), 1)
    highest, loss = 60 * step, 0.0
    for _ in range(worlds):
        counts = rng.integers(0, 4, 16) * (rng.random(16) < rng.random())
        one = np.zeros(16, dtype=np.int64)
        one[rng.integers(16)] = 1
        here, there = transform.apply(counts).ravel(), transform.apply(counts + one).ravel()
        distributions = [
            threshold_distribution(w, highest, TENTH, sensitivity, step) for w in (here, there)
        ]
        loss = max(loss, privacy_loss(*distributions))
    return loss


@pytest.mark.parametrize("wavelet", ["haar", "db2", "bior2.2"])
def test_no_neighbor_is_told_apart_by_more_than_was_paid(wavelet):
    sensitivity = rank_sensitivity(WaveTransform((4, 4), wavelet), TENTH)
    assert 0 < worst_loss(wavelet, sensitivity) <= EPSILON


@pytest.mark.parametrize("wavelet", ["db2", "bior2.2"])
def test_a_wavelet_treated_as_haar_gives_records_away(wavelet):
    assert worst_loss(wavelet, Fraction(1)) > EPSILON


def test_a_range_that_ends_at_the_private_maximum_gives_records_away():
    here, there = np.array([3, 5]), np.array([3, 6])
    private = [threshold_distribution(w, int(w.max()), TENTH, Fraction(1)) for w in (here, there)]
    public = [threshold_distribution(w, 9, TENTH, Fraction(1)) for w in (here, there)]
    assert privacy_loss(*private) == inf
    assert privacy_loss(*public) <= EPSILON


def test_the_range_depends_on_noisy_coefficients_only_and_is_never_empty():
    transform = WaveTransform((4, 4))
    rate = Fraction(7, 10)
    assert highest_threshold(np.array([[-9, -1], [-3, -2]]), transform, rate) >= 1
    assert highest_threshold(np.zeros((2, 2), dtype=np.int64), transform, Fraction(10**9)) == 1
    noise = highest_threshold(np.zeros((2, 2), dtype=np.int64), transform, rate)
    assert highest_threshold(np.array([[0, 30], [2, 1]]), transform, rate) == 30 + noise


def test_the_release_holds_the_threshold_and_takes_what_is_at_least_that():
    table = square([(0.1, 0.1)] * 60 + [(0.9, 0.9)] * 40)
    method = PrivTHREM(cells=4, percentile=Fraction(1, 2))
    release = method.release(table, budget=Budget.seeded(5), rng=seeded(2))
    sums = release.counts.reshape(2, 2, 2, 2).sum(axis=(1, 3)) / 2  # Haar: sums / 2 in the plane
    assert ((release.labels >= 0) == (sums >= release.threshold)).all()
    assert release.chosen is None
    assert "rank" not in release.metadata()

import json

import numpy as np
import pytest

from dpublish.methods.streams.filtering import Estimate, Scales, Track, first_estimate, update
from dpublish.randomness import plain_generator

BINS = 400
SCALES = Scales((BINS,))
NONE = np.zeros(SCALES.degrees.size)
STILL = Track(np.zeros(BINS), np.zeros(BINS), NONE, NONE)


def noisy(truth, scale, rng):
    return np.rint(truth + rng.laplace(0, scale, truth.size)).astype(np.int64)


def follow(truths, scale, *, smoothing, seed=1):
    """Mean squared error of the belief after each of several publications."""
    rng, variance, errors = plain_generator(seed), 2 * scale**2, []
    belief = None
    for number, truth in enumerate(truths, 1):
        released = noisy(truth, scale, rng)
        if belief is None:
            belief = first_estimate(released, variance, number, scales=SCALES, smoothing=smoothing)
        else:
            belief = update(belief, released, variance, number, scales=SCALES, smoothing=smoothing)
        errors.append(float(np.mean((belief.at(number).level - truth) ** 2)))
    return np.array(errors), belief


def uneven_counts(seed=3, n=100_000):
    rng = plain_generator(seed)
    return rng.multinomial(n, rng.dirichlet(np.full(BINS, 0.7))).astype(np.int64)


def test_without_change_publications_are_averaged():
    truth = uneven_counts()
    errors, belief = follow([truth] * 9, 20, smoothing=True)
    assert errors[-1] < 0.2 * errors[0]  # a ninth would be perfect
    assert SCALES.mean(belief.at(belief.number).variance) < 0.2 * 800


def test_the_variance_it_claims_is_the_error_it_has():
    truth = uneven_counts()
    errors, belief = follow([truth] * 5, 20, smoothing=True)
    assert belief.at(belief.number).error == pytest.approx(errors[-1], rel=0.3)


def test_after_a_jump_the_past_is_forgotten():
    errors, belief = follow([uneven_counts(1)] * 5 + [uneven_counts(2)], 20, smoothing=True)
    plain, _ = follow([uneven_counts(1)] * 5 + [uneven_counts(2)], 20, smoothing=False)
    assert errors[-1] < 1.1 * plain[-1]
    assert belief.jump > 10_000


def test_smoothing_never_costs_much_however_fast_the_counts_move():
    rng = plain_generator(5)
    for speed in (0, 5, 20, 50, 200):
        steps = np.cumsum(rng.normal(0, speed, (12, BINS)), axis=0) + 500
        smooth, _ = follow(steps, 20, smoothing=True)
        plain, _ = follow(steps, 20, smoothing=False)
        assert smooth[1:].mean() < 1.05 * plain[1:].mean()


def test_noise_alone_is_drawn_to_an_even_histogram_of_the_right_total():
    truth = np.full(BINS, 3, dtype=np.int64)
    errors, belief = follow([truth], 100, smoothing=True)
    assert errors[0] < 0.1 * 20_000
    assert belief.at(1).level.sum() == pytest.approx(truth.sum(), abs=4 * 100 * (2 * BINS) ** 0.5)


def test_bins_that_move_together_count_for_more_than_bins_that_move_apart():
    rng, base = plain_generator(7), Estimate(1, STILL, STILL)
    apart = np.rint(rng.normal(0, 10, BINS)).astype(np.int64)
    together = np.full(BINS, 10, dtype=np.int64)
    moved_apart = update(base, apart, 1.0, 2, scales=SCALES, smoothing=True)
    moved_together = update(base, together, 1.0, 2, scales=SCALES, smoothing=True)
    assert moved_together.jump == pytest.approx(moved_apart.jump, rel=0.3)
    assert moved_together.shift > 10 * moved_apart.shift


def test_one_bin_is_a_histogram_too():
    single = Scales((1,))
    belief = first_estimate(np.array([5]), 2.0, 1, scales=single, smoothing=True)
    assert belief.at(1).level.tolist() == [5.0]
    again = update(belief, np.array([7]), 2.0, 2, scales=single, smoothing=True)
    assert 5 <= again.at(2).level[0] <= 7


def test_steady_drift_is_carried_on():
    rng = plain_generator(9)
    slopes, start = rng.normal(0, 15, BINS), 2_000
    truths = [np.rint(start + step * slopes) for step in range(30)]
    smooth, belief = follow(truths, 20, smoothing=True)
    plain, _ = follow(truths, 20, smoothing=False)
    assert smooth[15:].mean() < 0.7 * plain[15:].mean()
    later = np.mean((belief.at(33).level - (start + 32 * slopes)) ** 2)
    stale = np.mean((start + 29 * slopes - (start + 32 * slopes)) ** 2)
    assert later < 0.6 * stale


def test_what_is_written_down_is_read_back():
    _, belief = follow([uneven_counts(1), uneven_counts(2), uneven_counts(1)], 20, smoothing=True)
    plain, arrays = belief.to_dict()
    again = Estimate.from_dict(json.loads(json.dumps(plain)), arrays)
    for number in (3, 5):
        assert again.at(number).level.tolist() == belief.at(number).level.tolist()
        assert again.at(number).variance.tolist() == belief.at(number).variance.tolist()
        assert again.at(number).error == belief.at(number).error


SHAPES = [(1,), (7,), (100,), (10, 10), (3, 50, 2), (5, 1, 4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_wavelets_are_orthonormal_and_undone_exactly(shape):
    scales, values = Scales(shape), plain_generator(3).normal(0, 5, int(np.prod(shape)))
    coefficients = scales.transform(values)
    assert scales.invert(coefficients) == pytest.approx(values)
    assert np.sum(coefficients**2) == pytest.approx(np.sum(values**2))
    assert scales.degrees.sum() == values.size
    unit = np.eye(values.size)
    rows = np.stack([scales.transform(row) for row in unit])
    assert rows @ rows.T == pytest.approx(unit, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_even_histogram_is_all_in_one_coefficient_of_the_coarsest_scale(shape):
    scales = Scales(shape)
    coefficients = scales.transform(np.full(int(np.prod(shape)), 3.0))
    assert np.flatnonzero(np.abs(coefficients) > 1e-9).tolist() == [0]
    assert scales.scale[0] == scales.degrees.size - 1


def test_what_moves_in_large_blocks_is_followed_though_bins_drown_in_noise():
    """Half of the bins rise by 30 and half fall, with noise of deviation 28 in each."""
    start, half = np.zeros(BINS), np.where(np.arange(BINS) < BINS // 2, 30.0, -30.0)
    errors = []
    for seed in range(8):
        rng = plain_generator(seed)
        belief = first_estimate(noisy(start, 20, rng), 800.0, 1, scales=SCALES, smoothing=True)
        belief = update(
            belief, noisy(start + half, 20, rng), 800.0, 9, scales=SCALES, smoothing=True
        )
        level = belief.at(9).level
        errors.append(abs(level[: BINS // 2].sum() - 30.0 * (BINS // 2)))
    assert np.mean(errors) < 0.1 * 30 * (BINS // 2)


def test_a_noisy_publication_does_not_spoil_a_good_estimate():
    """Twenty times the noise must not move bins by more than a small part of it."""
    truth, rng = uneven_counts(), plain_generator(4)
    belief = first_estimate(noisy(truth, 5, rng), 50.0, 1, scales=SCALES, smoothing=True)
    before = np.mean((belief.at(1).level - truth) ** 2)
    belief = update(belief, noisy(truth, 100, rng), 20_000.0, 50, scales=SCALES, smoothing=True)
    assert np.mean((belief.at(50).level - truth) ** 2) < before + 0.05 * 20_000

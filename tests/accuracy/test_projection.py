"""Noisy counts become possible counts: nearest, whole, not negative, same total."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpublish.accuracy.projection import plausible_counts, project_nonnegative, round_to_total

COUNTS = st.lists(st.integers(-50, 50), min_size=1, max_size=6)


@given(COUNTS, st.integers(1, 100))
def test_the_projection_is_the_nearest_possible_point(counts, total):
    values = np.array(counts, dtype=float)
    found = project_nonnegative(values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    # Optimality: no transfer from one positive cell to another comes nearer.
    distance = ((found - values) ** 2).sum()
    for i in np.flatnonzero(found > 1e-9):
        for j in range(len(counts)):
            if i != j:
                step = min(found[i], 0.01)
                moved = found.copy()
                moved[i] -= step
                moved[j] += step
                assert ((moved - values) ** 2).sum() >= distance - 1e-9


def test_a_general_optimizer_finds_the_same_point():
    values = np.array([4.0, -3.0, 0.5, 7.0])
    slow = minimize(
        lambda v: ((v - values) ** 2).sum(),
        np.full(4, 2.0),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 8},
    ).x
    assert project_nonnegative(values, 8) == pytest.approx(slow, abs=1e-5)


def test_clamping_instead_would_be_biased_and_the_projection_is_not():
    rng = np.random.Generator(np.random.Philox(5))
    truth = np.zeros(1000)
    truth[:10] = 500
    noisy = np.rint(truth + rng.laplace(0, 10, 1000)).astype(np.int64)
    clamped = np.maximum(noisy, 0)
    assert clamped.sum() - truth.sum() > 3000  # about 1/(2ε) for every empty cell
    assert abs(plausible_counts(noisy).sum() - truth.sum()) < 1500


@given(COUNTS)
def test_whole_counts_keep_the_total_or_are_all_zero(counts):
    whole = plausible_counts(np.array(counts))
    assert whole.dtype == np.int64
    assert whole.min() >= 0
    assert whole.sum() == max(sum(counts), 0)


def test_shape_is_kept_and_nothing_is_fine_too():
    assert plausible_counts(np.array([[1, -1], [2, 2]])).shape == (2, 2)
    assert plausible_counts(np.empty(0, dtype=np.int64)).size == 0
    assert round_to_total(np.array([0.5, 0.5])).tolist() == [1, 0]


def test_a_total_lost_beside_large_counts_gives_zeros():
    assert project_nonnegative(np.array([10**6, 5]), 1e-12).tolist() == [0, 0]

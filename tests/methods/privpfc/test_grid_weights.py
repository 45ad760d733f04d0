"""Weights of a noisy grid: integers that keep the total and the sums along its axes."""

import numpy as np
import pytest

from dpublish.accuracy.projection import plausible_counts
from dpublish.methods.privpfc.grid_weights import grid_weights
from dpublish.randomness import plain_generator


def test_sums_of_slices_are_kept_where_clipping_would_move_them():
    draws = plain_generator(5)
    true = np.zeros((6, 5, 20), dtype=np.int64)
    true[:, :, 0] = draws.integers(800, 1600, (6, 5))
    true[:, :, 1] = 20
    noisy = true + np.rint(draws.laplace(0, 25, true.shape)).astype(np.int64)
    total = int(true.sum())
    weights = grid_weights(noisy, total)
    clipped = plausible_counts(noisy, total)
    assert weights.sum() == total
    assert weights.min() >= 0
    off, off_clipped = (abs(int(w[:, :, 2:].sum())) for w in (weights, clipped))
    assert off_clipped > 3 * off


@pytest.mark.parametrize("shape", [(), (4,), (1, 3), (2, 1, 2), (3, 2, 2, 2)])
@pytest.mark.parametrize("total", [0, 1, 57])
def test_weights_add_up_whatever_noise_did(shape, total):
    for noisy in (np.full(shape, -9), np.zeros(shape, np.int64), np.full(shape, 1 << 40)):
        found = grid_weights(noisy, total)
        assert found.sum() == total
        assert found.min() >= 0


def test_without_records_nothing_has_weight():
    assert not grid_weights(np.array([[3, -2], [1, 0]]), 0).any()

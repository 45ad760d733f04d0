"""Repair: what comes out is a correlation matrix, near what went in."""

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.correlation import (
    SMALLEST_EIGENVALUE,
    pair_matrix,
    repair_correlation,
)

REPAIRS = ("clip", "nearest", "shrink")


def noisy_matrices(columns, count=20):
    rng = np.random.Generator(np.random.Philox(key=3))
    for _ in range(count):
        pairs = rng.laplace(0.3, 0.8, columns * (columns - 1) // 2)
        yield pair_matrix(pairs, columns, 1)


@pytest.mark.parametrize("repair", REPAIRS)
@pytest.mark.parametrize("columns", [2, 3, 8, 20])
def test_what_comes_out_is_a_correlation_matrix(repair, columns):
    for matrix in noisy_matrices(columns):
        repaired = repair_correlation(matrix, repair)
        assert np.array_equal(np.diag(repaired), np.ones(columns))
        assert np.array_equal(repaired, repaired.T)
        assert np.abs(repaired).max() <= 1
        assert np.linalg.eigvalsh(repaired)[0] > SMALLEST_EIGENVALUE / 100
        np.linalg.cholesky(repaired)


@pytest.mark.parametrize("repair", REPAIRS)
def test_a_sound_matrix_stays_as_it_is(repair):
    sound = pair_matrix(np.array([0.5, -0.2, 0.1]), 3, 1)
    assert np.array_equal(repair_correlation(sound, repair), sound)


def test_the_nearest_is_nearer_than_the_others():
    for matrix in noisy_matrices(6):
        clipped = np.clip(matrix, -1, 1)
        far = {x: np.linalg.norm(repair_correlation(matrix, x) - clipped) for x in REPAIRS}
        assert far["nearest"] <= min(far.values()) + 1e-4


def test_absolute_eigenvalues_would_turn_noise_into_correlation():
    crooked = pair_matrix(np.array([0.9, 0.9, -0.9]), 3, 1)
    values, vectors = np.linalg.eigh(crooked)
    folded = (vectors * np.abs(values)) @ vectors.T
    scale = np.sqrt(np.diag(folded))
    folded = folded / np.outer(scale, scale)
    gap = np.linalg.norm(repair_correlation(crooked) - crooked)
    assert gap < np.linalg.norm(folded - crooked)


def test_an_unknown_repair_is_refused():
    with pytest.raises(InvalidParameter, match="repair"):
        repair_correlation(np.eye(2), "absolute")

"""Real Fourier coefficients: an orthonormal change of basis, and its integer form."""

from math import sqrt

import numpy as np
import pytest

from dpublish.methods.marginals.fourier import (
    WHOLE_BITS,
    coefficients,
    from_coefficients,
    whole_basis,
)
from dpublish.randomness import plain_generator

SIZES = [1, 2, 3, 4, 7, 8, 31, 100]


@pytest.mark.parametrize("size", SIZES)
def test_the_transform_is_orthonormal(size):
    matrix = np.array([coefficients(one) for one in np.eye(size)])
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_some_coefficients_give_back_the_nearest_values_that_have_no_others(size):
    values = plain_generator(size).normal(size=size)
    every = coefficients(values)
    np.testing.assert_allclose(from_coefficients(every, size), values, atol=1e-12)
    for kept in range(1, size, 2):
        smooth = from_coefficients(every[:kept], size)
        left = np.concatenate([every[:kept], np.zeros(size - kept)])
        np.testing.assert_allclose(coefficients(smooth), left, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_whole_basis_is_the_transform_to_half_a_unit(size):
    matrix = np.array([coefficients(one) for one in np.eye(size)]).T
    units = matrix * sqrt(size) * 2**WHOLE_BITS
    whole = whole_basis(size, range(size))
    assert whole.dtype == np.int64
    assert np.abs(whole - units).max() <= 0.5 + 1e-6
    np.testing.assert_array_equal(whole_basis(size, range(size))[size // 2 :], whole[size // 2 :])

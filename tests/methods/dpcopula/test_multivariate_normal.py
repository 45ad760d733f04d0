"""Probabilities of boxes under a normal distribution, against SciPy's."""

from itertools import product
from math import inf

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from dpublish.methods.dpcopula.multivariate_normal import (
    Steps,
    box_probabilities,
    condition,
    expected_products,
)


@pytest.fixture
def draws():
    return np.random.Generator(np.random.Philox(11))


def correlations(m, draws):
    loads = draws.normal(size=(m, m + 1))
    matrix = loads @ loads.T
    scale = np.sqrt(np.diag(matrix))
    return matrix / np.outer(scale, scale)


def reference(matrix, lower, upper):
    distribution = multivariate_normal(cov=matrix, abseps=1e-6, releps=1e-4, maxpts=200_000)
    return np.array([distribution.cdf(b, lower_limit=a) for a, b in zip(lower, upper, strict=True)])


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
def test_probabilities_of_boxes_are_those_of_the_normal_distribution(m, draws):
    matrix = correlations(m, draws)
    lower = draws.normal(size=(10, m)) - 0.5
    upper = lower + draws.uniform(0.3, 2.5, size=(10, m))
    lower[draws.random(lower.shape) < 0.2] = -inf
    upper[draws.random(upper.shape) < 0.2] = inf
    found, known = box_probabilities(matrix, lower, upper), reference(matrix, lower, upper)
    assert np.all(np.abs(found - known) <= 1e-2 * known + 5e-5)
    if m > 1:  # a twin that forgets correlations
        alone = np.prod(ndtr(upper) - ndtr(lower), axis=1)
        assert np.any(np.abs(alone - known) > 1e-2 * known + 5e-5)


def test_nearly_dependent_variables_are_no_obstacle(draws):
    axes = np.linalg.qr(draws.normal(size=(4, 4)))[0]
    matrix = axes @ np.diag([2.0, 1.5, 0.5, 1e-6]) @ axes.T
    matrix = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    lower = draws.normal(size=(10, 4)) - 0.7
    upper = lower + draws.uniform(0.5, 2, size=(10, 4))
    found, known = box_probabilities(matrix, lower, upper), reference(matrix, lower, upper)
    assert np.abs(found - known).max() < 2e-3


def test_a_variable_without_limits_says_nothing(draws):
    matrix = correlations(4, draws)
    lower = np.array([[-1.0, -inf, 0.2, -inf], [-inf, -inf, -inf, -inf]])
    upper = np.array([[1.0, inf, inf, inf], [inf, inf, inf, inf]])
    used = [0, 2]
    smaller = box_probabilities(matrix[np.ix_(used, used)], lower[:1, used], upper[:1, used])
    assert box_probabilities(matrix, lower, upper).tolist() == [smaller[0], 1.0]


def test_empty_boxes_have_no_probability_and_no_boxes_no_answer(draws):
    matrix = correlations(3, draws)
    assert (
        box_probabilities(matrix, np.full((2, 3), 0.5), np.array([[0.5, 1, 1], [1, 1, 0.5]])).sum()
        == 0
    )
    assert box_probabilities(matrix, np.empty((0, 3)), np.empty((0, 3))).shape == (0,)


def test_products_of_steps_are_sums_of_boxes(draws):
    matrix = correlations(3, draws)
    ends = np.array([-inf, -0.6, 0.3, inf])
    weights = np.array([[0.5, 0, 1.0], [0.2, 1.0, 0.4], [0, 0, 0.7]])
    steps = Steps(*(np.broadcast_to(e, (1, 3, 3)) for e in (ends[:-1], ends[1:])), weights[None])
    boxes = np.array(list(product(range(3), repeat=3)))
    heights = np.prod([weights[j][boxes[:, j]] for j in range(3)], axis=0)
    known = heights @ box_probabilities(matrix, ends[:-1][boxes], ends[1:][boxes])
    assert expected_products(matrix, steps)[0] == pytest.approx(known, rel=5e-3)
    nothing = Steps(steps.lower, steps.upper, np.zeros((1, 3, 3)))
    assert expected_products(matrix, nothing)[0] == 0


def test_a_box_is_its_conditional_probability_averaged_over_one_variable(draws):
    matrix = correlations(3, draws)
    lower, upper = np.array([[-0.5, -1.0, -0.2]]), np.array([[1.0, 0.4, 1.5]])
    steps = Steps(lower[..., None], upper[..., None], np.ones((1, 3, 1)))
    grid = np.linspace(-1.0, 0.4, 201)
    given = expected_products(*condition(matrix, steps.repeat(grid.size), 1, grid))
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    averaged = np.trapezoid(given * density, grid)
    assert averaged == pytest.approx(box_probabilities(matrix, lower, upper)[0], rel=5e-3)


def test_equal_queries_have_equal_answers(draws):
    matrix = correlations(5, draws)
    lower = draws.normal(size=(300, 5)) - 1
    together = box_probabilities(matrix, lower, lower + 1, points=256)
    assert np.array_equal(together, box_probabilities(matrix, lower, lower + 1, points=256))

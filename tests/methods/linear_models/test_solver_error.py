"""Weights are published with noise that hides how far the search may have stopped short."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.methods.linear_models.solver_error import publish_weights
from dpublish.privacy.budget import Budget
from replay import Tape, path_loss, playing

EPSILON = Fraction(1, 50)


def published(weights, error):
    tape = Tape()
    with playing(tape):
        publish_weights(weights, error=error, budget=Budget.seeded(EPSILON), rng=tape.source)
    return tape


@pytest.mark.parametrize("size", [1, 4, 17])
@pytest.mark.parametrize("error", [Fraction(1, 3), Fraction(1, 10**6)])
def test_weights_that_err_to_opposite_sides_cost_epsilon_and_no_more(size, error):
    """Two tables give the same minimum, and both searches are off by as much as they may be."""
    minimum = np.linspace(-1, 1, size)
    apart = float(error) / np.sqrt(size) * np.where(np.arange(size) % 2, 1, -1)
    here, there = (published(minimum + sign * apart, error) for sign in (1, -1))
    assert 0.99 * EPSILON <= path_loss(here, there) <= EPSILON

"""Published weights: the noise hides how far two computed vectors may lie apart."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.mechanisms.lattice import floor_units
from dpublish.model_fitting import solver_error
from dpublish.model_fitting.solver_error import publish_weights
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

ERROR = Fraction(1, 1 << 20)


@pytest.mark.parametrize("size", [1, 3, 16])
def test_weights_on_either_side_of_the_same_reals_lose_no_more_than_the_budget(size, monkeypatch):
    """Both may be off by `error` in L2, in opposite directions; in L1 all coordinates add up."""
    asked = []

    def add_laplace(values, *, sensitivity, budget, rng):
        asked.append((values, sensitivity))
        return original(values, sensitivity=sensitivity, budget=budget, rng=rng)

    original = solver_error.add_laplace
    monkeypatch.setattr(solver_error, "add_laplace", add_laplace)
    away = float(ERROR) / size**0.5 * np.ones(size)
    for weights in (0.25 + away, 0.25 - away):
        publish_weights(weights, error=ERROR, budget=Budget(1), rng=seeded(1))
    (one, sensitivity), (other, same) = asked
    assert sensitivity == same
    apart = np.abs(floor_units(one, -40) - floor_units(other, -40)).sum() / 2.0**40
    assert 0.99 * float(sensitivity) <= apart <= float(sensitivity)

"""The weights of a released linear model as scikit-learn keeps them: in the owner's units."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.features import INTERCEPT
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.types import FloatArray


class Weights(NamedTuple):
    """Weights, intercepts and what is weighed."""

    coef: FloatArray
    intercept: FloatArray
    names: NDArray[Any]


def released_weights(release: LinearModelRelease) -> Weights:
    """Read weights and intercepts: a row for each score."""
    table = release.coefficients()
    weights = table["weight_in_own_units"].to_numpy().reshape(len(release.scored), -1)
    names = np.array(table["feature"].to_pylist()[: weights.shape[1]], dtype=object)
    is_weight = names != INTERCEPT
    return Weights(
        weights[:, is_weight],
        weights[:, ~is_weight].sum(axis=1),
        names[is_weight],
    )


def own_weights(
    release: LinearModelRelease, scored: Sequence[Any], classes: NDArray[Any]
) -> Weights:
    """Order the rows by the owner's classes; of two, the second one is scored."""
    found = released_weights(release)
    if len(scored) == 1:
        sign = 1.0 if scored[0] == classes[-1] else -1.0
        return Weights(sign * found.coef, sign * found.intercept, found.names)
    order = np.argsort(np.array(scored))
    return Weights(found.coef[order], found.intercept[order], found.names)

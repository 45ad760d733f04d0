"""Draw the cells of synthetic rows from marginals joined by correlated normal variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from scipy.special import ndtri

from dpublish.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LeafDistribution:
    """The probabilities of a column's leaves, of which the first `ordinary` are ordered.

    A normal variable behind the column chooses among the ordinary leaves.  Whether one of the
    special leaves (unlisted, missing) takes the place of its choice depends on nothing else.
    """

    probabilities: FloatArray
    ordinary: int

    @property
    def special(self) -> float:
        """Probability of all special leaves."""
        return float(self.probabilities[self.ordinary :].sum())

    @cached_property
    def ordinary_probabilities(self) -> FloatArray:
        """Probabilities of the ordinary leaves, given that it is one; even if none has any."""
        listed = self.probabilities[: self.ordinary]
        total = listed.sum()
        return listed / total if total > 0 else np.full(self.ordinary, 1 / self.ordinary)

    @cached_property
    def reached(self) -> FloatArray:
        """Probability of an ordinary leaf up to and including each."""
        sums = np.cumsum(self.ordinary_probabilities)
        return np.asarray(sums / sums[-1])  # the last is 1 in spite of rounding

    @cached_property
    def ends(self) -> FloatArray:
        """Value of the normal variable up to which each ordinary leaf is chosen."""
        return np.asarray(ndtri(self.reached))

    @cached_property
    def starts(self) -> FloatArray:
        """Value of the normal variable beyond which each ordinary leaf is chosen."""
        return np.concatenate([[-inf], self.ends[:-1]])

    def choose(self, normals: FloatArray, rng: np.random.Generator) -> IntArray:
        """Turn values of the normal variable into leaves.

        A leaf is the first whose end is reached, so one without probability is never chosen.
        """
        leaves = np.searchsorted(self.ends, normals, side="left").astype(np.int64)
        if self.special > 0:
            replaced = np.flatnonzero(rng.random(normals.size) < self.special)
            sums = np.cumsum(self.probabilities[self.ordinary :])
            part = (1 - rng.random(replaced.size)) * sums[-1]  # above 0, up to all of it
            leaves[replaced] = self.ordinary + np.searchsorted(sums, part, side="left")
        return leaves


def draw_codes(
    matrix: FloatArray,
    distributions: Mapping[str, LeafDistribution],
    n: int,
    rng: np.random.Generator,
) -> dict[str, IntArray]:
    """Draw the leaf codes of `n` rows.

    Args:
        matrix: Correlations of the normal variables behind the columns, positive definite.
        distributions: Probabilities of each column's leaves, in the order of the matrix.
        n: How many rows.
        rng: Source of the draws; rows are post-processing, so it need not be secure.
    """
    normals = np.linalg.cholesky(matrix) @ rng.standard_normal((len(matrix), n))
    pairs = zip(distributions.items(), normals, strict=True)
    return {name: distribution.choose(values, rng) for (name, distribution), values in pairs}

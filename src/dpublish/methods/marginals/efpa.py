"""Publish the lowest Fourier coefficients of a column's counts, as many as are worth their noise.

All that meets the data is whole: the transform is rounded to integers beforehand, so
coefficients, scores and their sensitivities are exact.  Noise falls on real coefficients.
(Noise on the magnitude of complex ones, with the exact phase kept, is not private.)

Known as: EFPA.
Reference: G. Ács, C. Castelluccia, R. Chen, "Differentially Private Histogram Publishing
through Lossy Compression", ICDM 2012.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.selection import select
from dpublish.methods.marginals.fourier import WHOLE_BITS, whole_basis
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

CHOICE, NUMBERS = 3, 7
"""Weights of the choice of how many coefficients are kept, and of the coefficients."""
_TOTAL_LIMIT = 1 << 41  # times an entry of the transform, below 2**17, it stays in an int64
_ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Spectrum:
    """The transform of so many `leaves`, in integers, and what one record does to it."""

    leaves: int

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Numbers of coefficients to choose from: odd, growing by two fifths, to leaves^(2/3).

        >>> Spectrum(100).candidates
        (1, 3, 5, 7, 11, 17)
        """
        found = [1]
        while (following := -(-found[-1] * 7 // 5) // 2 * 2 + 1) ** 3 <= self.leaves**2:
            found.append(following)
        return tuple(found)

    @cached_property
    def reaches(self) -> dict[int, int]:
        """Most that one record moves the first coefficients, all together (L1), in units."""
        sums = np.cumsum(np.abs(self._basis(range(self.candidates[-1]))), axis=0)
        return {kept: int(sums[kept - 1].max()) for kept in self.candidates}

    @cached_property
    def choice_range(self) -> int:
        """Range sensitivity of the costs: most that one record moves two of them apart, in units.

        Let K keep fewer coefficients than L, and let p be what a record adds to the
        coefficients that only L keeps, q to those that neither keeps.  The norms left out
        differ by sqrt(x^2 + y^2) - y, where x and y are the norms of these two groups.  That
        grows with x at a rate between 0 and 1 and falls with y likewise, so it moves by at most
        |p| + |q|; counts by value leave nothing out.  Rounding norms down adds less than 2.
        """
        squares = self._squares_up_to((self.candidates[0], *self.candidates[1:], self.leaves))
        largest = 0
        for kept in range(1, len(squares)):
            gained = squares[kept] - squares[0]
            left_out = squares[-1] - squares[kept]
            for pair in np.unique(np.stack([gained, left_out]), axis=1).T.tolist():
                largest = max(largest, sum(_root_above(square) for square in pair))
        return largest + 1

    def _squares_up_to(self, ends: tuple[int, ...]) -> list[NDArray[np.int64]]:
        """Add up the squares of the first rows of the transform, by leaf, for each end."""
        sums, total = [], np.zeros(self.leaves, dtype=np.int64)
        for start, end in zip((0, *ends), ends, strict=False):
            for rows in self._blocks(start, end):
                total = total + (self._basis(rows) ** 2).sum(axis=0)
            sums.append(total)
        return sums

    def transform(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compute all coefficients in units, exactly.

        Counts so high that the sums would not fit are moved to a limit, which brings
        neighbors no farther apart.
        """
        limit = _TOTAL_LIMIT // self.leaves
        inside = np.clip(counts, -limit, limit)
        return np.concatenate([self._basis(rows) @ inside for rows in self._blocks(0, self.leaves)])

    def norms_left_out(self, coefficients: NDArray[np.int64]) -> list[int]:
        """Compute, for each candidate, the norm of all other coefficients, rounded down."""
        squares = [value * value for value in coefficients.tolist()]
        return [isqrt(sum(squares[kept:])) for kept in self.candidates]

    def noise_norms(self, epsilon: Fraction) -> list[int]:
        """Predict the norm of the noise for each candidate, and for counts by leaf, in units."""
        coefficients = [sqrt(2 * kept) * reach for kept, reach in self.reaches.items()]
        by_leaf = sqrt(2 * self.leaves) * 2**WHOLE_BITS * sqrt(self.leaves)
        return [round(norm / float(epsilon)) for norm in (*coefficients, by_leaf)]

    def _blocks(self, start: int, end: int) -> list[range]:
        starts = range(start, end, _ROWS_AT_ONCE)
        return [range(first, min(first + _ROWS_AT_ONCE, end)) for first in starts]

    def _basis(self, rows: range) -> NDArray[np.int64]:
        return whole_basis(self.leaves, rows)


def _root_above(square: int) -> int:
    """Return the smallest integer whose square is at least `square`."""
    root = isqrt(square)
    return root if root * root == square else root + 1


@lru_cache(maxsize=64)
def spectrum(leaves: int) -> Spectrum:
    """Make the transform, or take it from those made before."""
    return Spectrum(leaves)


def release_efpa(counts: NDArray[np.int64], *, budget: Budget, rng: RandomSource) -> NoisyMarginal:
    """Publish the noisy lowest coefficients of `counts`, or noisy counts if these are better.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one leaf.  The choice: a candidate's cost is the norm of the coefficients that it
        leaves out, plus a public number; two of these norms are nested, so one record moves
        them apart by at most `choice_range`, below sqrt(2) times the norm of its own image.
        The numbers: the coefficients kept move by at most `reaches` in all (L1), counts by
        leaf by 1, and get geometric noise for that.  All are integers, computed exactly.
        Proof: docs/proofs/marginals.md.
    """
    budgets = budget.split(choice=CHOICE, numbers=NUMBERS)
    plan = spectrum(counts.size)
    exact = plan.transform(counts)
    epsilon = budgets["numbers"].epsilon
    left_out = [*plan.norms_left_out(exact), 0]
    noise = plan.noise_norms(epsilon)
    costs = [min(left + perturb, 1 << 62) for left, perturb in zip(left_out, noise, strict=True)]
    chosen = select(
        -np.array(costs, dtype=np.int64),
        sensitivity_range=plan.choice_range,
        budget=budgets["choice"],
        rng=rng,
    )
    if chosen == len(plan.candidates):
        noisy = add_geometric(counts, sensitivity=1, budget=budgets["numbers"], rng=rng)
        return NoisyMarginal("efpa", counts.size, noisy, epsilon)
    kept = plan.candidates[chosen]
    reach = plan.reaches[kept]
    noisy = add_geometric(exact[:kept], sensitivity=reach, budget=budgets["numbers"], rng=rng)
    rate = epsilon / reach
    return NoisyMarginal("efpa", counts.size, noisy, rate, exponent=-WHOLE_BITS, kept=kept)

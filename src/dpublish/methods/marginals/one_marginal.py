"""Publish the marginal of one column by the method that suits its number of leaves.

What suits is decided from public facts alone, never from the counts: a choice by the data
would have to be paid for, and costs more than it gains.
"""

from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.marginals.count_hierarchy import count_hierarchy
from dpublish.methods.marginals.efpa import CHOICE, NUMBERS, release_efpa, spectrum
from dpublish.methods.marginals.hierarchical import best_branching, release_hierarchical
from dpublish.methods.marginals.noisy_marginal import MOST_MERGED, NoisyMarginal, PublishedMethod
from dpublish.methods.marginals.released import middle_half
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MarginalMethod = Literal["auto", "identity", "hierarchical", "efpa", "noise-first"]
MOST_SINGLE = 128
"""Most leaves that are counted one by one unless another method is named."""
_NORMAL = 1.96
_FEW = 64  # sums of more terms are as good as normal


def choose_marginal(method: MarginalMethod, leaves: int) -> PublishedMethod:
    """Choose how to count so many leaves, or check that a named method can.

    >>> choose_marginal("auto", 100), choose_marginal("auto", 1000)
    ('identity', 'hierarchical')
    """
    require_known("method", method, get_args(MarginalMethod))
    require_count(leaves=leaves)
    if method == "auto":
        return "identity" if leaves <= MOST_SINGLE else "hierarchical"
    if method in ("efpa", "noise-first") and leaves > MOST_MERGED:
        raise InvalidParameter(
            f"{method} takes at most {MOST_MERGED:,} values of a column, not {leaves:,}; "
            "use hierarchical, or coarser bins"
        )
    return method


def require_marginal(method: MarginalMethod, leaves: int, epsilon: Fraction) -> None:
    """Refuse from public facts what `release_marginal` would refuse."""
    chosen = choose_marginal(method, leaves)
    if chosen == "hierarchical":
        require_rate(epsilon / count_hierarchy(leaves, best_branching(leaves)).levels)
    elif chosen == "efpa":
        plan = spectrum(leaves)
        require_rate(epsilon * NUMBERS / (CHOICE + NUMBERS) / max(plan.reaches.values()))
        require_rate(epsilon * CHOICE / (CHOICE + NUMBERS) / plan.choice_range)
    else:
        require_rate(epsilon)


def release_marginal(
    counts: NDArray[np.int64], *, method: MarginalMethod, budget: Budget, rng: RandomSource
) -> NoisyMarginal:
    """Publish the marginal of a column from the exact counts of its leaves.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one leaf.  Which method is used depends on the number of leaves only.  Counts leaf by
        leaf (identity, noise-first) move by 1 in all and get two-sided geometric noise of
        rate epsilon; runs are then chosen from noisy counts alone.  The others argue for
        themselves: `release_hierarchical`, `release_efpa`.

    >>> from dpublish.randomness import seeded
    >>> counts = np.array([40, 30, 20, 10])
    >>> release_marginal(counts, method="auto", budget=Budget.seeded(2), rng=seeded(1)).bins.size
    4
    """
    require_marginal(method, counts.size, budget.epsilon)
    chosen = choose_marginal(method, counts.size)
    if chosen == "hierarchical":
        return release_hierarchical(counts, budget=budget, rng=rng)
    if chosen == "efpa":
        return release_efpa(counts, budget=budget, rng=rng)
    rate = budget.epsilon
    noisy = add_geometric(counts, sensitivity=1, budget=budget, rng=rng)
    return NoisyMarginal(chosen, counts.size, noisy, rate)


def marginal_reach(method: MarginalMethod, leaves: int, epsilon: Fraction) -> float:
    """Predict the error (95 %) of counting the records in the middle half of the leaves.

    Noise alone is predicted.  For noise-first and efpa it is that of counting leaf by leaf
    with what they leave for the numbers; on marginals that suit them they do better.
    """
    require_marginal(method, leaves, epsilon)
    chosen = choose_marginal(method, leaves)
    if chosen == "hierarchical":
        levels = count_hierarchy(leaves, best_branching(leaves)).levels
        return _NORMAL * sqrt(_middle_weight(leaves) * noise_variance(epsilon / levels))
    rate = epsilon * NUMBERS / (CHOICE + NUMBERS) if chosen == "efpa" else epsilon
    terms = -(-leaves // 2)
    if terms <= _FEW:
        return float(sum_quantile(rate, terms, 0.95))
    return _NORMAL * sqrt(terms * noise_variance(rate))


@lru_cache(maxsize=256)
def _middle_weight(leaves: int) -> float:
    """Add up the squares of what each node of the tree weighs in a count of the middle half."""
    nodes = count_hierarchy(leaves, best_branching(leaves)).adjoint(middle_half(leaves))
    return float(nodes @ nodes)

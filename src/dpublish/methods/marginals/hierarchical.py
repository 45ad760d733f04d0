"""Count a column's leaves and ever longer runs of them, and perturb every count.

Known as: hierarchical histogram with consistency (boosting).
Reference: M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of Differentially
Private Histograms Through Consistency", VLDB 2010; W. Qardaji, W. Yang, N. Li, "Understanding
Hierarchical Methods for Differentially Private Histograms", VLDB 2013.
"""

import numpy as np
from numpy.typing import NDArray

from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.marginals.count_hierarchy import count_hierarchy
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

WIDEST = 40
"""Most children of a node; wider trees have long sums, deeper ones more noise in each count."""


def best_branching(leaves: int) -> int:
    """Choose how wide the tree is: of the fewest levels that do, but at least two, even ones.

    Measured on marginals of many shapes (docs/methods/marginals.md), even levels do better than
    a fixed width, which often leaves a top level of very few nodes.

    >>> best_branching(1000), best_branching(4096), best_branching(100_000)
    (32, 16, 18)
    """
    levels = 2
    while WIDEST**levels < leaves:
        levels += 1
    width = 2
    while width**levels < leaves:
        width += 1
    return width


def release_hierarchical(
    counts: NDArray[np.int64], *, budget: Budget, rng: RandomSource
) -> NoisyMarginal:
    """Publish noisy counts of all nodes of a tree over the leaves.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one leaf.  The tree depends on the number of leaves only.  A record lies in one node of
        each of its h levels, so all counts together move by h and get two-sided geometric
        noise of rate epsilon / h.
    """
    width = best_branching(counts.size)
    tree = count_hierarchy(counts.size, width)
    rate = budget.epsilon / tree.levels
    noisy = add_geometric(tree.totals(counts), sensitivity=tree.levels, budget=budget, rng=rng)
    return NoisyMarginal("hierarchical", counts.size, noisy, rate, branching=width)

"""Least squares on a tree of noisy counts, where children add up to their parent.

Every box has at most one noisy count, with a variance of its own.  The counts that add up
along the tree and lie nearest to the noisy ones, each weighed by its variance, are found in
two sweeps: upward, what a box and all below it tell about its count; downward, what all the
rest adds.  They are linear in the noisy counts, so the sweeps run backwards give the weight
of every noisy count in any sum of estimates, and with it a confidence interval.

Known as: constrained inference, hierarchical consistency, here for unequal variances.
Why it is least squares: docs/proofs/boxes.md.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpublish.types import FloatArray, IntArray

SMALLEST_VARIANCE = 1e-280
"""Stands for the variance of counts that are all but exact, so that weights stay finite."""


@dataclass(frozen=True, eq=False)
class BoxTree:
    """The shape of a tree of sums, and how well each node was counted.

    Attributes:
        parents: The node above each; -1 for node 0, the root.  Parents come before children.
        variances: Variance of each node's noisy count; infinite where it was not counted,
            which no node without children may be.

    >>> tree = BoxTree(np.array([-1, 0, 0]), np.array([2.0, 1.0, 1.0]))
    >>> tree.estimate(np.array([10.0, 3.0, 3.0])).tolist()
    [8.0, 4.0, 4.0]
    >>> tree.adjoint(np.array([0.0, 1.0, 0.0])).tolist()
    [0.25, 0.75, -0.25]
    """

    parents: IntArray
    variances: FloatArray

    @cached_property
    def _levels(self) -> tuple[IntArray, ...]:
        """The nodes at each depth below the root, from the top."""
        depths = np.zeros(self.parents.size, dtype=np.int64)
        above = self.parents[1:]
        while True:  # as often as the tree is deep
            deeper = depths[above] + 1
            if np.array_equal(deeper, depths[1:]):
                break
            depths[1:] = deeper
        order = np.argsort(depths, kind="stable").astype(np.int64)
        cuts = np.searchsorted(depths[order], np.arange(1, int(depths.max()) + 1))
        return tuple(np.split(order, cuts)[1:])

    def _sum_up(self, values: FloatArray, nodes: IntArray) -> FloatArray:
        """Add the values of nodes of one depth up by parent, for all nodes of the tree."""
        above = self.parents[nodes]
        return np.asarray(np.bincount(above, values[nodes], self.parents.size), dtype=np.float64)

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How much each node trusts its own count, its share of a correction, its variance."""
        variances = np.maximum(self.variances, SMALLEST_VARIANCE)
        own = np.ones_like(variances)
        shares = np.ones_like(variances)
        for nodes in reversed(self._levels):
            below = self._sum_up(variances, nodes)
            shares[nodes] = variances[nodes] / below[self.parents[nodes]]
            above = np.unique(self.parents[nodes])
            precisions = 1 / variances[above], 1 / below[above]
            variances[above] = 1 / (precisions[0] + precisions[1])
            own[above] = precisions[0] * variances[above]
        return own, shares, variances

    @property
    def total_variance(self) -> float:
        """Variance of the root's estimate."""
        return float(self._weights[2][0])

    def estimate(self, counts: FloatArray) -> FloatArray:
        """Compute the counts of all nodes that add up and are nearest to the noisy `counts`.

        A node that was not counted has the count 0 there.
        """
        own, shares, _ = self._weights
        upward = own * counts
        sums = []
        for nodes in reversed(self._levels):
            below = self._sum_up(upward, nodes)
            upward += (1 - own) * below  # zero but for the parents of these nodes
            sums.append(below)
        for nodes, below in zip(self._levels, reversed(sums), strict=True):
            surplus = (upward - below)[self.parents[nodes]]
            upward[nodes] += shares[nodes] * surplus
        return upward

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Compute the weight of each noisy count in the sum of `weights` times the estimates."""
        own, shares, _ = self._weights
        passed = weights.astype(np.float64)
        for nodes in reversed(self._levels):
            moved = self._sum_up(shares * passed, nodes)
            passed += moved
            passed[nodes] -= moved[self.parents[nodes]]
        for nodes in self._levels:
            passed[nodes] += ((1 - own) * passed)[self.parents[nodes]]
        return own * passed

    def nonnegative(self, estimates: FloatArray) -> FloatArray:
        """Find counts that are not negative and add up, near to estimates that add up.

        From the root down, the count of a node is dealt out among its children: the nearest
        non-negative counts that add up to it.  What is known of large boxes is kept so.

        >>> tree = BoxTree(np.array([-1, 0, 0, 0]), np.ones(4))
        >>> tree.nonnegative(np.array([6.0, 5.0, -2.0, 3.0])).tolist()
        [6.0, 4.0, 0.0, 2.0]
        """
        found = np.maximum(estimates, 0.0)
        for nodes in self._levels:
            parents = self.parents[nodes]
            order = np.lexsort((-estimates[nodes], parents))
            values, above = estimates[nodes][order], parents[order]
            starts = np.flatnonzero(np.diff(above, prepend=-1))
            sizes = np.diff(starts, append=above.size)
            sums = np.cumsum(values)
            sums -= np.repeat(sums[starts] - values[starts], sizes)
            ranks = np.arange(above.size) - np.repeat(starts, sizes) + 1
            # The answer is max(value - level, 0); the level is the highest of these.
            levels = np.maximum.reduceat((sums - found[above]) / ranks, starts)
            dealt = np.maximum(values - np.repeat(levels, sizes), 0.0)
            found[nodes[order]] = np.where(found[above] > 0, dealt, 0.0)
        return found

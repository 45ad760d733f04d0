"""Publish a tree of noisy marginals: which columns hang together, and counts of those pairs.

It is the network of degree one that PrivBayes would choose, over equal bins of a box.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.dependence import DISTANCE
from dpublish.core.noisy_size import NoisySize
from dpublish.data.box import Box
from dpublish.data.table import Table
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.selection import select
from dpublish.methods.kmeans.kernel_pair_counts import PairCounts
from dpublish.methods.kmeans.marginal_synopsis import ROOT, MarginalTree
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

STRUCTURE, COUNTS = 3, 7
"""Weights of the choice of pairs and of their counts."""
_USEFUL = 4  # average count of a cell, in units of its noise
_FEW, _MANY = 16, 32  # fine bins


class Bins(NamedTuple):
    """How many equal bins a column has in its own table, and in those of its children."""

    fine: int
    coarse: int


def choose_bins(size: int, dimensions: int, epsilon: Fraction) -> Bins:
    """Choose the bins so that a count stands out of its noise on average.

    Both numbers are powers of two, so that coarse bins are made of whole fine ones.

    >>> choose_bins(48_842, 6, Fraction(1, 5)), choose_bins(100, 6, Fraction(1, 5))
    (Bins(fine=16, coarse=16), Bins(fine=16, coarse=1))
    """
    counts = epsilon * COUNTS / (STRUCTURE + COUNTS)
    cells = int(max(size, 0) * counts / (_USEFUL * dimensions))
    fine = _MANY if cells >= _MANY**2 else _FEW
    coarse = 1
    while coarse < fine and 2 * coarse * fine <= cells:
        coarse *= 2
    return Bins(fine, coarse)


def require_pairs(box: Box) -> None:
    """Refuse more columns than every two of which can be looked at; from public facts."""
    PairCounts(box, _MANY)


def publish_tree(
    table: Table,
    box: Box,
    records: NoisySize,
    *,
    budget: Budget,
    rng: RandomSource,
) -> MarginalTree:
    """Choose a tree over the columns of `box`, and perturb the counts of its pairs.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The bins
        follow from the noisy number of records.  Each column but the first costs one choice
        among pairs, whose scores a record pulls apart by at most `DISTANCE.sensitivity_range`
        (docs/proofs/bayes_network.md).  A record lies in one cell of each of the d tables, so
        their counts move by d in all and get geometric noise for that.  The first column is
        drawn at random, whatever the rows hold; where a parent has one bin only, so is the
        tree, and all of the budget goes to the counts.
    """
    dimensions = box.dimensions
    bins = choose_bins(records.value, dimensions, budget.epsilon)
    kernel = PairCounts(box, bins.fine)
    if bins.coarse == 1:
        budgets = budget.split(counts=1)
        choices: list[Budget] = []
    else:
        budgets = budget.split(structure=STRUCTURE, counts=COUNTS)
        choices = budgets["structure"].split_evenly(dimensions - 1)
    tables = _roll_up(kernel, table.sum(kernel), bins)
    order, parents = _choose(tables, dimensions, choices, rng=rng)
    edges = list(zip(parents[1:], order[1:], strict=True))
    above = tables[order[1], order[0]].sum(axis=0)
    exact = np.concatenate([above, *(tables[edge].ravel() for edge in edges)])
    sensitivity = dimensions * kernel.sensitivity(table.neighbors)
    rate = budgets["counts"].epsilon / sensitivity
    noisy = add_geometric(exact, sensitivity=sensitivity, budget=budgets["counts"], rng=rng)
    shape = (dimensions - 1, bins.coarse, bins.fine)
    return MarginalTree(
        tuple(order),
        tuple(parents),
        noisy[: bins.fine],
        noisy[bins.fine :].reshape(shape),
        rate,
        records,
    )


def _roll_up(
    kernel: PairCounts, counts: NDArray[np.int64], bins: Bins
) -> dict[tuple[int, int], NDArray[np.int64]]:
    """Give, for every parent and child, counts by coarse bin of the one and fine of the other."""
    found = {}
    for (first, second), one in zip(kernel.pairs, counts, strict=True):
        for parent, child, table in ((first, second, one), (second, first, one.T)):
            merged = table.reshape(bins.coarse, -1, bins.fine).sum(axis=1)
            found[parent, child] = merged
    return found


def _choose(
    tables: dict[tuple[int, int], NDArray[np.int64]],
    dimensions: int,
    budgets: list[Budget],
    *,
    rng: RandomSource,
) -> tuple[list[int], list[int]]:
    """Choose a column and one above it, again and again; without budgets, at random."""
    scores = {pair: DISTANCE.measure(counts) for pair, counts in tables.items()}
    order = [int(uniform_below(dimensions, 1, rng)[0])]
    parents = [ROOT]
    while len(order) < dimensions:
        options = [
            (above, below) for above in order for below in range(dimensions) if below not in order
        ]
        if budgets:
            chosen = select(
                np.array([scores[option] for option in options], dtype=np.int64),
                sensitivity_range=DISTANCE.sensitivity_range,
                budget=budgets[len(order) - 1],
                rng=rng,
            )
        else:
            chosen = int(uniform_below(len(options), 1, rng)[0])
        parents.append(options[chosen][0])
        order.append(options[chosen][1])
    return order, parents

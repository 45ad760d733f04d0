"""The hierarchical marginal: a record counts once on each level, and the noise pays for that."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.marginals.count_hierarchy import count_hierarchy
from dpublish.methods.marginals.hierarchical import best_branching, release_hierarchical
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value

EPSILON = Fraction(1)
LEAVES = 70


def too_little_noise(counts, *, budget, rng):
    """A broken twin: every level gets noise as if it were the only one."""
    width = best_branching(counts.size)
    tree = count_hierarchy(counts.size, width)
    rate = budget.epsilon
    noisy = add_geometric(tree.totals(counts), sensitivity=1, budget=budget, rng=rng)
    return NoisyMarginal("hierarchical", counts.size, noisy, rate, branching=width)


def hidden_noise(counts, *, budget, rng):
    """A broken twin: as the first, but it claims the noise that it should have."""
    marginal = too_little_noise(counts, budget=budget, rng=rng)
    tree = count_hierarchy(marginal.leaves, marginal.branching)
    rate = marginal.rate / tree.levels
    return NoisyMarginal("hierarchical", LEAVES, marginal.units, rate, branching=marginal.branching)


def noise_is_as_told(release):
    counts = plain_generator(1).integers(0, 50, LEAVES)
    noise = []
    for seed in range(150):
        marginal = release(counts, budget=Budget.seeded(EPSILON), rng=seeded(seed))
        exact = count_hierarchy(LEAVES, marginal.branching).totals(counts)
        noise += (marginal.units - exact).tolist()
    outcomes = np.arange(-120, 121)
    distribution = dict(zip(outcomes.tolist(), noise_pmf(marginal.rate, outcomes), strict=True))
    return frequency_p_value(noise, distribution) > 1e-6


def worst_loss(release):
    """Largest loss between neighbors: rate times how far all nodes move together."""
    marginal = release(
        np.zeros(LEAVES, dtype=np.int64), budget=Budget.seeded(EPSILON), rng=seeded(1)
    )
    tree = count_hierarchy(LEAVES, marginal.branching)
    moves = [int(tree.totals(one).sum()) for one in np.eye(LEAVES, dtype=np.int64)]
    return marginal.rate * max(moves)


def test_the_loss_is_epsilon_and_no_more():
    assert noise_is_as_told(release_hierarchical)
    assert worst_loss(release_hierarchical) == EPSILON


@pytest.mark.parametrize("twin", [too_little_noise, hidden_noise])
def test_noise_for_one_level_only_is_caught(twin):
    assert not (noise_is_as_told(twin) and worst_loss(twin) <= EPSILON)


def test_the_whole_budget_is_spent():
    budget = Budget.seeded("0.3")
    marginal = release_hierarchical(np.arange(200), budget=budget, rng=seeded(1))
    assert budget.is_used
    assert marginal.rate == Fraction(3, 20)  # two levels


@pytest.mark.parametrize(
    ("leaves", "levels"),
    [(1, 1), (2, 1), (4, 2), (200, 2), (1600, 2), (1601, 3), (64_000, 3), (64_001, 4)],
)
def test_the_tree_has_few_even_levels(leaves, levels):
    tree = count_hierarchy(leaves, best_branching(leaves))
    assert tree.levels == levels
    assert tree.branching <= 40

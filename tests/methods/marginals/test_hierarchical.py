"""Hierarchical marginals: noise for every level, and estimates by least squares."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.audit import frequency_p_value
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.hierarchical import CountHierarchy, best_branching, count_hierarchy
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.one_marginal import release_hierarchical
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator
from methods.marginals.count_runs import run_of

EPSILON = Fraction(1)
SHAPES = [(1, 2), (2, 2), (3, 2), (5, 2), (16, 16), (17, 16), (33, 4), (64, 4), (100, 3)]
LEAVES = 70


def too_little_noise(run, counts, *, budget):
    """A broken twin: every level gets noise as if it were the only one."""
    width = best_branching(counts.size)
    tree = count_hierarchy(counts.size, width)
    rate = budget.epsilon
    noisy = run.add_noise(tree.totals(counts), sensitivity=1, budget=budget)
    return NoisyMarginal("hierarchical", counts.size, noisy, rate, branching=width)


def hidden_noise(run, counts, *, budget):
    """A broken twin: as the first, but it claims the noise that it should have."""
    marginal = too_little_noise(run, counts, budget=budget)
    tree = count_hierarchy(marginal.leaves, marginal.branching)
    rate = marginal.rate / tree.levels
    return NoisyMarginal("hierarchical", LEAVES, marginal.units, rate, branching=marginal.branching)


def noise_is_as_stated(release):
    counts = plain_generator(1).integers(0, 50, LEAVES)
    noise = []
    for seed in range(150):
        marginal = release(run_of(seed), counts, budget=Budget.seeded(EPSILON))
        exact = count_hierarchy(LEAVES, marginal.branching).totals(counts)
        noise += (marginal.units - exact).tolist()
    outcomes = np.arange(-120, 121)
    distribution = dict(zip(outcomes.tolist(), noise_pmf(marginal.rate, outcomes), strict=True))
    return frequency_p_value(noise, distribution) > 1e-6


def worst_loss(release):
    """Largest loss between neighbors: rate times how far all nodes move together."""
    marginal = release(run_of(1), np.zeros(LEAVES, dtype=np.int64), budget=Budget.seeded(EPSILON))
    tree = count_hierarchy(LEAVES, marginal.branching)
    moves = [int(tree.totals(one).sum()) for one in np.eye(LEAVES, dtype=np.int64)]
    return marginal.rate * max(moves)


def test_the_loss_is_epsilon_and_no_more():
    assert noise_is_as_stated(release_hierarchical)
    assert worst_loss(release_hierarchical) == EPSILON


@pytest.mark.parametrize("twin", [too_little_noise, hidden_noise])
def test_noise_for_one_level_only_is_caught(twin):
    assert not (noise_is_as_stated(twin) and worst_loss(twin) <= EPSILON)


def test_the_whole_budget_is_spent():
    budget = Budget.seeded("0.3")
    marginal = release_hierarchical(run_of(1), np.arange(200), budget=budget)
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


# --- the tree -----------------------------------------------------------------------------------


def design(tree):
    """Which leaves each node holds, a row for each node."""
    return np.array([tree.totals(one) for one in np.eye(tree.leaves, dtype=np.int64)]).T


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_the_estimate_is_that_of_least_squares(leaves, branching):
    tree, rng = CountHierarchy(leaves, branching), plain_generator(leaves)
    noisy = rng.normal(size=tree.nodes)
    best = np.linalg.lstsq(design(tree), noisy, rcond=None)[0]
    np.testing.assert_allclose(tree.estimate(noisy), best, atol=1e-9)


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_the_adjoint_is_how_much_each_node_weighs_in_a_sum(leaves, branching):
    tree, rng = CountHierarchy(leaves, branching), plain_generator(leaves)
    noisy, weights = rng.normal(size=tree.nodes), rng.normal(size=leaves)
    assert tree.adjoint(weights) @ noisy == pytest.approx(weights @ tree.estimate(noisy))


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_a_record_lies_in_one_node_of_each_level(leaves, branching):
    tree = CountHierarchy(leaves, branching)
    assert (design(tree).sum(axis=0) == tree.levels).all()
    assert max(tree.sizes[0], 2) <= max(branching, 2)
    assert branching ** (tree.levels - 1) < leaves or leaves == 1


@pytest.mark.parametrize(("leaves", "branching"), [(5, 2), (100, 3), (100, 16), (130, 12), (9, 9)])
def test_no_leaf_is_perturbed_more_than_the_first(leaves, branching):
    inverse = np.linalg.pinv(design(CountHierarchy(leaves, branching)))
    variances = (inverse**2).sum(axis=1)
    assert variances.max() == pytest.approx(variances[0])


def test_exact_counts_are_left_as_they_are():
    counts = np.array([7, 0, 3, 12, 1], dtype=np.int64)
    tree = count_hierarchy(5, 2)
    totals = tree.totals(counts)
    assert totals.dtype == np.int64
    np.testing.assert_allclose(tree.estimate(totals.astype(float)), counts, atol=1e-12)


def test_a_tree_needs_leaves_and_a_width():
    with pytest.raises(InvalidParameter):
        CountHierarchy(0, 2)
    with pytest.raises(InvalidParameter):
        CountHierarchy(4, 1)

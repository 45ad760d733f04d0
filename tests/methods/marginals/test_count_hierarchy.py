"""A tree of counts: its estimate is least squares, whatever the number of leaves."""

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.count_hierarchy import CountHierarchy, count_hierarchy
from dpublish.randomness import plain_generator

SHAPES = [(1, 2), (2, 2), (3, 2), (5, 2), (16, 16), (17, 16), (33, 4), (64, 4), (100, 3)]


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
def test_the_adjoint_tells_how_much_each_node_weighs_in_a_sum(leaves, branching):
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

"""Junction trees: sums over cliques are those over all combinations of classes."""

from itertools import combinations, product
from math import log, prod

import numpy as np
import pytest

from dpublish.methods.synth.junction_tree import JunctionTree, count_cells, find_cliques
from dpublish.randomness import plain_generator

SEEDS = range(40)


def make_graph(seed):
    """Draw the sizes of up to six columns, and sets of one to three of them."""
    rng = plain_generator(seed)
    number = int(rng.integers(1, 7))
    sizes = [int(x) for x in rng.integers(1, 4, number)]
    sets = [
        tuple(sorted(rng.choice(number, int(rng.integers(1, min(3, number) + 1)), replace=False)))
        for _ in range(int(rng.integers(0, number + 2)))
    ]
    return rng, sizes, [tuple(int(i) for i in one) for one in sets]


def make_potentials(tree, rng, impossible):
    """Draw logarithms of potentials; some cells are impossible, but never all."""
    allowed = tuple(int(rng.integers(0, size)) for size in tree.sizes)
    found = []
    for clique, shape in zip(tree.cliques, tree.shapes, strict=True):
        table = rng.normal(0, 3, shape)
        table[rng.random(shape) < impossible] = -np.inf
        at = tuple(allowed[i] for i in clique)
        table[at] = 0.5
        found.append(table)
    return found


def full_joint(tree, potentials):
    """Multiply all potentials out: one number for every combination of all columns."""
    found = np.zeros(tree.sizes)
    for clique, table in enumerate(potentials):
        found = found + over_all(tree, clique, table)
    return np.exp(found)


def over_all(tree, clique, table):
    """Give a clique's table an axis for every column."""
    members = tree.cliques[clique]
    return table.reshape([size if i in members else 1 for i, size in enumerate(tree.sizes)])


def marginal(joint, columns):
    """Add up a joint table over all other columns."""
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in columns))


def running_intersection(cliques, parents):
    """Check that the cliques with a column hang together, for every column."""
    for column in {i for clique in cliques for i in clique}:
        holding = [number for number, clique in enumerate(cliques) if column in clique]
        tops = [
            number
            for number in holding
            if parents[number] < 0 or column not in cliques[parents[number]]
        ]
        if len(tops) != 1:
            return False
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_cliques_hold_every_set_and_every_column(seed):
    _, sizes, sets = make_graph(seed)
    cliques = find_cliques(sizes, sets)
    for wanted in [*sets, *((i,) for i in range(len(sizes)))]:
        assert any({*wanted} <= {*clique} for clique in cliques)
    for one, other in combinations(cliques, 2):
        assert not {*one} <= {*other}
        assert not {*other} <= {*one}
    assert count_cells(sizes, sets) == sum(prod(sizes[i] for i in one) for one in cliques)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_has_running_intersection_and_parents_come_first(seed):
    _, sizes, sets = make_graph(seed)
    tree = JunctionTree.of(sizes, sets)
    assert sorted(tree.cliques) == sorted(find_cliques(sizes, sets))
    assert tree.parents[0] == -1
    assert all(0 <= parent < number for number, parent in enumerate(tree.parents) if number)
    assert running_intersection(tree.cliques, tree.parents)


def test_cliques_that_are_no_tree_are_told_apart():
    assert running_intersection(((0, 1), (1, 2), (2, 3)), (-1, 0, 1))
    assert not running_intersection(((0, 1), (1, 2), (0, 2)), (-1, 0, 1))


def test_columns_without_sets_are_cliques_of_their_own():
    tree = JunctionTree.of([2, 3, 4], [])
    assert sorted(tree.cliques) == [(0,), (1,), (2,)]
    assert tree.separators == ((), (), ())


@pytest.mark.parametrize("impossible", [0.0, 0.35])
@pytest.mark.parametrize("seed", SEEDS)
def test_beliefs_are_the_marginals_of_the_full_joint(seed, impossible):
    rng, sizes, sets = make_graph(seed)
    tree = JunctionTree.of(sizes, sets)
    potentials = make_potentials(tree, rng, impossible)
    joint = full_joint(tree, potentials)
    beliefs = tree.beliefs(potentials)
    assert beliefs.log_sum == pytest.approx(log(joint.sum()), rel=1e-12, abs=1e-10)
    for clique, table in zip(tree.cliques, beliefs.tables, strict=True):
        wanted = marginal(joint, clique) / joint.sum()
        assert np.allclose(table, wanted, rtol=1e-9, atol=1e-14)
        assert np.all(table[wanted == 0] == 0)


@pytest.mark.parametrize("impossible", [0.0, 0.35])
@pytest.mark.parametrize("seed", SEEDS)
def test_joints_of_any_columns_and_all_pairs_are_those_of_the_full_joint(seed, impossible):
    rng, sizes, sets = make_graph(seed)
    tree = JunctionTree.of(sizes, sets)
    potentials = make_potentials(tree, rng, impossible)
    joint = full_joint(tree, potentials)
    joint /= joint.sum()
    tables = tree.beliefs(potentials).tables
    for number in range(1, min(4, len(sizes)) + 1):
        for columns in combinations(range(len(sizes)), number):
            assert np.allclose(tree.joint(tables, columns), marginal(joint, columns), atol=1e-12)
    pairs = tree.pairs(tables)
    assert set(pairs) == set(combinations(range(len(sizes)), 2))
    for columns, table in pairs.items():
        assert np.allclose(table, marginal(joint, columns), atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_conditionals_multiply_to_the_joint(seed):
    rng, sizes, sets = make_graph(seed)
    tree = JunctionTree.of(sizes, sets)
    potentials = make_potentials(tree, rng, 0.2)
    joint = full_joint(tree, potentials)
    tables = tree.beliefs(potentials).tables
    found = np.ones(tree.sizes)
    for clique, shared in enumerate(tree.separators):
        given = tree.conditional(tables, clique, shared)
        found = found * over_all(tree, clique, given)
    assert np.allclose(found, joint / joint.sum(), atol=1e-12)


def test_huge_and_tiny_potentials_do_not_overflow():
    tree = JunctionTree.of([2, 2, 2], [(0, 1), (1, 2)])
    potentials = [np.array([[5000.0, 0.0], [0.0, 4999.0]]), np.array([[-5000.0, 0], [0, -5000]])]
    found = tree.beliefs(potentials)
    assert all(np.isfinite(table).all() for table in found.tables)
    # The largest products are e^5000 and e^4999, with the other column free to avoid e^-5000.
    assert found.log_sum == pytest.approx(5000 + log(1 + np.exp(-1)), abs=1e-9)
    assert tree.joint(found.tables, (0,)) == pytest.approx([1 / (1 + np.exp(-1)), 0.26894142137])


@pytest.mark.parametrize("impossible", [0.0, 0.35])
@pytest.mark.parametrize("seed", SEEDS)
def test_products_too_small_for_a_float_do_not_stop_a_fit(seed, impossible):
    """A step of the fit may go that far, after epsilon has been spent."""
    rng, sizes, sets = make_graph(seed)
    tree = JunctionTree.of(sizes, sets)
    potentials = make_potentials(tree, rng, impossible)
    for table in tree.beliefs([300 * table for table in potentials]).tables:
        assert np.isfinite(table).all()
        assert table.sum() == pytest.approx(1)


def test_cliques_that_want_the_opposite_do_not_stop_a_fit():
    tree = JunctionTree.of([2, 2, 2], [(0, 1), (1, 2)])
    potentials = [np.array([[900.0, 0], [900, 0]]), np.array([[0, 0], [900.0, 899]])]
    found = tree.beliefs(potentials)
    assert found.log_sum == pytest.approx(900 + log(4 + 2 + 2 * np.exp(-1)))
    assert tree.joint(found.tables, (1,))[0] == pytest.approx(4 / (6 + 2 * np.exp(-1)))


def test_cliques_that_exclude_each_other_have_no_sum():
    tree = JunctionTree.of([2, 2, 2], [(0, 1), (1, 2)])
    never = -np.inf
    potentials = [np.array([[0, never], [0, never]]), np.array([[never, never], [0, 0]])]
    with np.errstate(invalid="ignore"):
        assert tree.beliefs(potentials).log_sum == -np.inf


@pytest.mark.parametrize("seed", range(15))
def test_paths_join_cliques_by_neighbors(seed):
    _, sizes, sets = make_graph(seed)
    tree = JunctionTree.of(sizes, sets)
    near = {(a, b) for a, others in enumerate(tree.neighbors) for b, _ in others}
    for one, other in product(range(len(tree.cliques)), repeat=2):
        path = tree.path(one, other)
        assert {one, other} <= {*path}
        assert len({*path}) == len(path)
        inside = [pair for pair in near if {*pair} <= {*path}]
        assert len(inside) == 2 * (len(path) - 1)  # a path, and nothing besides

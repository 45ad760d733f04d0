"""Plans: every grid has its cuboid.  Adding up: the same sums, by runs or by products."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.schema import column
from dpublish.methods.privpfc import cuboids
from dpublish.methods.privpfc.cuboids import Cube, RollUp, Sizes, group_grids, pack_groups
from dpublish.randomness import plain_generator

SIZES = [[1, 2, 8], [1, 4], [1, 3, 6, 12], [1, 2], [1, 5]]


def cells(levels):
    return prod(one[level] for one, level in zip(SIZES, levels, strict=True))


def random_grids(count, seed):
    rng = plain_generator(seed)
    return np.stack([rng.integers(0, len(x), count) for x in SIZES], axis=1).astype(np.int8)


@given(count=st.integers(1, 80), seed=st.integers(0, 99), cap=st.sampled_from([1, 30, 200, 10**4]))
def test_groups_use_the_same_columns_and_hold_every_grid_once(count, seed, cap):
    grids = random_grids(count, seed)
    groups = group_grids(grids, Sizes(SIZES), cap)
    assert sorted(np.concatenate([group.members for group in groups])) == list(range(count))
    for group in groups:
        members = grids[group.members]
        assert (group.levels == members.max(axis=0)).all()
        assert ((members > 0) == (group.levels > 0)).all()
        assert cells(group.levels) <= cap or len(np.unique(members, axis=0)) == 1


@given(count=st.integers(1, 60), seed=st.integers(0, 99), cap=st.sampled_from([1, 30, 200, 10**4]))
def test_every_cuboid_has_its_members_and_keeps_to_the_cap(count, seed, cap):
    wanted = random_grids(count, seed)
    packed = pack_groups(wanted, Sizes(SIZES), cap)
    assert sorted(np.concatenate([group.members for group in packed])) == list(range(count))
    for group in packed:
        assert (group.levels == wanted[group.members].max(axis=0)).all()
        assert cells(group.levels) <= max(cap, max(map(cells, wanted[group.members])))


@pytest.mark.parametrize(("cap", "cuboids"), [(4**6, 1), (4**2, 15), (4**3, 7)])
def test_larger_cuboids_are_fewer(cap, cuboids):
    pairs = np.array([[i in (a, b) for i in range(6)] for a in range(6) for b in range(a)])
    assert len(pack_groups(pairs.astype(np.int8), Sizes([[1, 4]] * 6), cap)) <= cuboids


TAXONOMIES = [
    column("a", "integer", bounds=[0, 8], branching=2).taxonomy,
    column("b", "category", taxonomy={"x": {"y": ["p", "q"], "z": ["r"]}, "w": ["s"]}).taxonomy,
    column("c", "category", values=["no", "yes"]).taxonomy,
]


def sum_by_hand(counts, axis, taxonomy, level):
    cells = taxonomy.leaf_to_cell(level)
    shape = [*counts.shape]
    shape[axis] = len(taxonomy.levels[level].starts)
    sums = np.zeros(shape)
    np.add.at(np.moveaxis(sums, axis, 0), cells, np.moveaxis(counts, axis, 0))
    return sums


def random_counts(*shape):
    return plain_generator(1).integers(-50, 50, shape).astype(np.float64)


@pytest.mark.parametrize("levels", [(4, 3, 2), (2, 1, 1), (0, 3, 0), (3, 0, 1), (0, 0, 0)])
def test_a_cube_is_added_up_along_every_axis(levels):
    counts = random_counts(3, 9, 4, 2)
    cube = Cube(counts, (0, 1, 2), tuple(one.height for one in TAXONOMIES))
    levels = np.minimum(levels, cube.levels).astype(np.int8)
    found = RollUp(TAXONOMIES).project(cube, levels)
    for axis, (taxonomy, level) in enumerate(zip(TAXONOMIES, levels, strict=True), start=1):
        counts = sum_by_hand(counts, axis, taxonomy, level)
    assert np.array_equal(found.counts.ravel(), counts.ravel())
    assert found.columns == tuple(np.flatnonzero(levels))
    assert found.levels == tuple(levels[levels > 0])


@pytest.mark.parametrize(("longest", "product"), [(64, 1 << 18), (64, 50), (64, 1), (3, 1 << 18)])
def test_levels_are_stacked_and_turned_in_any_way_of_working(longest, product, monkeypatch):
    monkeypatch.setattr(cuboids, "LONGEST", longest)
    monkeypatch.setattr(cuboids, "_PRODUCT", product)
    counts = random_counts(2, 9, 13)
    rolls, taxonomy = RollUp(TAXONOMIES), TAXONOMIES[0]
    levels = (taxonomy.height, 2, 0, 1)
    by_hand = [sum_by_hand(counts, 1, taxonomy, level) for level in levels]
    for _ in range(2):  # the second time from what is kept
        stacked = np.concatenate([*rolls.stack(counts, 0, taxonomy.height, levels)], axis=2)
        assert np.array_equal(stacked, np.concatenate(by_hand, axis=1))
        for level, sums in zip(levels, by_hand, strict=True):
            turned = rolls.turn(counts, 0, taxonomy.height, level)
            assert turned.flags.c_contiguous
            assert np.array_equal(turned, sums.swapaxes(1, 2))

"""Plans: every grid has its cuboid, and no cuboid is larger than it must be."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.methods.privpfc.base_cuboids import Sizes, group_grids, pack_groups
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

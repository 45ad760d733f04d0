"""Adding up levels: the same sums, by runs or by products, whole or in parts."""

import numpy as np
import pytest

from dpublish.data.schema import column
from dpublish.methods.privpfc import roll_up
from dpublish.methods.privpfc.roll_up import Cube, RollUp
from dpublish.randomness import plain_generator

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
    monkeypatch.setattr(roll_up, "LONGEST", longest)
    monkeypatch.setattr(roll_up, "_PRODUCT", product)
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

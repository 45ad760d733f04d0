"""Candidate grids: each once, none forgotten, and no favorites where there are too many."""

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.methods.privpfc.candidate_grids import draw_subset, enumerate_grids
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

SIZES = st.lists(
    st.lists(st.integers(0, 4), max_size=4).map(lambda steps: [1, *(1 + np.cumsum(steps))]),
    max_size=4,
)


def uniform(rng):
    return partial(uniform_below, rng=rng)


def distinct_levels(sizes):
    return [level for level, size in enumerate(sizes) if level == 0 or size > sizes[level - 1]]


def all_grids(sizes, max_cells):
    """All grids by their definition: every choice of levels that is small enough."""
    for grid in product(*map(distinct_levels, sizes)):
        cells = prod(int(one[level]) for one, level in zip(sizes, grid, strict=True))
        if cells <= max_cells or not any(grid):
            yield grid


def raised(grid):
    return sum(level > 0 for level in grid)


@settings(max_examples=200)
@given(sizes=SIZES, twelfths=st.integers(-12, 1200), limit=st.integers(1, 60))
def test_stages_are_complete_but_for_the_last_which_fills_the_list(sizes, twelfths, limit):
    max_cells = Fraction(twelfths, 12)
    grids = enumerate_grids(sizes, max_cells=max_cells, limit=limit, uniform=uniform(seeded(1)))
    assert grids.dtype == np.int8
    assert grids.shape[1] == len(sizes)
    found = [tuple(grid) for grid in grids.tolist()]
    exist = set(all_grids(sizes, max_cells))
    assert len(found) == min(limit, len(exist))
    assert len(set(found)) == len(found)
    assert set(found) <= exist
    assert not any(found[0])
    numbers = [raised(grid) for grid in found]
    assert numbers == sorted(numbers)
    assert {x for x in exist if raised(x) < numbers[-1]} <= set(found)


FIVE = [[1, 2, 3], [1, 4], [1, 1, 2, 2, 5], [1, 3], [1]]


def drawn_grids(count, *, pick=enumerate_grids):
    """Which three of the grids with two raised predictors were drawn last."""
    rng = seeded(5)
    first = sum(raised(grid) < 2 for grid in all_grids(FIVE, 8))
    for _ in range(count):
        grids = pick(FIVE, max_cells=8, limit=first + 3, uniform=uniform(rng))
        yield tuple(map(tuple, grids[first:].tolist()))


def listed_order(sizes, *, max_cells, limit, uniform):
    """Broken twin: cut the list where it ends, as the published listing does."""
    grids = enumerate_grids(sizes, max_cells=max_cells, limit=10**6, uniform=uniform)
    return grids[:limit]


def test_every_set_of_grids_is_drawn_last_equally_often():
    stage = [grid for grid in all_grids(FIVE, 8) if raised(grid) == 2]
    expected = {frozenset(three): 1 for three in combinations(stage, 3)}
    assert len(expected) == comb(6, 3)
    samples = [frozenset(grids) for grids in drawn_grids(3000)]
    assert frequency_p_value(samples, expected) > 1e-4
    cut = [frozenset(grids) for grids in drawn_grids(100, pick=listed_order)]
    assert frequency_p_value(cut, expected, min_expected=1) < 1e-9


@pytest.mark.parametrize(("total", "size"), [(6, 2), (6, 3), (6, 4), (5, 1), (5, 4)])
def test_every_subset_is_equally_likely(total, size):
    rng = seeded(7)
    subsets = [tuple(draw_subset(total, size, uniform(rng)).tolist()) for _ in range(2000)]
    assert frequency_p_value(subsets, dict.fromkeys(combinations(range(total), size), 1)) > 1e-4


@pytest.mark.parametrize(("total", "size"), [(0, 0), (4, 0), (4, 4), (10**15, 50)])
def test_subsets_have_the_right_size_and_order(total, size, rng):
    subset = draw_subset(total, size, uniform(rng))
    assert len(set(subset.tolist())) == size
    assert subset.tolist() == sorted(subset.tolist())


def test_a_stage_of_billions_is_sampled_without_being_made(rng):
    grids = enumerate_grids(
        [[1, 2, 4, 8, 16]] * 40, max_cells=10**18, limit=200_000, uniform=uniform(rng)
    )
    assert len(np.unique(grids, axis=0)) == len(grids) == 200_000
    numbers = Counter((grids > 0).sum(axis=1).tolist())
    assert numbers == {0: 1, 1: 160, 2: 12_480, 3: 200_000 - 12_641}
    part = grids[12_641:]
    share = (part > 0).mean(axis=0)  # each predictor is raised in 3 of 40
    assert np.abs(share - 3 / 40).max() < 5 * np.sqrt(3 / 40 / len(part))


@pytest.mark.parametrize("max_cells", [-5, 0, 1, Fraction(1, 3)])
def test_the_grid_of_one_cell_is_always_there(max_cells, rng):
    grids = enumerate_grids([[1, 2], [1, 3]], max_cells=max_cells, limit=9, uniform=uniform(rng))
    assert grids.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("sizes", "limit", "message"),
    [
        ([[1, 2]], 0, r"limit \(0\)"),
        ([[]], 5, "1 to 128 levels"),
        ([[1] * 129], 5, "1 to 128 levels"),
        ([[2, 3]], 5, "start with 1 cell"),
        ([[1, 3, 2]], 5, "never lose cells"),
    ],
)
def test_wrong_settings_are_refused(sizes, limit, message, rng):
    with pytest.raises(InvalidParameter, match=message):
        enumerate_grids(sizes, max_cells=9, limit=limit, uniform=uniform(rng))

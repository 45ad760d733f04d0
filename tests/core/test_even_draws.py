"""Rows drawn evenly: counts within one of what is expected, any row as likely as any other."""

from itertools import permutations

import numpy as np
import pytest

from dpublish.core.even_draws import draw_evenly, even_parts
from dpublish.core.probabilities import draw_cells
from dpublish.randomness import plain_generator
from dpublish.testing import frequency_p_value


def random_task(seed, rows, parents, cells):
    draws = plain_generator(seed)
    table = draws.dirichlet(np.full(cells, 0.3), size=parents)
    table[draws.random(parents) < 0.2] = np.eye(cells)[0]  # certain ones
    return table, draws.integers(0, parents, size=rows), draws


def counts_of(cells, rows, shape):
    found = np.zeros(shape)
    np.add.at(found, (rows, cells), 1)
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("rows", "parents", "cells"), [(0, 3, 2), (1, 1, 1), (500, 7, 5), (500, 900, 3), (4000, 2, 64)]
)
def test_every_cell_has_its_share_of_each_group_but_for_rounding(seed, rows, parents, cells):
    table, groups, draws = random_task(seed, rows, parents, cells)
    expected = np.bincount(groups, minlength=parents)[:, None] * table
    found = counts_of(draw_evenly(table, groups, draws), groups, table.shape)
    assert np.abs(found - expected).max() < 1 + 1e-6


def test_coins_would_be_further_off():
    table, groups = np.full((2, 4), 0.25), np.arange(4000) % 2
    found = counts_of(draw_cells(table, groups, plain_generator(1)), groups, table.shape)
    assert np.abs(found - 500).max() > 10


def test_cells_without_probability_are_not_drawn():
    table = np.array([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    groups = np.repeat([0, 1], [999, 1001])
    found = counts_of(draw_evenly(table, groups, plain_generator(1)), groups, table.shape)
    assert not found[table == 0].any()


def test_every_row_has_each_cell_with_its_probability():
    table = np.array([[0.2, 0.5, 0.3]])
    draws = plain_generator(2)
    third = [int(draw_evenly(table, np.zeros(4, np.int64), draws)[2]) for _ in range(6000)]
    assert frequency_p_value(third, dict(enumerate(table[0]))) > 1e-4


def test_rows_of_a_group_are_exchangeable():
    """In order of rows, as a walk without a shuffle has them, cells would rise."""
    table = np.full((1, 3), 1 / 3)
    draws = plain_generator(3)
    seen = [tuple(draw_evenly(table, np.zeros(3, np.int64), draws).tolist()) for _ in range(4000)]
    orders = dict.fromkeys(permutations(range(3)), 1 / 6)
    assert frequency_p_value(seen, orders) > 1e-4
    assert frequency_p_value([tuple(sorted(one)) for one in seen], orders) < 1e-20


def test_groups_are_drawn_independently_of_each_other():
    table = np.array([[0.5, 0.5], [0.5, 0.5]])
    draws = plain_generator(4)
    seen = [tuple(draw_evenly(table, np.array([1, 0]), draws).tolist()) for _ in range(4000)]
    pairs = dict.fromkeys([(a, b) for a in (0, 1) for b in (0, 1)], 0.25)
    assert frequency_p_value(seen, pairs) > 1e-4


def test_parts_are_below_one_and_repeat_with_their_seed():
    groups = np.arange(50_000) % 7
    parts = even_parts(groups, plain_generator(5))
    assert parts.min() >= 0
    assert parts.max() < 1
    assert np.array_equal(parts, even_parts(groups, plain_generator(5)))
    assert not np.array_equal(parts, even_parts(groups, plain_generator(6)))


def test_no_row_has_an_impossible_cell_though_probabilities_do_not_quite_add_up():
    table = np.array([[0.1] * 9 + [0.1 - 1e-9, 0.0]])
    for seed in range(200):
        found = draw_evenly(table, np.zeros(1000, np.int64), plain_generator(seed))
        assert np.bincount(found, minlength=11)[10] == 0

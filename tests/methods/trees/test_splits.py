"""Scores of splits: their ranges by brute force, on all small tables and around the limits."""

from fractions import Fraction
from itertools import product
from math import log2

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.methods.trees.splits import ENTROPY_STEPS, GINI_STEPS, make_score


def moves(score, cells):
    """How much each class, added to each cell, changes the score: (cell, class)."""
    more = cells[:, np.newaxis] + np.eye(cells.shape[1], dtype=np.int64)
    return score.of(more) - score.of(cells)[:, np.newaxis]


def small_cells(classes, most):
    return np.array(list(product(range(most + 1), repeat=classes)), dtype=np.int64)


SMALL = [small_cells(2, 60), small_cells(3, 16), small_cells(4, 8)]


@pytest.mark.parametrize("cells", SMALL, ids=["two", "three", "four"])
@pytest.mark.parametrize(
    "score",
    [make_score("max"), make_score("gini"), make_score("entropy", 40)],
    ids=["max", "gini", "entropy"],
)
def test_no_record_moves_two_scores_apart_by_more_than_the_range(score, cells):
    changes = moves(score, cells)
    # Candidates are split in any way, so a record may meet any two cells that hold its class.
    assert (changes.max(axis=0) - changes.min(axis=0)).max() <= score.sensitivity_range


def test_the_range_of_max_is_attained_and_half_of_it_would_be_noticed():
    changes = moves(make_score("max"), SMALL[0])
    assert changes.max() - changes.min() == 1 == make_score("max").sensitivity_range


def test_the_range_of_gini_is_approached_so_that_one_would_be_too_little():
    score = make_score("gini")
    lonely = moves(score, np.array([[1000, 0], [0, 0]]))
    assert lonely[1, 1] == GINI_STEPS
    assert lonely[0, 1] < -0.99 * GINI_STEPS
    assert lonely[1, 1] - lonely[0, 1] > 0.99 * score.sensitivity_range


def test_the_range_of_entropy_is_nearly_attained():
    score = make_score("entropy", 1000)
    changes = moves(score, np.array([[1000, 0], [0, 0]]))[:, 1]
    assert changes.max() - changes.min() == pytest.approx(score.sensitivity_range, abs=6)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_tables_larger_than_announced_are_protected_all_the_same(most):
    score = make_score("entropy", most)
    sizes = np.unique(np.concatenate([np.arange(3 * most + 5), [10**6, 2**32]]))
    cells = np.array([(a, b) for a in sizes for b in sizes[:50]], dtype=np.int64)
    changes = moves(score, cells)
    assert changes.max() <= 2
    assert changes.max() - changes.min() <= score.sensitivity_range


def test_without_the_straight_line_a_larger_table_would_be_found_out():
    exceeded = moves(make_score("entropy", 2**30), np.array([[10**6, 0], [0, 0]]))[:, 1]
    assert exceeded.max() - exceeded.min() > 2 * make_score("entropy", 100).sensitivity_range


def test_gini_survives_counts_whose_squares_do_not_fit():
    score = make_score("gini")
    huge = np.array([[2**40, 2**40], [2**31 - 1, 3], [2**30, 2**30 - 1]], dtype=np.int64)
    changes = moves(score, huge)
    assert np.abs(changes).max() <= GINI_STEPS
    assert (score.of(huge) > 0).all()


def test_scores_are_what_they_are_called():
    cells = np.array([[3, 1], [0, 5], [2, 2]])
    assert make_score("max").of(cells).tolist() == [3, 5, 2]
    gini = [Fraction(9 + 1, 4), Fraction(25, 5), Fraction(8, 4)]
    assert make_score("gini").of(cells).tolist() == [int(g * GINI_STEPS) for g in gini]
    entropy = [3 * log2(3 / 4) + log2(1 / 4), 0, -4]
    found = make_score("entropy", 100).of(cells) / ENTROPY_STEPS
    assert found == pytest.approx(entropy, abs=2 / ENTROPY_STEPS)


def test_the_entropy_and_its_number_of_records_go_together():
    with pytest.raises(InvalidParameter, match="max_records"):
        make_score("entropy")
    with pytest.raises(InvalidParameter, match="max_records"):
        make_score("max", 10)

"""Measures of clusterings: equal to their definitions, by search over all matchings and pairs."""

from itertools import combinations, permutations
from math import inf

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.cells import (
    NONE,
    cell_dissimilarity,
    class_mismatch,
    cluster_count,
    f_measure,
    pair_mismatch,
)
from dpublish.randomness import plain_generator

MEASURES = (cell_dissimilarity, class_mismatch, pair_mismatch)


def sets_of(labels):
    return [set(np.flatnonzero(labels == label)) for label in np.unique(labels[labels != NONE])]


def dissimilarity_by_search(true, private):
    """DSG_C from its definition: the best of all matchings of families of equal size."""
    ours, theirs = sets_of(true), sets_of(private)
    ours += [set()] * max(0, len(theirs) - len(ours))
    theirs += [set()] * max(0, len(ours) - len(theirs))
    costs = [
        sum(max(len(a - b), len(b - a)) for a, b in zip(ours, order, strict=True))
        for order in permutations(theirs)
    ]
    return min(costs) / np.count_nonzero(true != NONE)


def mismatch_by_search(true, private):
    """OCM from its definition: the most points in common under any one-to-one matching."""
    ours = [set(np.flatnonzero(true == label)) for label in np.unique(true)]
    theirs = [set(np.flatnonzero(private == label)) for label in np.unique(private)]
    ours += [set()] * max(0, len(theirs) - len(ours))
    theirs += [set()] * max(0, len(ours) - len(theirs))
    common = max(
        sum(len(a & b) for a, b in zip(ours, order, strict=True)) for order in permutations(theirs)
    )
    return 1 - common / true.size


def pairs_by_search(true, private):
    split = [
        (true[i] == true[j]) != (private[i] == private[j])
        for i, j in combinations(range(true.size), 2)
    ]
    return sum(split) / len(split)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 4), (4, 2), (3, 3), (5, 1), (1, 5)])
@pytest.mark.parametrize(
    ("measure", "search"),
    [
        (cell_dissimilarity, dissimilarity_by_search),
        (class_mismatch, mismatch_by_search),
        (pair_mismatch, pairs_by_search),
    ],
)
def test_measures_equal_their_definitions(measure, search, sizes):
    generator = plain_generator(7)
    for _ in range(40):
        true = generator.integers(NONE, sizes[0], 12)
        private = generator.integers(NONE, sizes[1], 12)
        true[0] = 0
        assert measure(true, private) == pytest.approx(search(true, private), abs=1e-12)


def test_the_papers_pair_of_clusters_differs_by_two_cells():
    """The example of section 6.1: {g1, g3, g5} and {g1, g5, g7, g9}."""
    true, private = np.full(10, NONE), np.full(10, NONE)
    true[[1, 3, 5]], private[[1, 5, 7, 9]] = 0, 0
    assert cell_dissimilarity(true, private) == pytest.approx(2 / 3)


def test_an_unmatched_true_cluster_counts_with_all_its_cells():
    true = np.array([0, 0, 0, 1, 1, NONE])
    private = np.array([0, 0, 0, NONE, NONE, NONE])
    assert cell_dissimilarity(true, private) == pytest.approx(2 / 5)


def test_an_unmatched_private_cluster_counts_with_all_its_cells():
    """The paper leaves fewer true clusters than private ones undefined."""
    true = np.array([0, 0, 0, NONE, NONE, NONE])
    private = np.array([3, 3, 3, 1, 1, NONE])
    assert cell_dissimilarity(true, private) == pytest.approx(2 / 3)


def test_the_printed_closed_form_of_2ce_is_not_the_share_of_split_pairs():
    """The paper has C(k, 2) + k (N - k) for k points that moved; the definition says less."""
    true = np.repeat([0, 1], 10)
    private = np.append(np.zeros(12, dtype=np.int64), np.ones(8, dtype=np.int64))
    moved, points = 2, 20
    printed = (moved * (moved - 1) / 2 + moved * (points - moved)) / 190
    assert pair_mismatch(true, private) == pytest.approx(pairs_by_search(true, private))
    assert printed - pair_mismatch(true, private) == pytest.approx(1 / 190)


@pytest.mark.parametrize("measure", MEASURES)
def test_equal_clusters_are_at_distance_zero_whatever_they_are_called(measure):
    true = np.array([[0, 0, NONE], [1, 1, 2]])
    renamed = np.array([[9, 9, NONE], [0, 0, 4]])
    assert measure(true, renamed) == 0
    assert f_measure(true, renamed) == 1


def test_merging_two_clusters_costs_the_matching_more_than_the_f_measure():
    true = np.repeat([0, 1], 10)
    merged = np.zeros(20, dtype=np.int64)
    assert cell_dissimilarity(true, merged) == 1  # 10 too many, and 10 without a partner
    assert class_mismatch(true, merged) == 0.5
    assert f_measure(true, merged) == pytest.approx(2 / 3)  # both take the same cluster


def test_no_true_cluster_and_some_private_one_is_infinitely_far():
    nothing, something = np.full(4, NONE), np.array([0, NONE, NONE, NONE])
    assert cell_dissimilarity(nothing, something) == inf
    assert cell_dissimilarity(nothing, nothing) == 0
    assert cell_dissimilarity(something, nothing) == 1
    assert f_measure(nothing, nothing) == 1
    assert f_measure(something, nothing) == f_measure(nothing, something) == 0


def test_without_points_the_mismatch_of_classes_is_undefined_and_that_of_pairs_is_zero():
    empty, one = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidParameter, match="no point"):
        class_mismatch(empty, empty)
    assert pair_mismatch(empty, empty) == pair_mismatch(one, one) == 0


def test_clusters_are_counted_without_what_lies_outside():
    assert cluster_count(np.array([[3, NONE], [3, 8]])) == 2
    assert cluster_count(np.full((2, 2), NONE)) == 0


@pytest.mark.parametrize("measure", [*MEASURES, f_measure])
def test_labels_of_other_cells_and_labels_below_none_are_refused(measure):
    with pytest.raises(InvalidParameter, match="same cells"):
        measure(np.zeros(3, dtype=np.int64), np.zeros(4, dtype=np.int64))
    with pytest.raises(InvalidParameter, match="from 0"):
        measure(np.array([0, -2]), np.array([0, 0]))


def test_many_points_do_not_overflow():
    points = 200_000
    true = np.repeat([0, 1], points // 2)
    assert pair_mismatch(true, np.zeros(points, dtype=np.int64)) == pytest.approx(0.5, abs=1e-5)

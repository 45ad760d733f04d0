"""Distances between marginals, rank correlation and Cramer's V."""

import numpy as np
import pytest
from scipy import stats

from dpublish.evaluation.metrics.tables import (
    Contingency,
    cramers_v,
    largest_cdf_gap,
    mid_ranks,
    rank_correlations,
    total_variation,
)
from dpublish.randomness import plain_generator


def test_marginals_without_a_common_value_are_at_distance_one():
    first, second = np.array([4, 0, 0]), np.array([0, 1, 1])
    assert total_variation(first, second) == 1
    assert largest_cdf_gap(first, second) == 1
    assert total_variation(first, 7 * first) == largest_cdf_gap(first, 7 * first) == 0


def test_a_small_shift_has_a_small_gap_but_may_be_far_in_total_variation():
    first, second = np.array([1, 0] * 50), np.array([0, 1] * 50)
    assert total_variation(first, second) == pytest.approx(1)
    assert largest_cdf_gap(first, second) == pytest.approx(0.02)


def test_a_table_without_rows_is_far_from_one_with_rows():
    nothing, something = np.zeros(3, dtype=np.int64), np.array([1, 2, 3])
    for distance in (total_variation, largest_cdf_gap):
        assert distance(nothing, something) == distance(something, nothing) == 1
        assert distance(nothing, nothing) == 0


def test_rank_correlations_are_those_of_scipy():
    rng = plain_generator(3)
    base = rng.integers(0, 6, 400)
    codes = [base, 5 - base, np.minimum(base + rng.integers(0, 4, 400), 7), rng.integers(0, 3, 400)]
    ranks = np.stack([mid_ranks(column, 8) for column in codes], axis=1)
    for index, column in enumerate(codes):
        assert ranks[:, index].tolist() == stats.rankdata(column).tolist()
    expected = stats.spearmanr(np.stack(codes, axis=1)).statistic
    assert np.allclose(rank_correlations(ranks), expected)


def test_records_without_a_value_are_left_out_of_their_pairs():
    rng = plain_generator(4)
    first = rng.integers(0, 5, 300)
    second = np.where(rng.random(300) < 0.2, 5, np.minimum(first + rng.integers(0, 2, 300), 4))
    ranks = np.stack([mid_ranks(first, 5), mid_ranks(second, 5)], axis=1)
    assert np.isnan(ranks[:, 1]).sum() == (second == 5).sum() > 0
    kept = ~np.isnan(ranks[:, 1])
    expected = np.corrcoef(ranks[kept].T)[0, 1]
    assert rank_correlations(ranks)[0, 1] == pytest.approx(expected)


def test_columns_that_say_nothing_have_no_correlation():
    constant, other = np.zeros(10, dtype=np.int64), np.arange(10)
    missing = np.full(10, 10)
    ranks = np.stack([mid_ranks(c, 10) for c in (constant, other, missing)], axis=1)
    found = rank_correlations(ranks)
    assert found[0, 1] == found[0, 2] == found[1, 2] == 0
    empty = np.stack([mid_ranks(c[:0], 10) for c in (constant, other)], axis=1)
    assert (rank_correlations(empty) == 0).all()


def test_cramers_v_is_one_for_copies_and_near_zero_for_strangers():
    rng = plain_generator(5)
    first, other = rng.integers(0, 4, 500), rng.integers(0, 9, 500)
    assert cramers_v(Contingency(first, 3 - first, (4, 4))) == pytest.approx(1.0)
    repeats = []
    for seed in range(40):
        other = plain_generator(seed).integers(0, 9, 500)
        repeats.append(cramers_v(Contingency(first, other, (4, 9))))
    plain = (27 / 500 / 3) ** 0.5  # what it would be on average without the correction
    assert np.mean(repeats) < 0.35 * plain


def test_cramers_v_of_a_two_by_two_table_is_its_phi():
    first = np.repeat([0, 0, 1, 1], [400, 100, 150, 350])
    second = np.repeat([0, 1, 0, 1], [400, 100, 150, 350])
    phi = np.corrcoef(first, second)[0, 1]
    # Bergsma's correction: a little less squared, over a little less than two values.
    expected = ((phi**2 - 1 / 999) / (2 - 1 / 999 - 1)) ** 0.5
    assert cramers_v(Contingency(first, second, (2, 2))) == pytest.approx(expected)


def test_nothing_to_compare_is_no_dependence():
    nothing = np.empty(0, dtype=np.int64)
    assert cramers_v(Contingency(nothing, nothing, (2, 2))) == 0
    assert cramers_v(Contingency(np.array([0, 0]), np.array([0, 1]), (2, 2))) == 0
    assert cramers_v(Contingency(np.array([0, 1]), np.array([0, 1]), (2, 2))) == 0

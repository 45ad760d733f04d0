"""Scores of dependence: what they measure, and how far one record can pull two of them apart."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest

from dpublish.aggregates.dependence import (
    ASSIGNMENT,
    DISTANCE,
    SHARES_RANGE,
    STEPS,
    distance_from_independence,
    distance_from_shares,
    fit_of_assignment,
    shares_score,
)
from dpublish.testing import privacy_loss


def tables(shape, most):
    """Every table of counts with at most so many records."""
    for cells in product(range(most + 1), repeat=int(np.prod(shape))):
        if sum(cells) <= most:
            yield np.array(cells, dtype=np.int64).reshape(shape)


def with_record(counts, cell):
    more = counts.copy()
    more[cell] += 1
    return more


def ideal_distance(counts):
    n = int(counts.sum())
    rows, columns = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    return sum(
        (abs(c - Fraction(rows[x] * columns[p], n)) for (x, p), c in np.ndenumerate(counts)),
        Fraction(0),
    ) / 2 if n else Fraction(0)  # fmt: skip


def ideal_fit(counts):
    """The definition: minus half of the least distance to a fair coin decided by the parents."""
    n = Fraction(int(counts.sum()))
    least = None
    for assigned in product([0, 1], repeat=counts.shape[1]):
        inside = [sum(int(c) for c, a in zip(counts[r], assigned, strict=True) if a == r)
                  for r in (0, 1)]  # fmt: skip
        outside = n - sum(inside)
        away = sum(abs(i - n / 2) for i in inside) + outside
        least = away if least is None else min(least, away)
    return -least / 2


def changes(measure, shape, most):
    return {
        measure(with_record(counts, cell)) - measure(counts)
        for counts in tables(shape, most)
        for cell in np.ndindex(*shape)
    }


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 8), ((2, 3), 5), ((3, 3), 3), ((2, 1), 9)])
def test_the_distance_is_that_of_the_definition_rounded_down(shape, most):
    for counts in tables(shape, most):
        assert distance_from_independence(counts) == ideal_distance(counts) * STEPS // 1


def test_the_distance_of_more_records_than_64_bits_can_square_is_exact_too():
    counts = np.array([[2**40 + 3, 5], [7, 2**41 + 11]])
    assert distance_from_independence(counts) == ideal_distance(counts) * STEPS // 1
    overflowing = np.abs(counts * counts.sum() - counts.sum(1)[:, None] * counts.sum(0)).sum()
    assert overflowing * (STEPS // 2) // counts.sum() != distance_from_independence(counts)


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 10), ((2, 3), 6), ((3, 3), 3)])
def test_no_record_moves_the_distance_by_two(shape, most):
    moves = changes(distance_from_independence, shape, most)
    assert max(moves) < 2 * STEPS
    assert min(moves) > -2 * STEPS
    assert max(moves) - min(moves) <= DISTANCE.sensitivity_range


@pytest.mark.parametrize("n", [1, 6, 30_000])
def test_a_record_in_a_new_row_and_column_moves_the_distance_by_nearly_two(n):
    counts = np.array([[n, 0], [0, 0]])
    moved = distance_from_independence(with_record(counts, (1, 1)))
    assert moved == Fraction(2 * n * STEPS, n + 1) // 1


WEIGHTS = [[1, 1], [5, 1], [0, 1], [1, 0], [3, 1, 2], [1, 0, 1023]]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_distance_from_shares_is_that_of_its_definition_rounded_down(weights):
    whole = sum(weights)
    for counts in tables((len(weights), 2), 5):
        ideal = sum(
            max(c - Fraction(int(counts[:, p].sum()) * weights[x], whole), 0)
            for (x, p), c in np.ndenumerate(counts)
        )
        assert distance_from_shares(counts, np.array(weights)) == ideal * STEPS // 1
    huge = np.full((len(weights), 2), 2**45)
    assert distance_from_shares(huge, np.array(weights)) == sum(
        max(2**45 * whole - len(weights) * 2**45 * w, 0) * 2 for w in weights
    ) * STEPS // whole  # fmt: skip


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_record_moves_the_distance_from_shares_by_more_than_one(weights):
    moves = changes(
        lambda counts: distance_from_shares(counts, np.array(weights)), (len(weights), 2), 5
    )
    assert max(moves) <= STEPS
    assert min(moves) >= -STEPS
    assert max(moves) - min(moves) <= SHARES_RANGE


def test_both_ends_of_that_change_are_approached():
    weights = np.array([1, 1023])
    few, many = np.array([[0], [0]]), np.array([[0], [4096]])
    moves = [
        distance_from_shares(with_record(counts, (0, 0)), weights)
        - distance_from_shares(counts, weights)
        for counts in (few, many)
    ]
    assert moves == [STEPS - 1, 1 - STEPS]


def test_weights_follow_from_released_probabilities_alone():
    assert shares_score(np.zeros(2)).measure(np.array([[4], [0]])) == 2 * STEPS
    assert shares_score(np.array([0.25, 0.75])).measure(np.array([[4], [0]])) == 3 * STEPS
    assert shares_score(np.array([1.0])).sensitivity_range == SHARES_RANGE


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 9), ((2, 4), 4), ((2, 1), 9), ((2, 3), 5)])
def test_the_fit_is_that_of_the_definition(shape, most):
    for counts in tables(shape, most):
        assert Fraction(fit_of_assignment(counts), 2) == ideal_fit(counts)


def test_the_fit_takes_sixteen_cells():
    counts = np.random.Generator(np.random.Philox(4)).integers(0, 50, (2, 16))
    n, best = counts.sum(), -(10**9)
    for number in range(1 << 16):
        to_one = np.array([number >> cell & 1 for cell in range(16)], dtype=bool)
        inside = counts[0][~to_one].sum(), counts[1][to_one].sum()
        best = max(best, sum(min(2 * i, n) for i in inside) - 2 * n)
    assert fit_of_assignment(counts) == best


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 10), ((2, 4), 4)])
def test_one_record_moves_the_fit_by_minus_one_to_one_half(shape, most):
    moves = changes(fit_of_assignment, shape, most)
    assert (min(moves), max(moves)) == (-2, 1)
    assert max(moves) - min(moves) == ASSIGNMENT.sensitivity_range


# --- the range is needed: half of it gives a record away ---------------------------------------


def odds(scores, rate):
    weights = [exp(float(rate) * (score - max(scores))) for score in scores]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


def loss(score, before, after, sensitivity_range):
    """Privacy loss of one exponential choice between two candidates at epsilon 1."""
    rate = Fraction(1, sensitivity_range)
    return privacy_loss(
        odds([score.measure(counts) for counts in before], rate),
        odds([score.measure(counts) for counts in after], rate),
    )


def test_a_choice_by_distance_loses_what_was_paid_and_half_the_range_would_lose_twice_that():
    n, few = 3_000_000, 30_000
    rises = np.array([[0, 0], [0, n]])
    falls = np.array([[0, few], [few, n - 2 * few]])
    before, after = (rises, falls), (with_record(rises, (0, 0)), with_record(falls, (0, 0)))
    assert 0.95 < loss(DISTANCE, before, after, DISTANCE.sensitivity_range) <= 1
    assert loss(DISTANCE, before, after, DISTANCE.sensitivity_range // 2) > 1.9


def test_a_choice_by_distance_from_shares_loses_what_was_paid_and_half_the_range_twice_that():
    score = shares_score(np.array([1, 4095]) / 4096)
    rises, falls = np.array([[0], [0]]), np.array([[0], [1 << 20]])
    before, after = (rises, falls), (with_record(rises, (0, 0)), with_record(falls, (0, 0)))
    assert score.sensitivity_range == SHARES_RANGE
    assert 0.95 < loss(score, before, after, SHARES_RANGE) <= 1
    assert loss(score, before, after, SHARES_RANGE // 2) > 1.9


def test_a_choice_by_fit_loses_what_was_paid_and_two_thirds_of_the_range_would_lose_more():
    # One candidate's record lies against its assignment, the other's with it.
    rises = np.array([[0, 0], [0, 200]])
    falls = np.array([[100, 0], [0, 100]])
    before, after = (rises, falls), (with_record(rises, (0, 0)), with_record(falls, (1, 0)))
    here = [fit_of_assignment(counts) for counts in before]
    there = [fit_of_assignment(counts) for counts in after]
    assert (there[0] - here[0], there[1] - here[1]) == (1, -2)
    assert 0.95 < loss(ASSIGNMENT, before, after, ASSIGNMENT.sensitivity_range) <= 1
    assert loss(ASSIGNMENT, before, after, 2) > 1.4

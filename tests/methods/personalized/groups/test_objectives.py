"""What groups waste and what they tell, against the definitions written out."""

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.groups.optimizer import (
    GroupVariance,
    People,
    precision,
    precision_table,
    size_table,
    waste,
    waste_table,
)

LEVELS = [0.1, 0.25, 0.5, 1.0]
SIZES = [3, 0, 5, 2]
PEOPLE = People.at(LEVELS, SIZES)
GROUPS = [(first, last) for first in range(4) for last in range(first, 4)]


@pytest.mark.parametrize(("first", "last"), GROUPS)
def test_tables_hold_the_definitions(first, last):
    members = range(first, last + 1)
    size = sum(SIZES[b] for b in members)
    wasted = sum(SIZES[b] * (LEVELS[b] - LEVELS[first]) ** 2 for b in members)
    variance = GroupVariance(noise=3.0, person=0.5)
    told = 0.0 if size == 0 else 1 / (3.0 / (size * LEVELS[first]) ** 2 + 0.5 / size)
    assert size_table(PEOPLE)[first, last] == size
    assert waste_table(PEOPLE)[first, last] == pytest.approx(wasted)
    assert precision_table(PEOPLE, variance)[first, last] == pytest.approx(told)


def test_a_grouping_adds_up_its_groups():
    variance = GroupVariance()
    starts = (0, 2)
    assert waste(PEOPLE, starts) == pytest.approx(
        waste_table(PEOPLE)[0, 1] + waste_table(PEOPLE)[2, 3]
    )
    table = precision_table(PEOPLE, variance)
    assert precision(PEOPLE, starts, variance) == pytest.approx(table[0, 1] + table[2, 3])


def test_waste_does_not_cancel_among_many_people():
    # The textbook difference of sums is off by more than all of the waste here.
    people = People.at([1.0, 1.0 + 1e-9], [10**12, 10**3])
    assert waste(people, (0,)) == pytest.approx(1e-15, rel=1e-6)


def test_one_group_per_level_wastes_nothing_so_waste_cannot_choose_the_number():
    assert waste(PEOPLE, (0, 1, 2, 3)) == 0


def test_a_size_below_zero_stands_for_no_one():
    people = People.at([0.1, 0.2], [-4, 7])
    np.testing.assert_array_equal(people.sizes, [0, 7])
    assert precision(people, (0, 1), GroupVariance()) > 0


def test_a_sum_of_groups_never_beats_one_group():
    # Spec P4: the noise of a sum adds up, and the poorest level is in some group.
    least = 2 / LEVELS[0] ** 2
    for starts in [(0, 1), (0, 2), (0, 1, 2, 3)]:
        assert sum(2 / LEVELS[start] ** 2 for start in starts) > least


@pytest.mark.parametrize(
    ("levels", "sizes"),
    [([], []), ([0.2, 0.1], [1, 1]), ([0.1], [1, 2]), ([-0.1], [1]), ([0.1], [float("nan")])],
)
def test_levels_and_sizes_must_fit(levels, sizes):
    with pytest.raises(InvalidParameter):
        People.at(levels, sizes)


@pytest.mark.parametrize(("noise", "person"), [(0, 1), (1, -1), (float("inf"), 0)])
def test_a_variance_must_be_one(noise, person):
    with pytest.raises(InvalidParameter, match="noise must be positive"):
        GroupVariance(noise, person)

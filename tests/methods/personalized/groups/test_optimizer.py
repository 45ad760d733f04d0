"""The optimizers against brute force, and the printed program, which discards people."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.groups.optimizer import (
    GroupVariance,
    People,
    best_privacy_aware,
    precision,
    privacy_aware,
    utility_based,
    waste,
)
from dpublish.randomness import plain_generator

LEVELS = st.lists(st.integers(1, 200), min_size=1, max_size=7, unique=True).map(
    lambda levels: [level / 100 for level in sorted(levels)]
)
PROBLEMS = LEVELS.flatmap(
    lambda levels: st.tuples(
        st.just(levels),
        st.lists(st.integers(0, 900), min_size=len(levels), max_size=len(levels)),
    )
)
LEAST = st.sampled_from([0, 1, 300, 1000])


def groupings(people, least_size, most=None):
    """All groupings whose groups are large enough; one group is always among them."""
    size = len(people.levels)
    found = [
        (0, *cuts)
        for count in range(size if most is None else min(most, size))
        for cuts in combinations(range(1, size), count)
        if (people.group_sizes((0, *cuts)) >= least_size).all()
    ]
    return found or [(0,)]


@given(problem=PROBLEMS, groups=st.integers(1, 8), least_size=LEAST)
def test_no_grouping_wastes_less(problem, groups, least_size):
    people = People.at(*problem)
    starts = privacy_aware(*problem, groups, least_size)
    every = groupings(people, least_size, groups)
    assert starts in every
    best = min(waste(people, other) for other in every)
    assert waste(people, starts) == pytest.approx(best, rel=1e-9, abs=1e-12)


@given(
    problem=PROBLEMS,
    least_size=LEAST,
    noise=st.sampled_from([0.01, 1.0, 2.0, 400.0]),
    person=st.sampled_from([0.0, 0.25, 20.0]),
    groups=st.sampled_from([None, 1, 2, 3]),
)
def test_no_grouping_is_more_precise(problem, least_size, noise, person, groups):
    people = People.at(*problem)
    variance = GroupVariance(noise, person)
    starts = utility_based(*problem, variance, least_size, groups)
    every = groupings(people, least_size, groups)
    assert starts in every
    best = max(precision(people, other, variance) for other in every)
    assert precision(people, starts, variance) == pytest.approx(best, rel=1e-9)


@given(problem=PROBLEMS, least_size=LEAST)
def test_the_number_of_groups_of_least_waste_is_the_most_precise(problem, least_size):
    people = People.at(*problem)
    variance = GroupVariance()
    starts = best_privacy_aware(*problem, variance, least_size)
    tried = [privacy_aware(*problem, groups, least_size) for groups in range(1, 8)]
    best = max(precision(people, other, variance) for other in tried)
    assert starts in groupings(people, least_size)
    assert precision(people, starts, variance) >= best * (1 - 1e-9)


def printed_program(levels, groups):
    """The dynamic program as printed: no group covers everything at no cost."""
    size = len(levels)
    best = dict.fromkeys(range(size + 1), (0.0, ()))
    for _ in range(groups):
        best = {0: (0.0, ())} | {
            end: min(
                (
                    best[start][0] + sum((x - levels[start]) ** 2 for x in levels[start:end]),
                    (*best[start][1], tuple(levels[start:end])),
                )
                for start in range(end)
            )
            for end in range(1, size + 1)
        }
    return best[size]


def test_the_printed_program_discards_people_at_no_cost():
    levels = [0.01, 0.02, 0.04, 0.05, 0.08, 0.11, 0.14, 0.15]
    cost, groups = printed_program(levels, 3)
    grouped = [level for group in groups for level in group]
    assert cost == 0
    assert len(grouped) < len(levels)
    people = People.at(levels, [1] * 8)
    starts = privacy_aware(levels, [1] * 8, 3)
    assert len(starts) == 3
    assert people.group_sizes(starts).sum() == 8
    assert waste(people, starts) > 0


def test_one_level_is_one_group():
    assert privacy_aware([0.3], [10], 5) == (0,)
    assert utility_based([0.3], [0], GroupVariance()) == (0,)
    assert best_privacy_aware([0.3], [10], GroupVariance()) == (0,)


def test_people_too_few_for_any_group_form_one():
    for starts in (
        privacy_aware([0.1, 1.0], [3, 4], 2, 500),
        best_privacy_aware([0.1, 1.0], [3, 4], GroupVariance(), 500),
        utility_based([0.1, 1.0], [3, 4], GroupVariance(), 500),
        utility_based([0.1, 1.0], [3, 4], GroupVariance(), 500, 2),
    ):
        assert starts == (0,)


def test_equal_leftovers_are_levels_like_others():
    starts = utility_based([0.0, 0.5, 0.5, 0.5], [10, 10, 10, 10], GroupVariance(1.0, 0.0))
    assert starts == (0, 1)


def test_the_number_of_groups_must_be_a_count():
    for groups in (0, -1, 1.5):
        with pytest.raises(InvalidParameter, match="integer"):
            privacy_aware([0.1], [1], groups)
        with pytest.raises(InvalidParameter, match="integer"):
            utility_based([0.1], [1], GroupVariance(), 0, groups)


def test_many_levels_agree_with_the_plain_loops():
    generator = plain_generator(1)
    levels = np.linspace(0.001, 1, 120)
    sizes = generator.multinomial(10_000_000, np.full(120, 1 / 120))
    people, variance = People.at(levels, sizes), GroupVariance(2.0, 0.0)
    best = [0.0]
    for end in range(1, 121):
        best.append(
            max(
                best[start] + float(levels[start] ** 2 * sizes[start:end].sum() ** 2 / 2)
                for start in range(end)
            )
        )
    starts = utility_based(levels, sizes, variance)
    assert precision(people, starts, variance) == pytest.approx(best[-1], rel=1e-9)

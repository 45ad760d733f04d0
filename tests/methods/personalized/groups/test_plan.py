"""Plans and weights, against brute force and against the errors that they predict."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.methods.personalized.groups.optimizer import (
    GroupVariance,
    People,
    best_limit,
    drawing_rates,
    drawing_table,
    precision_table,
    utility_based,
)
from dpublish.methods.personalized.groups.plan import Grouping, PlannedGroup, plan_rounds, weigh
from dpublish.randomness import plain_generator

LEVELS = (0.05, 0.1, 0.3, 0.7, 1.0)
SIZES = (400.0, 0.0, 900.0, 200.0, 500.0)
PEOPLE = People.at(LEVELS, SIZES)
VARIANCE = GroupVariance(2.0, 0.25)


def drawn_precision(first, last, limit, variance=VARIANCE):
    """The precision of a group that spends one of its levels, written out."""
    epsilon = LEVELS[limit]
    expected = sampled = 0.0
    for level, size in zip(LEVELS[first : last + 1], SIZES[first : last + 1], strict=True):
        rate = min(np.expm1(level) / np.expm1(epsilon), 1)
        expected += size * rate
        sampled += variance.person * size * rate + variance.drawn * size * rate * (1 - rate)
    if expected == 0:
        return 0.0
    sampled /= expected**2
    return 1 / (variance.noise / (expected * epsilon) ** 2 + sampled)


@pytest.mark.parametrize(("first", "last"), [(i, j) for i in range(5) for j in range(i, 5)])
def test_a_drawing_group_spends_the_level_that_is_most_precise(first, last):
    told = [drawn_precision(first, last, limit) for limit in range(first, last + 1)]
    assert drawing_table(PEOPLE, VARIANCE)[first, last] == pytest.approx(max(told))
    chosen = best_limit(PEOPLE, first, last, VARIANCE)
    assert told[chosen - first] == pytest.approx(max(told))


@given(
    noise=st.sampled_from([0.01, 2.0, 500.0]),
    person=st.sampled_from([0.0, 0.25, 4.0]),
)
def test_drawing_is_as_precise_as_any_sample_and_as_spending_the_least(noise, person):
    variance = GroupVariance(noise, person)
    table = drawing_table(PEOPLE, variance)
    starts = utility_based(LEVELS, SIZES, variance, 0, None, drawing_table)
    lasts = [*(start - 1 for start in starts[1:]), 4]
    found = sum(table[start, last] for start, last in zip(starts, lasts, strict=True))
    groupings = [(0, *cuts) for n in range(5) for cuts in combinations(range(1, 5), n)]
    totals = []
    for grouping in groupings:
        ends = (*grouping[1:], 5)
        totals.append(sum(table[s, e - 1] for s, e in zip(grouping, ends, strict=True)))
    assert found == pytest.approx(max(totals))
    for limit in range(5):  # the sampling mechanism at every threshold
        assert found >= drawn_precision(0, 4, limit, variance) * (1 - 1e-9)
    assert (table >= np.triu(precision_table(PEOPLE, variance)) * (1 - 1e-9)).all()


def test_groups_that_share_no_one_are_weighed_by_inverse_variance():
    plan = plan_rounds(
        tuple(map(Fraction, map(str, LEVELS))), SIZES, Grouping(objective="privacy", groups=3)
    )
    sizes = np.array([group.size for group in plan])
    epsilons = np.array([float(group.epsilon) for group in plan])
    inverse = VARIANCE.precision(sizes, epsilons)
    weighed = weigh(plan, SIZES, VARIANCE)
    np.testing.assert_allclose(weighed.values, inverse / inverse.sum())
    # All people are in, so that the share of all people varies by 1/4 n less than a sample's.
    if sizes.sum() == sum(SIZES):
        assert weighed.variance == pytest.approx(1 / inverse.sum() - 0.25 / sum(SIZES))


def group(members, epsilon, pays=None):
    pays = pays or (epsilon,) * len(members)
    rates = drawing_rates(np.array([float(paid) for paid in pays]), float(epsilon))
    people = np.array([SIZES[position] for position in members])
    return PlannedGroup(members, pays, epsilon, float(people.sum()), float((people * rates).sum()))


OVERLAPPING = [
    [group((0, 2, 3, 4), Fraction(1, 20)), group((3, 4), Fraction(1, 2))],
    [
        group((0, 2, 3, 4), Fraction(3, 10), (Fraction(1, 20), *[Fraction(3, 10)] * 3)),
        group((4,), Fraction(7, 10)),
    ],
]


@pytest.mark.parametrize("plan", OVERLAPPING)
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_variance_of_overlapping_groups_is_what_simulation_finds(plan, share):
    generator = plain_generator(11)
    weighed = weigh(plan, SIZES, GroupVariance(2.0, share * (1 - share)))
    sizes = np.array(SIZES, dtype=np.int64)
    errors = []
    for _ in range(6000):
        # A share of all people have it, whatever their level.
        having = generator.multivariate_hypergeometric(sizes, round(share * sizes.sum()))
        estimate = 0.0
        for weight, each in zip(weighed.values, plan, strict=True):
            paid = np.array([float(amount) for amount in each.pays])
            rates = drawing_rates(paid, float(each.epsilon))
            count = generator.binomial(having[list(each.members)], rates).sum()
            count += generator.laplace(0, 1 / float(each.epsilon))
            estimate += weight * count / each.drawn
        errors.append(estimate - share)
    assert np.mean(np.square(errors)) == pytest.approx(weighed.variance, rel=0.08)


def test_no_other_weights_vary_less():
    plan = OVERLAPPING[0]
    best = weigh(plan, SIZES, VARIANCE)
    assert best.values.sum() == pytest.approx(1)
    alone = [weigh([each], SIZES, VARIANCE).variance for each in plan]
    assert best.variance < min(alone)


def test_probability_is_what_a_coin_toss_adds():
    for share in (0.0, 0.1, 0.5):
        variance = GroupVariance(2.0, share * (1 - share))
        assert variance.person + variance.drawn == pytest.approx(share)
    assert GroupVariance(1.0, 3.0).drawn == 3.0

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
    privacy_aware,
    utility_based,
)
from dpublish.methods.personalized.groups.plan import (
    Grouping,
    PlannedGroup,
    left_over,
    left_over_bound,
    plan_rounds,
    weigh,
)
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


class TestLeftOver:
    """Theorem of section 5.2.3: what is left after T rounds of k privacy-aware groups."""

    @staticmethod
    def spend_least(levels, groups, rounds):
        """Group people by what they have left, spend the least of each group, and go on."""
        left = np.sort(np.asarray(levels, dtype=np.float64))
        squares = [float(np.square(left).sum())]
        for _ in range(rounds):
            left = np.sort(left[left > 1e-15])
            if not left.size:
                squares.append(0.0)
                continue
            starts = privacy_aware(left.tolist(), [1.0] * left.size, min(groups, left.size))
            ends = (*starts[1:], left.size)
            for start, end in zip(starts, ends, strict=True):
                left[start:end] -= left[start]
            squares.append(float(np.square(left).sum()))
        return np.array(squares) / squares[0]

    @pytest.mark.parametrize("groups", [2, 3, 5])
    @pytest.mark.parametrize("people", [6, 40, 200])
    def test_it_falls_at_least_as_fast_as_the_bound(self, people, groups):
        rng = plain_generator(people + groups)
        for numbers in (
            rng.uniform(0.01, 1, people),
            rng.exponential(0.1, people),
            np.r_[np.full(people - 1, 0.01), 1.0],
        ):
            left = self.spend_least(numbers, groups, 5)
            bounds = [left_over_bound(people, groups, t) for t in range(6)]
            assert np.all(left <= np.array(bounds) + 1e-12)

    def test_a_bound_for_more_groups_than_there_are_would_not_hold(self):
        numbers = plain_generator(1).uniform(0.01, 1, 6)
        left = self.spend_least(numbers, 1, 1)
        assert left[1] > left_over_bound(6, 5, 1)

    def test_it_is_counted_from_what_levels_pay(self):
        amounts, sizes = (Fraction(1, 10), Fraction(2, 10), Fraction(1)), (10.0, 20.0, 5.0)
        plan = plan_rounds(amounts, sizes, Grouping(summed=True))
        before = 10 * 0.01 + 20 * 0.04 + 5 * 1
        after = 20 * 0.01 + 5 * 0.81
        assert left_over(plan, amounts, sizes) == pytest.approx(after / before)
        assert left_over((), amounts, (0.0, 0.0, 0.0)) == 0

    def test_further_rounds_leave_less(self):
        amounts = tuple(Fraction(i, 20) for i in range(1, 21))
        sizes = (1000.0,) * 20
        grouping = Grouping(objective="privacy", groups=3)
        left = [
            left_over(plan_rounds(amounts, sizes, grouping, rounds), amounts, sizes)
            for rounds in (1, 2, 3)
        ]
        assert left[0] >= left[1] >= left[2]
        assert left[0] < left_over_bound(20, 3, 1)

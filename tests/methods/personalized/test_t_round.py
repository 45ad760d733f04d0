"""T-round against its proof: exact loss of each level over all rounds, leftovers, stopping."""

from fractions import Fraction
from itertools import product

import pytest

from dpublish.core import run as noisy
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.groups import method as group_release
from dpublish.methods.personalized.groups.optimizer import GroupVariance
from dpublish.methods.personalized.groups.plan import Grouping, plan_rounds, weigh
from dpublish.methods.personalized.partitioning import Partitioning
from dpublish.methods.personalized.t_round import TRound
from dpublish.randomness import seeded
from methods.personalized.group_distribution import INNER, SCHEMA, losses, table_of
from transcript import privacy_loss

LEVELS = tuple(Fraction(number, 6) for number in range(1, 7))
SIZES = (100, 100, 100, 100, 100, 100)
ONE = Fraction(1)


def rounds(**settings):
    fixed = {"inner": INNER, "preference": "own", "levels": LEVELS, "exchangeable": True}
    return TRound(**fixed | {"least_size": 0} | settings)


LEAST = rounds(sizes=SIZES, within="least", person_variance=Fraction(0))
DRAW = rounds(sizes=SIZES, within="draw")
FRAMES = [LEAST, DRAW, rounds(sizes=SIZES, objective="privacy", groups=2)]


def positions(plan):
    return [position for group in plan for position in group.members]


@pytest.mark.parametrize("method", FRAMES)
@pytest.mark.parametrize("counts", [(0,) * 6, (2, 0, 1, 3, 0, 2)])
def test_a_record_loses_what_its_level_pays_over_all_rounds(method, counts, rng, monkeypatch):
    plan = method.plan(ONE, SIZES)
    assert len(positions(plan)) > len(set(positions(plan)))  # there is a second round
    paid = method.spending(ONE)
    found = losses(method, counts, ONE, rng, monkeypatch)
    for level in LEVELS:
        assert paid[level] <= level
        assert found[level] <= float(paid[level]) + 1e-9
        assert found[level] >= 0.95 * float(paid[level])


def test_rounds_that_forget_what_was_spent_are_caught(rng, monkeypatch):
    class Forgetful(TRound):
        """Broken: every round starts with all that each level has."""

        def plan(self, epsilon, sizes):
            first = plan_rounds(
                tuple(self.available(epsilon)), tuple(map(float, sizes)), self.grouping
            )
            return (*first, *first)

        def row_spending(self, epsilon):
            return self.preferences.amounts(epsilon)

    twin = Forgetful(
        inner=INNER, preference="own", levels=LEVELS, exchangeable=True, sizes=SIZES, least_size=0
    )
    monkeypatch.setattr(
        group_release, "_share", lambda method, plan, epsilon, budget: pay(plan, budget)
    )
    found = losses(twin, (1, 0, 1, 1, 0, 2), ONE, rng, monkeypatch)
    assert any(found[level] > 1.5 * float(level) for level in LEVELS)


def pay(plan, budget):
    from dpublish.privacy.budget import Budget  # money out of nowhere, for the broken twin

    budget.spend()
    return [[Budget.seeded(group.epsilon)] for group in plan]


def test_budgets_alone_refuse_rounds_that_forget(rng):
    class Forgetful(TRound):
        """Broken: every round starts with all that each level has."""

        def plan(self, epsilon, sizes):
            first = super().plan(epsilon, sizes)
            return (*first, *first)

    twin = Forgetful(
        inner=INNER, preference="own", levels=LEVELS, exchangeable=True, sizes=SIZES, least_size=0
    )
    with pytest.raises(InvalidParameter):
        twin.release(table_of(twin, (1,) * 6), budget=twin.budget(ONE), rng=rng)


def test_measured_sizes_and_all_rounds_stay_within_each_level(monkeypatch):
    method = rounds(within="least", person_variance=Fraction(0))
    counts = (3, 0, 4, 6, 8, 5)
    for position in (0, 3, 5):
        more = table_of(method, [n + (b == position) for b, n in enumerate(counts)])
        found = [
            privacy_loss(
                lambda table, seed=seed: method.release(
                    table, budget=method.budget(ONE), rng=seeded(seed)
                ),
                table_of(method, counts),
                more,
                [noisy],
                monkeypatch,
            )
            for seed in range(15)
        ]
        assert max(found) <= float(LEVELS[position]) + 1e-9
        assert max(found) > 0


@pytest.mark.parametrize("settings", [{}, {"mode": "values-only"}, {"size_share": Fraction(0)}])
@pytest.mark.parametrize("counts", [(0,) * 6, (0, 0, 0, 1, 0, 0), (2, 0, 1, 3, 0, 2)])
def test_the_whole_budget_is_spent_and_the_receipt_says_it(settings, counts, rng):
    method = rounds(**settings)
    budget = method.budget(Fraction(1, 3))
    release = method.release(table_of(method, counts), budget=budget, rng=rng)
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    assert dict(release.receipt.personal) == method.spending(Fraction(1, 3))


def test_the_first_round_is_that_of_partitioning():
    one = rounds(sizes=SIZES, rounds=1)
    same = Partitioning(
        inner=INNER,
        preference="own",
        levels=LEVELS,
        sizes=SIZES,
        least_size=0,
        combine="weighted",
        exchangeable=True,
    )
    assert one.plan(ONE, SIZES) == same.plan(ONE, SIZES)


def test_more_rounds_are_planned_only_if_they_tell_more():
    variance = GroupVariance(2.0, 0.0)
    found = [
        weigh(LEAST_BY[number].plan(ONE, SIZES), SIZES, variance).variance for number in (1, 2, 3)
    ]
    assert found[0] > 1.01 * found[1]
    assert found[1] >= found[2]
    # Equal levels leave nothing over.
    plan = plan_rounds((ONE, ONE), (500.0, 500.0), Grouping(), rounds=3)
    assert len(plan) == 1


LEAST_BY = {
    number: rounds(sizes=SIZES, within="least", person_variance=Fraction(0), rounds=number)
    for number in (1, 2, 3)
}


def test_a_level_with_little_left_takes_no_part_again():
    # After the first group spends 0.95, a level of 1 has 0.05 left: less than a tenth.
    amounts = (Fraction(95, 100), ONE)
    plan = plan_rounds(amounts, (10.0, 10_000.0), Grouping(groups=1), rounds=3)
    assert [group.members for group in plan] == [(0, 1)]


def test_levels_left_out_as_too_light_stay_out():
    amounts = (Fraction(1, 1000), Fraction(1, 2), ONE)
    grouping = Grouping(variance=GroupVariance(2.0, 0.0))
    plan = plan_rounds(amounts, (1000.0, 1000.0, 1000.0), grouping, rounds=3)
    assert 0 not in positions(plan)


def test_it_needs_the_owners_word_and_few_rounds():
    with pytest.raises(InvalidParameter, match="--exchangeable"):
        rounds(exchangeable=False)
    for number in (0, 4):
        with pytest.raises(InvalidParameter, match="rounds"):
            rounds(rounds=number)


class Picky(Histogram):
    """Refuses an epsilon that the smallest level has, but hardly more than what it has left."""

    LIMIT = Fraction(2, 10)

    def expected_error(self, schema, n_records, epsilon):
        if epsilon < self.LIMIT:
            raise InvalidParameter("epsilon is too small")
        return super().expected_error(schema, n_records, epsilon)

    def release(self, table, *, budget, rng, progress=None):
        self.expected_error(table.schema, None, budget.epsilon)
        return super().release(table, budget=budget, rng=rng, progress=progress)


def test_what_a_later_round_cannot_do_is_refused_before_anything_is_paid(rng):
    levels = (Fraction(1, 2), Fraction(7, 10))
    settings = {"levels": levels, "within": "least", "person_variance": Fraction(0), "groups": 1}
    method = rounds(inner=Picky(columns=("sex",)), mode="values-only", **settings)
    top, schema = levels[-1], method.prepare(SCHEMA)
    with pytest.raises(InvalidParameter, match="too small"):  # whoever is in the table
        method.expected_error(schema, None, top)
    with pytest.raises(InvalidParameter, match="too small"):
        method.release(table_of(method, (50, 500)), budget=method.budget(top), rng=rng)
    once = rounds(inner=Picky(columns=("sex",)), mode="values-only", rounds=1, **settings)
    once.expected_error(schema, None, top)
    once.release(table_of(once, (50, 500)), budget=once.budget(top), rng=rng)


@pytest.mark.parametrize("within", ["least", "draw"])
def test_no_group_spends_less_than_was_tried_beforehand(within):
    method = rounds(mode="values-only", within=within, person_variance=Fraction(0))
    tried = method._possible(method.plan(ONE, method.public_sizes()), ONE)
    least = min(
        group.epsilon
        for sizes in product((0.0, 1.0, 5_000.0), repeat=len(LEVELS))
        if any(sizes)
        for group in method.plan(ONE, sizes)
    )
    assert min(tried) <= least


def test_the_error_predicted_falls_with_epsilon_and_is_no_more_than_one_rounds():
    schema = LEAST.prepare(SCHEMA)
    figures = [
        LEAST.expected_error(schema, None, epsilon).figures["count_error"]
        for epsilon in (Fraction(1, 10), Fraction(1, 3), ONE)
    ]
    assert figures[0] > figures[1] > figures[2]
    once = LEAST_BY[1].expected_error(schema, None, ONE).figures["count_error"]
    assert figures[2] < once

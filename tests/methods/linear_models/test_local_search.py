"""Local search: what moves, what it costs, and how rounds follow the size."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.genetic_search import Scores
from dpublish.methods.linear_models import local_search
from dpublish.methods.linear_models.local_search import (
    Climb,
    climb,
    climb_by_groups,
    count_group_rounds,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from replay import Tape, path_loss, playing

GOAL = np.array([300, -700, 40, 0])
GROUPS = ((0, 1), (2,), (3,))


def plan_of(rounds=40, reach=1000, first_step=200, shrink="0.95"):
    return Climb(reach=reach, rounds=rounds, first_step=first_step, shrink=Fraction(shrink))


def toward_the_goal(candidates):
    return Scores(-np.abs(candidates - GOAL).sum(axis=1), 1)


def test_a_round_lists_staying_and_each_step_within_the_box():
    moves = plan_of(reach=5, first_step=3).moves(np.array([0, 4]), 1)
    assert moves.tolist() == [[0, 4], [3, 4], [0, 5], [-3, 4], [0, 1]]


def test_steps_shrink_and_never_vanish():
    plan = plan_of(first_step=200)
    assert [plan.step(number) for number in (1, 2, 3, 400)] == [200, 190, 180, 1]


def test_with_much_budget_single_moves_come_near_the_best():
    found = climb(
        toward_the_goal,
        np.zeros(4, np.int64),
        plan_of(),
        budget=Budget.seeded(40_000),
        rng=seeded(1),
    )
    assert np.abs(found - GOAL).max() < 60


def test_with_much_budget_moves_of_groups_come_near_the_best():
    found = climb_by_groups(
        toward_the_goal,
        np.zeros(4, np.int64),
        GROUPS,
        plan_of(),
        budget=Budget.seeded(40_000),
        rng=seeded(1),
    )
    assert np.abs(found - GOAL).max() < 60


def test_all_coordinates_of_the_chosen_group_move_in_one_round_and_no_others():
    def split_goal(candidates):
        return Scores(-np.abs(candidates - [900, -900, 100, 0]).sum(axis=1), 1)

    found = climb_by_groups(
        split_goal,
        np.zeros(4, np.int64),
        GROUPS,
        plan_of(rounds=1),
        budget=Budget.seeded(10_000),
        rng=seeded(1),
    )
    assert found.tolist() == [200, -200, 0, 0]


def test_where_nothing_is_better_the_search_stays():
    for search, more in ((climb, ()), (climb_by_groups, (GROUPS,))):
        found = search(
            toward_the_goal,
            GOAL,
            *more,
            plan_of(rounds=5),
            budget=Budget.seeded(10_000),
            rng=seeded(1),
        )
        assert found.tolist() == GOAL.tolist()


def test_every_round_costs_an_equal_share_and_groups_halve_it():
    budget = Budget.seeded("0.9")
    climb(toward_the_goal, GOAL, plan_of(rounds=3), budget=budget, rng=seeded(1))
    assert [share.epsilon for share in budget.account()] == [Fraction(3, 10)] * 3
    assert all(share.is_used for share in budget.account())
    budget = Budget.seeded("0.9")
    climb_by_groups(toward_the_goal, GOAL, GROUPS, plan_of(rounds=3), budget=budget, rng=seeded(1))
    assert {share.epsilon for share in budget.account()} == {Fraction(3, 20)}
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == Fraction("0.9")


class Choices:
    """Stands in for `select`: keeps the scores that it is shown, and always takes the first."""

    def __init__(self):
        self.scores = []

    def __call__(self, scores, *, sensitivity_range, budget, rng):
        self.scores.append(np.array(scores))
        budget.spend()
        return 0


@pytest.mark.parametrize("alike", [1, 10])
@pytest.mark.parametrize("others", [0, 1, 7])
def test_a_record_moves_one_choice_of_each_stage_by_its_range_and_no_other(
    alike, others, monkeypatch
):
    """It touches one coordinate of each group, and so one step; hurdles stay as they are."""
    reach = 400  # the losses of the record, from moving up to moving down

    def shown(records):
        def score(candidates):
            losses = np.abs(candidates - GOAL)
            record = losses[:, 0] + others * losses[:, 2] // 8
            return Scores(-alike * losses.sum(axis=1) - records * record, reach)

        choices = Choices()
        monkeypatch.setattr(local_search, "select", choices)
        start = np.zeros(4, np.int64)
        settings = {"budget": Budget.seeded(1), "rng": seeded(1)}
        climb_by_groups(score, start, GROUPS, plan_of(rounds=1), **settings)
        return choices.scores

    changes = [after - before for before, after in zip(shown(0), shown(1), strict=True)]
    group, *steps = changes
    assert len(group) == len(GROUPS)
    assert np.ptp(group) <= reach
    assert len(steps) == len(GROUPS[0])
    moved = [change for change in steps if change.any()]
    assert len(moved) == 1
    assert np.ptp(moved[0]) <= reach


def test_a_record_moves_two_single_moves_apart_by_its_range(monkeypatch):
    reach = 400

    def shown(records):
        def score(candidates):
            record = np.abs(candidates - GOAL)[:, 0]
            return Scores(-np.abs(candidates).sum(axis=1) - records * record, reach)

        choices = Choices()
        monkeypatch.setattr(local_search, "select", choices)
        start = np.zeros(4, np.int64)
        climb(score, start, plan_of(rounds=1), budget=Budget.seeded(1), rng=seeded(1))
        return choices.scores

    [before], [after] = shown(0), shown(1)
    assert np.ptp(after - before) == reach


def test_progress_counts_rounds():
    calls = []
    for search, more in ((climb, ()), (climb_by_groups, (GROUPS,))):
        search(
            toward_the_goal,
            GOAL,
            *more,
            plan_of(rounds=2),
            budget=Budget.seeded(1),
            rng=seeded(1),
            watcher=lambda *call: calls.append(call),
        )
    assert calls == [(1, 2), (2, 2)] * 2


@pytest.mark.parametrize(
    ("records", "epsilon", "rounds"),
    [(-50, 1, 3), (0, 1, 3), (324, 1, 3), (40_000, 1, 12), (40_000, 4, 23), (10**9, 1, 100)],
)
def test_rounds_follow_the_square_root_of_the_noisy_size_within_limits(records, epsilon, rounds):
    assert count_group_rounds(records, Fraction(epsilon)) == rounds


@pytest.mark.parametrize(
    "bad", [{"reach": 0}, {"rounds": 0}, {"first_step": 0}, {"shrink": "0"}, {"shrink": "1.1"}]
)
def test_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        plan_of(**bad)


def test_a_record_that_moves_the_best_gain_pays_for_its_own_coordinate_alone():
    """Coordinate 0 gains most, and a record takes all it can of that; hurdles must not follow."""
    reach, size = 100, 6

    def scores(best):
        def score(candidates):
            values = np.zeros(len(candidates), dtype=np.int64)
            values[1 : 1 + size] = [best, *[40] * (size - 1)]
            return Scores(values, reach)

        return score

    def run(best, tape):
        with playing(tape):
            climb_by_groups(
                scores(best),
                np.zeros(size, np.int64),
                (tuple(range(size)),),
                plan_of(rounds=3),
                budget=Budget.seeded(3),
                rng=tape.source,
            )
        return tape

    for best in (reach, 3 * reach):
        first = run(best, Tape())
        second = run(best - reach, Tape(first))
        assert 0 < path_loss(first, second) <= 3

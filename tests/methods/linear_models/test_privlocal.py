"""PrivLocal: the exact privacy loss of whole releases, what they find, and how the search moves."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpublish.core import run as run_module
from dpublish.core.method import Run
from dpublish.data.schema import Schema, column
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import noise
from dpublish.mechanisms.genetic_search import Scores
from dpublish.methods.linear_models import privlocal
from dpublish.methods.linear_models.privgene import PrivGene
from dpublish.methods.linear_models.privlocal import (
    Climb,
    PrivLocal,
    climb,
    climb_by_groups,
    count_group_rounds,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.linear_models.tiny_world import (
    DOMAIN,
    SCHEMA,
    loans_errors,
    make_table,
    random_records,
    range_of_records_present,
    run_on,
    scaled_range,
    worst_loss,
)
from replay import Tape, path_loss, playing

MODULES = (noise, run_module)
EPSILON = Fraction(4)


def method_of(**settings):
    return PrivLocal(**({"target": "ill", "rounds": 2} | settings))


@pytest.mark.parametrize("moves", ["group", "single"])
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(moves, model, monkeypatch):
    found = worst_loss(monkeypatch, method_of(moves=moves, model=model), EPSILON, MODULES)
    assert float(EPSILON) * 0.35 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.parametrize("settings", [{"rounds": None}, {"target": "town", "rounds": 1}])
def test_nor_with_a_noisy_size_or_several_classes(settings, monkeypatch):
    found = worst_loss(monkeypatch, method_of(**settings), EPSILON, MODULES, runs=12)
    assert float(EPSILON) / 8 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.parametrize(("moves", "factor"), [("group", 0.3), ("single", 0.5)])
def test_the_audit_notices_a_range_taken_too_small(moves, factor, monkeypatch):
    scaled_range(monkeypatch, privlocal, factor)
    method = method_of(moves=moves, rounds=1)
    assert worst_loss(monkeypatch, method, EPSILON, MODULES) > float(EPSILON)


@pytest.mark.parametrize("moves", ["group", "single"])
def test_the_audit_notices_a_range_of_the_records_present(moves, monkeypatch):
    range_of_records_present(monkeypatch, privlocal)
    found = worst_loss(monkeypatch, method_of(moves=moves), EPSILON, MODULES, runs=3)
    assert found > float(EPSILON)


def test_the_audit_notices_steps_whose_groups_share_records(monkeypatch):
    """As if all columns were one: a record is touched by several of their weights."""
    real = privlocal.climb_by_groups

    def as_one(run, score, start, groups, plan, **more):
        together = tuple(index for group in groups for index in group)
        return real(run, score, start, (together, together), plan, **more)

    monkeypatch.setattr(privlocal, "climb_by_groups", as_one)
    assert worst_loss(monkeypatch, method_of(rounds=1), Fraction(40), MODULES) > 40


def test_the_audit_notices_a_choice_that_is_not_paid_for(monkeypatch):
    """As if the scores of the last round could be used once more for free."""
    real = privlocal.climb

    def once_more(run, score, start, plan, *, budget, watcher):
        last = []

        def noted(candidates):
            last[:] = [candidates, score(candidates)]
            return last[1]

        real(run, noted, start, plan, budget=budget, watcher=watcher)
        candidates, (values, most) = last
        again = run.select(values, sensitivity_range=most, budget=Budget.seeded(3 * EPSILON))
        return candidates[again]

    monkeypatch.setattr(privlocal, "climb", once_more)
    assert worst_loss(monkeypatch, method_of(moves="single"), EPSILON, MODULES) > float(EPSILON)


@pytest.mark.parametrize("moves", ["group", "single"])
@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize(
    "records",
    [
        [],
        [(1, "b", "yes")],
        [(0, "a", "no")] * 40,
        [record for record in DOMAIN * 3 if record[2] == "yes"],
        [(0, "a", "no"), (2, "c", "yes")] * 200,
        [(None, "a", "yes")] * 9,
    ],
    ids=["none", "one row", "equal rows", "one class", "separable", "missing only"],
)
def test_odd_tables_work_and_all_is_spent(moves, model, records):
    for seed, epsilon in ((1, "0.01"), (2, "5")):  # the noisy size is often negative
        budget = Budget.seeded(epsilon)
        method = method_of(moves=moves, model=model, rounds=None)
        release = method.release(make_table(records), budget=budget, rng=seeded(seed))
        assert np.abs(release.weights).max() <= 5
        assert all(share.is_used for share in budget.account())
        assert budget.cost() == release.receipt.epsilon == Fraction(epsilon)


def test_separable_records_are_distinguished_with_enough_budget():
    records = [(0, "a", "no"), (2, "c", "yes")] * 200
    for model in ("logistic", "svm"):
        method = method_of(model=model, rounds=None)
        release = method.release(make_table(records), budget=Budget.seeded(20), rng=seeded(3))
        codes = {"age": np.array([0, 2]), "town": np.array([0, 2])}
        assert release.predict_codes(codes).tolist() == [0, 1]


def test_more_than_two_classes_get_a_row_of_weights_each():
    schema = Schema((SCHEMA["age"], SCHEMA["ill"], SCHEMA["town"]))
    records = [(age, "no", "abc"[age]) for age in (0, 1, 2)] * 300
    budget = Budget.seeded(300)
    release = PrivLocal(target="town").release(
        make_table(records, schema), budget=budget, rng=seeded(1)
    )
    assert release.weights.shape == (3, 5)
    names = {purpose.split("/")[2] for purpose, _ in release.receipt.shares if "search" in purpose}
    assert names == {"class a", "class b", "class c"}
    assert release.predict_codes({"age": np.array([0, 2]), "ill": np.array([0, 0])}).tolist() == [
        0,
        2,
    ]


def test_moves_of_groups_beat_a_genetic_search_on_simulated_loans():
    local, evolved = loans_errors([PrivLocal(target="repaid"), PrivGene(target="repaid")], "0.2")
    assert local < evolved


def test_the_predicted_shortfall_falls_with_the_budget():
    for moves in ("group", "single"):
        method = method_of(moves=moves, rounds=None)
        for records in (None, 1_000, 100_000):
            predicted = [
                method.expected_error(SCHEMA, records, Fraction(part, 100))
                for part in (1, 5, 20, 50, 100, 300)
            ]
            figures = [one.figures[one.target] for one in predicted]
            assert all(later <= one * (1 + 1e-9) for one, later in pairwise(figures))
            assert figures[-1] < figures[0]


def test_progress_counts_the_rounds_of_all_classes():
    calls = []
    PrivLocal(target="town", rounds=2).release(
        make_table(random_records(1, 9)),
        budget=Budget.seeded(1),
        rng=seeded(1),
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 6, "rounds") for done in range(1, 7)]


@pytest.mark.parametrize("bad", [{"rounds": 0}, {"rounds": 501}, {"moves": "all"}])
def test_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        method_of(**bad)


def test_what_cannot_be_done_is_refused_before_anything_is_spent():
    table = make_table(random_records(1, 5))
    for settings, epsilon in (
        ({}, "1e-12"),
        ({"rounds": None}, "1e-12"),
        ({"model": "linear"}, "1"),
        ({"target": "age"}, "1"),
        ({"target": "nowhere"}, "1"),
        ({"predictors": ("ill",)}, "1"),
    ):
        budget = Budget.seeded(epsilon)
        method = method_of(**settings)
        with pytest.raises(InvalidParameter):
            method.release(table, budget=budget, rng=seeded(1))
        with pytest.raises(InvalidParameter):
            method.expected_error(SCHEMA, None, Fraction(epsilon))
        assert not budget.is_used
    used = Budget.seeded(1)
    used.spend()
    with pytest.raises(BudgetAlreadyUsed):
        method_of().release(table, budget=used, rng=seeded(1))
    unit = Schema((*SCHEMA.columns, column("who", "category", values=["x"])), unit="who")
    with pytest.raises(InvalidParameter):
        method_of().expected_error(unit, None, Fraction(1))


# --- The search: what moves, what it costs, and how rounds follow the size -----------------------

GOAL = np.array([300, -700, 40, 0])
GROUPS = ((0, 1), (2,), (3,))


def a_run():
    return run_on([])


def plan_of(rounds=40, bound=1000, first_step=200, shrink="0.95"):
    return Climb(bound=bound, rounds=rounds, first_step=first_step, shrink=Fraction(shrink))


def toward_the_goal(candidates):
    return Scores(-np.abs(candidates - GOAL).sum(axis=1), 1)


def test_a_round_lists_staying_and_each_step_within_the_box():
    moves = plan_of(bound=5, first_step=3).moves(np.array([0, 4]), 1)
    assert moves.tolist() == [[0, 4], [3, 4], [0, 5], [-3, 4], [0, 1]]


def test_steps_shrink_and_never_vanish():
    plan = plan_of(first_step=200)
    assert [plan.step(number) for number in (1, 2, 3, 400)] == [200, 190, 180, 1]


def test_with_much_budget_single_moves_come_near_the_best():
    start = np.zeros(4, np.int64)
    found = climb(a_run(), toward_the_goal, start, plan_of(), budget=Budget.seeded(40_000))
    assert np.abs(found - GOAL).max() < 60


def test_with_much_budget_moves_of_groups_come_near_the_best():
    found = climb_by_groups(
        a_run(),
        toward_the_goal,
        np.zeros(4, np.int64),
        GROUPS,
        plan_of(),
        budget=Budget.seeded(40_000),
    )
    assert np.abs(found - GOAL).max() < 60


def test_all_coordinates_of_the_chosen_group_move_in_one_round_and_no_others():
    def split_goal(candidates):
        return Scores(-np.abs(candidates - [900, -900, 100, 0]).sum(axis=1), 1)

    found = climb_by_groups(
        a_run(),
        split_goal,
        np.zeros(4, np.int64),
        GROUPS,
        plan_of(rounds=1),
        budget=Budget.seeded(10_000),
    )
    assert found.tolist() == [200, -200, 0, 0]


def test_where_nothing_is_better_the_search_stays():
    for search, more in ((climb, ()), (climb_by_groups, (GROUPS,))):
        found = search(
            a_run(), toward_the_goal, GOAL, *more, plan_of(rounds=5), budget=Budget.seeded(10_000)
        )
        assert found.tolist() == GOAL.tolist()


def test_every_round_costs_an_equal_share_and_groups_halve_it():
    budget = Budget.seeded("0.9")
    climb(a_run(), toward_the_goal, GOAL, plan_of(rounds=3), budget=budget)
    assert [share.epsilon for share in budget.account()] == [Fraction(3, 10)] * 3
    assert all(share.is_used for share in budget.account())
    budget = Budget.seeded("0.9")
    climb_by_groups(a_run(), toward_the_goal, GOAL, GROUPS, plan_of(rounds=3), budget=budget)
    assert {share.epsilon for share in budget.account()} == {Fraction(3, 20)}
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == Fraction("0.9")


class Choices:
    """Stands in for `select`: keeps the scores that it is shown, and always takes the first."""

    def __init__(self):
        self.scores = []

    def __call__(self, scores, *, budget, **further):
        self.scores.append(np.array(scores))
        budget.spend()
        return 0


@pytest.mark.parametrize("alike", [1, 10])
@pytest.mark.parametrize("others", [0, 1, 7])
def test_a_record_moves_one_choice_of_each_stage_by_its_range_and_no_other(
    alike, others, monkeypatch
):
    """It touches one coordinate of each group, and so one step; hurdles stay as they are."""
    most = 400  # the losses of the record, from moving up to moving down

    def shown(records):
        def score(candidates):
            losses = np.abs(candidates - GOAL)
            record = losses[:, 0] + others * losses[:, 2] // 8
            return Scores(-alike * losses.sum(axis=1) - records * record, most)

        choices = Choices()
        monkeypatch.setattr(run_module, "select", choices)
        start = np.zeros(4, np.int64)
        climb_by_groups(a_run(), score, start, GROUPS, plan_of(rounds=1), budget=Budget.seeded(1))
        return choices.scores

    changes = [after - before for before, after in zip(shown(0), shown(1), strict=True)]
    group, *steps = changes
    assert len(group) == len(GROUPS)
    assert np.ptp(group) <= most
    assert len(steps) == len(GROUPS[0])
    moved = [change for change in steps if change.any()]
    assert len(moved) == 1
    assert np.ptp(moved[0]) <= most


def test_a_record_moves_two_single_moves_apart_by_its_range(monkeypatch):
    most = 400

    def shown(records):
        def score(candidates):
            record = np.abs(candidates - GOAL)[:, 0]
            return Scores(-np.abs(candidates).sum(axis=1) - records * record, most)

        choices = Choices()
        monkeypatch.setattr(run_module, "select", choices)
        start = np.zeros(4, np.int64)
        climb(a_run(), score, start, plan_of(rounds=1), budget=Budget.seeded(1))
        return choices.scores

    [before], [after] = shown(0), shown(1)
    assert np.ptp(after - before) == most


def test_a_watcher_counts_rounds():
    calls = []
    for search, more in ((climb, ()), (climb_by_groups, (GROUPS,))):
        search(
            a_run(),
            toward_the_goal,
            GOAL,
            *more,
            plan_of(rounds=2),
            budget=Budget.seeded(1),
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
    "bad", [{"bound": 0}, {"rounds": 0}, {"first_step": 0}, {"shrink": "0"}, {"shrink": "1.1"}]
)
def test_plans_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        plan_of(**bad)


def test_a_record_that_moves_the_best_gain_pays_for_its_own_coordinate_alone():
    """Coordinate 0 gains most, and a record takes all it can of that; hurdles must not follow."""
    most, size = 100, 6

    def scores(best):
        def score(candidates):
            values = np.zeros(len(candidates), dtype=np.int64)
            values[1 : 1 + size] = [best, *[40] * (size - 1)]
            return Scores(values, most)

        return score

    def play(best, tape):
        with playing(tape):
            climb_by_groups(
                Run(make_table([]), rng=tape.source),
                scores(best),
                np.zeros(size, np.int64),
                (tuple(range(size)),),
                plan_of(rounds=3),
                budget=Budget.seeded(3),
            )
        return tape

    for best in (most, 3 * most):
        first = play(best, Tape())
        second = play(best - most, Tape(first))
        assert 0 < path_loss(first, second) <= 3

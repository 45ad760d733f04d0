"""BA: no window ever costs more than epsilon, and skipped steps save for later ones."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.methods.streams import snapshot
from dpublish.methods.streams.ba import BA, BudgetAbsorption
from dpublish.methods.streams.policy import Compare, History, Publication, Repeat
from dpublish.methods.streams.snapshot import Bins
from dpublish.methods.streams.stream import Stream
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema((column("x", "integer", bounds=[0, 3]),))
BINS = Bins.of(SCHEMA, "x")


def method(window, **settings):
    return BA(columns=("x",), trust_rows=True, window=window, **settings)


def play(policy, window, decisions):
    """Carry plans out as decisions say; give the plan and the units spent at each step."""
    history = History(window)
    plans, units = [], []
    for is_far in decisions:
        history.begin_step()
        plan = policy.plan(history)
        plans.append(plan)
        units.append(0)
        if isinstance(plan, Compare) and is_far:
            units[-1] = plan.epsilon / policy.unit
            publication = Publication(history.step, plan.epsilon, by_comparison=True)
            policy.learn(history, publication)
            history.record(publication)
        history.number += 1
    return plans, units


def worst_window(amounts, window):
    starts = range(max(len(amounts) - window, 0) + 1)
    return max(sum(amounts[start : start + window]) for start in starts)


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_no_window_of_any_decisions_takes_more_units_than_it_has_steps(window):
    """All sequences of ten decisions."""
    policy = method(window).policy(BINS, Fraction(1))
    worst = 0
    for decisions in product([False, True], repeat=10):
        _, units = play(policy, window, decisions)
        worst = max(worst, worst_window(units, window))
    assert worst == window


@pytest.mark.parametrize("window", [7, 40])
@pytest.mark.parametrize("probability", [0.02, 0.2, 0.9])
def test_no_long_window_costs_more_than_epsilon(window, probability):
    policy = method(window).policy(BINS, Fraction(3, 10))
    for seed in range(10):
        plans, units = play(policy, window, plain_generator(seed).random(300) < probability)
        costs = [
            units_spent * policy.unit + (plan.price if isinstance(plan, Compare) else 0)
            for plan, units_spent in zip(plans, units, strict=True)
        ]
        assert worst_window(costs, window) <= Fraction(3, 10)


def test_the_count_notices_units_that_are_not_paid_back():
    class Forgiving(BudgetAbsorption):
        def learn(self, history, publication):
            history.memory["units"] = 1

    honest = method(5).policy(BINS, Fraction(1))
    broken = Forgiving(honest.window, honest.unit, honest.price, honest.floor)
    decisions = [False] * 4 + [True] * 6
    assert worst_window(play(honest, 5, decisions)[1], 5) <= 5
    assert worst_window(play(broken, 5, decisions)[1], 5) > 5


def test_skipped_steps_save_and_are_paid_back_in_silence():
    decisions = [True, False, False, True, True, True, True, True]
    plans, units = play(method(10).policy(BINS, Fraction(1)), 10, decisions)
    assert units == [1, 0, 0, 3, 0, 0, 1, 1]
    assert [isinstance(plan, Repeat) for plan in plans] == [False] * 4 + [True] * 2 + [False] * 2


def test_no_publication_takes_more_than_a_window():
    _, units = play(method(4).policy(BINS, Fraction(1)), 4, [False] * 20 + [True] * 10)
    assert units[20:] == [4, 0, 0, 0, 1, 1, 1, 1, 1, 1]


def run(snapshots, *, window, epsilon=Fraction(1), seed=1, **settings):
    opened = method(window, **settings).start(
        SCHEMA, budget=Budget.seeded(epsilon), rng=seeded(seed)
    )
    rng = seeded(seed)
    return opened, [opened.next_counts(counts, rng=rng) for counts in snapshots]


def random_snapshots(seed, steps, high=200):
    return list(plain_generator(seed).integers(0, high, (steps, BINS.size)))


@pytest.mark.parametrize("contribution", [1, 2])
def test_a_user_in_every_step_of_a_window_is_hidden(contribution, monkeypatch):
    losses = []
    for seed in range(20):
        here = random_snapshots(seed, 7, high=2000)
        where = plain_generator(seed).integers(0, BINS.size, 7)
        rows = contribution * np.eye(BINS.size, dtype=np.int64)
        inside = [2 <= step < 6 for step in range(7)]  # a window of four steps
        there = [
            counts + rows[position] * is_in
            for counts, position, is_in in zip(here, where, inside, strict=True)
        ]
        losses.append(
            privacy_loss(
                lambda snapshots, seed=seed: run(
                    snapshots, window=4, seed=seed, contribution=contribution
                ),
                here,
                there,
                (snapshot,),
                monkeypatch,
            )
        )
    assert 0.5 < max(losses) <= 1 + 1e-9


def test_the_audit_notices_a_comparison_without_noise(monkeypatch):
    """A step whose distance is just at its threshold for one of two neighbors."""
    monkeypatch.setattr(
        Stream, "_is_far", lambda self, plan, run, *_: self._distance(run) >= plan.threshold
    )
    policy = method(4).policy(BINS, Fraction(1))
    threshold = policy.plan(History(4)).threshold
    here = [np.array([threshold - 1, 0, 0, 0])]
    there = [np.array([threshold, 0, 0, 0])]
    loss = privacy_loss(
        lambda snapshots: run(snapshots, window=4), here, there, (snapshot,), monkeypatch
    )
    assert loss == np.inf


def test_the_account_stops_a_policy_that_pays_nothing_back(monkeypatch):
    monkeypatch.setattr(
        BudgetAbsorption,
        "plan",
        lambda policy, history: Compare(-(10**9), policy.window * policy.unit, policy.price),
    )
    with pytest.raises(BudgetExhausted):
        run(random_snapshots(1, 3), window=3)


def test_a_window_as_long_as_the_stream_hides_users_in_all_steps():
    opened, steps = run(random_snapshots(2, 30, high=10**6), window=30)
    total = sum(step.epsilon for step in steps)
    assert Fraction(1, 4) < total <= Fraction(1, 2)
    assert opened.spent <= 1
    assert opened.worst == opened.spent


def test_a_resumed_stream_goes_on_as_if_it_had_not_stopped():
    snapshots = random_snapshots(4, 20, high=1000)
    opened, steps = run(snapshots, window=6)
    rng = seeded(1)
    again = method(6).start(SCHEMA, budget=Budget.seeded(1), rng=seeded(1))
    found = []
    for counts in snapshots:
        again = method(6).resume(SCHEMA, again.state(), again.receipt)
        found.append(again.next_counts(counts, rng=rng))
    assert [step.action for step in found] == [step.action for step in steps]
    assert np.array_equal(again.estimate, opened.estimate)


def test_a_jump_is_published_before_a_window_is_over():
    still = np.full(BINS.size, 10_000)
    moved = np.array([90_000, 0, 0, 10_000])
    for seed in range(10):
        _, steps = run([still] * 6 + [moved] * 8, window=8, seed=seed)
        assert np.abs(steps[5].estimate - still).max() < 300
        assert np.abs(steps[-1].estimate - moved).max() < 300


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [1, 0, 0, 0]])
def test_nearly_empty_snapshots_are_taken(counts):
    _, steps = run([np.array(counts)] * 5, window=3)
    assert len(steps) == 5


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"window": 0}, "window"),
        ({"window": 5, "decision_share": Fraction(0)}, "between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, reason):
    with pytest.raises(InvalidParameter, match=reason):
        method(**settings)


def test_an_epsilon_too_small_for_one_unit_is_refused_at_the_start():
    with pytest.raises(InvalidParameter, match="rate"):
        method(3).start(SCHEMA, budget=Budget.seeded(Fraction(1, 2**39)), rng=seeded(1))

"""BD: no window ever costs more than epsilon, and publications halve what is left."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema, column
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.methods.streams import snapshot
from dpublish.methods.streams.bd import BD, BudgetDistribution, NoiseFloor
from dpublish.methods.streams.policy import Compare, History, Publication, Repeat
from dpublish.methods.streams.snapshot import Bins
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import UserInWindow
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema((column("x", "integer", bounds=[0, 3]), column("y", "integer", bounds=[0, 99])))
BINS = Bins.of(SCHEMA, "x")


def method(window, **settings):
    return BD(**{"columns": ("x",), "trust_rows": True} | settings, window=window)


def play(policy, window, decisions):
    """Carry plans out as decisions say; give what was asked and published at each step."""
    history = History(window)
    spent = []
    for is_far in decisions:
        history.begin_step()
        plan = policy.plan(history)
        price = plan.price if isinstance(plan, Compare) else Fraction(0)
        epsilon = plan.epsilon if isinstance(plan, Compare) and is_far else Fraction(0)
        if epsilon:
            publication = Publication(history.step, epsilon, by_comparison=True)
            policy.learn(history, publication)
            history.record(publication)
        history.number += 1
        spent.append((price, epsilon))
    return spent


def worst_window(spent, window):
    sums = [sum(price + epsilon for price, epsilon in spent)]
    for start in range(len(spent) - window + 1):
        sums.append(sum(price + epsilon for price, epsilon in spent[start : start + window]))
    return max(sums[1:] or sums)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("probability", [0.05, 0.3, 0.8, 1.0])
def test_no_window_of_any_decisions_costs_more_than_epsilon(window, probability):
    epsilon = Fraction(7, 10)
    for seed in range(5):
        decisions = plain_generator(seed).random(150) < probability
        policy = method(window).policy(BINS, epsilon)
        spent = play(policy, window, decisions)
        assert worst_window(spent, window) <= epsilon
        assert all(amount.denominator <= 10 * 2**21 * window for pair in spent for amount in pair)


def test_the_count_notices_a_window_that_forgets_too_early():
    """As if publications were out of sight one step too soon."""

    class Forgetful(BudgetDistribution):
        def plan(self, history):
            shorter = History(history.window, recent_spending=history.recent_spending)
            if history.recent and history.recent[0].number == history.step - 2:
                shorter.recent_spending -= history.recent[0].epsilon
            return super().plan(shorter)

    honest = method(3).policy(BINS, Fraction(1))
    broken = Forgetful(honest.pool, honest.unit, honest.price, honest.floor)
    assert worst_window(play(broken, 3, [True] * 50), 3) > 1


def test_each_publication_takes_half_of_what_the_window_has_left():
    spent = play(method(100).policy(BINS, Fraction(1)), 100, [True] * 60)
    published = [epsilon for _, epsilon in spent]
    assert published[:4] == [Fraction(1, 2**k) for k in (2, 3, 4, 5)]
    assert published[-1] == 0


def test_a_window_whose_pool_is_used_up_asks_nothing():
    policy = method(100).policy(BINS, Fraction(1))
    history = History(100, recent_spending=policy.pool)
    assert policy.plan(history) == Repeat()


def test_a_step_publishes_if_the_mean_distance_is_above_that_of_the_noise():
    """The rule of the paper, in integers: dis > s / epsilon, dis = distance / d."""
    for epsilon in (Fraction(1, 3), Fraction(1, 4), Fraction(2), Fraction(5, 7)):
        for bins, contribution in [(1, 1), (4, 3), (10, 1)]:
            threshold = NoiseFloor(bins, contribution).threshold(History(5), epsilon)
            for distance in range(200):
                is_far = Fraction(distance, bins) > contribution / epsilon
                assert (distance >= threshold) == is_far


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(5)])
def test_identity_keeps_to_the_rule_and_noisier_histograms_raise_it(rate):
    floor, epsilon = NoiseFloor(50, 2), 2 * rate
    history = History(5, noise=noise_variance(rate))
    floor.learn(history, Publication(1, epsilon, by_comparison=True))
    assert floor.threshold(history, epsilon) == 100 // epsilon + 1
    history.noise *= 100
    floor.learn(history, Publication(1, epsilon, by_comparison=True))
    assert floor.threshold(history, epsilon) > 3 * (100 // epsilon)


def test_with_many_bins_the_comparisons_get_a_smaller_part():
    many = Bins.of(SCHEMA, "y")
    assert BD(columns=("x",), window=50, decision_share=None).share(many) == Fraction(1, 2)
    assert BD(columns=("x",), window=10, decision_share=None).share(many) == Fraction(1, 10)
    assert BD(columns=("x",), window=10, decision_share=Fraction(1, 3)).share(many) == Fraction(
        1, 3
    )


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
        here = random_snapshots(seed, 4)
        where = plain_generator(seed).integers(0, BINS.size, 4)
        rows = contribution * np.eye(BINS.size, dtype=np.int64)
        there = [counts + rows[position] for counts, position in zip(here, where, strict=True)]
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


def test_the_audit_notices_a_window_that_is_too_short(monkeypatch):
    """The user is in more steps than a window has."""
    here = random_snapshots(3, 12)
    there = [counts + np.array([1, 0, 0, 0]) for counts in here]
    losses = [
        privacy_loss(
            lambda snapshots, seed=seed: run(snapshots, window=3, seed=seed),
            here,
            there,
            (snapshot,),
            monkeypatch,
        )
        for seed in range(20)
    ]
    assert max(losses) > 1.2


def test_the_account_stops_a_policy_that_does_not_halve(monkeypatch):
    monkeypatch.setattr(
        BudgetDistribution, "plan", lambda policy, history: Compare(0, policy.pool, policy.price)
    )
    with pytest.raises(BudgetExhausted):
        run(random_snapshots(1, 3), window=3)


def test_a_window_as_long_as_the_stream_hides_users_in_all_steps():
    opened, steps = run(random_snapshots(2, 30, high=10**6), window=30)
    total = sum(step.epsilon for step in steps)
    assert opened.spent == total + 30 * Fraction(1, 60)
    assert Fraction(1, 4) < total <= Fraction(1, 2)
    assert opened.receipt.neighbors == UserInWindow("person", 30)


def test_a_jump_is_published_and_standing_still_is_not():
    still = np.full(100, 1000)
    moved = np.roll(np.repeat([4000, 0], [25, 75]), 30)
    settings = {"columns": ("y",), "decision_share": Fraction(1, 2)}
    _, steps = run([still] * 5 + [moved] * 3, window=8, **settings)
    assert [step.number for step in steps if step.action == "published"] == [1, 6]
    assert np.abs(steps[-1].estimate - moved).max() < 100


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [1, 0, 0, 0]])
def test_nearly_empty_snapshots_are_taken(counts):
    _, steps = run([np.array(counts)] * 5, window=3)
    assert len(steps) == 5


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"window": 0}, "window"),
        ({"window": 5, "decision_share": Fraction(1)}, "between 0 and 1"),
        ({"window": 5, "decision_share": 0.5}, "between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, reason):
    with pytest.raises(InvalidParameter, match=reason):
        method(**settings)


def test_an_epsilon_too_small_for_the_smallest_publication_is_refused_at_the_start():
    epsilon = Fraction(1, 2**22)
    with pytest.raises(InvalidParameter, match="rate"):
        method(3).start(SCHEMA, budget=Budget.seeded(epsilon), rng=seeded(1))
    with pytest.raises(InvalidParameter, match="rate"):
        method(10**12, decision_share=Fraction(1, 10**6)).expected_error(SCHEMA, None, Fraction(1))

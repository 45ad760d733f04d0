from fractions import Fraction

import numpy as np
import pytest

from dpublish.methods.streams.planning import (
    GRAIN,
    NoiseModel,
    best_interval,
    change_rate,
    comparison_noise_bound,
    expected_parts,
    learn_change,
    threshold,
)
from dpublish.methods.streams.policy import History

FACTS = NoiseModel(bins=100, contribution=1, epsilon=Fraction(1, 3))


def test_budgets_are_rounded_down_to_the_grain():
    exact = FACTS.exact(0.1)
    assert 0.1 - 1e-6 < exact <= Fraction(0.1)
    assert (exact / FACTS.epsilon * GRAIN).denominator == 1
    assert FACTS.exact(1e-12) == 0


def test_what_does_not_move_is_published_once():
    assert best_interval(1.0, 100, 0.0, 1) == np.inf


def test_the_interval_shrinks_as_counts_move_faster_and_grows_with_noise():
    by_change = [best_interval(1.0, 100, change, 1) for change in (0.01, 1, 100, 10**6)]
    assert by_change == sorted(by_change, reverse=True)
    assert by_change[0] > by_change[-1] == 1
    assert best_interval(0.1, 100, 1, 1) > best_interval(1.0, 100, 1, 1)
    assert best_interval(1.0, 100, 1, 4) > best_interval(1.0, 100, 1, 1)


def test_the_interval_is_where_noise_and_staleness_are_least():
    budget, steps, change = 0.5, 200, 3.0

    def cost(interval):
        noise = 2 * (steps / (budget * interval)) ** 2
        moved = change * interval
        smoothed = (np.sqrt(moved**2 + 4 * moved * noise) - moved) / 2
        return (noise + smoothed) / 2 + change * (interval - 1) / 2

    found = best_interval(budget, steps, change, 1)
    assert cost(found) <= 1.01 * min(cost(i) for i in range(1, steps + 1))


def test_the_rate_of_change_is_what_publications_showed_by_the_time_between_them():
    history = History(None)
    for _ in range(5):
        history.number, history.last = 10, 1  # ten steps since the last publication
        history.jump = history.shift = 40.0
        assert not learn_change(history)
    assert change_rate(history) == pytest.approx(4.0)


def test_fewer_publications_are_planned_for_more_bins_or_fewer_people_or_less_budget():
    def parts(bins, people, budget, contribution=1):
        model = NoiseModel(bins=bins, contribution=contribution, epsilon=Fraction(1))
        return expected_parts(History(None, total=people), model, budget, 0.15)

    usual = parts(100, 100_000, 1.0)
    assert usual == pytest.approx((0.15 * 100_000 / 10 / 2) ** 0.5)
    assert parts(27_648, 100_000, 1.0) < usual / 3
    assert parts(100, 10_000, 1.0) < usual / 3
    assert parts(100, 100_000, 0.1) < usual / 3
    assert parts(100, 100_000, 1.0, contribution=10) < usual / 3
    assert parts(10**6, 0, 0.01) == 4  # never fewer


def test_a_second_publication_at_once_says_nothing_about_change():
    history = History(None, number=1, last=1, published=1)
    history.jump = history.shift = 1e6
    assert not learn_change(history)
    assert change_rate(history) == 0


def test_a_jump_is_not_taken_for_drift():
    history = History(None)
    history.number, history.jump, history.memory["alarm"] = 3, 1000.0, 10.0
    assert learn_change(history)
    assert change_rate(history) == 0


def test_jumps_in_a_row_are_fast_change():
    history = History(None)
    history.number, history.last, history.jump, history.shift = 3, 1, 1000.0, 1000.0
    history.memory.update(alarm=10.0, jumps=2)
    assert learn_change(history)
    history.memory.update(alarm=10.0, jumps=3)  # the policies count what is called a jump
    assert not learn_change(history)
    assert (change_rate(history), history.memory["jumps"]) == (pytest.approx(1000 / history.age), 2)
    history.memory["alarm"] = 10.0
    assert learn_change(history)  # a third one begins a row again


def test_a_calm_publication_between_two_jumps_keeps_them_jumps():
    history = History(None)
    history.number, history.last = 3, 1
    for jump in (1000.0, 1.0, 1000.0):
        history.jump = history.shift = jump
        history.memory["alarm"] = 10.0
        assert learn_change(history) == (jump > 40)
    assert change_rate(history) == pytest.approx(1 / history.age)


def test_the_threshold_stands_out_from_noise_and_grows_with_the_noise_of_a_publication():
    history = History(None, noise=50.0)
    lows = [threshold(FACTS, history, epsilon, 10, 0.0) for epsilon in (1.0, 0.1, 0.01)]
    assert lows == sorted(lows)
    floor = 0.75 * 100 * 50**0.5
    assert threshold(FACTS, history, 100.0, 10, 500.0) == pytest.approx(floor + 500, abs=1)


def test_false_alarms_are_rare():
    """Drive a real comparison with answers at the floor: noise alone must hardly fire it."""
    from dpublish.mechanisms.sparse_vector.stored import StoredVector
    from dpublish.privacy.budget import Budget
    from dpublish.randomness import seeded

    rng, fired, steps = seeded(5), 0, 100
    bound = round(comparison_noise_bound(Fraction(1, 10), 3, 1, steps))
    for _ in range(100):
        vector = StoredVector.draw(
            sensitivity=1, max_positives=3, budget=Budget.seeded("0.1"), rng=rng
        )
        for _ in range(steps):
            is_above, vector = vector.above(0, bound, rng)
            if is_above:
                fired += 1
                break
    assert fired <= 12  # one stretch in fifty is meant; one in eight would be a fault

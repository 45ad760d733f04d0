"""The controller that keeps publications on schedule."""

from fractions import Fraction
from math import log

import pytest

from dpublish.methods.streams.dsat import PIDThreshold
from dpublish.methods.streams.dsft import absolute_noise
from dpublish.methods.streams.policy import Compare, History, Publication, Publish, Repeat

HALF = Fraction(1, 2)
TERMS = {
    "bins": 10,
    "contribution": 1,
    "epsilon_decisions": HALF,
    "epsilon_publications": HALF,
}
SIZE = 100_000.0


def scheduled(releases=5, horizon=101, **changes):
    return PIDThreshold(**TERMS, releases=releases, horizon=horizon, **changes)


def at(step, published, *, window=None, last=1, noise=8.0, size=SIZE):
    """The history at `step`, after so many publications."""
    history = History(window, number=step - 1, published=published, last=last, noise=noise)
    for n in range(published if window else 0):
        history.recent.append(Publication(last - n, HALF, True))
    history.memory["size"] = size
    return history


def test_on_schedule_the_excess_is_the_first_one():
    """At step 51 of 101, half of the four publications after the first are due."""
    assert scheduled().excess(at(51, 3)) == pytest.approx(0.025 * SIZE)


@pytest.mark.parametrize(("published", "ahead"), [(1, -2), (2, -1), (4, 1), (5, 2)])
def test_each_publication_ahead_multiplies_the_excess_by_four(published, ahead):
    beyond = abs(ahead) - 0.5
    factor = 4 ** (beyond if ahead > 0 else -beyond)
    lowest = 3 * scheduled().deviation(at(51, published))
    expected = max(0.025 * SIZE * factor, lowest)
    assert scheduled().excess(at(51, published)) == pytest.approx(expected)


def test_within_the_dead_band_nothing_moves():
    """From step 39 to 63 the third publication is at most half a one off."""
    excesses = {scheduled(integral_gain=1.0).excess(at(step, 3)) for step in range(39, 64)}
    assert len(excesses) == 1


def test_the_excess_stays_between_the_noise_and_twice_the_size():
    small = at(51, 1, size=1.0)
    assert scheduled().excess(small) == pytest.approx(3 * scheduled().deviation(small))
    assert scheduled(proportional_gain=1e9).excess(at(2, 5)) == 2 * SIZE
    low = at(100, 1)
    assert scheduled(proportional_gain=1e9).excess(low) == pytest.approx(
        3 * scheduled().deviation(low)
    )


def test_the_integral_adds_up_and_does_not_wind_up():
    policy, history = scheduled(proportional_gain=0.0, integral_gain=0.25), at(51, 5)
    seen = []
    for _ in range(60):
        policy.excess(history)
        seen.append(history.memory["integral"])
    assert seen[:2] == [0.375, 0.75]
    assert seen[-1] == 2.0
    behind = at(51, 1)
    behind.memory["integral"] = seen[-1]
    policy.excess(behind)
    assert behind.memory["integral"] == 1.625  # it turns round at once


def test_the_slope_is_taken_since_the_last_publication():
    policy = scheduled(proportional_gain=0.0, derivative_gain=1.0)
    history = at(51, 5, last=41)
    history.memory["error_at_release"] = 0.5
    assert policy.excess(history) == pytest.approx(0.025 * SIZE * 2.718281828 ** ((1.5 - 0.5) / 10))
    policy.learn(history, Publication(51, HALF, True))
    assert history.memory["error_at_release"] == 1.5


def test_comparisons_begin_after_the_burn_in():
    policy = scheduled(burn_in=4)
    kinds = [type(policy.plan(at(step, 1))) for step in (2, 4, 5, 100)]
    assert kinds == [Repeat, Repeat, Compare, Compare]
    assert type(policy.plan(at(1, 0))) is Publish
    assert policy.plan(at(101, 2)) == Publish(3 * policy.price)


def test_a_window_counts_the_publications_in_sight():
    policy = PIDThreshold(**TERMS, releases=4, window=20)
    full = at(60, 4, window=20, last=59)
    assert policy.plan(full) == Repeat()
    assert policy.excess(at(60, 4, window=20)) < policy.excess(at(6, 4, window=20))
    assert policy._ahead(at(60, 3, window=20)) == pytest.approx(3 - 4 * 19 / 20)
    assert policy._ahead(at(6, 3, window=20)) == pytest.approx(3 - 4 * 5 / 20)


def test_the_threshold_asked_for_is_whole_and_includes_the_floor():
    policy, history = scheduled(), at(51, 3)
    asked = policy.plan(history)
    floor = 10 * absolute_noise(8.0)[0]
    assert asked.threshold == round(floor + 0.025 * SIZE)
    assert isinstance(asked.threshold, int)


def test_only_public_times_matter():
    """The same times and sizes give the same thresholds, whatever else the history holds."""
    one, other = at(51, 2), at(51, 2)
    other.jump, other.spent = 77.0, Fraction(1, 3)
    assert scheduled().plan(one) == scheduled().plan(other)
    assert scheduled().proportional_gain == log(4)

"""The printed controller of DSAT, repaired: it reproduces what was found wrong with it."""

from fractions import Fraction

import pytest

from dpublish.methods.streams.dsat import STATE, PaperController
from dpublish.methods.streams.policy import Compare, History, Publication, Repeat

HALF = Fraction(1, 2)
TERMS = {
    "bins": 10,
    "contribution": 1,
    "epsilon_decisions": HALF,
    "epsilon_publications": HALF,
    "releases": 5,
}


def run(policy, steps, distance):
    """Publish whenever the state falls below a distance; give times and states."""
    history = History(policy.window, total=1000.0)
    times, states = [], []
    for number in range(1, steps + 1):
        history.begin_step()
        plan = policy.plan(history)
        is_due = not isinstance(plan, Repeat)
        if isinstance(plan, Compare):
            states.append(history.memory[STATE])
            is_due = states[-1] <= distance
        if is_due:
            times.append(number)
            publication = Publication(number, plan.epsilon, isinstance(plan, Compare))
            policy.learn(history, publication)
            history.record(publication)
        history.number = number
    return times, states


@pytest.mark.parametrize("distance", [0.01, 0.05, 0.3])
def test_it_publishes_at_fixed_intervals_whatever_the_data_does(distance):
    policy = PaperController(**TERMS, horizon=500, burn_in=10)
    times, states = run(policy, 500, distance)
    assert times == [1, 103, 203, 303, 403]
    assert len(states) == 393
    assert sum(state in (0.0, 2.0) for state in states) == 353


def test_the_state_is_clamped_and_not_the_noisy_threshold():
    """The threshold handed on is that of the state; noise is added to it afterward."""
    policy = PaperController(**TERMS, horizon=500)
    history = History(None, number=50, published=1, noise=8.0, memory={"size": 1000.0, STATE: 2.0})
    first = policy.plan(history)
    assert history.memory[STATE] == 2.0
    history.memory[STATE] = 0.0
    history.number = 150
    assert first.threshold - policy.plan(history).threshold == 2000


def test_an_error_of_the_rate_moves_the_state():
    policy = PaperController(**TERMS, horizon=500)
    ahead = History(None, number=19, published=2)
    assert policy.move(1.0, ahead) == pytest.approx(1.0 + 0.5 * abs(0.09 - 0.05) / 0.05)
    behind = History(None, number=499, published=1)
    assert policy.move(1.0, behind) == pytest.approx(1.0 - 0.5 * abs(0.008 - 0.05) / 0.05)


def test_a_window_is_measured_by_its_own_length():
    """Five publications in sight of a window of 50 are on schedule, however late it is."""
    policy = PaperController(**TERMS, window=50)
    late = History(50, number=999_999)
    late.recent.extend(Publication(n, HALF, True) for n in range(5))
    assert policy.move(2.0, late) == pytest.approx(2.0 - 0.5)

"""The printed controller of DSAT, repaired: it reproduces what was found wrong with it."""

from fractions import Fraction

import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.dsat import DSAT, STATE, PaperController
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.policy import Compare, History, Publication, Repeat
from dpublish.methods.streams.snapshot import Bins

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


def test_the_settings_of_the_thesis_are_those_of_the_controller():
    settings = {"target": "1/10", "step_size": "1/4", "threshold": "1/5", "integral_window": "3"}
    gains = {"proportional_gain": "2", "integral_gain": "1/2", "derivative_gain": "3"}
    given = {"columns": "x", "controller": "paper", "horizon": "500", **settings, **gains}
    bins = Bins.of(Schema((column("x", "integer", bounds=[0, 9]),)), ("x",))
    policy = make_stream_method("dsat", given).policy(bins, Fraction(1))
    assert isinstance(policy, PaperController)
    assert (policy.target, policy.step_size, policy.first_threshold) == (0.1, 0.25, 0.2)
    assert policy.integral_window == 3
    assert (policy.proportional_gain, policy.integral_gain, policy.derivative_gain) == (2, 0.5, 3)


def test_the_integral_adds_up_the_errors_of_its_window_only():
    """Equation 4.2.3 by hand: errors e, then P e + I (sum of the last two) + D (e - e_j) / age."""
    policy = PaperController(
        **TERMS, horizon=500, integral_gain=0.5, derivative_gain=2.0, integral_window=2
    )
    history = History(None, published=1, last=1)
    state, errors = 1.0, []
    for number in (10, 11, 12):
        history.number = number
        error = abs(abs(1 / (number + 1) - 0.01) - 0.05) / 0.05
        errors.append(error)
        output = error + 0.5 * sum(errors[-2:]) + 2.0 * error / number
        moved = policy.move(state, history)
        assert moved == pytest.approx(min(2.0, max(0.0, state + 0.5 * output)))


@pytest.mark.parametrize(
    "wrong", [{"target": 0}, {"step_size": -1}, {"threshold": 0}, {"integral_window": 0}]
)
def test_settings_without_a_sense_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        DSAT(columns=("x",), horizon=9, controller="paper", **wrong)

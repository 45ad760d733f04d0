"""DSFT: thresholds in the right units, and all of the budget on every path."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf, noise_variance
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.mechanisms.sparse_vector.stored import comparison_deviation
from dpublish.methods.streams import snapshot
from dpublish.methods.streams.dsft import DSFT, absolute_noise, share_for_decisions
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.policy import (
    Compare,
    Comparisons,
    History,
    Publication,
    Publish,
    Repeat,
)
from dpublish.methods.streams.snapshot import Bins
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.streams.stream_distribution import BINS, SCHEMA, SHARED, Side

ONE = Fraction(1)


def dsft(horizon, **changes):
    return DSFT(**SHARED, horizon=horizon, **changes)


def policy_of(method):
    return method.policy(Bins.of(SCHEMA, ("area",)), ONE)


def history_of(published, number, *, size=1000.0, noise=8.0):
    """A history after `number` steps with so many publications."""
    return History(
        None, number=number, published=published, total=size, noise=noise, memory={"size": size}
    )


@pytest.mark.parametrize("releases", [1, 2, 3, 5, 6, 7])
def test_all_is_spent_on_every_path(releases, monkeypatch):
    """All answers of six steps, through the real loop and account."""
    for answers in product([False, True], repeat=6):
        opened = dsft(6, releases=releases).start(SCHEMA, budget=Budget.seeded(1), rng=seeded(1))
        side = Side(frozenset(n for n, is_above in enumerate(answers, 1) if is_above))
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "StoredVector", side)
            for side.step in range(1, 7):
                opened.next_counts(np.zeros(BINS, dtype=np.int64), rng=seeded(1))
        assert opened.spent == opened.worst == 1
        assert opened._history.published <= releases


def test_the_first_step_publishes_and_the_last_spends_what_is_left():
    method = dsft(50, releases=5, decision_share=Fraction(1, 4))
    policy, part = policy_of(method), Fraction(3, 20)
    assert policy.plan(history_of(0, 0)) == Publish(part)
    assert policy.plan(history_of(2, 49)) == Publish(3 * part)
    assert policy.plan(history_of(5, 49)) == Repeat()
    assert policy.plan(history_of(5, 20)) == Repeat()
    asked = policy.plan(history_of(4, 20))
    assert isinstance(asked, Compare)
    assert (asked.epsilon, asked.price) == (part, None)
    assert policy.comparisons == Comparisons(Fraction(1, 4), 4)


def test_one_publication_gets_everything_and_nothing_is_asked():
    policy = policy_of(dsft(50, releases=1, decision_share=Fraction(1, 4)))
    assert policy.comparisons is None
    assert policy.plan(history_of(0, 0)) == Publish(ONE)
    assert policy.plan(history_of(1, 49)) == Repeat()


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 2), Fraction(3)])
def test_the_floor_is_the_mean_of_what_noise_adds_to_a_distance(rate):
    values = np.arange(-4000, 4001)
    distribution = noise_pmf(rate, values)
    mean = float(distribution @ np.abs(values))
    variance = float(distribution @ np.square(np.abs(values) - mean))
    assert absolute_noise(noise_variance(rate)) == pytest.approx((mean, variance), rel=1e-9)
    decay = exp(-rate)
    assert mean == pytest.approx(2 * decay / (1 - decay**2), rel=1e-9)


def test_thresholds_are_parts_of_the_first_total_beyond_the_floor():
    policy = policy_of(dsft(50, releases=5, threshold=Fraction(1, 10)))
    floor = BINS * absolute_noise(8.0)[0]
    assert policy.plan(history_of(1, 3)).threshold == round(floor + 100)


def test_the_automatic_threshold_is_three_deviations_of_all_noise():
    policy = policy_of(dsft(50, releases=5, threshold="auto"))
    terms = policy.comparisons
    calibration = calibrate(
        sensitivity=1,
        max_positives=terms.positives,
        monotonic=False,
        budget=Budget.seeded(terms.epsilon),
    )
    mean, variance = absolute_noise(8.0)
    deviation = (comparison_deviation(calibration) ** 2 + BINS * variance) ** 0.5
    assert policy.plan(history_of(1, 3)).threshold == round(BINS * mean + 3 * deviation)


@pytest.mark.parametrize(("total", "size"), [(-40.0, 1.0), (0.3, 1.0), (250.0, 250.0)])
def test_the_size_is_that_of_the_first_publication_and_never_below_one(total, size):
    policy, history = policy_of(dsft(50)), History(None, total=total)
    policy.learn(history, Publication(1, ONE, False))
    assert history.memory == {"size": size}
    history.published, history.total = 1, 9999.0
    policy.learn(history, Publication(2, ONE, True))
    assert history.memory == {"size": size}


def test_the_share_of_decisions_perturbs_distances_least():
    """The spec's figures have two-sided noise, hence a comparison of twice the variance."""
    bins, releases = 100, 10
    share = share_for_decisions(None, bins=bins, releases=releases, horizon=500, window=None)

    def variance(part):
        compared = (1 + (2 * (releases - 1)) ** (2 / 3)) ** 3
        return compared / part**2 + bins * releases**2 / (1 - part) ** 2

    grid = np.arange(1, 1024) / 1024
    assert share == Fraction(round(1024 * grid[np.argmin(variance(grid))]), 1024)
    ratio = share / (1 - share)
    two_sided = 2 ** (1 / 3) * ratio / (1 + 2 ** (1 / 3) * ratio)
    assert two_sided == pytest.approx(0.32, abs=0.005)


def test_the_share_for_windows_is_that_of_runs_of_one_positive():
    share = share_for_decisions(None, bins=1000, releases=4, horizon=None, window=100)
    ratio = 2 ** (1 / 3) * share / (1 - share)
    assert ratio == pytest.approx(3.26 / 10, abs=0.003)


def test_the_share_is_capped_at_what_skipping_steps_saves():
    terms = {"bins": 2, "horizon": 10, "window": None}
    assert share_for_decisions(None, releases=9, **terms) == Fraction(1, 10)
    assert share_for_decisions(None, releases=10, **terms) == 0
    assert share_for_decisions(Fraction(1, 3), releases=9, **terms) == Fraction(1, 3)


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 0},
        {"horizon": 5, "releases": 0},
        {"horizon": 5, "threshold": Fraction(0)},
        {"horizon": 5, "threshold": 0.5},
        {"horizon": 5, "threshold": "often"},
        {"horizon": 5, "decision_share": Fraction(1)},
        {"horizon": 5, "decision_share": 0.5},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        DSFT(**SHARED, **bad)


@pytest.mark.parametrize(("text", "value"), [("auto", "auto"), ("1/8", Fraction(1, 8))])
def test_a_threshold_may_be_written_as_text(text, value):
    settings = {"columns": "area", "trust_rows": "yes", "horizon": "9", "threshold": text}
    assert make_stream_method("dsft", settings).threshold == value


def test_too_small_an_epsilon_is_refused_before_anything_is_spent():
    budget = Budget.seeded(Fraction(1, 2**45))
    with pytest.raises(InvalidParameter, match="rate"):
        dsft(50).start(SCHEMA, budget=budget, rng=seeded(1))
    assert not budget.is_used


def test_it_publishes_after_a_jump_and_not_before():
    """The counts jump once, by far more than the threshold, which is far beyond all noise."""
    method = dsft(30, releases=3, threshold=Fraction(1, 10))
    for seed in range(5):
        opened = method.start(SCHEMA, budget=Budget.seeded(5), rng=seeded(seed))
        rng = seeded(1000 + seed)
        counts = [np.full(BINS, 5000 if n < 15 else 9000, dtype=np.int64) for n in range(30)]
        times = [s.number for c in counts if (s := opened.next_counts(c, rng=rng)).epsilon]
        assert times == [1, 16, 30]

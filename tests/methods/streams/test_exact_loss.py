"""Streams: the exact loss of short ones, and of the printed algorithms that are not private."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate
from dpublish.methods.streams.ba import BA
from dpublish.methods.streams.bd import BD
from dpublish.methods.streams.dsat import DSAT
from dpublish.methods.streams.dsat_w import DSATw
from dpublish.methods.streams.dsft import DSFT, share_for_decisions
from dpublish.methods.streams.fixed_sampling import FixedSampling
from dpublish.methods.streams.per_snapshot import PerSnapshot
from methods.streams.stream_distribution import (
    ABSENT,
    BINS,
    FALLS,
    RISES,
    SHARED,
    Audit,
    DistributionVector,
    log_below,
    log_tail,
)

CLOSE = 1e-7


def dsft(horizon, releases=2, **changes):
    return DSFT(**SHARED, horizon=horizon, releases=releases, **changes)


def dsat(horizon, controller="schedule", **changes):
    return DSAT(**SHARED, horizon=horizon, controller=controller, **changes)


def dsat_w(window, releases, controller="schedule", **changes):
    settings = {"window": window, "releases": releases, "controller": controller}
    return DSATw(**SHARED, **settings, **changes)


def inside(window, first, steps):
    """Neighbors who differ in one window only, in the ways that move distances most."""
    for pattern in (
        [FALLS] * window,
        [RISES] * window,
        [RISES, FALLS] * window,
        [FALLS, RISES] * window,
        [RISES] * (window - 1) + [FALLS],
    ):
        positions = [ABSENT] * steps
        positions[first - 1 : first - 1 + window] = pattern[:window]
        yield positions[:steps]


USER_LEVEL = {
    "per-snapshot": PerSnapshot(**SHARED, horizon=4),
    "fixed-sampling": FixedSampling(**SHARED, horizon=4, interval=3),
    "dsft, 1 release": dsft(4, 1),
    "dsft, 2 releases": dsft(4, 2),
    "dsft, 3 releases": dsft(4, 3),
    "dsft, 3 rows of a user": dsft(4, 2, contribution=3),
    "dsft, as many as steps": dsft(4, 9),
    "dsft, auto": dsft(4, 2, threshold="auto"),
    "dsat, schedule": dsat(
        4, releases=2, burn_in=1, derivative_gain=Fraction(1), integral_gain=Fraction(1)
    ),
    "dsat, paper": dsat(4, "paper", releases=2, burn_in=1),
    "dsat, planned": dsat(4, "planned"),
}


@pytest.mark.parametrize("name", USER_LEVEL)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_no_outcome_of_a_short_stream_tells_more_than_epsilon(name, epsilon, monkeypatch):
    everywhere = list(product([ABSENT, RISES, FALLS], repeat=4))
    worst = Audit(USER_LEVEL[name], epsilon, 4, monkeypatch).worst(everywhere)
    assert 0.85 * epsilon < worst <= epsilon + CLOSE


@pytest.mark.parametrize("releases", [2, 3, 5])
def test_the_worst_long_stream_tells_epsilon_and_no_more(releases, monkeypatch):
    steps, epsilon = 60, Fraction(1)
    audit = Audit(dsft(steps, releases), epsilon, steps, monkeypatch, below_gap=40, above_gap=-200)
    aboves = set(range(steps - releases + 1, steps))
    positions = [FALLS, *[RISES] * (steps - releases - 1), *[FALLS] * releases]
    assert audit.loss(positions, aboves) == pytest.approx(1.0, abs=2e-3)
    assert audit.loss(positions, aboves) <= epsilon + CLOSE


WINDOWS = {
    "per-snapshot": (PerSnapshot(**SHARED, window=3), 5),
    "fixed-sampling": (FixedSampling(**SHARED, window=3, interval=2), 5),
    "dsat-w, 1 release": (dsat_w(3, 1, burn_in=1), 6),
    "dsat-w, 2 releases": (dsat_w(3, 2, burn_in=1), 6),
    "dsat-w, 3 rows of a user": (dsat_w(3, 2, burn_in=1, contribution=3), 6),
    "dsat-w, paper": (dsat_w(3, 2, "paper"), 6),
    "dsat-w, planned": (dsat_w(3, 2, "planned"), 6),
    "bd": (BD(**SHARED, window=3), 6),
    "ba": (BA(**SHARED, window=3), 6),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_no_outcome_tells_more_than_epsilon_of_any_window(name, monkeypatch):
    method, steps = WINDOWS[name]
    audit = Audit(method, Fraction(1), steps, monkeypatch)
    firsts = range(1, steps - method.window + 2)
    neighbors = [pair for first in firsts for pair in inside(method.window, first, steps)]
    assert 0.85 < audit.worst(neighbors) <= 1 + CLOSE


class PrintedVector(DistributionVector):
    """Threshold noise of 2 / e1 and answer noise of 2C / e1, as printed."""

    @classmethod
    def draw(cls, *, sensitivity, max_positives, budget, side):
        rate = budget.spend() / (2 * sensitivity)
        calibration = Calibration("laplace", rate, rate / (max_positives + 1))
        return cls(calibration, max_positives, side)


class ClampedVector(DistributionVector):
    """The noisy threshold is clamped to a public bound, where the threshold itself lies."""

    @classmethod
    def draw(cls, *, sensitivity, max_positives, budget, side):
        calibration = calibrate(
            sensitivity=sensitivity,
            max_positives=max_positives,
            monotonic=False,
            noise="laplace",
            budget=budget,
        )
        return cls(calibration, max_positives, side)

    def needed(self, answer, threshold):
        return np.minimum(self.thresholds + threshold, threshold) - answer


class NeverRedrawnVector(DistributionVector):
    """One noisy threshold for all windows of an endless stream."""

    @classmethod
    def draw(cls, *, sensitivity, max_positives, budget, side):
        calibration = calibrate(
            sensitivity=sensitivity, max_positives=max_positives, monotonic=False, budget=budget
        )
        return cls(calibration, 10**9, side)


def test_the_printed_calibration_is_caught(monkeypatch):
    steps, releases = 60, 5
    audit = Audit(dsft(steps, releases), Fraction(1), steps, monkeypatch, below_gap=20)
    positions = [FALLS, *[RISES] * (steps - releases - 1), *[FALLS] * releases]
    aboves = set(range(steps - releases + 1, steps))
    wide = replace(audit, above_gap=-400)
    assert wide.loss(positions, aboves) <= 1 + CLOSE
    share = float(share_for_decisions(None, bins=BINS, releases=5, horizon=60, window=None))
    broken = replace(wide, vector=PrintedVector).loss(positions, aboves)
    assert broken == pytest.approx(1 + share * 0.3, abs=0.02)


def test_the_clamped_noisy_threshold_is_caught(monkeypatch):
    steps = 60
    audit = Audit(dsft(steps, 2), Fraction(1), steps, monkeypatch, below_gap=200)
    positions = [FALLS, *[RISES] * (steps - 2), FALLS]
    assert audit.loss(positions, ()) <= 1 + CLOSE
    assert replace(audit, vector=ClampedVector).loss(positions, ()) > 3


def test_one_threshold_draw_over_all_windows_is_caught(monkeypatch):
    window, steps = 30, 480
    method = dsat_w(window, 2)
    audit = Audit(method, Fraction(1), steps, monkeypatch, below_gap=60, above_gap=-60)
    positions = [ABSENT] * (steps - window) + [RISES] * window
    aboves = {n for n in range(3, steps - window) if n % window < 2}
    assert audit.loss(positions, aboves) <= 1 + CLOSE
    assert replace(audit, vector=NeverRedrawnVector).loss(positions, aboves) > 1.4


# The numbers that the literature's algorithms were found out by, for Laplace noise.


def continuous(belows, aboves, threshold_scale, answer_scale, bound=60.0):
    """Log of the probability (up to a constant) of answers around a threshold of 0."""
    z = np.linspace(-60 * threshold_scale, bound * threshold_scale, 400_001)
    weights = -np.abs(z) / threshold_scale
    for answer, times in belows:
        weights = weights + times * laplace_log_tail((answer - z) / answer_scale)
    for answer, times in aboves:
        weights = weights + times * laplace_log_tail((z - answer) / answer_scale)
    return float(logsumexp(weights) + np.log(z[1] - z[0]))


def laplace_log_tail(x):
    inner = np.log1p(-0.5 * np.exp(-np.abs(np.minimum(x, 0))))
    return np.where(x > 0, -x - np.log(2), inner)


def worst_continuous_loss(releases, threshold_scale, answer_scale):
    far, positives = -300 * releases, releases - 1
    here = continuous(
        [(0, 10**6)], [(far, positives)], threshold_scale, answer_scale, 60.0 * releases
    )
    there = continuous(
        [(1, 10**6)], [(far - 1, positives)], threshold_scale, answer_scale, 60.0 * releases
    )
    return here - there


@pytest.mark.parametrize(
    ("releases", "loss"), [(2, 1.0), (3, 1.167), (5, 1.3), (10, 1.4), (50, 1.48)]
)
def test_the_printed_scales_lose_half_as_much_again(releases, loss):
    assert worst_continuous_loss(releases, 2, 2 * releases) == pytest.approx(loss, abs=5e-4)


@pytest.mark.parametrize("releases", [2, 3, 5, 10, 50])
def test_the_proved_scales_lose_epsilon(releases):
    moves = 2 * (releases - 1)
    threshold = 1 / (1 + moves ** (2 / 3))
    loss = worst_continuous_loss(releases, 1 / threshold, moves / (1 - threshold))
    assert loss == pytest.approx(1, abs=5e-4)


def test_a_threshold_known_from_outside_the_window_makes_every_negative_cost():
    scale, z = 16.0, np.linspace(-200, 200, 400_001)
    known = -np.abs(z) / 2 + 10**4 * (laplace_log_tail(z / scale) + laplace_log_tail(-z / scale))
    here, there = (
        logsumexp(known + 800 * laplace_log_tail((answer - z) / scale)) for answer in (300, 301)
    )
    assert here - there == pytest.approx(50.0, abs=0.01)  # 800 negatives / (2 * 8)


def test_a_scale_of_private_size_tells_that_size():
    def normalized(size, releases=20, gap=1.0):
        """500 negatives at a clamped threshold, with noise of scale 2C * 2 / (size - 1)."""
        return 500 * laplace_log_tail(gap * (size - 1) / (4 * releases))

    assert normalized(1000) - normalized(1001) == pytest.approx(6.25, abs=1e-3)


@pytest.mark.parametrize("move", [0, 1])
def test_a_scale_of_private_size_costs_even_with_the_proved_split(move):
    """Belows at a distance of 2, aboves at -2; distances that are equal cost epsilon already."""

    def likelihood(size, move):
        sensitivity, moves = 2 / (size - 1), 38
        threshold = 1 / (1 + moves ** (2 / 3))
        shift = move * 2 / 999
        return continuous(
            [(2 + shift, 500)],
            [(-2 - shift, 19)],
            sensitivity / threshold,
            moves * sensitivity / (1 - threshold),
            3000.0,
        )

    private = likelihood(1000, 0) - likelihood(1001, move)
    assert private == pytest.approx(1 + move, abs=0.02)
    assert likelihood(1000, 0) - likelihood(1000, move) <= move + 1e-3


def test_the_distribution_of_the_audit_is_a_distribution():
    for noise in ("laplace", "exponential"):
        for k in range(-5, 6):
            above = np.exp(log_tail(noise, 0.3, np.array(k)))
            assert above + np.exp(log_below(noise, 0.3, np.array(k))) == pytest.approx(1)

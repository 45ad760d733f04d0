"""Static histograms by name: each publishes a whole count for every bin, whatever the rows."""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.methods.streams import snapshot
from dpublish.methods.streams.snapshot import Bins, Snapshot, StepRun
from dpublish.methods.streams.static import StaticName, round_running, static_histogram
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema((column("x", "integer", bounds=[0, 19]),))
BINS = Bins.of(SCHEMA, "x")
NAMES = get_args(StaticName)
EPSILON = Fraction(1, 2)


def publish(name, counts, *, epsilon=EPSILON, contribution=1, seed=1, bins=BINS):
    counted = Snapshot.of_counts(np.asarray(counts, dtype=np.int64), bins)
    budget = Budget.seeded(epsilon)
    run = StepRun(counted, contribution, seeded(seed))
    found = static_histogram(name).publish(run, budget=budget)
    assert budget.is_used
    assert budget.cost() == epsilon
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "counts",
    [np.zeros(20), np.eye(20)[3], 5000 * np.eye(20)[19], np.arange(20)],
    ids=["empty", "one row", "all alike", "mixed"],
)
def test_every_static_histogram_takes_every_snapshot(name, counts):
    static_histogram(name).check(SCHEMA, BINS, EPSILON)
    released, variance = publish(name, counts)
    assert released.dtype == np.int64
    assert released.shape == (20,)
    assert 0 < variance < 1e6


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_histogram(name):
    first, again, other = (publish(name, 9 * np.arange(20), seed=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_that_leaves_no_room_for_noise_is_refused_beforehand(name):
    with pytest.raises(InvalidParameter, match="rate"):
        static_histogram(name).check(SCHEMA, BINS, Fraction(1, 2**41))


@pytest.mark.parametrize("name", NAMES)
def test_whatever_rate_check_takes_is_published(name):
    taken = 0
    for power in (4, 12, 20, 28, 34, 38, 40):
        rate = Fraction(1, 2**power)
        try:
            static_histogram(name).check(SCHEMA, BINS, rate)
        except DPublishError:
            continue
        publish(name, np.zeros(20), epsilon=rate)
        taken += 1
    assert taken > 0


def test_an_unknown_name_is_refused():
    with pytest.raises(InvalidParameter, match="identity"):
        static_histogram("identiy")


def test_identity_hides_as_many_rows_as_a_user_may_have(monkeypatch):
    here = np.zeros(20, dtype=np.int64)
    there = here + 3 * np.eye(20, dtype=np.int64)[0]
    losses = [
        privacy_loss(
            lambda counts, seed=seed: publish("identity", counts, contribution=3, seed=seed),
            here,
            there,
            (snapshot,),
            monkeypatch,
        )
        for seed in range(20)
    ]
    assert max(losses) == pytest.approx(float(EPSILON))
    broken = [
        privacy_loss(
            lambda counts, seed=seed: publish("identity", counts, contribution=2, seed=seed),
            here,
            there,
            (snapshot,),
            monkeypatch,
        )
        for seed in range(20)
    ]
    assert max(broken) == pytest.approx(1.5 * float(EPSILON))


def test_identity_knows_its_variance():
    _, variance = publish("identity", np.zeros(20), contribution=2)
    assert variance == noise_variance(EPSILON / 2)
    _, variance = publish("identity", np.zeros(20), epsilon=Fraction(5000))
    assert variance > 0  # others divide by it


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_rounding_keeps_running_totals(values):
    rounded = round_running(np.array(values))
    assert np.abs(np.cumsum(rounded) - np.cumsum(values)).max() <= 0.5 + 1e-6
    assert np.abs(rounded - values).max() <= 1 + 1e-6


def test_rounding_leaves_integers_alone():
    whole = plain_generator(1).integers(-(2**50), 2**50, 100)
    assert np.array_equal(round_running(whole.astype(np.float64)), whole)

"""Streams: the loop that carries out the plans of all methods."""

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.methods.streams.ba import BA
from dpublish.methods.streams.bd import BD
from dpublish.methods.streams.dsat import DSAT
from dpublish.methods.streams.dsat_w import DSATw
from dpublish.methods.streams.dsft import DSFT
from dpublish.methods.streams.fixed_sampling import FixedSampling
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.methods.streams.stream import StreamState
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveUnit, UserInWindow
from dpublish.randomness import plain_generator, seeded

AREA = column("area", "category", values=["a", "b", "c"])
SCHEMA = Schema((AREA,))
SHARED = {"columns": ("area",), "trust_rows": True}
STEPS = 24
METHODS = {
    "per-snapshot": PerSnapshot(**SHARED, horizon=STEPS),
    "per-snapshot, windows": PerSnapshot(**SHARED, window=5),
    "fixed-sampling": FixedSampling(**SHARED, horizon=STEPS, releases=5),
    "fixed-sampling, windows": FixedSampling(**SHARED, window=6, interval=4),
    "dsft": DSFT(**SHARED, horizon=STEPS, releases=4),
    "dsat, planned": DSAT(**SHARED, horizon=STEPS),
    "dsat, schedule": DSAT(
        **SHARED, horizon=STEPS, releases=4, controller="schedule", integral_gain=Fraction(1, 4)
    ),
    "dsat, paper": DSAT(**SHARED, horizon=STEPS, releases=4, controller="paper"),
    "dsat-w, planned": DSATw(**SHARED, window=6),
    "dsat-w, schedule": DSATw(**SHARED, window=6, releases=2, controller="schedule"),
    "bd": BD(**SHARED, window=5),
    "ba": BA(**SHARED, window=5),
}


def start(method, schema=SCHEMA, epsilon=20):
    return method.start(schema, budget=Budget.seeded(epsilon), rng=seeded(7))


def snapshots(kind="bursts"):
    """Counts of every step: bursts, nothing at all, or everything in one bin."""
    if kind == "empty":
        return [np.zeros(3, dtype=np.int64)] * STEPS
    draws = plain_generator(3)
    levels = np.repeat(draws.integers(0, 400, size=(STEPS // 4, 3)), 4, axis=0)
    return list(levels.astype(np.int64))


def stored(state):
    """The state as a file gives it back: plain values and arrays of bytes."""
    public, secret = (json.loads(json.dumps(part)) for part in (state.public, state.secret))
    arrays = {k: np.frombuffer(v.tobytes(), dtype=v.dtype) for k, v in state.arrays.items()}
    return StreamState(public, secret, arrays)


@pytest.mark.parametrize("name", METHODS)
def test_a_stream_that_is_stored_after_each_step_goes_on_as_if_it_had_not_been(name):
    method, rng, other = METHODS[name], seeded(11), seeded(11)
    straight = start(method)
    again = start(method)
    for counts in snapshots():
        here = straight.next_counts(counts, rng=rng)
        there = again.next_counts(counts, rng=other)
        assert np.array_equal(here.estimate, there.estimate)
        assert (here.epsilon, here.spent, here.noise) == (there.epsilon, there.spent, there.noise)
        again = method.resume(SCHEMA, stored(again.state()), again.receipt)
    assert straight.worst == again.worst
    assert straight.state().public == again.state().public


@pytest.mark.parametrize("kind", ["bursts", "empty"])
@pytest.mark.parametrize("name", METHODS)
def test_every_step_is_answered_and_nothing_costs_more_than_epsilon(name, kind):
    opened, rng = start(METHODS[name]), seeded(5)
    steps = [opened.next_counts(counts, rng=rng) for counts in snapshots(kind)]
    assert [step.number for step in steps] == list(range(1, STEPS + 1))
    assert opened.worst <= opened.receipt.epsilon == 20
    assert steps[-1].spent == opened.spent
    for before, after in pairwise(steps):
        assert (after.released is None) == (after.action == "repeated") == (after.epsilon == 0)
        if after.released is None and not METHODS[name].smooths:  # drift is carried on
            assert np.array_equal(before.estimate, after.estimate)
            assert after.change == 0


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].window is None])
def test_a_finite_stream_spends_all_of_its_budget_and_then_is_over(name):
    opened, rng = start(METHODS[name]), seeded(5)
    for counts in snapshots():
        assert not opened.is_over
        opened.next_counts(counts, rng=rng)
    assert opened.is_over
    # The default leaves a remainder that would publish little but noise beside the last one.
    assert opened.spent == pytest.approx(20, rel=0.05 if name == "dsat, planned" else 1e-4)
    with pytest.raises(BudgetExhausted, match="24 steps are published"):
        opened.next_counts(snapshots()[0], rng=rng)


@dataclass
class SealedTable:
    """A snapshot that must not be read."""

    schema: Schema = SCHEMA
    steps: tuple[str, ...] = ()
    opened: tuple[str, ...] = SCHEMA.names

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked of a snapshot that is not to be read")


def test_a_step_that_repeats_does_not_read_its_snapshot(rng):
    opened = start(FixedSampling(**SHARED, horizon=6, interval=3))
    table = open_table(pa.table({"area": ["a", "a", "b"]}), SCHEMA)
    for number in range(1, 7):
        is_due = number in (1, 4)
        step = opened.next(table if is_due else SealedTable(), rng=rng)
        assert (step.action == "published") == is_due
    again = start(FixedSampling(**SHARED, horizon=6, interval=3))
    with pytest.raises(AssertionError, match="not to be read"):
        again.next(SealedTable(), rng=rng)


def test_after_an_error_a_stream_refuses_to_go_on(rng):
    opened = start(METHODS["dsft"])
    opened.next_counts(snapshots()[0], rng=rng)
    kept = stored(opened.state())
    with pytest.raises(AssertionError):
        opened.next(SealedTable(), rng=rng)
    for act in (opened.state, lambda: opened.next_counts(snapshots()[0], rng=rng)):
        with pytest.raises(InvalidParameter, match="open its stored state again"):
            act()
    again = METHODS["dsft"].resume(SCHEMA, kept, opened.receipt)
    assert again.next_counts(snapshots()[0], rng=rng).number == 2


def test_refused_counts_leave_the_stream_as_it_was(rng):
    opened = start(METHODS["dsft"])
    for bad in (np.zeros(3), np.zeros(4, dtype=np.int64)):
        with pytest.raises(InvalidParameter, match="one a bin"):
            opened.next_counts(bad, rng=rng)
    assert opened.next_counts(snapshots()[0], rng=rng).number == 1


def test_rows_and_their_counts_give_the_same_step():
    table = open_table(pa.table({"area": ["a", "c", "c"]}), SCHEMA)
    by_rows = start(METHODS["dsft"]).next(table, rng=seeded(3))
    counts = np.array([1, 0, 2], dtype=np.int64)
    by_counts = start(METHODS["dsft"]).next_counts(counts, rng=seeded(3))
    assert np.array_equal(by_rows.estimate, by_counts.estimate)


def test_a_user_counts_once_however_many_rows_they_have():
    user = column("user", "integer", bounds=[0, 99], bins=10)
    schema = Schema((AREA, user), unit="user")
    method = PerSnapshot(columns=("area",), horizon=2)
    rows = pa.table({"area": ["a"] * 500, "user": [1] * 500})
    step = start(method, schema, 60).next(open_table(rows, schema), rng=seeded(1))
    assert step.estimate.tolist() == [1, 0, 0]


def test_a_schema_without_users_is_refused_unless_its_owner_vouches():
    with pytest.raises(InvalidParameter, match="trust_rows"):
        start(PerSnapshot(columns=("area",), horizon=2))


def test_streams_say_what_they_hide():
    assert METHODS["dsft"].neighbors(SCHEMA) == AddRemoveUnit("person")
    assert METHODS["ba"].neighbors(SCHEMA) == UserInWindow("person", 5)
    assert start(METHODS["ba"]).receipt.neighbors == UserInWindow("person", 5)


def test_one_bin_is_enough(rng):
    schema = Schema((column("flag", "category", values=["x"], missing="drop"),))
    method = DSAT(columns=("flag@0",), trust_rows=True, horizon=5)
    opened = start(method, schema)
    assert opened.bins.size == 1
    for _ in range(5):
        opened.next_counts(np.full(opened.bins.size, 3, dtype=np.int64), rng=rng)
    assert opened.is_over


def test_a_stream_from_a_ledger_wants_secure_noise(rng):
    opened = start(METHODS["dsft"])
    opened._grant = object()
    with pytest.raises(InvalidParameter, match=r"randomness\.secure"):
        opened.next_counts(snapshots()[0], rng=rng)


def test_the_budget_is_spent_when_a_stream_is_opened():
    budget = Budget.seeded(2)
    opened = METHODS["dsft"].start(SCHEMA, budget=budget, rng=seeded(1))
    assert budget.cost() == opened.receipt.epsilon == 2
    assert opened.spent == 0


def test_the_secret_is_apart_from_what_is_public(rng):
    opened = start(METHODS["dsat-w, schedule"], epsilon=Fraction(1, 100))
    while opened.state().secret["vector"] is None:
        opened.next_counts(snapshots()[0], rng=rng)
    state = opened.state()
    assert str(state.secret["vector"]["threshold_noise"]) not in json.dumps(state.public)
    assert str(state.secret["vector"]["threshold_noise"]) not in repr(opened)


def test_commitments_shrink_as_steps_leave_the_window(rng):
    opened = start(METHODS["ba"])
    for counts in snapshots():
        opened.next_counts(counts, rng=rng)
    ahead = opened.commitments(6)
    assert [number for number, _ in ahead] == list(range(STEPS + 1, STEPS + 7))
    amounts = [amount for _, amount in ahead]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts[-1] == 0

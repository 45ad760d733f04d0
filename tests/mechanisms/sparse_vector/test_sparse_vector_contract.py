"""Sparse vector: it stops, it spends once, it refuses for free, and it stays where it is."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.sparse_vector.textbook import above_threshold_book
from dpublish.mechanisms.sparse_vector.vector import MAX_THRESHOLD, SparseVector, above_threshold
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded


def vector(seed=1, **changes):
    defaults = {
        "sensitivity": 1,
        "max_positives": 2,
        "budget": Budget.seeded(1),
        "rng": seeded(seed),
    }
    return SparseVector(**(defaults | changes))


def test_one_budget_pays_for_one_run_which_ends_at_the_last_positive():
    answers, budget = iter([-(10**6), 10**6, 10**6, 7]), Budget.seeded(1)
    settings = {"threshold": 0, "sensitivity": 1, "max_positives": 2, "rng": seeded(1)}
    assert list(above_threshold(answers, **settings, budget=budget)) == [False, True, True]
    assert next(answers) == 7  # it was never read
    with pytest.raises(BudgetAlreadyUsed):
        above_threshold(answers, **settings, budget=budget)


def test_blocks_end_at_the_last_positive_and_count_on_from_each_other():
    run = vector(max_positives=3)
    high, low = 10**6, -(10**6)
    assert run.above_each(np.array([low, high, low]), 0).tolist() == [False, True, False]
    assert run.above(high, 0)
    many = np.full(10_000, low)
    many[9000:] = high
    flags = run.above_each(many, 0)
    assert flags.shape == (9001,)
    assert flags.sum() == 1
    assert flags[-1]
    assert run.positives_left == 0


@pytest.mark.parametrize("ask", ["above", "above_each"])
def test_nothing_is_answered_after_the_last_positive(ask):
    run = vector(max_positives=1)
    assert run.above(10**6, 0)
    with pytest.raises(BudgetAlreadyUsed, match="max_positives"):
        run.above(-(10**6), 0) if ask == "above" else run.above_each(np.array([0]), 0)


def test_each_positive_pays_for_one_value_and_none_without_a_share():
    run = vector(values_share=Fraction(1, 2), budget=Budget.seeded(1))
    with pytest.raises(BudgetAlreadyUsed):
        run.noisy_value(5)
    run.above_each(np.array([10**6, 10**6]), 0)
    run.noisy_value(10**6)
    run.noisy_value(10**6)
    with pytest.raises(BudgetAlreadyUsed):
        run.noisy_value(10**6)
    with pytest.raises(InvalidParameter, match="values_share"):
        vector().noisy_value(5)


@pytest.mark.parametrize(
    "bad",
    [
        {"sensitivity": 1.5},
        {"sensitivity": 0},
        {"max_positives": 1.5},
        {"max_positives": 0},
        {"max_positives": True},
        {"noise": "gaussian"},
        {"ratio": 0.5},
        {"ratio": 0},
        {"ratio": -3},
        {"values_share": Fraction(1)},
        {"values_share": 0.5},
        {"sensitivity": 2**45},
    ],
)
def test_a_refused_call_costs_nothing(bad):
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter):
        vector(**bad, budget=budget)
    assert not budget.is_used


@pytest.mark.parametrize("bad", [{"threshold": 0.5}, {"max_positives": 0}, {"sensitivity": 2**45}])
def test_a_refused_stream_costs_nothing(bad):
    settings = {"threshold": 0, "sensitivity": 1, "max_positives": 2, "rng": seeded(1)} | bad
    for run in (above_threshold, above_threshold_book):
        budget = Budget.seeded(1)
        with pytest.raises(InvalidParameter):
            run(np.array([0]), **settings, budget=budget)
        assert not budget.is_used


@pytest.mark.parametrize(
    ("answers", "thresholds"),
    [
        (np.array([0.5]), 0),
        ([1, 2], 0),
        (np.array([1], dtype=np.uint64), 0),
        (np.array([[1]]), 0),
        (np.array([1, 2]), np.array([1])),
        (np.array([1]), 0.5),
        (np.array([1]), 2**61),
    ],
)
def test_blocks_that_are_not_integers_are_refused(answers, thresholds):
    with pytest.raises(InvalidParameter):
        vector().above_each(answers, thresholds)


def test_an_answer_that_is_not_whole_is_refused():
    with pytest.raises(InvalidParameter, match="integer"):
        vector().above(0.5, 0)


def test_extreme_answers_do_not_wrap_around():
    limits = np.iinfo(np.int64)
    extremes = np.array([limits.min, limits.max, limits.min, limits.max])
    thresholds = np.array([2**60, 2**60, -(2**60), -(2**60)])
    assert vector().above_each(extremes, thresholds).tolist() == [False, True, False, True]


def test_no_noise_serves_twice():
    words = CountingSource()
    run = vector(rng=words, budget=Budget.seeded("0.001"))
    run.above(-(10**9), 0)
    run.above_each(np.full(5, -(10**9)), 0)
    drawn = words.count
    for _ in range(31):
        run.above(-(10**9), 0)
    assert words.count == drawn  # what was drawn ahead for single queries
    run.above(-(10**9), 0)
    assert words.count > drawn


class CountingSource:
    def __init__(self):
        self.source, self.count = seeded(4), 0

    def words(self, count):
        self.count += count
        return self.source.words(count)


def test_a_run_cannot_be_copied():
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(vector())


def test_a_run_shows_its_settings_and_none_of_its_noise():
    shown = repr(vector(3))
    assert shown == repr(vector(4))
    assert "positives_left=2" in shown


FORK = """
import os, sys
import numpy as np
from fractions import Fraction
from dpublish.errors import BudgetAlreadyUsed
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure

run = SparseVector(sensitivity=1, max_positives=2, values_share=Fraction(1, 2),
                   budget=Budget.seeded(1), rng=secure())
run.above(10**9, 0)
asks = [
    lambda: run.above(0, 0),
    lambda: run.above_each(np.array([0]), 0),
    lambda: run.noisy_value(0),
]
if os.fork():
    status = os.waitstatus_to_exitcode(os.wait()[1])
    run.above(0, 0)  # the parent goes on
    sys.exit(status)
refused = 0
for ask in asks:
    try:
        ask()
    except BudgetAlreadyUsed:
        refused += 1
os._exit(0 if refused == len(asks) else 1)
"""


def test_a_run_does_not_cross_a_fork():
    assert subprocess.run([sys.executable, "-c", FORK], check=False).returncode == 0


ASKS = {
    "above": lambda run: run.above(0, 0),
    "above_each": lambda run: run.above_each(np.array([0]), 0),
    "noisy_value": lambda run: run.noisy_value(0),
}


@pytest.mark.parametrize("ask", ASKS)
def test_another_process_is_told_nothing_and_uses_nothing_up(ask, monkeypatch):
    run = vector(values_share=Fraction(1, 2))
    run.above(10**9, 0)  # pays for a value
    shown, here = repr(run), os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: here + 1)  # as a child sees it
        with pytest.raises(BudgetAlreadyUsed, match="a fork would reuse noise"):
            ASKS[ask](run)
    assert repr(run) == shown
    ASKS[ask](run)  # where it was made it goes on


def test_threads_together_get_no_more_positives_than_were_paid_for():
    run = vector(max_positives=50, budget=Budget.seeded(100))

    def ask(_):
        try:
            return run.above(10**9, 0)
        except BudgetAlreadyUsed:
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(2000))) == 50


@pytest.mark.parametrize("threshold", [-(2**63), 2**63 - 1, MAX_THRESHOLD + 1, -MAX_THRESHOLD - 1])
def test_thresholds_that_would_wrap_around_are_refused(threshold, rng):
    vector = SparseVector(sensitivity=1, max_positives=1, budget=Budget.seeded(1), rng=rng)
    with pytest.raises(InvalidParameter, match="at most"):
        vector.above_each(np.array([0, -1]), threshold)

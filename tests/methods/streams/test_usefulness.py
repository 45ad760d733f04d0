"""The corrected bounds on the error of a step, against exact distributions and simulated runs."""

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.dsat import DSAT
from dpublish.methods.streams.dsft import DSFT
from dpublish.methods.streams.policy import Compare
from dpublish.methods.streams.snapshot import Bins
from dpublish.methods.streams.usefulness import published_error, repeated_error, sum_bound
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

BINS, RUNS = 60, 60
SCHEMA = Schema((column("x", "integer", bounds=[0, BINS - 1]),), unit="person")
THRESHOLD = Fraction(1, 20)


def method(**settings):
    return DSFT(columns=("x",), horizon=12, releases=4, threshold=THRESHOLD, **settings)


@pytest.mark.parametrize("terms", [1, 5, 60, 1_000])
@pytest.mark.parametrize("failure", [0.3, 0.05, 0.001])
def test_the_bound_on_sums_holds_and_is_not_far_off(terms, failure):
    for scale in (1, 10, 200):
        exact = sum_quantile(Fraction(1, scale), terms, 1 - failure)
        assert exact <= sum_bound(scale, terms, failure) <= 5 * exact + 4


def test_without_the_number_of_terms_or_with_the_printed_sign_the_bound_is_wrong():
    printed = 2 * sqrt(2) * 10 * log(0.05 / 2)
    assert printed < 0 < sum_quantile(Fraction(1, 10), 100, 0.95)
    assert -printed < sum_quantile(Fraction(1, 10), 100, 0.95)


def test_a_published_count_is_within_its_bound_as_often_as_it_says():
    bins, epsilon = Bins.of(SCHEMA, ("x",)), Fraction(1)
    price, rng = method().policy(bins, epsilon).price, seeded(3)
    bound, truth, hits = published_error(price, 1, 20, 0.2), np.full(BINS, 50), 0
    for _ in range(400):
        stream = method().start(SCHEMA, budget=Budget.seeded(1), rng=rng)
        step = stream.next_counts(truth, rng=rng)
        hits += abs(int(step.released[:20].sum()) - 20 * 50) <= bound
    assert 0.74 < hits / 400 < 0.87


def test_at_steps_that_repeat_every_count_is_within_the_threshold_and_the_run_noise():
    """The distance bounds every query, so it is what must stay within, at all steps of a run."""
    failure, failed, seen = 0.2, 0, 0
    policy = method().policy(Bins.of(SCHEMA, ("x",)), Fraction(1))
    terms, draw = policy.decisions().terms, plain_generator(5)
    for run in range(RUNS):
        rng, counts = seeded(run), np.full(BINS, 50)
        stream, outside = method().start(SCHEMA, budget=Budget.seeded(1), rng=rng), False
        plans = watch(stream)
        for _ in range(11):  # the last step publishes what is left
            counts = counts + draw.integers(-8, 9, BINS)
            step = stream.next_counts(counts, rng=rng)
            if step.action == "repeated" and isinstance(plans[-1], Compare):
                seen += 1
                distance = np.abs(counts - np.rint(step.estimate)).sum()
                outside |= distance > repeated_error(plans[-1].threshold, terms, failure)
        failed += outside
    assert seen > 100
    assert failed / RUNS <= failure + 0.1


def watch(stream):
    """List the plans that a stream's policy makes."""
    plans, policy = [], stream._policy

    class Watched:
        learn = staticmethod(policy.learn)

        @staticmethod
        def plan(history):
            plans.append(policy.plan(history))
            return plans[-1]

    stream._policy = Watched
    return plans


@pytest.mark.parametrize(("parts", "least", "most"), [(1.0, 0.95, 1.0), (0.25, 0.0, 0.9)])
def test_with_so_many_people_decisions_are_right_and_with_a_quarter_they_are_not(
    parts, least, most
):
    """Decide once about an unchanged snapshot, and once about one at twice the threshold."""
    bins = Bins.of(SCHEMA, ("x",))
    policy = method().policy(bins, Fraction(1))
    excess = float(THRESHOLD) * parts * policy.decisions().people(float(THRESHOLD))
    right, far = 0, np.zeros(BINS, dtype=np.int64)
    counts = np.full(BINS, 100_000)
    for run in range(150):
        for factor, wanted in ((0, "repeated"), (2, "published")):
            rng = seeded(1_000 * factor + run)
            stream = method().start(SCHEMA, budget=Budget.seeded(1), rng=rng)
            first = stream.next_counts(counts, rng=rng)
            stream._history.memory["size"] = excess / float(THRESHOLD)
            far[:] = 0
            top = int(np.argmax(counts - first.estimate))  # noise does not hide a change there
            far[top] = round(factor * excess)
            right += stream.next_counts(counts + far, rng=rng).action == wanted
    assert least <= right / 300 <= most


def test_a_plan_says_how_many_people_decisions_need():
    found = method().expected_error(SCHEMA, None, Fraction(1))
    people = found.figures["people_for_decisions"]
    assert f"a decision is right with 95 % if there are at least {people:,.0f} people" in (
        found.summary
    )
    half = method().expected_error(SCHEMA, None, Fraction(1, 2)).figures["people_for_decisions"]
    assert half == pytest.approx(2 * people, rel=0.05)
    planned = DSAT(columns=("x",), horizon=12)
    assert "people_for_decisions" not in planned.expected_error(SCHEMA, None, Fraction(1)).figures
    schedule = DSAT(columns=("x",), horizon=12, releases=4, controller="schedule")
    assert "people_for_decisions" in schedule.expected_error(SCHEMA, None, Fraction(1)).figures


@pytest.mark.parametrize("failure", [0.0, 1.0, -1.0])
def test_a_failure_that_is_no_probability_is_refused(failure):
    with pytest.raises(InvalidParameter, match="failure"):
        sum_bound(1.0, 1, failure)

"""Genetic search: the exact loss of whole runs, what is bred, and what it costs."""

from collections import Counter
from fractions import Fraction
from math import log

import numpy as np
import pytest

from choice_distribution import choice_distribution
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import genetic_search
from dpublish.mechanisms.genetic_search import (
    Breeding,
    Scores,
    breed,
    count_rounds,
    draw_uniform,
    predict_rounds,
    search,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

BOUND = 10
FIRST = np.array([[-6], [2], [7]])
RANGES = range(-BOUND, BOUND + 1)


def losses(generation, data):
    return np.array([-sum((t - int(c)) ** 2 for t in data) for (c,) in generation])


def pulled_apart(generation):
    """R by brute force over the whole domain."""
    ranges = []
    for t in RANGES:
        values = losses(generation, [t])
        ranges.append(int(values.max() - values.min()))
    return max(ranges)


def score_by(data, measure=pulled_apart):
    return lambda generation: Scores(losses(generation, data), max(measure(generation), 1))


def outcome_distribution(data, epsilon, measure=pulled_apart):
    """The exact distribution of two rounds with a population of two: first, then last choice."""
    plan = Breeding(bound=BOUND, rounds=2, population=2)
    step = plan.step(1)
    first = score_by(data, measure)(FIRST)
    distribution = Counter()
    probabilities = choice_distribution(
        first.values.tolist(), epsilon / 2 / first.sensitivity_range
    )
    for parent, probability in zip(FIRST[:, 0].tolist(), probabilities, strict=True):
        for signs in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            generation = np.clip([[parent + sign * step] for sign in signs], -BOUND, BOUND)
            last = score_by(data, measure)(generation)
            winners = choice_distribution(
                last.values.tolist(), epsilon / 2 / last.sensitivity_range
            )
            for child, win in zip(generation[:, 0].tolist(), winners, strict=True):
                # Which parent, which generation, which child: all that a reader could learn.
                distribution[parent, signs, child] += probability * win / 4
    return distribution


def largest_loss(epsilon, measure=pulled_apart):
    worst = 0.0
    for data in ([], [0], [-10, 10], [5, 5, 5]):
        here = outcome_distribution(data, epsilon, measure)
        for t in RANGES:
            there = outcome_distribution([*data, t], epsilon, measure)
            worst = max(worst, *(abs(log(here[o] / there[o])) for o in here))
    return worst


def test_no_added_record_shifts_any_run_by_more_than_the_budget():
    assert 0.5 * 2 < largest_loss(2.0) <= 2.0 * (1 + 1e-9)


def test_a_range_taken_over_the_data_instead_of_the_domain_is_caught():
    def over_the_data(generation):
        values = losses(generation, [2])  # a record that was there, say
        return int(values.max() - values.min()) // 4

    assert largest_loss(2.0, over_the_data) > 2.0 * 1.5


def test_runs_are_as_frequent_as_the_distribution_says():
    data, epsilon = [1, 2, 8], 40
    distribution = Counter()
    for (_, _, child), probability in outcome_distribution(data, epsilon).items():
        distribution[child] += probability
    seen = []
    for seed in range(3000):
        found = search(
            score_by(data),
            FIRST,
            Breeding(bound=BOUND, rounds=2, population=2),
            budget=Budget.seeded(epsilon),
            rng=seeded(seed),
        )
        seen.append(int(found[0]))
    assert frequency_p_value(seen, distribution) > 1e-6
    off = Counter()
    for (_, _, child), probability in outcome_distribution(data, epsilon * 1.5).items():
        off[child] += probability
    assert frequency_p_value(seen, off) < 1e-6


def test_every_round_chooses_by_the_scores_and_the_range_that_it_was_told(monkeypatch):
    told, shown = [], []

    def score(generation):
        told.append(score_by([1, 2, 8])(generation))
        return told[-1]

    def watched(name):
        choose = getattr(genetic_search, name)

        def record(scores, *, sensitivity_range, **more):
            shown.append(Scores(scores, sensitivity_range))
            return choose(scores, sensitivity_range=sensitivity_range, **more)

        return record

    for name in ("select", "top_k"):
        monkeypatch.setattr(genetic_search, name, watched(name))
    plan = Breeding(bound=BOUND, rounds=3, population=4)
    search(score, FIRST, plan, budget=Budget.seeded(1), rng=seeded(1))
    assert len(shown) == len(told) == 3
    for seen, said in zip(shown, told, strict=True):
        assert seen.values.tolist() == said.values.tolist()
        assert seen.sensitivity_range == said.sensitivity_range


@pytest.mark.parametrize("parents", [1, 3])
def test_every_round_costs_an_equal_share_and_the_budget_is_emptied(parents, rng):
    budget = Budget.seeded("0.7")
    plan = Breeding(bound=BOUND, rounds=5, population=6, parents=parents)
    calls = []
    search(
        score_by([1]),
        draw_uniform(6, 1, BOUND, rng),
        plan,
        budget=budget,
        rng=rng,
        watcher=lambda *call: calls.append(call),
    )
    assert [share.epsilon for share in budget.account()] == [Fraction("0.7") / 5] * 5
    assert all(share.is_used for share in budget.account())
    assert calls == [(1, 5), (2, 5), (3, 5), (4, 5)]


def test_with_much_budget_the_search_comes_near_the_best():
    start = draw_uniform(50, 2, 1000, seeded(5))

    def score(generation):
        return Scores(-np.square(generation - [300, -700]).sum(axis=1), 1)

    plan = Breeding(bound=1000, rounds=60, population=50)
    found = search(score, start, plan, budget=Budget.seeded(10_000), rng=seeded(6))
    assert np.abs(found - [300, -700]).max() < 30


def test_children_take_the_head_of_one_parent_and_the_tail_of_another(rng):
    parents = np.array([[100] * 4, [-100] * 4])
    plan = Breeding(bound=10_000, rounds=3, population=4000, parents=2)
    children = breed(parents, plan, 1, rng)
    moved = np.abs(children) != 100
    assert (moved.sum(axis=1) == 1).all()
    sources = children[moved][:, None] - [100, -100]
    assert (np.abs(sources) == plan.step(1)).any(axis=1).all()
    positions = np.argmax(moved, axis=1).tolist()
    assert frequency_p_value(positions, dict.fromkeys(range(4), 0.25)) > 1e-6
    cuts = Counter()
    for child, is_moved in zip(children, moved, strict=True):
        kept = child[~is_moved]
        cuts[np.count_nonzero(kept[1:] != kept[:-1])] += 1
    assert set(cuts) == {0, 1}  # one cut at most
    # Half of the pairs of parents differ.  Two cuts of three leave one coordinate alone at an
    # end, which is the moved one in a quarter of the cases: then no cut shows.
    assert frequency_p_value(cuts.elements(), {0: 7 / 12, 1: 5 / 12}) > 1e-6


def test_children_stay_in_the_box_and_their_steps_shrink(rng):
    plan = Breeding(bound=BOUND, rounds=3, population=300)
    children = breed(np.array([[BOUND, -BOUND]]), plan, 1, rng)
    assert np.abs(children).max() == BOUND
    assert [Breeding(bound=10_000, rounds=9).step(i) for i in (1, 2, 3)] == [1000, 950, 902]
    assert plan.step(500) == 1


def test_one_coordinate_needs_no_cut(rng):
    children = breed(np.array([[0], [5]]), Breeding(bound=BOUND, rounds=2, parents=2), 1, rng)
    assert set(children[:, 0].tolist()) == {-1, 1, 4, 6}


@pytest.mark.parametrize(
    ("records", "epsilon", "parents", "rounds"),
    [(-50, 1, 1, 8), (0, 1, 1, 8), (8_000, 1, 1, 10), (8_001, 1, 1, 11), (80_000, 1, 10, 10),
     (10**9, 1, 1, 500)],
)  # fmt: skip
def test_rounds_follow_the_noisy_size_within_limits(records, epsilon, parents, rounds):
    assert count_rounds(records, Fraction(epsilon), parents) == rounds


@pytest.mark.parametrize(
    ("records", "epsilon", "parents", "rounds"),
    [(0, 1, 1, 8), (8_000, 1, 1, 10), (8_001, 1, 1, 10.00125), (80_000, Fraction(1, 2), 4, 12.5),
     (10**9, 1, 1, 500)],
)  # fmt: skip
def test_predicted_rounds_are_those_that_are_run_before_they_are_rounded_up(
    records, epsilon, parents, rounds
):
    assert predict_rounds(records, epsilon, parents) == pytest.approx(rounds, rel=1e-12)
    run = count_rounds(records, Fraction(epsilon), parents)
    assert run - 1 < predict_rounds(records, epsilon, parents) <= run
    more = predict_rounds(records, float(epsilon), parents, per_round=400)
    assert more == min(2 * rounds if rounds > 8 else 8, 500)


def test_one_round_alone_chooses_from_the_first_generation(rng):
    budget, scored = Budget.seeded("0.7"), []

    def score(generation):
        scored.append(generation.tolist())
        return Scores(10**6 * losses(generation, [2]), 1)  # the best one is chosen for certain

    plan = Breeding(bound=BOUND, rounds=1, population=3)
    found = search(score, FIRST, plan, budget=budget, rng=rng, watcher=pytest.fail)
    assert (found.tolist(), scored) == ([2], [FIRST.tolist()])
    assert [share.epsilon for share in budget.account()] == [Fraction("0.7")]
    assert budget.account()[0].is_used


def test_the_first_generation_is_uniform(rng):
    drawn = draw_uniform(500, 3, 2, rng)
    assert drawn.shape == (500, 3)
    distribution = dict.fromkeys(range(-2, 3), 0.2)
    assert frequency_p_value(drawn.ravel().tolist(), distribution) > 1e-6


@pytest.mark.parametrize(
    "bad", [{"bound": 0}, {"rounds": 0}, {"population": 0}, {"parents": 0}, {"parents": 201}]
)
def test_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        Breeding(**({"bound": 5, "rounds": 3} | bad))

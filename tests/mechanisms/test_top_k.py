"""The best few of many: what one-shot noise hides, in which order it puts them, what it costs."""

from fractions import Fraction
from functools import partial
from itertools import pairwise, permutations, product
from math import exp, factorial, prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import top_k as module
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.top_k import random_order, top_k
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss

METHODS = ["one-shot", "peel-permute-and-flip", "peel-exponential"]
PAIRS = st.tuples(st.integers(-4, 4), st.integers(-1, 2))  # a score, and one record's effect


def ranked_odds(scores, rate, count, priority):
    """Probability of each ordered outcome if of two equal sums the one earlier in `priority` wins.

    Sums of a score and geometric noise are summed over all heights, up to one so high that what
    lies beyond does not show in a float.
    """
    heights = np.arange(min(scores), max(scores) + int(50 / rate))
    mass, above = {}, {}
    for index, score in enumerate(scores):
        above[index] = np.exp(-rate * np.maximum(heights - score, 0))  # P(sum >= height)
        mass[index] = np.where(heights >= score, above[index] * (1 - exp(-rate)), 0)
    rank = {index: position for position, index in enumerate(priority)}

    def odds(winners):
        chain = mass[winners[0]]  # the latest winner is this high, and all before it are in order
        for before, winner in pairwise(winners):
            higher = chain[::-1].cumsum()[::-1] - (0 if rank[before] < rank[winner] else chain)
            chain = higher * mass[winner]
        for loser in set(range(len(scores))) - set(winners):
            beats = above[loser] - (mass[loser] if rank[loser] > rank[winners[-1]] else 0)
            chain = chain * (1 - beats)
        return chain.sum()

    return {winners: odds(winners) for winners in permutations(range(len(scores)), count)}


def one_shot_odds(scores, rate, count):
    """Probability of each ordered outcome if a random order breaks ties."""
    orders = list(permutations(range(len(scores))))
    distributions = [ranked_odds(scores, rate, count, order) for order in orders]
    return {
        winners: sum(distribution[winners] for distribution in distributions) / len(orders)
        for winners in distributions[0]
    }


def loss(pairs, rate, count, distribution=one_shot_odds):
    here, there = np.array(pairs).T.cumsum(axis=0).tolist()
    return privacy_loss(distribution(here, rate, count), distribution(there, rate, count))


def winners(scores, draws, seed, *, budget=1, **changes):
    rng, scores = seeded(seed), np.array(scores)
    public = {"sensitivity_range": 1, "count": 2} | changes
    return [
        tuple(top_k(scores, **public, budget=Budget.seeded(budget), rng=rng)) for _ in range(draws)
    ]


# --- what one-shot noise hides -----------------------------------------------------------------


def test_the_distribution_agrees_with_a_list_of_all_noises():
    scores, rate, priority = [2, 0, 1], 0.9, (1, 2, 0)
    listed = dict.fromkeys(permutations(range(3), 2), 0.0)
    for noise in product(range(40), repeat=3):
        probability = prod((1 - exp(-rate)) * exp(-rate * z) for z in noise)
        ranking = sorted(priority, key=lambda index: -scores[index] - noise[index])
        listed[tuple(ranking[:2])] += probability
    assert ranked_odds(scores, rate, 2, priority) == pytest.approx(listed, rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(pairs=st.lists(PAIRS, min_size=2, max_size=4), count=st.integers(1, 4))
def test_no_neighbors_learn_more_than_the_budget_whatever_breaks_ties(pairs, count):
    count, changes = min(count, len(pairs)), [change for _, change in pairs]
    widest = max(max(changes) - min(changes), 1)
    rate = 1 / (max(1, min(count, len(pairs) - 1)) * widest)
    assert loss(pairs, rate, count) < 1 + 1e-9
    in_list_order = partial(ranked_odds, priority=range(len(pairs)))
    assert loss(pairs, rate, count, in_list_order) < 1 + 1e-9


def test_the_worst_neighbors_learn_the_budget_and_forgetting_the_count_doubles_it():
    worst = [(0, -1), (0, -1), (9, 1), (9, 1)]  # both winners fall, both losers rise: R is 2
    assert loss(worst, 1 / (2 * 2), 2) == pytest.approx(1, abs=1e-9)
    assert loss(worst, 1 / 2, 2) == pytest.approx(2, abs=1e-9)


def test_ranking_everything_costs_one_winner_less():
    worst = [(0, 0), (0, 0), (30, 1)]
    assert loss(worst, 1 / 2, 3) == pytest.approx(1, abs=1e-4)
    assert loss(worst, 1 / 1, 3) > 1.9


def test_breaking_ties_by_the_true_score_gives_more_away():
    def by_score(scores, rate, count):
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        return ranked_odds(scores, rate, count, order)

    moved = [(0, 0), (0, 1)]
    assert loss(moved, 1, 1, by_score) == pytest.approx(2)
    assert loss(moved, 1, 1) < 1


def test_one_winner_is_chosen_by_permute_and_flip():
    scores, rate = [3, 2, 2, -1], 0.7
    coins = [exp(rate * (score - 3)) for score in scores]
    first_heads = np.zeros(4)
    for order in permutations(range(4)):
        unseen = 1 / factorial(4)
        for index in order:
            first_heads[index] += unseen * coins[index]
            unseen *= 1 - coins[index]
    assert list(one_shot_odds(scores, rate, 1).values()) == pytest.approx(first_heads.tolist())


# --- in which order it puts them ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "epsilon", "count"),
    [([0, 0, 0, 0], "3", 2), ([5, 3, 4, 0], "1", 2), ([9, 7, 8], "0.2", 3), ([1, 0, 2], "1", 1)],
)
def test_outcomes_are_as_frequent_as_the_proof_assumes(scores, epsilon, count):
    rate = float(Fraction(epsilon)) / min(count, len(scores) - 1)
    seen = winners(scores, 6000, 1, budget=epsilon, count=count)
    assert frequency_p_value(seen, one_shot_odds(scores, rate, count)) > 1e-4


def test_a_rate_off_by_a_quarter_or_ties_in_list_order_show_in_the_frequencies():
    seen = winners([5, 3, 4, 4], 6000, 1, budget="1.6")
    assert frequency_p_value(seen, one_shot_odds([5, 3, 4, 4], 0.8, 2)) > 1e-4
    for rate in (0.6, 1.0):
        assert frequency_p_value(seen, one_shot_odds([5, 3, 4, 4], rate, 2)) < 1e-9
    assert frequency_p_value(seen, ranked_odds([5, 3, 4, 4], 0.8, 2, range(4))) < 1e-9


def test_noise_beyond_the_largest_is_drawn_on_and_changes_no_odds(monkeypatch):
    scores, distribution = [5, 3, 4, 4], one_shot_odds([5, 3, 4, 4], 0.4, 2)
    monkeypatch.setattr(exact, "LARGEST_NOISE", 2)
    cut_off = winners(scores, 4000, 5, budget="0.8")  # noise above 2 counts as 2
    assert frequency_p_value(cut_off, distribution) < 1e-9
    monkeypatch.setattr(module, "LARGEST_NOISE", 2)
    assert frequency_p_value(winners(scores, 4000, 5, budget="0.8"), distribution) > 1e-4


def test_sums_too_large_for_64_bits_are_compared_exactly(monkeypatch):
    largest = exact.LARGEST_NOISE
    script = [[largest, largest, 3, largest], [largest, 7, largest], [largest, 6], [0]]
    monkeypatch.setattr(module, "geometric", lambda *_: np.array(script.pop(0)))
    distances = np.array([5, 0, 0, largest])
    keys = module._perturb(Fraction(1), distances, seeded(1))
    assert keys.tolist() == [3 * largest - 5, largest + 7, 3, largest + 6]
    assert module._highest(keys, 3, seeded(1)) == [0, 1, 3]


@pytest.mark.parametrize("method", METHODS[1:])
def test_peeling_chooses_one_after_another_at_a_share_of_the_budget(method):
    scores, rate = np.array([4, 3, 1, 0]), 0.5

    def choice(candidates):
        if method == "peel-exponential":
            odds = np.exp(rate * scores[candidates])
        else:
            odds = np.array(list(one_shot_odds(scores[candidates], rate, 1).values()))
        return dict(zip(candidates, odds / odds.sum(), strict=True))

    expected = {}
    for first, probability in choice([0, 1, 2, 3]).items():
        for second, next_probability in choice([i for i in range(4) if i != first]).items():
            expected[first, second] = probability * next_probability
    seen = winners(scores, 4000, 2, method=method)
    assert frequency_p_value(seen, expected) > 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_high_scores_come_first_and_all_are_ranked_if_there_are_no_more(method):
    high = {"budget": 100, "method": method}
    scores = [0, 10**6, -(2**62), 2 * 10**6, -(10**6)]
    assert winners(scores, 3, 3, **high) == [(3, 1)] * 3
    assert winners(scores, 3, 3, count=9, **high) == [(3, 1, 0, 4, 2)] * 3
    assert winners([7], 3, 3, count=9, **high) == [(0,)] * 3
    assert winners([-(2**63), 2**63 - 1], 1, 3, **high) == [(1, 0)]


def test_orders_are_equally_likely_and_drawn_afresh_on_equal_words():
    rng = seeded(4)
    seen = [tuple(random_order(3, rng).tolist()) for _ in range(6000)]
    assert frequency_p_value(seen, dict.fromkeys(permutations(range(3)), 1 / 6)) > 1e-4

    script = [np.array([5, 5, 1]), np.array([9, 2, 4])]
    scripted = SimpleNamespace(words=lambda count: script.pop(0).astype(np.uint64))
    assert random_order(3, scripted).tolist() == [1, 2, 0]


# --- what it costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("size", "count", "shares"), [(5, 3, 3), (3, 3, 2), (3, 8, 2), (1, 1, 1)])
def test_one_budget_pays_for_one_list(method, size, count, shares):
    budget = Budget.seeded("0.7")
    call = {"count": count, "sensitivity_range": 1, "method": method, "rng": seeded(1)}
    chosen = top_k(np.arange(size), **call, budget=budget)
    assert sorted(set(chosen)) == sorted(chosen)
    assert len(chosen) == min(size, count)
    spent = budget.account()
    assert len(spent) == (1 if method == "one-shot" else shares)
    assert all(share.is_used for share in spent)
    assert sum(share.epsilon for share in spent) == Fraction(7, 10)
    with pytest.raises(BudgetAlreadyUsed):
        top_k(np.arange(size), **call, budget=budget)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "bad",
    [
        {"scores": np.array([1.0, 2.0])},
        {"scores": np.array([], dtype=int)},
        {"count": 0},
        {"count": 1.5},
        {"sensitivity_range": 0},
        {"sensitivity_range": 2**40},  # wide enough for one winner, too wide for two
        {"method": "gumbel"},
    ],
)
def test_a_refused_call_costs_nothing(bad, method):
    call = {"scores": np.arange(3), "count": 2, "sensitivity_range": 1, "method": method} | bad
    with pytest.raises(InvalidParameter):
        top_k(**call, budget=(budget := Budget.seeded(1)), rng=seeded(1))
    assert not budget.is_used

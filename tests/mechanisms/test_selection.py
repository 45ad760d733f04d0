"""Selection: what it hides, with which odds it chooses, what it costs."""

from fractions import Fraction
from itertools import permutations, product
from math import exp, factorial, prod
from types import SimpleNamespace

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import weighted_choice
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.selection import FARTHEST, distances_below_best, select
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss

METHODS = ["permute-and-flip", "exponential"]
NEIGHBORS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-2, 3)), min_size=1, max_size=5)


def exact_odds(scores, rate, method="exponential", weights=None):
    """Probability of each candidate, from the definition of the mechanism."""
    coins = [exp(float(rate) * int(score - max(scores))) for score in scores]
    if method == "permute-and-flip":
        return dict(enumerate(_first_heads(coins)))
    odds = [coin * weight for coin, weight in zip(coins, weights or [1] * len(coins), strict=True)]
    return {index: odd / sum(odds) for index, odd in enumerate(odds) if odd}


def _first_heads(coins):
    """Add up, over all sets of heads, an even probability for each head."""
    odds = np.zeros(len(coins))
    for heads in product([0, 1], repeat=len(coins)):
        probability = prod(c if head else 1 - c for c, head in zip(coins, heads, strict=True))
        odds += probability * np.array(heads) / max(sum(heads), 1)
    return odds


def loss(pairs, rate, method):
    here, there = np.array(pairs).T.cumsum(axis=0)
    return privacy_loss(exact_odds(here, rate, method), exact_odds(there, rate, method))


def chosen(scores, count, seed, *, budget=1, **changes):
    rng, scores = seeded(seed), np.array(scores)
    public = {"sensitivity_range": 1} | changes
    return [select(scores, **public, budget=Budget.seeded(budget), rng=rng) for _ in range(count)]


# --- what it hides -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(pairs=NEIGHBORS)
def test_no_neighbors_learn_more_than_the_budget(method, pairs):
    changes = [change for _, change in pairs]
    widest = max(max(changes) - min(changes), 1)
    assert loss(pairs, 1 / widest, method) < 1 + 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_the_worst_neighbors_learn_the_budget_and_half_the_range_is_too_little(method):
    worst = [(0, 1), (-30, -1)]  # changes in [-1, 1]: R is 2, although no score moves by 2
    assert loss(worst, 1 / 2, method) == pytest.approx(1, abs=1e-6)
    assert loss(worst, 1 / 1, method) > 1.9  # takes the sensitivity for the range


def test_flipping_all_coins_finds_the_first_head_of_a_random_order():
    coins = [1, 0.7, 0.2, 0.2, 0.01]
    first = np.zeros(len(coins))
    for order in permutations(range(len(coins))):
        unseen = 1.0
        for index in order:
            first[index] += unseen * coins[index] / factorial(len(coins))
            unseen *= 1 - coins[index]
    assert first == pytest.approx(_first_heads(coins), rel=1e-12)


@settings(deadline=None)
@given(pairs=NEIGHBORS, most=st.integers(1, 5))
def test_a_floor_below_the_best_leaves_the_range_alone_and_a_fixed_ceiling_does_not(pairs, most):
    here, there = np.array(pairs).T.cumsum(axis=0)

    def widest(bound):
        return np.ptp(bound(there) - bound(here))

    assert widest(lambda q: np.maximum(q, q.max() - most)) <= widest(lambda q: q)
    both_rise = np.array([[0, 5], [5, 10]])  # by five each, so the range is zero
    assert np.ptp(np.diff(np.minimum(both_rise, 5), axis=0)) == 5


# --- with which odds ---------------------------------------------------------------------------

CASES = [
    ([0, 0, 0], "2"),
    ([4, 3, 1, 1, -2], "0.4"),
    ([700, 300, 699, 0], "1"),
    ([50, 20, 35, 42], "0.05"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("scores", "rate"), CASES)
def test_choices_are_as_frequent_as_the_proof_assumes(method, scores, rate):
    seen = chosen(scores, 5000, 1, budget=rate, method=method)
    assert frequency_p_value(seen, exact_odds(scores, Fraction(rate), method)) > 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_a_rate_that_is_a_quarter_off_shows_in_the_frequencies(method):
    scores, rate = [4, 3, 1, 1, -2], Fraction("0.4")
    seen = chosen(scores, 5000, 1, budget=rate, method=method)
    for factor in (Fraction(3, 4), Fraction(5, 4)):
        assert frequency_p_value(seen, exact_odds(scores, rate * factor, method)) < 1e-9


@pytest.mark.parametrize(
    ("scores", "weights"),
    [([4, 9, 1, 1, -2], [3, 0, 40, 1, 500]), ([0, -75, -100], [1, 10**13, 10**17])],
)
def test_a_weight_counts_as_so_many_equal_candidates(scores, weights):
    seen = chosen(scores, 5000, 1, budget="0.4", method="exponential", weights=np.array(weights))
    assert frequency_p_value(seen, exact_odds(scores, 0.4, weights=weights)) > 1e-4
    assert frequency_p_value(seen, exact_odds(scores, 0.4)) < 1e-9


def test_a_candidate_without_weight_is_never_chosen_and_takes_no_time():
    scores, weights = np.array([0, 9000, -9]), np.array([1, 0, 0])
    script = iter(seeded(2).words(10))  # a search down from the score of 9000 would read hundreds
    rng = SimpleNamespace(words=lambda count: np.array([next(script) for _ in range(count)]))
    call = {"sensitivity_range": 1, "method": "exponential", "weights": weights}
    assert select(scores, **call, budget=Budget.seeded(1), rng=rng) == 0


@pytest.mark.parametrize("method", METHODS)
def test_odds_stay_exact_when_random_bits_run_short(method, monkeypatch):
    monkeypatch.setattr(exact, "WORD_BITS", 3)
    monkeypatch.setattr(weighted_choice, "WORD_BITS", 2)
    monkeypatch.setattr(weighted_choice, "GUARD_BITS", 1)
    scores = [7, 6, 6, 3, -1]
    seen = chosen(scores, 5000, 2, budget="0.3", method=method)
    assert frequency_p_value(seen, exact_odds(scores, 0.3, method)) > 1e-4


def test_permute_and_flip_agrees_with_opendp():
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    scores = [9, 8, 8, 5, 0]
    oracle = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=4.0)
    theirs = np.bincount([oracle(scores) for _ in range(4000)], minlength=5)

    def p_value(rate):
        ours = np.bincount(chosen(scores, 4000, 3, budget=rate), minlength=5)
        return chi2_contingency([ours, theirs]).pvalue

    assert p_value("1/4") > 1e-6
    assert p_value("1/2") < 1e-6


def test_every_distance_is_one_for_which_coins_are_exact():
    assert FARTHEST <= exact.LARGEST_NOISE


def test_scores_may_lie_any_distance_apart():
    extremes = np.array([-(2**63), 2**63 - 1, 2**63 - 2])
    assert distances_below_best(extremes).tolist() == [FARTHEST, 0, 1]
    unsigned = np.array([2**64 - 1, 2**63, 0], dtype=np.uint64)
    assert distances_below_best(unsigned).tolist() == [0, FARTHEST, FARTHEST]
    narrow = np.array([-128, 127], dtype=np.int8)
    assert distances_below_best(narrow).tolist() == [255, 0]
    for method in METHODS:
        assert chosen([0, 2**60, -(2**60)], 20, 5, method=method) == [1] * 20


# --- what it costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_even_a_single_candidate_empties_the_budget(method):
    call = {"sensitivity_range": 1, "method": method, "rng": seeded(1)}
    budget = Budget.seeded(1)
    assert select(np.array([5]), **call, budget=budget) == 0
    with pytest.raises(BudgetAlreadyUsed):
        select(np.array([5]), **call, budget=budget)


@pytest.mark.parametrize(
    "bad",
    [
        {"scores": np.array([1.0, 2.0])},
        {"scores": np.array([True, False])},
        {"scores": [1, 2]},
        {"scores": np.ma.masked_array([1, 2], mask=[False, True])},
        {"scores": np.array([], dtype=int)},
        {"scores": np.array([[1, 2]])},
        {"sensitivity_range": 0},
        {"sensitivity_range": 1.0},
        {"sensitivity_range": Fraction(-1, 2)},
        {"sensitivity_range": 2**41},
        {"method": "gumbel"},
        {"weights": np.array([1, 1])},
        {"weights": np.array([1]), "method": "exponential"},
        {"weights": np.array([1, -1]), "method": "exponential"},
        {"weights": np.array([0, 0]), "method": "exponential"},
        {"weights": np.array([0.5, 1]), "method": "exponential"},
        {"weights": np.array([2**62, 1]), "method": "exponential"},
        {"weights": np.array([2**62 - 1, 1]), "method": "exponential"},
        {"weights": [1, 1], "method": "exponential"},
        {"weights": 1, "method": "exponential"},
        {"weights": np.ma.masked_array([1, 1], mask=[False, True]), "method": "exponential"},
    ],
)
def test_a_refused_call_costs_nothing(bad):
    call = {"scores": np.array([1, 2]), "sensitivity_range": 1} | bad
    with pytest.raises(InvalidParameter):
        select(**call, budget=(budget := Budget.seeded(1)), rng=seeded(1))
    assert not budget.is_used

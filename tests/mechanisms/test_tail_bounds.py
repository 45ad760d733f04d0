"""Bounds among public points: what they hide, with which odds, and how far off they are."""

from fractions import Fraction
from itertools import combinations_with_replacement as multisets
from itertools import product
from math import exp

import numpy as np
import pytest

from choice_distribution import choice_distribution
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.tail_bounds import (
    TailBounds,
    bounds_rate,
    choose_bounds,
    least_tail,
    tail_scores,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

TAILS = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)]
POINTS = 3
CELLS = 2 * POINTS - 1


def scores(values, tail, least, *, halved=True):
    """Score each point as an upper bound by its definition, in records; values are 2 * index."""
    n = len(values)
    target = max(tail * n, least)
    target = min(target, Fraction(n, 2)) if halved else target
    found = []
    for point in range(POINTS):
        above = sum(value > 2 * point for value in values)
        above_last = sum(value > 2 * (point - 1) for value in values) if point else n
        found.append(-max(0, 2 * (target - above_last), above - target))
    return found


def mirrored(values):
    return [CELLS - 1 - value for value in values]


def counts(values):
    return np.bincount(np.array(values, dtype=int), minlength=CELLS)


def small_tables(most=6):
    for size in range(most + 1):
        yield from multisets(range(CELLS), size)


def ranges(values, added, tail, least, **changes):
    """Return how far one more record moves the scores of each bound apart."""
    moved = []
    for side in (list, mirrored):
        before = scores(side(values), tail, least, **changes)
        after = scores(side([*values, added]), tail, least, **changes)
        moves = [b - a for a, b in zip(before, after, strict=True)]
        moved.append(max(moves) - min(moves))
    return moved


def pair_odds(values, tail, least, epsilon, *, price=4, **changes):
    """Compute the probability of every pair of points, each chosen by permute-and-flip."""
    lower, upper = (
        choice_distribution(
            [float(s) for s in scores(side(values), tail, least, **changes)], epsilon / price
        )
        for side in (mirrored, list)
    )
    return {(POINTS - 1 - i, j): lower[i] * upper[j] for i, j in product(range(POINTS), repeat=2)}


def worst_loss(tail=Fraction(0), least=1, *, most=6, **changes):
    """Return the largest loss over all small tables and records; epsilon is 1."""
    return max(
        privacy_loss(
            pair_odds(values, tail, least, 1.0, **changes),
            pair_odds([*values, added], tail, least, 1.0, **changes),
        )
        for values in small_tables(most)
        for added in range(CELLS)
    )


# --- what they hide ----------------------------------------------------------------------------


@pytest.mark.parametrize("tail", TAILS)
def test_scores_are_those_of_the_definition(tail):
    for values in small_tables(4):
        for least in (1, 2):
            unit = 2 * tail.denominator
            wanted = [unit * score for score in scores(values, tail, least)]
            assert tail_scores(counts(values), tail=tail, least=least).tolist() == wanted


def test_one_record_moves_scores_by_three_for_one_bound_and_four_for_both():
    widest_one = widest_both = 0
    for tail, least in product(TAILS, (1, 2, 3)):
        for values in small_tables():
            for added in range(CELLS):
                upper, lower = ranges(values, added, tail, least)
                widest_one = max(widest_one, upper, lower)
                widest_both = max(widest_both, upper + lower)
    assert (widest_one, widest_both) == (3, 4)


@pytest.mark.parametrize(("tail", "least"), [(Fraction(0), 1), (Fraction(1, 10), 2)])
def test_no_pair_of_bounds_is_more_likely_than_the_budget_allows(tail, least):
    assert worst_loss(tail, least) <= 1 + 1e-12


def test_the_worst_record_tells_the_budget_and_the_price_of_one_bound_is_too_little(monkeypatch):
    """A record far above all others lifts many points as upper bounds, and sinks one as lower."""
    points = 40
    monkeypatch.setitem(globals(), "POINTS", points)
    monkeypatch.setitem(globals(), "CELLS", 2 * points - 1)
    values, added = [2] * 4, 2 * points - 3

    def loss(price):
        before, after = (
            pair_odds(rows, Fraction(0), 1, 1.0, price=price) for rows in (values, [*values, added])
        )
        return privacy_loss(before, after)

    assert 0.97 < loss(price=4) < 1
    assert loss(price=3) > 1.3


def test_a_target_that_is_not_kept_below_half_of_the_records_is_noticed():
    """In a table of few records, one record may matter to both bounds."""
    widest = max(
        sum(ranges(values, added, Fraction(0), 3, halved=False))
        for values in small_tables(4)
        for added in range(CELLS)
    )
    assert widest == 5


# --- with which odds ---------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[], [2], [0, 1, 1, 2, 3, 3, 4], [4] * 6])
def test_pairs_are_as_frequent_as_the_proof_assumes(values):
    rng = seeded(3)
    public = {"tail": Fraction(1, 10), "least": 1}
    seen = [
        tuple(choose_bounds(counts(values), **public, budget=Budget.seeded(2), rng=rng))
        for _ in range(1500)
    ]
    odds = pair_odds(values, public["tail"], public["least"], 2.0)
    assert frequency_p_value(seen, odds) > 1e-4
    if len(values) > 3:
        wrong = pair_odds(values, public["tail"], public["least"], 2.0, price=2)
        assert frequency_p_value(seen, wrong) < 1e-4


@pytest.mark.parametrize("sides", ["upper", "lower"])
def test_one_bound_is_chosen_at_its_own_price(sides):
    rng, values = seeded(4), [0, 1, 1, 2, 3, 3, 4]
    seen = []
    for _ in range(1500):
        found = choose_bounds(
            counts(values),
            tail=Fraction(0),
            least=2,
            sides=sides,
            budget=Budget.seeded(2),
            rng=rng,
        )
        assert (found.lower is None) == (sides == "upper")
        assert (found.upper is None) == (sides == "lower")
        seen.append(found.upper if sides == "upper" else POINTS - 1 - found.lower)
    side = list if sides == "upper" else mirrored
    odds = choice_distribution([float(s) for s in scores(side(values), Fraction(0), 2)], 2 / 3)
    assert frequency_p_value(seen, dict(enumerate(odds))) > 1e-4


# --- how far off they are ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [600, 20_000])
def test_the_stated_error_holds_in_simulation(n):
    points, epsilon = 60, Fraction(1, 5)
    least = least_tail(points, epsilon, "both")
    assert 2 * least <= n
    values = 2 * plain_generator(5).binomial(points // 2, 0.5, n) + 1
    exact = np.bincount(values, minlength=2 * points - 1)
    rng, tail, off = seeded(6), Fraction(1, 200), 0
    allowed = max(least, float(tail * n)) + 2 * least
    for _ in range(200):
        low, high = choose_bounds(
            exact, tail=tail, least=least, budget=Budget.seeded(epsilon), rng=rng
        )
        beyond = max((values < 2 * low).sum(), (values > 2 * high).sum())
        is_far = 2 * high - values.max() > 2 or values.min() - 2 * low > 2
        off += beyond > allowed or is_far
    assert off <= 10  # 5 % of 200 on average at most


def test_fewer_records_beyond_could_not_be_told_from_none():
    """With one hundredth of that many, bounds run off to points beyond all values."""
    points, epsilon = 200, Fraction(1, 5)
    exact = np.zeros(2 * points - 1, dtype=np.int64)
    exact[1:21] = 50
    rng = seeded(7)
    few = max(1, least_tail(points, epsilon, "upper") // 100)

    def runs_off(least):
        return sum(
            choose_bounds(
                exact,
                tail=Fraction(0),
                least=least,
                sides="upper",
                budget=Budget.seeded(epsilon),
                rng=rng,
            ).upper
            > 11
            for _ in range(60)
        )

    assert runs_off(few) > 30
    assert runs_off(least_tail(points, epsilon, "upper")) < 10


def test_the_rate_is_that_of_the_proof():
    epsilon, tail = Fraction(1, 10), Fraction(1, 200)
    assert bounds_rate(epsilon, tail, "both") == epsilon / 4 / 400
    assert bounds_rate(epsilon, tail, "upper") == epsilon / 3 / 400
    missed = 99 / 2 * exp(-2 * least_tail(100, epsilon, "upper") * float(epsilon) / 3)
    assert 0.045 < missed <= 0.05


# --- what they cost, and what is refused ---------------------------------------------------------


def test_the_budget_is_spent_once():
    budget = Budget.seeded(1)
    public = {"tail": Fraction(0), "least": 1, "rng": seeded(1)}
    assert isinstance(choose_bounds(counts([1, 2]), **public, budget=budget), TailBounds)
    with pytest.raises(BudgetAlreadyUsed):
        choose_bounds(counts([1, 2]), **public, budget=budget)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [1, 2, 3]},
        {"counts": np.array([1, 2])},
        {"counts": np.array([1.0])},
        {"tail": 0.1},
        {"tail": Fraction(2, 3)},
        {"tail": Fraction(1, 10**6)},
        {"least": 0},
        {"least": 2**50},
        {"sides": "middle"},
    ],
)
def test_bad_settings_are_refused_and_cost_nothing(change):
    budget = Budget.seeded(1)
    usual = {"counts": np.array([1, 2, 3]), "tail": Fraction(0), "least": 1}
    with pytest.raises(InvalidParameter):
        choose_bounds(**(usual | change), budget=budget, rng=seeded(1))
    assert not budget.is_used

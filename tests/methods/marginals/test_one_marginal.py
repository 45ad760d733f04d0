"""Marginals of one column: the method follows from public facts, and each spends its budget."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.audit import frequency_p_value, privacy_loss
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.marginals.one_marginal import (
    choose_marginal,
    marginal_half_width,
    release_marginal,
    require_marginal,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator
from methods.marginals.count_runs import run_of

METHODS = ["auto", "identity", "hierarchical", "efpa", "noise-first"]


def test_the_method_depends_on_the_number_of_values_only():
    assert choose_marginal("auto", 128) == "identity"
    assert choose_marginal("auto", 129) == "hierarchical"
    for method in METHODS[1:]:
        assert choose_marginal(method, 4096) == method
        empty, full = np.zeros(150, dtype=np.int64), np.full(150, 10**6)
        for counts in (empty, full):
            marginal = release_marginal(run_of(1), counts, method=method, budget=Budget.seeded(1))
            assert marginal.method == method


@pytest.mark.parametrize("method", ["efpa", "noise-first"])
def test_what_takes_too_long_is_refused_from_public_facts(method):
    with pytest.raises(InvalidParameter, match="4,096"):
        choose_marginal(method, 4097)
    with pytest.raises(InvalidParameter, match="4,096"):
        marginal_half_width(method, 4097, Fraction(1))


def test_an_unknown_method_is_refused():
    with pytest.raises(InvalidParameter):
        choose_marginal("guess", 10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("leaves", [1, 2, 40, 200])
def test_the_budget_is_spent_once_and_to_the_end(method, leaves):
    budget = Budget.seeded("0.9")
    counts = np.arange(leaves)
    release_marginal(run_of(1), counts, method=method, budget=budget)
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == Fraction(9, 10)
    with pytest.raises(BudgetAlreadyUsed):
        release_marginal(run_of(1), counts, method=method, budget=budget)


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_too_small_for_noise_is_refused_unopened(method):
    budget = Budget.seeded(Fraction(1, 2**41))
    with pytest.raises(InvalidParameter):
        release_marginal(run_of(1), np.arange(20), method=method, budget=budget)
    with pytest.raises(InvalidParameter):
        require_marginal(method, 20, budget.epsilon)
    assert not budget.is_used


@pytest.mark.parametrize("method", ["identity", "noise-first"])
def test_counts_value_by_value_carry_just_the_noise_of_the_proof(method):
    counts = plain_generator(2).integers(0, 9, 30)
    noise = []
    for seed in range(200):
        marginal = release_marginal(
            run_of(seed), counts, method=method, budget=Budget.seeded("0.5")
        )
        noise += (marginal.units - counts).tolist()
    outcomes = np.arange(-80, 81)
    distribution = dict(zip(outcomes.tolist(), noise_pmf(marginal.rate, outcomes), strict=True))
    assert frequency_p_value(noise, distribution) > 1e-6
    # A record moves one count by one: compare the distributions of a count and of one more.
    moved = dict(zip((outcomes + 1).tolist(), noise_pmf(marginal.rate, outcomes), strict=True))
    both = distribution.keys() & moved.keys()
    loss = privacy_loss({o: distribution[o] for o in both}, {o: moved[o] for o in both})
    assert loss == pytest.approx(0.5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("leaves", [1, 3, 100, 3000])
def test_the_error_predicted_falls_with_epsilon(method, leaves):
    widths = [marginal_half_width(method, leaves, Fraction(e)) for e in ("0.01", "0.1", "1")]
    assert widths[0] > widths[1] > widths[2] > 0


@pytest.mark.parametrize(("method", "leaves"), [("identity", 100), ("hierarchical", 1000)])
def test_the_error_predicted_is_the_error_met(method, leaves):
    width = marginal_half_width(method, leaves, Fraction(1, 10))
    counts = plain_generator(1).integers(0, 100, leaves)
    middle = slice(leaves // 4, leaves // 4 + leaves // 2)
    inside = 0
    for seed in range(400):
        marginal = release_marginal(
            run_of(seed), counts, method=method, budget=Budget.seeded("0.1")
        )
        inside += abs(float((marginal.bins - counts)[middle].sum())) <= width
    assert 0.91 < inside / 400 < 0.985


def test_hierarchical_counts_of_ranges_beat_single_ones_in_a_large_column():
    assert marginal_half_width("hierarchical", 4096, Fraction(1)) < 0.3 * marginal_half_width(
        "identity", 4096, Fraction(1)
    )

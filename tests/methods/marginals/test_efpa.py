"""EFPA: whole coefficients, sensitivities by enumeration, and an audit of the distribution."""

from fractions import Fraction
from itertools import combinations, product
from math import ceil, log, sqrt

import numpy as np
import pytest

from choice_distribution import choice_distribution
from dpublish.audit import frequency_p_value, privacy_loss
from dpublish.core import run as method_run
from dpublish.methods.marginals import efpa
from dpublish.methods.marginals.efpa import (
    WHOLE_BITS,
    Spectrum,
    coefficients,
    from_coefficients,
    whole_basis,
)
from dpublish.methods.marginals.one_marginal import release_efpa
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator
from methods.marginals.count_runs import run_of

EPSILON = Fraction(2)
SMOOTH = np.rint(400 + 300 * np.cos(np.arange(500) * np.pi / 125)).astype(np.int64)
SIZES = [1, 2, 5, 8, 9, 30, 100]
TRANSFORM_SIZES = [1, 2, 3, 4, 7, 8, 31, 100]


# --- the transform ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", TRANSFORM_SIZES)
def test_the_transform_is_orthonormal(size):
    matrix = np.array([coefficients(one) for one in np.eye(size)])
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("size", TRANSFORM_SIZES)
def test_some_coefficients_give_back_the_nearest_values_that_have_no_others(size):
    values = plain_generator(size).normal(size=size)
    every = coefficients(values)
    np.testing.assert_allclose(from_coefficients(every, size), values, atol=1e-12)
    for kept in range(1, size, 2):
        smooth = from_coefficients(every[:kept], size)
        left = np.concatenate([every[:kept], np.zeros(size - kept)])
        np.testing.assert_allclose(coefficients(smooth), left, atol=1e-12)


@pytest.mark.parametrize("size", TRANSFORM_SIZES)
def test_the_whole_basis_is_the_transform_to_half_a_unit(size):
    matrix = np.array([coefficients(one) for one in np.eye(size)]).T
    units = matrix * sqrt(size) * 2**WHOLE_BITS
    whole = whole_basis(size, range(size))
    assert whole.dtype == np.int64
    assert np.abs(whole - units).max() <= 0.5 + 1e-6
    np.testing.assert_array_equal(whole_basis(size, range(size))[size // 2 :], whole[size // 2 :])


# --- sensitivities -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_no_record_moves_the_kept_coefficients_farther_than_their_sensitivity(size):
    plan = Spectrum(size)
    records = np.array([plan.transform(one) for one in np.eye(size, dtype=np.int64)])
    for kept in plan.candidates:
        moves = np.abs(records[:, :kept]).sum(axis=1)
        assert moves.max() == plan.sensitivities[kept]
        # In coefficients it is at most kept / sqrt(size), but for half a unit of rounding.
        assert plan.sensitivities[kept] <= kept * (2**WHOLE_BITS + 0.5)


def test_the_sensitivity_is_less_than_the_bound_of_the_specification():
    plan = Spectrum(1000)
    assert plan.sensitivities[97] < 0.95 * 97 * 2**WHOLE_BITS


def moves_apart(plan, counts, value):
    """How far one more record in `value` moves two costs apart."""
    more = counts.copy()
    more[value] += 1
    before, after = ([*plan.norms_left_out(plan.transform(x)), 0] for x in (counts, more))
    moves = [there - here for here, there in zip(before, after, strict=True)]
    return max(moves) - min(moves)


@pytest.mark.parametrize("size", [1, 2, 4, 9, 30])
def test_no_record_moves_two_costs_farther_apart_than_the_range(size):
    plan, rng = Spectrum(size), plain_generator(size)
    for _ in range(40):
        counts = rng.integers(0, 4, size) * rng.integers(0, 2, size)
        assert max(moves_apart(plan, counts, value) for value in range(size)) <= plan.choice_range


@pytest.mark.parametrize("size", [2, 9, 100])
def test_the_range_covers_a_record_of_every_value_and_every_two_candidates(size):
    plan, most = Spectrum(size), 0.0
    for record in np.eye(size, dtype=np.int64):
        squares = [move * move for move in plan.transform(record).tolist()]
        for few, more in combinations((*plan.candidates, size), 2):
            most = max(most, sqrt(sum(squares[few:more])) + sqrt(sum(squares[more:])))
    # Norms are rounded down, which moves two of them apart by one more.
    assert ceil(most) + 1 <= plan.choice_range <= ceil(most) + 2


def worst_counts(plan, kept, value):
    """Counts whose tail beyond `kept` shrinks, while the part before it grows, by one record."""
    image = plan.transform(np.eye(plan.size, dtype=np.int64)[value]).astype(float)
    basis = plan._basis(range(plan.size)).astype(float)
    wanted = np.zeros(plan.size)
    wanted[1:kept], wanted[kept:] = 1e6 * image[1:kept], -1e3 * image[kept:]
    counts = np.rint(np.linalg.solve(basis, wanted)).astype(np.int64)
    return counts - counts.min()


@pytest.mark.parametrize("size", [9, 30, 100, 1000])
def test_the_range_is_attained_so_a_smaller_one_would_be_wrong(size):
    plan = Spectrum(size)
    attained = max(
        moves_apart(plan, worst_counts(plan, kept, value), value)
        for kept in plan.candidates[1:]
        for value in (0, 1, size // 3)
    )
    assert 0.97 * plan.choice_range < attained <= plan.choice_range
    length = np.linalg.norm(plan.transform(np.eye(size, dtype=np.int64)[0]))
    assert length < attained < plan.choice_range < sqrt(2) * length + 4


@pytest.mark.parametrize("size", SIZES)
def test_coefficients_are_exact_and_close_to_those_of_the_transform(size):
    counts = plain_generator(size).integers(0, 1000, size)
    units = Spectrum(size).transform(counts)
    found = units / (2**WHOLE_BITS * sqrt(size))
    error = counts.sum() * 2.0 ** -(WHOLE_BITS + 1) / sqrt(size)
    np.testing.assert_allclose(found, coefficients(counts.astype(float)), atol=error + 1e-9)


def test_counts_beyond_all_tables_do_not_wrap_around():
    huge = np.full(9, 2**62, dtype=np.int64)
    units = Spectrum(9).transform(huge)
    assert 0 < units[0] < 2**62
    assert np.abs(units[1:]).max() < 2**50
    assert release_efpa(run_of(1), huge, budget=Budget.seeded(1)).leaves == 9


def test_candidates_are_odd_and_end_at_a_two_thirds_power():
    for size in SIZES:
        candidates = Spectrum(size).candidates
        assert candidates[0] == 1
        assert all(kept % 2 for kept in candidates)
        assert candidates[-1] ** 3 <= size**2


# --- the whole distribution
# -----------------------------------------------------------------------------


class Tape:
    """Stand-ins for choice and noise: one outcome is forced, what it depends on is kept."""

    def __init__(self, monkeypatch, choice):
        self.choice = choice
        monkeypatch.setattr(method_run, "select", self._select)
        monkeypatch.setattr(method_run, "add_geometric", self._add_geometric)

    def _select(self, scores, *, sensitivity_range, budget, **_):
        self.choice_rate = budget.spend() / sensitivity_range
        rate = float(self.choice_rate)
        self.log_probability = log(choice_distribution(scores.tolist(), rate)[self.choice])
        return self.choice

    def _add_geometric(self, counts, *, sensitivity, budget, rng):
        self.exact, self.rate = counts, budget.spend() / sensitivity
        return counts


def worst_loss(monkeypatch, size, most=2):
    """Largest loss over all small tables, neighbors, choices and noisy numbers.

    Given the choice, numbers have the probability exp(-rate |y - exact|): the largest ratio of two
    is exp(rate |exact - exact'|), attained by any y beyond both.
    """
    worst = 0.0
    for choice in range(len(Spectrum(size).candidates) + 1):
        tape, seen = Tape(monkeypatch, choice), {}
        for counts in product(range(most + 1), repeat=size):
            release_efpa(run_of(1), np.array(counts), budget=Budget.seeded(EPSILON))
            seen[counts] = (tape.log_probability, tape.exact, tape.rate)
        for counts, (probability, exact, rate) in seen.items():
            for value in range(size):
                more = tuple(count + (index == value) for index, count in enumerate(counts))
                if more in seen:
                    other_probability, other_exact, other_rate = seen[more]
                    assert rate == other_rate
                    moved = float(rate) * int(np.abs(exact - other_exact).sum())
                    worst = max(worst, abs(probability - other_probability) + moved)
    return worst


@pytest.mark.parametrize("size", [2, 3, 6])
def test_the_loss_over_all_small_tables_is_at_most_epsilon(monkeypatch, size):
    worst = worst_loss(monkeypatch, size, most=1 if size > 3 else 3)
    assert 0.7 * EPSILON < worst <= EPSILON


def test_the_choice_costs_its_share_where_the_range_is_attained(monkeypatch):
    plan = Spectrum(100)
    counts = worst_counts(plan, plan.candidates[-1], 0)
    tape = Tape(monkeypatch, len(plan.candidates))
    release_efpa(run_of(1), counts, budget=Budget.seeded(EPSILON))
    cost = tape.choice_rate * moves_apart(plan, counts, 0)
    assert 0.97 < cost / (EPSILON * Fraction(3, 10)) <= 1


def test_a_sensitivity_in_the_wrong_norm_is_caught(monkeypatch):
    """A broken twin: noise for the Euclidean length of the move, not for its sum."""

    def euclidean(plan):
        basis = plan._basis(range(plan.candidates[-1])).astype(float)
        lengths = np.sqrt(np.cumsum(basis**2, axis=0))
        return {kept: int(lengths[kept - 1].max()) for kept in plan.candidates}

    efpa.spectrum.cache_clear()
    monkeypatch.setattr(Spectrum, "sensitivities", property(euclidean))
    assert worst_loss(monkeypatch, 6, most=1) > EPSILON
    efpa.spectrum.cache_clear()


# --- phases ------------------------------------------------------------------------------------


def noisy_phase(counts, seed):
    """The phase of the first wave as we publish it, if waves were chosen."""
    marginal = release_efpa(run_of(seed), counts, budget=Budget.seeded("0.5"))
    if marginal.kept is None or marginal.kept < 3:
        return None
    return round(float(np.angle(marginal.units[1] - 1j * marginal.units[2])), 9)


def kept_phase(counts, seed):
    """The broken twin (C4): noise on the magnitude, the exact phase kept."""
    wave = np.fft.rfft(counts)[1]
    noisy = (abs(wave) + plain_generator(seed).laplace(0, 10)) * wave / abs(wave)
    return round(float(np.angle(noisy)) % np.pi, 9)


def phases(publish, counts, runs=80):
    seen = [publish(counts, seed) for seed in range(runs)]
    seen = [phase for phase in seen if phase is not None]
    return {phase: seen.count(phase) / len(seen) for phase in seen}


def gives_the_phase_away(publish):
    """Check whether the phase alone distinguishes neighbors."""
    more = SMOOTH.copy()
    more[7] += 1
    here, there = phases(publish, SMOOTH), phases(publish, more)
    return len(here) == len(there) == 1 and privacy_loss(here, there) == np.inf


def test_phases_are_perturbed_and_a_twin_that_keeps_them_is_caught():
    assert gives_the_phase_away(kept_phase)
    assert not gives_the_phase_away(noisy_phase)


# --- noise and budget --------------------------------------------------------------------------


def test_published_numbers_carry_just_the_noise_of_the_proof():
    plan = Spectrum(SMOOTH.size)
    exact = plan.transform(SMOOTH)
    noise = []
    for seed in range(200):
        marginal = release_efpa(run_of(seed), SMOOTH, budget=Budget.seeded(1))
        if marginal.kept:
            assert marginal.rate == Fraction(7, 10) / plan.sensitivities[marginal.kept]
            # Steps of a fifth of the noise: a distribution on units has too many outcomes to count.
            scaled = (marginal.units - exact[: marginal.kept]) * float(marginal.rate)
            noise += np.clip(np.floor(5 * scaled), -20, 20).tolist()
        else:
            assert marginal.rate == Fraction(7, 10)
    edges = np.arange(-20, 22) / 5
    below = np.where(edges < 0, np.exp(edges) / 2, 1 - np.exp(-edges) / 2)
    below[0], below[-1] = 0, 1
    distribution = dict(zip(range(-20, 21), np.diff(below), strict=True))
    assert len(noise) > 1000
    assert frequency_p_value(map(int, noise), distribution) > 1e-6


def test_the_whole_budget_is_spent():
    budget = Budget.seeded("0.7")
    release_efpa(run_of(1), np.arange(20), budget=budget)
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == Fraction(7, 10)
    assert [share.epsilon for share in budget.account()] == [Fraction(21, 100), Fraction(49, 100)]


def test_few_waves_are_chosen_for_smooth_counts_and_none_for_jagged_ones():
    jagged = plain_generator(1).permutation(np.arange(500)) * 100
    kept = [release_efpa(run_of(seed), SMOOTH, budget=Budget.seeded(1)).kept for seed in range(20)]
    assert all(number is not None and number >= 5 for number in kept)
    assert np.median(kept) < 20
    for seed in range(20):
        assert release_efpa(run_of(seed), jagged, budget=Budget.seeded(1)).kept is None

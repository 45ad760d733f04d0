"""EFPA: whole coefficients, sensitivities by enumeration, and an audit of the distribution."""

from fractions import Fraction
from itertools import combinations, product
from math import ceil, log, sqrt

import numpy as np
import pytest

from choice_distribution import choice_distribution
from dpublish.methods.marginals import efpa
from dpublish.methods.marginals.efpa import Spectrum, release_efpa
from dpublish.methods.marginals.fourier import WHOLE_BITS, coefficients
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

EPSILON = Fraction(2)
SMOOTH = np.rint(400 + 300 * np.cos(np.arange(500) * np.pi / 125)).astype(np.int64)
SIZES = [1, 2, 5, 8, 9, 30, 100]


# --- sensitivities -----------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", SIZES)
def test_no_record_moves_the_kept_coefficients_farther_than_their_reach(leaves):
    plan = Spectrum(leaves)
    records = np.array([plan.transform(one) for one in np.eye(leaves, dtype=np.int64)])
    for kept in plan.candidates:
        moves = np.abs(records[:, :kept]).sum(axis=1)
        assert moves.max() == plan.reaches[kept]
        # In coefficients it is at most kept / sqrt(leaves), but for half a unit of rounding.
        assert plan.reaches[kept] <= kept * (2**WHOLE_BITS + 0.5)


def test_the_reach_is_less_than_the_bound_of_the_specification():
    plan = Spectrum(1000)
    assert plan.reaches[97] < 0.95 * 97 * 2**WHOLE_BITS


def moves_apart(plan, counts, leaf):
    """How far one more record in `leaf` moves two costs apart."""
    more = counts.copy()
    more[leaf] += 1
    before, after = ([*plan.norms_left_out(plan.transform(x)), 0] for x in (counts, more))
    moves = [there - here for here, there in zip(before, after, strict=True)]
    return max(moves) - min(moves)


@pytest.mark.parametrize("leaves", [1, 2, 4, 9, 30])
def test_no_record_moves_two_costs_farther_apart_than_the_range(leaves):
    plan, rng = Spectrum(leaves), plain_generator(leaves)
    for _ in range(40):
        counts = rng.integers(0, 4, leaves) * rng.integers(0, 2, leaves)
        assert max(moves_apart(plan, counts, leaf) for leaf in range(leaves)) <= plan.choice_range


@pytest.mark.parametrize("leaves", [2, 9, 100])
def test_the_range_covers_a_record_of_every_value_and_every_two_candidates(leaves):
    plan, most = Spectrum(leaves), 0.0
    for record in np.eye(leaves, dtype=np.int64):
        squares = [move * move for move in plan.transform(record).tolist()]
        for few, more in combinations((*plan.candidates, leaves), 2):
            most = max(most, sqrt(sum(squares[few:more])) + sqrt(sum(squares[more:])))
    # Norms are rounded down, which moves two of them apart by one more.
    assert ceil(most) + 1 <= plan.choice_range <= ceil(most) + 2


def worst_counts(plan, kept, leaf):
    """Counts whose tail beyond `kept` shrinks, while the part before it grows, by one record."""
    image = plan.transform(np.eye(plan.leaves, dtype=np.int64)[leaf]).astype(float)
    basis = plan._basis(range(plan.leaves)).astype(float)
    wanted = np.zeros(plan.leaves)
    wanted[1:kept], wanted[kept:] = 1e6 * image[1:kept], -1e3 * image[kept:]
    counts = np.rint(np.linalg.solve(basis, wanted)).astype(np.int64)
    return counts - counts.min()


@pytest.mark.parametrize("leaves", [9, 30, 100, 1000])
def test_the_range_is_reached_so_a_smaller_one_would_be_wrong(leaves):
    plan = Spectrum(leaves)
    reached = max(
        moves_apart(plan, worst_counts(plan, kept, leaf), leaf)
        for kept in plan.candidates[1:]
        for leaf in (0, 1, leaves // 3)
    )
    assert 0.97 * plan.choice_range < reached <= plan.choice_range
    length = np.linalg.norm(plan.transform(np.eye(leaves, dtype=np.int64)[0]))
    assert length < reached < plan.choice_range < sqrt(2) * length + 4


@pytest.mark.parametrize("leaves", SIZES)
def test_coefficients_are_exact_and_close_to_those_of_the_transform(leaves):
    counts = plain_generator(leaves).integers(0, 1000, leaves)
    units = Spectrum(leaves).transform(counts)
    told = units / (2**WHOLE_BITS * sqrt(leaves))
    error = counts.sum() * 2.0 ** -(WHOLE_BITS + 1) / sqrt(leaves)
    np.testing.assert_allclose(told, coefficients(counts.astype(float)), atol=error + 1e-9)


def test_counts_beyond_all_tables_do_not_wrap_around():
    huge = np.full(9, 2**62, dtype=np.int64)
    units = Spectrum(9).transform(huge)
    assert 0 < units[0] < 2**62
    assert np.abs(units[1:]).max() < 2**50
    assert release_efpa(huge, budget=Budget.seeded(1), rng=seeded(1)).leaves == 9


def test_candidates_are_odd_and_end_at_a_two_thirds_power():
    for leaves in SIZES:
        candidates = Spectrum(leaves).candidates
        assert candidates[0] == 1
        assert all(kept % 2 for kept in candidates)
        assert candidates[-1] ** 3 <= leaves**2


# --- the whole distribution
# -----------------------------------------------------------------------------


class Tape:
    """Stand-ins for choice and noise: one outcome is forced, what it depends on is kept."""

    def __init__(self, monkeypatch, choice):
        self.choice = choice
        monkeypatch.setattr(efpa, "select", self._select)
        monkeypatch.setattr(efpa, "add_geometric", self._add_geometric)

    def _select(self, scores, *, sensitivity_range, budget, rng):
        self.choice_rate = budget.spend() / sensitivity_range
        rate = float(self.choice_rate)
        self.log_probability = log(choice_distribution(scores.tolist(), rate)[self.choice])
        return self.choice

    def _add_geometric(self, counts, *, sensitivity, budget, rng):
        self.exact, self.rate = counts, budget.spend() / sensitivity
        return counts


def worst_loss(monkeypatch, leaves, most=2):
    """Largest loss over all small tables, neighbors, choices and noisy numbers.

    Given the choice, numbers have the probability exp(-rate |y - exact|): the largest ratio of two
    is exp(rate |exact - exact'|), reached by any y beyond both.
    """
    worst = 0.0
    for choice in range(len(Spectrum(leaves).candidates) + 1):
        tape, seen = Tape(monkeypatch, choice), {}
        for counts in product(range(most + 1), repeat=leaves):
            efpa.release_efpa(np.array(counts), budget=Budget.seeded(EPSILON), rng=seeded(1))
            seen[counts] = (tape.log_probability, tape.exact, tape.rate)
        for counts, (probability, exact, rate) in seen.items():
            for leaf in range(leaves):
                more = tuple(count + (place == leaf) for place, count in enumerate(counts))
                if more in seen:
                    other_probability, other_exact, other_rate = seen[more]
                    assert rate == other_rate
                    moved = float(rate) * int(np.abs(exact - other_exact).sum())
                    worst = max(worst, abs(probability - other_probability) + moved)
    return worst


@pytest.mark.parametrize("leaves", [2, 3, 6])
def test_the_loss_over_all_small_tables_is_at_most_epsilon(monkeypatch, leaves):
    worst = worst_loss(monkeypatch, leaves, most=1 if leaves > 3 else 3)
    assert 0.7 * EPSILON < worst <= EPSILON


def test_the_choice_costs_its_share_where_the_range_is_reached(monkeypatch):
    plan = Spectrum(100)
    counts = worst_counts(plan, plan.candidates[-1], 0)
    tape = Tape(monkeypatch, len(plan.candidates))
    efpa.release_efpa(counts, budget=Budget.seeded(EPSILON), rng=seeded(1))
    cost = tape.choice_rate * moves_apart(plan, counts, 0)
    assert 0.97 < cost / (EPSILON * Fraction(3, 10)) <= 1


def test_a_reach_in_the_wrong_norm_is_caught(monkeypatch):
    """A broken twin: noise for the Euclidean length of the move, not for its sum."""

    def euclidean(plan):
        basis = plan._basis(range(plan.candidates[-1])).astype(float)
        lengths = np.sqrt(np.cumsum(basis**2, axis=0))
        return {kept: int(lengths[kept - 1].max()) for kept in plan.candidates}

    efpa.spectrum.cache_clear()
    monkeypatch.setattr(Spectrum, "reaches", property(euclidean))
    assert worst_loss(monkeypatch, 6, most=1) > EPSILON
    efpa.spectrum.cache_clear()


# --- phases ------------------------------------------------------------------------------------


def noisy_phase(counts, seed):
    """The phase of the first wave as we publish it, if waves were chosen."""
    marginal = release_efpa(counts, budget=Budget.seeded("0.5"), rng=seeded(seed))
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
    """Tell whether neighbors can be told apart by the phase alone."""
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
        marginal = release_efpa(SMOOTH, budget=Budget.seeded(1), rng=seeded(seed))
        if marginal.kept:
            assert marginal.rate == Fraction(7, 10) / plan.reaches[marginal.kept]
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
    release_efpa(np.arange(20), budget=budget, rng=seeded(1))
    assert all(leaf.is_used for leaf in budget.account())
    assert budget.cost() == Fraction(7, 10)
    assert [leaf.epsilon for leaf in budget.account()] == [Fraction(21, 100), Fraction(49, 100)]


def test_few_waves_are_chosen_for_smooth_counts_and_none_for_jagged_ones():
    jagged = plain_generator(1).permutation(np.arange(500)) * 100
    kept = [
        release_efpa(SMOOTH, budget=Budget.seeded(1), rng=seeded(seed)).kept for seed in range(20)
    ]
    assert all(number is not None and number >= 5 for number in kept)
    assert np.median(kept) < 20
    for seed in range(20):
        assert release_efpa(jagged, budget=Budget.seeded(1), rng=seeded(seed)).kept is None

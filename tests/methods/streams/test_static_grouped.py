"""Grouped bins: private whatever the groups, best weights, and when they are worth it."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema, column
from dpublish.methods.streams import snapshot, static
from dpublish.methods.streams.snapshot import Bins, Snapshot, StepRun
from dpublish.methods.streams.static import GroupedHistogram, Guess, group_bins, read_rough, weigh
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

EPSILON = Fraction(1)


def make_bins(size):
    schema = Schema((column("x", "integer", bounds=[0, size - 1]),))
    return Bins.of(schema, "x")


def publish(counts, *, epsilon=EPSILON, contribution=1, seed=1):
    counts = np.asarray(counts, dtype=np.int64)
    bins = make_bins(counts.size)
    budget = Budget.seeded(epsilon)
    run = StepRun(Snapshot.of_counts(counts, bins), contribution, seeded(seed))
    found = GroupedHistogram().publish(run, budget=budget)
    assert all(leaf.is_used for leaf in budget.account())
    assert budget.cost() == epsilon
    return found


def neighbors(seed, rows):
    rng = plain_generator(seed)
    here = rng.integers(0, 3, 30) * (rng.random(30) < 0.4) * 10 ** (seed % 3)
    user = rng.integers(0, 30 if seed % 2 else 1, rows)
    return here, here + np.bincount(user, minlength=30)


def worst_loss(monkeypatch, release, rows):
    losses = []
    for seed in range(30):
        here, there = neighbors(seed, rows)
        for pair in ((here, there), (there, here)):
            losses.append(
                privacy_loss(
                    lambda counts, seed=seed: release(counts, seed),
                    *pair,
                    (snapshot,),
                    monkeypatch,
                )
            )
    return max(losses)


@pytest.mark.parametrize("contribution", [1, 3])
def test_no_publication_tells_neighbors_apart_by_more_than_the_budget(contribution, monkeypatch):
    found = worst_loss(
        monkeypatch,
        lambda counts, seed: publish(counts, contribution=contribution, seed=seed),
        contribution,
    )
    assert float(EPSILON) * 0.9 < found <= float(EPSILON) * (1 + 1e-9)


def test_the_audit_notices_groups_that_are_formed_from_the_exact_counts(monkeypatch):
    honest = read_rough

    def release(counts, seed):
        with monkeypatch.context() as patch:
            patch.setattr(static, "read_rough", lambda rough, rate: honest(counts, rate))
            return publish(counts, seed=seed)

    assert worst_loss(monkeypatch, release, 1) > 1.5 * float(EPSILON)


def test_the_audit_notices_shares_that_are_both_the_whole(monkeypatch):
    honest = snapshot.add_geometric

    def release(counts, seed):
        perturb = snapshot.add_geometric

        def twice(values, *, sensitivity, budget, rng):
            share = Budget.seeded(2 * budget.spend())
            return perturb(values, sensitivity=sensitivity, budget=share, rng=rng)

        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "add_geometric", twice)
            return publish(counts, seed=seed)

    assert worst_loss(monkeypatch, release, 1) > 1.5 * float(EPSILON)
    assert snapshot.add_geometric is honest


@pytest.mark.parametrize("size", [1, 2, 5000])
@pytest.mark.parametrize("rate", [0.001, 0.3, 50.0])
def test_every_bin_is_in_one_group_and_no_group_is_empty(size, rate):
    rough = plain_generator(size).integers(-(10**4), 10**9, size)
    groups = group_bins(read_rough(rough, rate), noise_variance(rate))
    assert groups.shape == (size,)
    assert np.array_equal(np.unique(groups), np.arange(groups.max() + 1))


def test_weights_are_the_best_linear_ones():
    """Compared with the textbook's formula for all bins at once."""
    rng = plain_generator(3)
    guess = Guess(rng.random(12) * 10, rng.random(12) + 0.1)
    groups = rng.permutation(np.repeat(np.arange(4), 3))
    totals, noise = rng.integers(0, 50, 4), 2.5
    matrix = np.equal.outer(np.arange(4), groups).astype(float)
    covariance = np.diag(guess.variances)
    gain = covariance @ matrix.T @ np.linalg.inv(matrix @ covariance @ matrix.T + noise * np.eye(4))
    found = weigh(guess, groups, totals, noise)
    assert found.means == pytest.approx(guess.means + gain @ (totals - matrix @ guess.means))
    assert found.variances == pytest.approx(np.diag(covariance - gain @ matrix @ covariance))


def test_rough_counts_are_read_as_bayes_would_read_them():
    """Nine in ten bins are empty and the others hold 300, so the best guess is known."""
    rate, rng = 0.05, plain_generator(4)
    truth = np.where(rng.random(200_000) < 0.1, 300, 0)
    rough = truth + rng.geometric(1 - np.exp(-rate), truth.size)
    rough = rough - rng.geometric(1 - np.exp(-rate), truth.size)
    guess = read_rough(rough, rate)
    odds = 0.1 * np.exp(-rate * abs(rough - 300)) / (0.9 * np.exp(-rate * abs(rough)))
    best = 300 * odds / (1 + odds)
    assert np.mean(np.square(guess.means - best)) < 0.1 * noise_variance(rate)
    error = np.mean(np.square(guess.means - truth))
    assert error < 1.3 * np.mean(np.square(best - truth))
    assert guess.variances.mean() == pytest.approx(error, rel=0.5)


def test_a_bin_far_from_all_others_stands_for_itself():
    rough = np.append(np.zeros(1000, dtype=np.int64), [5000, 10**12])
    guess = read_rough(rough, 0.1)
    assert guess.means[1000:] == pytest.approx([5000, 10**12])
    assert guess.variances[1000:] == pytest.approx(noise_variance(0.1))
    groups = group_bins(guess, noise_variance(0.1))
    assert np.count_nonzero(groups == groups[1000]) == 1


def sparse(size, rng):
    counts = np.zeros(size)
    counts[rng.choice(size, size // 50, replace=False)] = 20 * rng.pareto(1, size // 50)
    return np.minimum(counts, 10**5)


def small(size, rng):
    return rng.poisson(rng.exponential(3, size))


def dense(size, rng):
    return rng.integers(0, 5000, size)


def measure(make, size, epsilon):
    """Mean squared error in units of identity's, and what was predicted of it."""
    found = []
    for seed in range(5):
        counts = make(size, plain_generator(seed)).astype(np.int64)
        released, variance = publish(counts, epsilon=epsilon, seed=seed)
        found.append((np.mean(np.square(released - counts)), variance))
    return np.mean(found, axis=0) / noise_variance(epsilon)


@pytest.mark.parametrize("make", [sparse, small, dense])
@pytest.mark.parametrize("size", [100, 1000, 10_000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 10), Fraction(1)])
def test_the_error_is_about_as_predicted_and_at_most_some_twice_that_of_identity(
    make, size, epsilon
):
    error, predicted = measure(make, size, epsilon)
    assert predicted > 0.5 * error
    assert error < 2.5


@pytest.mark.parametrize("make", [sparse, small])
def test_many_nearly_empty_bins_gain_by_being_grouped(make):
    for size in (1000, 10_000):
        error, _ = measure(make, size, Fraction(1, 10))
        assert error < 0.3

"""DPLloyd and its improved version: replayed on neighbors, on odd tables, on clear clusters."""

from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.dplloyd import DPLloyd
from dpublish.methods.kmeans.dplloyd_impr import (
    MOST_ROUNDS,
    DPLloydImpr,
    count_rounds,
    count_weight,
    least_epsilon,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from methods.kmeans.lloyd_audit import Points, Replay, exact_loss, schema_of

EPSILON = Fraction(3, 2)
CATALOG = [
    DPLloyd(n_clusters=3),
    DPLloyd(n_clusters=2, max_iter=3, start="uniform"),
    DPLloyd(n_clusters=2, max_iter=4, schedule="halving"),
    DPLloydImpr(n_clusters=3),
]
BLOBS = np.array([[-0.7, -0.6], [0.6, -0.5], [0.0, 0.7]])


def table_of(points):
    points = np.asarray(points, dtype=float)
    columns = {f"x{j}": values for j, values in enumerate(points.T)}
    return open_table(pa.table(columns), schema_of(points.shape[1]))


def publish(method, points, epsilon=EPSILON, seed=3):
    return method.release(table_of(points), budget=Budget.seeded(epsilon), rng=seeded(seed))


def replay(monkeypatch, method, points, dimensions=2, seed=1, size=1000):
    def play(table):
        method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(9))

    return Replay(seed, size).run(monkeypatch, Points(points, dimensions), play)


def clouds(size, seed=4):
    rng = plain_generator(seed)
    centers = BLOBS[rng.integers(0, len(BLOBS), size)]
    return np.clip(centers + rng.normal(0, 0.05, centers.shape), -1, 1)


def mean_square(points, centers):
    return np.square(points[:, None] - centers).sum(axis=2).min(axis=1).mean()


# --- neighbors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", CATALOG, ids=repr)
def test_all_rounds_together_lose_the_budget_and_no_more(monkeypatch, method):
    losses = []
    for others in ([], [(0.3, -0.2)], [(1, 1), (1, 1), (-1, 0.5)]):
        for added, seed in product([(0, 0), (1, 1), (-1, 0.25)], range(4)):
            here = replay(monkeypatch, method, others, seed=seed)
            there = replay(monkeypatch, method, [*others, added], seed=seed)
            losses.append(exact_loss(here, there))
    # Nothing but the noisy answers decides what is asked next, or else a loss would be None.
    assert max(losses) == EPSILON


def test_rounds_that_follow_from_the_exact_number_of_records_are_caught(monkeypatch):
    method = DPLloydImpr(n_clusters=1)
    # Find a number of records at which one more buys one more round.
    buys = [count_rounds(n, 2, 1, EPSILON * Fraction(97, 100)) for n in range(2000)]
    size = next(n for n in range(1999) if buys[n + 1] > buys[n])
    few, more = [(0.0, 0.0)] * size, [(0.0, 0.0)] * (size + 1)
    honest = [replay(monkeypatch, method, points) for points in (few, more)]
    assert exact_loss(*honest) <= EPSILON
    broken = [replay(monkeypatch, method, points, size=None) for points in (few, more)]
    assert exact_loss(*broken) == inf


@pytest.mark.parametrize("method", CATALOG, ids=repr)
def test_the_receipt_lists_what_was_spent(method):
    budget = Budget.seeded(EPSILON)
    receipt = method.release(table_of(clouds(50)), budget=budget, rng=seeded(1)).receipt
    assert budget.cost() == receipt.epsilon == EPSILON
    assert all(leaf.is_used for leaf in budget.account())
    assert sum(share for _, share in receipt.shares) == EPSILON


def test_halving_gives_the_first_round_a_half_and_the_last_what_is_left():
    def shares(rounds):
        method = DPLloyd(n_clusters=2, max_iter=rounds, schedule="halving")
        found = publish(method, clouds(20)).receipt.shares
        sums = {}
        for name, share in found:
            number = name.partition("round-")[2].partition("/")[0]
            sums[number] = sums.get(number, 0) + share / EPSILON
        return list(sums.values())

    assert shares(1) == [1]
    assert shares(2) == [Fraction(1, 2)] * 2
    assert shares(5) == [Fraction(1, n) for n in (2, 4, 8, 16, 16)]


def test_halving_predicts_the_noise_of_its_last_round():
    def predict(**settings):
        return DPLloyd(n_clusters=2, **settings).expected_error(schema_of(2), 500, EPSILON)

    halving, even = predict(max_iter=5, schedule="halving"), predict(max_iter=16)
    assert halving.figures == even.figures
    assert "in the last" in halving.summary


def test_rounds_that_halving_leaves_nothing_for_are_refused_beforehand():
    method = DPLloyd(n_clusters=2, max_iter=100, schedule="halving")
    budget = Budget.seeded(EPSILON)
    with pytest.raises(InvalidParameter, match="rate"):
        method.release(table_of(clouds(9)), budget=budget, rng=seeded(1))
    assert not budget.is_used


# --- rounds and shares --------------------------------------------------------------------------


def test_the_least_epsilon_of_a_round_is_that_of_the_paper():
    assert least_epsilon(107_091, 2, 5) == pytest.approx(0.010587, abs=5e-7)
    assert least_epsilon(48_841, 6, 5) == pytest.approx(0.096164, abs=5e-7)


def test_rounds_are_two_to_seven_and_grow_with_records_and_epsilon():
    least = least_epsilon(10_000, 2, 5)
    for times, rounds in [(0.1, 2), (2.0, 2), (2.9, 2), (3.01, 3), (6.99, 6), (7.01, 7), (900, 7)]:
        assert count_rounds(10_000, 2, 5, Fraction(times * least)) == rounds
    for size in (-(10**15), -1, 0, 1):
        assert count_rounds(size, 2, 5, Fraction(1)) == 2
    assert count_rounds(10**15, 10, 50, Fraction(1, 1000)) == MOST_ROUNDS


@pytest.mark.parametrize("dimensions", [1, 2, 6, 10, 100])
def test_the_weight_of_the_counts_makes_the_squared_error_least(dimensions):
    def squared_error(weight):
        # The noise of the sums, and of the count times what the mean is off the middle.
        return (dimensions + weight) ** 2 * (1 + 4 * 0.225**2 / weight**2)

    chosen = count_weight(dimensions)
    assert isinstance(chosen, Fraction)
    least = min(squared_error(n / 256) for n in range(1, 256 * 8))
    assert squared_error(float(chosen)) < 1.001 * least
    assert squared_error(float(chosen) * 1.5) > 1.001 * least


def test_progress_tells_the_public_number_of_rounds():
    told = []
    DPLloyd(n_clusters=2, max_iter=3).release(
        table_of(clouds(20)),
        budget=Budget.seeded(1),
        rng=seeded(1),
        progress=lambda *told_now: told.append(told_now),
    )
    assert told == [(1, 3, "rounds"), (2, 3, "rounds"), (3, 3, "rounds")]


# --- odd tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [DPLloyd, DPLloydImpr])
@pytest.mark.parametrize("clusters", [1, 2, 7])
@pytest.mark.parametrize("dimensions", [1, 2, 10])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_or_equal_rows_give_centers_within_the_bounds(make, clusters, dimensions, rows):
    points = np.full((rows, dimensions), 1.0)
    for seed in range(3):
        release = publish(make(n_clusters=clusters), points, Fraction(1, 10), seed)
        assert release.centers.shape == (clusters, dimensions)
        assert np.all(np.abs(release.centers) <= 1)


def test_a_negative_noisy_size_gives_two_rounds(monkeypatch):
    seen = replay(monkeypatch, DPLloydImpr(n_clusters=2), [], size=-70)
    assert len(seen.rates) == 1 + 2 * 2


def test_centers_come_in_the_owners_units():
    columns = {"x": [150.0] * 400, "n": [7] * 400}
    schema = Schema(
        (
            column("n", "integer", bounds=[0, 20]),
            column("who", "category", values=["a", "b"]),
            column("x", "numeric", bounds=[100, 200]),
        )
    )
    table = open_table(pa.table(columns | {"who": ["a"] * 400}), schema)
    for method in (DPLloyd(n_clusters=1), DPLloydImpr(n_clusters=1)):
        release = method.release(table, budget=Budget.seeded(200), rng=seeded(1))
        assert release.schema.names == ("n", "x")
        assert release.centers == pytest.approx(np.array([[7.0, 150.0]]), abs=0.1)
    named = DPLloyd(n_clusters=1, columns=("x",))
    release = named.release(table, budget=Budget.seeded(200), rng=seeded(1))
    assert release.centers == pytest.approx(np.array([[150.0]]), abs=0.1)


# --- what it is good for ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [DPLloyd, DPLloydImpr])
def test_clear_clusters_are_found_better_with_more_budget(make):
    points = clouds(6000)
    method = make(n_clusters=3)
    errors = {
        epsilon: np.mean(
            [mean_square(points, publish(method, points, epsilon, s).centers) for s in range(8)]
        )
        for epsilon in (Fraction(1, 100), Fraction(10))
    }
    best = mean_square(points, BLOBS)
    assert errors[Fraction(10)] < 0.5 * errors[Fraction(1, 100)]
    assert min(
        mean_square(points, publish(method, points, 100, s).centers) for s in range(8)
    ) == pytest.approx(best, rel=0.05)


@pytest.mark.parametrize("method", CATALOG, ids=repr)
def test_the_predicted_error_falls_with_epsilon(method):
    figures = [
        method.expected_error(schema_of(2), None, Fraction(tenths, 10)) for tenths in (1, 2, 5, 40)
    ]
    targets = [expected.figures[expected.target] for expected in figures]
    assert targets == sorted(targets, reverse=True)
    assert len(set(targets)) == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"n_clusters": 0},
        {"n_clusters": 2, "max_iter": 0},
        {"n_clusters": 2, "max_iter": 201},
        {"n_clusters": 2, "schedule": "growing"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(InvalidParameter):
        DPLloyd(**settings)


def test_an_unknown_start_is_refused():
    with pytest.raises(InvalidParameter, match="start"):
        DPLloyd(n_clusters=2, start="sphere")


@pytest.mark.parametrize("make", [DPLloyd, DPLloydImpr])
def test_what_the_release_refuses_is_refused_beforehand(make):
    for method, epsilon in (
        (make(n_clusters=2, columns=("y",)), Fraction(1)),
        (make(n_clusters=2), Fraction(1, 10**8)),
    ):
        budget = Budget.seeded(epsilon)
        with pytest.raises(InvalidParameter) as predicted:
            method.expected_error(schema_of(2), 100, epsilon)
        with pytest.raises(InvalidParameter) as refused:
            method.release(table_of(clouds(9)), budget=budget, rng=seeded(1))
        assert str(predicted.value) == str(refused.value)
        assert not budget.is_used


def test_the_number_of_rounds_is_noted():
    release = publish(DPLloydImpr(n_clusters=3), clouds(6000))
    assert release.notes[0].startswith(f"{MOST_ROUNDS} rounds, since there are about ")

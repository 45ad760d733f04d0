"""One round of k-means: its exact privacy loss, twins that lose more, and where centers go."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.accuracy.noise_distribution import noise_pmf, noise_variance
from dpublish.core.run import Run
from dpublish.data.box import UNIT, Box
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.kmeans import lloyd_round as module
from dpublish.methods.kmeans.dplloyd import DPLloyd
from dpublish.methods.kmeans.lloyd_round import (
    lloyd_round,
    move,
    round_errors,
)
from dpublish.methods.kmeans.method import MOST_CLUSTERS
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from methods.kmeans.broken_cluster_sums import InAllOfEquals
from methods.kmeans.lloyd_audit import Points, Replay, exact_loss, schema_of

EPSILON = Fraction(1, 2)
WEIGHT = Fraction(3, 4)
COORDINATES = (-1.0, 0.0, 1.0)


def play_round(centers, weight=WEIGHT, budgets=None):
    """A round from given centers; with several budgets, as many rounds from the same centers."""
    box = Box.of(schema_of(len(centers[0])))

    def play(table):
        for budget in budgets or [Budget.seeded(EPSILON)]:
            run = Run(table, rng=seeded(1))
            lloyd_round(run, box, np.array(centers), count_weight=weight, budget=budget)

    return play


def worst_loss(monkeypatch, dimensions, play_from):
    """Search small worlds: all centers on few points, no to two records, one more added."""
    points = list(product(COORDINATES, repeat=dimensions))
    found = []
    for centers in product(points, repeat=2):
        for others in ([], [points[0]], [points[-1], points[1]]):
            for added in points:
                here, there = (
                    Replay().run(monkeypatch, Points(rows, dimensions), play_from(centers))
                    for rows in (others, [*others, added])
                )
                found.append(exact_loss(here, there))
    assert None not in found
    return max(found)


# --- what a round costs -------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1, WEIGHT])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_a_round_loses_exactly_its_budget(monkeypatch, dimensions, weight):
    loss = worst_loss(monkeypatch, dimensions, lambda centers: play_round(centers, weight))
    assert loss == EPSILON


def test_counting_a_record_in_all_of_equals_loses_twice_the_budget(monkeypatch):
    monkeypatch.setattr(module, "ClusterSums", InAllOfEquals)
    assert worst_loss(monkeypatch, 1, play_round) == 2 * EPSILON


def test_a_round_for_each_cluster_loses_the_budget_of_all(monkeypatch):
    def play(centers):
        return play_round(centers, budgets=[Budget.seeded(EPSILON) for _ in centers])

    assert worst_loss(monkeypatch, 1, play) == 2 * EPSILON


def test_a_round_for_each_cluster_cannot_be_paid_from_one_budget():
    budget = Budget.seeded(EPSILON)
    with pytest.raises(BudgetAlreadyUsed):
        play_round([(0.0,), (0.5,)], budgets=[budget, budget])(Points([], 1))


def test_each_number_gets_the_noise_of_its_share(monkeypatch):
    seen = Replay().run(monkeypatch, Points([], 3), play_round([(0.0, 0.0, 0.0)] * 2))
    counts, sums = seen.rates
    assert counts == EPSILON * WEIGHT / (3 + WEIGHT)
    assert sums * UNIT == EPSILON / (3 + WEIGHT)
    assert [exact.shape for exact in seen.exact] == [(2,), (2, 3)]


def test_the_budget_opens_before_any_row_is_read():
    table, budget = Points([], 1), Budget.seeded(1)
    budget.spend()
    with pytest.raises(BudgetAlreadyUsed):
        play_round([(0.0,)], budgets=[budget])(table)
    assert table.kernels == []


def test_an_empty_cluster_gets_noise_like_any_other(monkeypatch, rng):
    rate = Fraction(1, 2)
    kept = []

    def spy(centers, counts, sums, rate):
        kept.append(counts.tolist())
        return centers

    monkeypatch.setattr(module, "move", spy)
    table, box = Points([(0.9,)] * 4, 1), Box.of(schema_of(1))
    for _ in range(3000):
        centers = np.array([[-1.0], [1.0]])
        budget = Budget.seeded(2 * rate)
        lloyd_round(Run(table, rng=rng), box, centers, count_weight=1, budget=budget)
    for column, exact in enumerate((0, 4)):
        distribution = dict(zip(range(-40, 41), noise_pmf(rate, np.arange(-40, 41)), strict=True))
        noise = [counts[column] - exact for counts in kept]
        assert frequency_p_value(noise, distribution) > 1e-6
        shifted = {k + 1: p for k, p in distribution.items()}
        assert frequency_p_value(noise, shifted) < 1e-20


# --- where centers go ---------------------------------------------------------------------------


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    st.integers(-200, 200),
    st.integers(1, 60),
)
def test_centers_stay_in_the_box_and_never_follow_a_count_that_is_noise(counts, scale, tenths):
    rate = Fraction(tenths, 10)
    counts = np.array(counts, dtype=np.int64)
    old = np.linspace(-1, 1, counts.size)[:, None]
    sums = np.full((counts.size, 1), scale * UNIT, dtype=np.int64)
    new = move(old, counts, sums, rate)
    assert np.all(np.abs(new) <= 1)
    stays = counts < max(1, noise_variance(rate) ** 0.5)
    assert np.array_equal(new[stays], old[stays])
    means = np.clip(scale / counts[~stays], -1, 1)
    assert new[~stays, 0] == pytest.approx(means)


def test_with_much_budget_a_round_gives_the_means_of_the_nearest_records(rng):
    points = [(-0.5,)] * 30 + [(-0.7,)] * 10 + [(0.9,)] * 20
    found = lloyd_round(
        Run(Points(points, 1), rng=rng),
        Box.of(schema_of(1)),
        np.array([[-1.0], [1.0]]),
        count_weight=1,
        budget=Budget.seeded(1000),
    )
    assert found == pytest.approx(np.array([[-0.55], [0.9]]), abs=0.01)


# --- what is predicted and refused ---------------------------------------------------------------


def test_the_predicted_noise_holds_95_percent_and_no_more(rng):
    box = Box.of(schema_of(2))
    figures = round_errors(box, 3, EPSILON, WEIGHT, None)
    shares = Budget.seeded(EPSILON).split(counts=WEIGHT, sums=2)
    zeros = np.zeros(20_000, dtype=np.int64)
    counts = np.abs(add_geometric(zeros, sensitivity=1, budget=shares["counts"], rng=rng))
    sums = np.abs(add_geometric(zeros, sensitivity=2 * UNIT, budget=shares["sums"], rng=rng))
    assert np.mean(sums / UNIT <= figures["coordinate_sum_95"]) == pytest.approx(0.95, abs=0.01)
    assert np.mean(counts <= figures["cluster_count_95"]) >= 0.94
    assert np.mean(counts < figures["cluster_count_95"]) < 0.95


def test_the_shift_of_a_center_is_predicted_if_the_number_of_records_is_public():
    box = Box.of(schema_of(2))
    figures = round_errors(box, 3, EPSILON, 1, 600)
    assert figures["center_shift_95"] == figures["coordinate_sum_95"] / 200
    assert round_errors(box, 3, EPSILON, 1, 1)["center_shift_95"] == 2.0
    assert "center_shift_95" not in round_errors(box, 3, EPSILON, 1, None)


def test_noise_that_does_not_fit_is_refused_beforehand():
    with pytest.raises(InvalidParameter, match="rate"):
        round_errors(Box.of(schema_of(2)), 3, Fraction(1, 10**9), 1, None)


@pytest.mark.parametrize("clusters", [0, -1, 2.5, True, MOST_CLUSTERS + 1])
def test_a_number_of_clusters_that_makes_no_sense_is_refused(clusters):
    with pytest.raises(InvalidParameter, match="clusters"):
        DPLloyd(n_clusters=clusters)


def test_a_table_of_units_is_refused():
    table = Points([], 1)
    table.neighbors = AddRemoveUnit("person")
    with pytest.raises(InvalidParameter, match="--contribution 4"):
        DPLloyd(n_clusters=1).check_table(table)

"""PGkM: the noise of each choice follows the candidates, never the records."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core import run as run_module
from dpublish.data.box import UNIT
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.methods.kmeans.kernels import STEP
from dpublish.methods.kmeans.pgkm import PGkM
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded


def schema_of(dimensions=2):
    return Schema(
        tuple(column(f"x{j}", "numeric", bounds=[-1, 1]) for j in range(1, dimensions + 1))
    )


def table_of(points):
    points = np.asarray(points, dtype=np.float64)
    schema = schema_of(points.shape[1])
    rows = {name: pa.array(points[:, j]) for j, name in enumerate(schema.names)}
    return open_table(pa.table(rows), schema)


def uniform_points(count, dimensions=2, seed=0):
    return plain_generator(seed).uniform(-1, 1, (count, dimensions))


def heaps(records=3000):
    rng = plain_generator(4)
    middles = np.array([[-0.6, -0.5], [0.5, 0.6], [0.6, -0.6]])
    noise = rng.normal(0, 0.05, (records, 2))
    return np.clip(middles[rng.integers(3, size=records)] + noise, -1, 1)


def generations_of(monkeypatch, points, budget, **settings):
    """Run, and note every generation with its scores and range."""
    seen = []
    real = run_module.search

    def spy(score, first, plan, **more):
        def noted(generation):
            scores = score(generation)
            seen.append((generation.copy(), scores))
            return scores

        return real(noted, first, plan, **more)

    monkeypatch.setattr(run_module, "search", spy)
    method = PGkM(**({"n_clusters": 2} | settings))
    release = method.release(table_of(points), budget=Budget.seeded(budget), rng=seeded(1))
    return seen, release


def test_scores_are_minus_the_distances_and_ranges_hold_anywhere_in_the_box(monkeypatch):
    points = uniform_points(30)
    seen, _ = generations_of(monkeypatch, points, 1, rounds=4)
    assert len(seen) == 4
    anywhere = [[-1, -1], [-1, 1], [1, -1], [1, 1], *uniform_points(50, seed=9).tolist()]
    for generation, scores in seen:
        sets = generation.reshape(len(generation), 2, 2) / UNIT
        for index in (0, 57, 199):
            nicv = normalized_intra_cluster_variance(points, sets[index])
            assert -scores.values[index] * STEP / UNIT**2 == pytest.approx(30 * nicv, abs=1e-3)
        for point in anywhere:
            apart = np.square(sets - point).sum(axis=2).min(axis=1) * UNIT**2 / STEP
            assert apart.max() - apart.min() <= scores.sensitivity_range + 1


def test_the_range_shrinks_with_the_mutations_and_ignores_the_records(monkeypatch):
    ranges = []
    for points in (uniform_points(40), [[0.0, 0.0]], np.empty((0, 2))):
        seen, _ = generations_of(monkeypatch, points, "0.0001", rounds=4)
        ranges.append([scores.sensitivity_range for _, scores in seen])
        monkeypatch.undo()
    for first, *late in ranges:
        assert first > 3 * max(late)
        for number, width in enumerate(late):
            assert width <= 8 * 0.1 * 0.95**number * UNIT**2 / STEP + 1
    first_choices = {one[0] for one in ranges}
    assert len(first_choices) == 1  # the first generation is the same, whatever the records


def test_a_plain_choice_pays_for_the_largest_loss_of_the_generation(monkeypatch):
    """The paper's choice: its noise does not shrink, and the records do not enter."""
    anywhere = uniform_points(3000, seed=9)
    corners = np.array([[x, y] for x in (-1, 1) for y in (-1, 1)])
    seen, _ = generations_of(monkeypatch, uniform_points(40), "2", rounds=5, choice="plain")
    for generation, scores in seen:
        sets = generation.reshape(len(generation), 2, 2) / UNIT
        losses = [
            np.square(sets - point).sum(axis=2).min(axis=1).max() * UNIT**2 / STEP
            for point in (*anywhere, *corners)
        ]
        by_hand = np.square(1 + np.abs(sets)).sum(axis=2).min(axis=1).max() * UNIT**2 / STEP
        assert max(losses) <= scores.sensitivity_range
        assert scores.sensitivity_range == pytest.approx(by_hand, abs=1)
    ranges = [scores.sensitivity_range for _, scores in seen]
    assert min(ranges[1:]) > 0.2 * ranges[0]


def test_a_plain_choice_has_more_noise_than_one_by_range(monkeypatch):
    ranges = {}
    for choice in ("range", "plain"):
        seen, _ = generations_of(monkeypatch, heaps(200), "2", rounds=4, choice=choice)
        ranges[choice] = [scores.sensitivity_range for _, scores in seen]
        monkeypatch.undo()
    assert ranges["plain"][0] >= ranges["range"][0]
    assert min(ranges["plain"][1:]) > 2 * max(ranges["range"][1:])


@pytest.mark.parametrize(
    "settings",
    [{}, {"rounds": 5}, {"parents": 3, "population": 20}, {"choice": "plain", "parents": 10}],
)
def test_what_is_spent_is_what_was_granted(settings):
    budget = Budget.seeded("0.8")
    method = PGkM(n_clusters=2, **settings)
    release = method.release(table_of(uniform_points(50)), budget=budget, rng=seeded(1))
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    shares = dict(release.receipt.shares)
    sizes = [share for name, share in shares.items() if name.endswith("size")]
    assert sizes == ([] if "rounds" in settings else [Fraction("0.024")])
    rounds = [share for name, share in shares.items() if "/search/" in name]
    assert len(rounds) == settings.get("rounds", 8)
    assert len(set(rounds)) == 1


def test_more_budget_brings_centers_nearer():
    points = heaps()

    def nicv(epsilon):
        found = []
        for seed in range(3):
            method = PGkM(n_clusters=3, rounds=30)
            release = method.release(
                table_of(points), budget=Budget.seeded(epsilon), rng=seeded(seed)
            )
            found.append(normalized_intra_cluster_variance(points, release.centers))
        return np.mean(found)

    assert nicv(100) < 0.02 < 0.05 < nicv("0.001")


@pytest.mark.parametrize(
    "points",
    [
        np.empty((0, 2)),
        [[0.3, 0.3]],
        [[1.0, -1.0]] * 8,
        uniform_points(6, 1),
        uniform_points(30, 10),
    ],
    ids=["none", "one", "equal", "d = 1", "d = 10"],
)
def test_it_works_on_odd_tables_with_more_clusters_than_records(points):
    for seed in range(3):  # the noisy size is often negative
        release = PGkM(n_clusters=9).release(
            table_of(points), budget=Budget.seeded("0.01"), rng=seeded(seed)
        )
        assert release.centers.shape == (9, np.shape(points)[1])
        assert np.abs(release.centers).max() <= 1
        assert release.notes == ("8 generations",)


def test_one_center_in_one_column_can_be_bred():
    release = PGkM(n_clusters=1, population=1).release(
        table_of(uniform_points(9, 1)), budget=Budget.seeded(1), rng=seeded(1)
    )
    assert release.centers.shape == (1, 1)


def test_the_predicted_shortfall_never_grows_with_the_budget():
    for settings in ({}, {"rounds": 20}, {"parents": 5}, {"choice": "plain", "parents": 10}):
        method = PGkM(n_clusters=3, **settings)
        for records in (None, 1_000, 100_000, 10_000_000):
            predicted = [
                method.expected_error(schema_of(), records, Fraction(part, 100))
                for part in (1, 5, 20, 21, 50, 100, 300)
            ]
            figures = [one.figures[one.target] for one in predicted]
            for less, more in pairwise(figures):
                assert more <= less * (1 + 1e-9)
            assert figures[-1] < figures[0]


@pytest.mark.parametrize(
    "bad",
    [
        {"n_clusters": 0},
        {"rounds": 0},
        {"rounds": 501},
        {"population": 0},
        {"parents": 201},
        {"parents": 0},
        {"choice": "best"},
    ],
)
def test_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        PGkM(**({"n_clusters": 2} | bad))


def test_what_cannot_be_done_is_refused_before_anything_is_spent():
    table = table_of(uniform_points(5))
    for settings, epsilon, word in (
        ({"n_clusters": 2}, "1e-7", "rate"),
        ({"n_clusters": 2, "rounds": 3}, "1e-9", "rate"),
        ({"n_clusters": 100_000}, "1", "coordinates"),
    ):
        method = PGkM(**settings)
        budget = Budget.seeded(epsilon)
        with pytest.raises(InvalidParameter, match=word) as of_release:
            method.release(table, budget=budget, rng=seeded(1))
        with pytest.raises(InvalidParameter) as of_plan:
            method.expected_error(table.schema, None, Fraction(epsilon))
        assert str(of_release.value) == str(of_plan.value)
        assert not budget.is_used
    used = Budget.seeded(1)
    used.spend()
    with pytest.raises(BudgetAlreadyUsed):
        PGkM(n_clusters=2).release(table, budget=used, rng=seeded(1))


def test_progress_counts_generations():
    calls = []
    PGkM(n_clusters=2, rounds=3).release(
        table_of(uniform_points(9)),
        budget=Budget.seeded(1),
        rng=seeded(1),
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(1, 3, "generations"), (2, 3, "generations")]

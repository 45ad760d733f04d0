"""UGkM, MkM, EUGkM and Hybrid: replayed on neighbors, on odd tables, on clear clusters."""

from fractions import Fraction
from itertools import permutations, product
from math import inf, prod

import numpy as np
import pyarrow as pa
import pytest

from dpublish.aggregates.box_grid import MOST_CELLS, BoxGrid
from dpublish.data.box import UNIT
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans import eugkm, hybrid
from dpublish.methods.kmeans.eugkm import (
    EUGkM,
    MkM,
    UGkM,
    grid_side,
)
from dpublish.methods.kmeans.hybrid import PERCENT, HybridKMeans, grid_error, round_error, share_out
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from methods.kmeans.lloyd_audit import Points, Replay, exact_loss, schema_of

EPSILON = Fraction(3, 2)
KINDS = (UGkM, MkM, EUGkM, HybridKMeans)
BLOBS = np.array([[-0.7, -0.6], [0.6, -0.5], [0.0, 0.7]])


def table_of(points, dimensions):
    columns = np.asarray(points, dtype=float).reshape(-1, dimensions).T
    rows = {f"x{j}": values for j, values in enumerate(columns)}
    return open_table(pa.table(rows), schema_of(dimensions))


def publish(kind, points, dimensions=2, epsilon=EPSILON, seed=3, **settings):
    method = kind(**{"n_clusters": 3, "n_init": 5, **settings})
    table = table_of(points, dimensions)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


def clouds(size, seed=4):
    rng = plain_generator(seed)
    centers = BLOBS[rng.integers(0, len(BLOBS), size)]
    return np.clip(centers + rng.normal(0, 0.05, centers.shape), -1, 1)


def replay(monkeypatch, kind, points, seed=1, size=1000, dimensions=2, epsilon=EPSILON, **settings):
    def play(table):
        method = kind(n_clusters=2, n_init=2, **settings)
        method.release(table, budget=Budget.seeded(epsilon), rng=seeded(9))

    return Replay(seed, size).run(monkeypatch, Points(points, dimensions), play)


# --- neighbors ---------------------------------------------------------------------------------

WORLDS = ([], [(0.3, -0.2)], [(1, 1), (1, 1), (-1, 0.5)])
ADDED = ((0, 0), (1, 1), (-1, 0.25), (1, -1))


def worst_loss(monkeypatch, kind, **options):
    """The largest loss over small worlds; None if one asks what its neighbor does not."""
    losses = [
        exact_loss(
            replay(monkeypatch, kind, others, seed, **options),
            replay(monkeypatch, kind, [*others, added], seed, **options),
        )
        for others, added, seed in product(WORLDS, ADDED, range(3))
    ]
    return None if None in losses else max(losses)


@pytest.mark.parametrize("size", [-50, 0, 40, 1000, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_all_answers_together_lose_the_budget_and_no_more(monkeypatch, kind, size):
    assert worst_loss(monkeypatch, kind, size=size) <= EPSILON


@pytest.mark.parametrize("kind", [UGkM, MkM, EUGkM])
def test_a_grid_loses_all_of_the_budget(monkeypatch, kind):
    assert worst_loss(monkeypatch, kind) == EPSILON


@pytest.mark.parametrize("theta", [Fraction(1, 2), 3, 200])
@pytest.mark.parametrize("kind", [UGkM, EUGkM, HybridKMeans])
def test_a_finer_or_coarser_grid_loses_the_budget_and_no_more(monkeypatch, kind, theta):
    for size in (-50, 1000, 20_000):
        assert worst_loss(monkeypatch, kind, size=size, theta=theta) <= EPSILON


def test_the_worst_record_makes_the_round_after_the_grid_lose_its_whole_share(monkeypatch):
    assert share_out(20_000, 2, 2, EPSILON).grid_percent < PERCENT
    assert (
        worst_loss(monkeypatch, HybridKMeans, size=20_000) == EPSILON
    )  # a corner moves both sums by 1


def test_a_grid_as_fine_as_the_exact_number_of_records_allows_is_caught(monkeypatch):
    share = EPSILON * Fraction(97, 100)
    sides = [grid_side("eug", n, 2, 2, share) for n in range(200)]
    size = next(n for n in range(199) if sides[n + 1] > sides[n])
    points = [(0.1, 0.1)] * size
    neighbors = (points, [*points, (0.1, 0.1)])
    told = [replay(monkeypatch, EUGkM, p, size=None) for p in neighbors]
    assert exact_loss(*told) == inf
    safe = [replay(monkeypatch, EUGkM, p) for p in neighbors]
    assert exact_loss(*safe) <= EPSILON


class CountsEdgesTwice(BoxGrid):
    """Broken: a point on the edge of two cells counts in both."""

    def add(self, batch, out):
        super().add(batch, out)
        lattice = self.box.lattice(batch)
        below = self.locate(np.maximum(lattice - 1, -UNIT))
        np.add.at(out, below[below != self.locate(lattice)], 1)


def test_a_record_that_counts_in_two_cells_is_caught(monkeypatch):
    monkeypatch.setattr(eugkm, "BoxGrid", CountsEdgesTwice)
    # With 36 cells along each column the middle of the box lies on edges.
    assert grid_side("eug", 9000, 2, 2, EPSILON * Fraction(97, 100)) == 36
    assert worst_loss(monkeypatch, EUGkM, size=9000) > EPSILON


# --- sizes and shares ---------------------------------------------------------------------------


def test_the_grid_is_as_fine_as_the_papers_say():
    assert grid_side("eug", 10_000, 2, 5, 1.0) == 32
    assert grid_side("eug", 10_000, 6, 5, 1.0) == 6
    assert grid_side("ug", 10_000, 6, 5, 1.0) == 3
    assert grid_side("ug", 10_000, 2, 5, 1.0) == grid_side("eug", 10_000, 2, 5, 1.0)
    assert grid_side("mkm", 10_000, 2, 5, 0.01) == grid_side("mkm", 10_000, 2, 5, 5.0) == 57


def test_theta_says_how_fine_the_grid_is():
    points = clouds(20_000)
    for kind in (UGkM, EUGkM, HybridKMeans):
        sides = {
            theta: publish(kind, points, theta=theta).synopsis.sizes[0] for theta in (10, 40, 160)
        }
        assert sides[10] > sides[40] > sides[160]
        assert publish(kind, points).synopsis.sizes[0] == sides[10]
        if kind is not HybridKMeans:  # in the plane; what hybrid's grid gets depends on theta, too
            assert sides[40] == pytest.approx(sides[10] / 2, abs=2)
            assert sides[160] == pytest.approx(sides[10] / 4, abs=2)
    assert EUGkM(n_clusters=2, theta=4) == EUGkM(n_clusters=2, theta=Fraction(4))
    assert "theta" not in vars(MkM(n_clusters=2))


def test_a_coarser_grid_is_predicted_to_have_more_bias_and_less_noise():
    assert grid_error(1e4, 2, 5, 40) == pytest.approx(grid_error(1e4, 2, 5) / 4)
    fine, coarse = (share_out(200_000, 6, 3, Fraction(1), theta=t) for t in (2, 50))
    assert fine.grid_percent != coarse.grid_percent


@pytest.mark.parametrize("theta", [0, -1, Fraction(1, 10**4), 10**7, True, "ten"])
def test_a_theta_that_makes_no_sense_is_refused(theta):
    with pytest.raises(InvalidParameter, match="theta"):
        EUGkM(n_clusters=2, theta=theta)


@pytest.mark.parametrize("rule", ["ug", "mkm", "eug"])
@pytest.mark.parametrize("size", [-(2**60), -1, 0, 1, 2, 3, 10**4, 2**60])
def test_any_noisy_size_gives_a_grid_that_can_be_counted(rule, size):
    for dimensions, clusters in product((1, 2, 3, 6, 10, 30), (1, 2, 5, 1000)):
        side = grid_side(rule, size, dimensions, clusters, 0.5)
        assert side >= 1
        assert side**dimensions <= MOST_CELLS
        if 2**dimensions <= 4000:
            assert side**dimensions >= clusters


def test_the_models_of_the_thesis_are_as_given():
    assert grid_error(1e4, 2, 5) == pytest.approx(1.3333e-5, rel=1e-4)
    by_hand = 2 * 6 * (1 + 4 * 0.225**2) * (5 * 7 / 1e4) ** 2
    assert round_error(1e4, 6, 5) == pytest.approx(by_hand)


def test_the_share_of_the_grid_is_the_best_of_all_percents():
    size, dimensions, clusters, epsilon = 200_000, 4, 3, Fraction(1)
    split = share_out(size, dimensions, clusters, epsilon)
    assert 0 < split.grid_percent < PERCENT
    part = split.grid_percent / PERCENT
    errors = [
        0.14 * grid_error(size * f, dimensions, clusters)
        + 0.42 * round_error(size * (1 - f), dimensions, clusters)
        for f in (part - 0.01, part, part + 0.01)
    ]
    assert errors[1] == min(errors) == split.error < grid_error(size, dimensions, clusters)


@pytest.mark.parametrize("size", [-3, 0, 1, 50])
def test_few_records_get_no_round(size):
    assert share_out(size, 2, 15, Fraction(1)).grid_percent == PERCENT


def test_hybrid_says_what_it_did_and_why():
    few, many = (publish(HybridKMeans, clouds(n)).notes[0] for n in (50, 20_000))
    assert few.startswith("no round after the grid, since there are about")
    assert many.startswith(f"the grid got {share_out(20_000, 2, 3, EPSILON).grid_percent} %")


# --- odd tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimensions", [1, 2, 10])
@pytest.mark.parametrize("count", [0, 1, 40], ids=["empty", "one row", "equal rows"])
def test_odd_tables_work(kind, dimensions, count):
    for clusters in (1, 30):
        release = publish(kind, [(0.25,) * dimensions] * count, dimensions, n_clusters=clusters)
        assert release.centers.shape == (clusters, dimensions)
        assert prod(release.synopsis.sizes) >= clusters
        assert np.all(np.abs(release.centers) <= 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_negative_noisy_size_works(kind):
    sizes = []
    for seed in range(8):
        release = publish(kind, [], epsilon=Fraction(1, 10), seed=seed)
        sizes.append(release.synopsis.records.value)
    assert min(sizes) < 0


@pytest.mark.parametrize("kind", KINDS)
def test_more_clusters_than_cells_work(kind, monkeypatch):
    for module in (eugkm, hybrid):
        monkeypatch.setattr(module, "grid_side", lambda *_, **__: 1)
    release = publish(kind, clouds(100), n_clusters=4)
    assert release.synopsis.sizes == (1, 1)
    assert len(release.centers) == 4


def test_records_without_a_number_lie_in_no_cell_and_are_not_counted():
    schema = Schema(
        tuple(column(name, "numeric", bounds=[0, 1], missing="drop") for name in ("x", "y"))
    )
    rows = pa.table({"x": [0.5, None, 0.5] * 30, "y": [0.5, 0.5, None] * 30})
    release = EUGkM(n_clusters=1).release(
        open_table(rows, schema), budget=Budget.seeded(1000), rng=seeded(1)
    )
    assert release.synopsis.records.value == release.synopsis.counts.sum() == 30


# --- of use -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_clear_clusters_are_found(kind):
    centers = publish(kind, clouds(20_000), n_init=10).centers
    nearest = min(np.abs(centers[list(order)] - BLOBS).max() for order in permutations(range(3)))
    assert nearest < 0.03


def test_centers_come_in_the_owners_units():
    schema = Schema((column("income", "numeric", bounds=[0, 80_000]),))
    rows = pa.table({"income": [20_000.0, 60_000.0] * 3000})
    release = EUGkM(n_clusters=2).release(
        open_table(rows, schema), budget=Budget.seeded(2), rng=seeded(1)
    )
    assert np.allclose(np.sort(release.centers[:, 0]), [20_000, 60_000], atol=1000)


@pytest.mark.parametrize("kind", KINDS)
def test_the_budget_is_spent_and_the_receipt_says_so(kind):
    for size in (10, 20_000):
        budget = Budget.seeded(EPSILON)
        table = table_of(clouds(size), 2)
        release = kind(n_clusters=2, n_init=2).release(table, budget=budget, rng=seeded(1))
        assert all(leaf.is_used for leaf in budget.account())
        assert budget.cost() == release.receipt.epsilon == EPSILON
        assert sum(share for _, share in release.receipt.shares) == EPSILON
        assert release.synopsis.rate in {share for _, share in release.receipt.shares}


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "settings",
    [{"n_clusters": 0}, {"n_clusters": 2, "n_init": 0}, {"n_clusters": 2, "n_init": 9999}],
)
def test_impossible_settings_are_refused(kind, settings):
    with pytest.raises(InvalidParameter):
        kind(**settings)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_release_refuses_is_refused_before_it_is_paid_for(kind):
    method, tiny = kind(n_clusters=2), Fraction(1, 10**20)
    with pytest.raises(InvalidParameter):
        method.expected_error(schema_of(2), None, tiny)
    budget = Budget.seeded(tiny)
    with pytest.raises(InvalidParameter):
        method.release(table_of([], 2), budget=budget, rng=seeded(1))
    assert not budget.is_used


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_records", [None, 500, 50_000, 10**7])
def test_the_error_predicted_falls_with_epsilon(kind, n_records):
    method = kind(n_clusters=4)
    steps = [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(4)]
    found = [method.expected_error(schema_of(3), n_records, epsilon) for epsilon in steps]
    targets = [one.figures[one.target] for one in found]
    assert targets == sorted(targets, reverse=True)
    assert len(set(targets)) == len(targets)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cells_noise_is_what_was_predicted(kind):
    width = kind(n_clusters=2).expected_error(schema_of(2), None, EPSILON).figures["cell_count_95"]
    outside = total = 0
    for seed in range(60):
        counts = publish(kind, [], seed=seed, n_init=1).synopsis.counts
        outside += np.count_nonzero(np.abs(counts) > width)
        total += counts.size
    assert outside <= 0.05 * total
    assert outside > 0.001 * total

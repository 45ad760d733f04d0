"""The default: a synopsis by the number of columns, all of epsilon spent, odd tables no matter."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core import run as run_module
from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans import eugkm
from dpublish.methods.kmeans.choose_k import best_of, judge_clusters
from dpublish.methods.kmeans.kmeans import KMeans, dense_side
from dpublish.methods.kmeans.released import KMeansRelease, TreeKMeansRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from methods.kmeans.lloyd_audit import Points, Replay, exact_loss


def schema_of(dimensions):
    return Schema(tuple(column(f"x{i}", "numeric", bounds=[-1, 1]) for i in range(dimensions)))


def release(points, dimensions, clusters=3, epsilon="1", seed=1, budget=None):
    columns = np.asarray(points, dtype=np.float64).reshape(-1, dimensions).T
    table = open_table(
        pa.table({f"x{i}": one for i, one in enumerate(columns)}), schema_of(dimensions)
    )
    share = Budget.seeded(epsilon) if budget is None else budget
    return KMeans(n_clusters=clusters).release(table, budget=share, rng=seeded(seed))


def blobs(dimensions, size=3000):
    rng = plain_generator(2)
    middles = np.array([[-0.6] * dimensions, [0.6] * dimensions, [0.6, *[-0.6] * (dimensions - 1)]])
    return np.clip(
        middles[rng.integers(0, 3, size)] + rng.normal(0, 0.05, (size, dimensions)), -1, 1
    )


@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_clear_clusters_are_found(dimensions):
    found = release(blobs(dimensions), dimensions, epsilon="5").centers
    wanted = np.array([[-0.6] * dimensions, [0.6] * dimensions, [0.6, *[-0.6] * (dimensions - 1)]])
    for middle in wanted:
        assert np.abs(found - middle).max(axis=1).min() < 0.1


@pytest.mark.parametrize(
    ("dimensions", "kind"),
    [(1, KMeansRelease), (3, KMeansRelease), (4, TreeKMeansRelease), (10, TreeKMeansRelease)],
)
@pytest.mark.parametrize("points", ["none", "one", "same", "two"])
def test_it_works_on_odd_tables_whatever_the_number_of_columns(dimensions, kind, points):
    rows = {"none": 0, "one": 1, "same": 40, "two": 2}[points]
    table = np.full((rows, dimensions), 0.25)
    budget = Budget.seeded("0.3")
    found = release(table, dimensions, clusters=7, budget=budget)
    assert type(found) is kind
    assert found.centers.shape == (7, dimensions)
    assert found.notes
    assert all(leaf.is_used for leaf in budget.account())
    assert budget.cost() == found.receipt.epsilon == Fraction(3, 10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dimensions", [1, 2, 4])
@pytest.mark.parametrize("epsilon", ["300", "1000", "100000"])
def test_noise_that_is_too_small_to_be_seen_divides_nothing_by_zero(dimensions, epsilon):
    points = blobs(dimensions)
    found = release(points, dimensions, clusters=2, epsilon=epsilon).centers
    assert np.all(np.isfinite(found))
    if dimensions == 1:
        sides = [points[points < 0].mean(), points[points > 0].mean()]
        assert np.sort(found[:, 0]) == pytest.approx(sides, abs=0.02)


def test_more_clusters_than_cells_and_negative_sizes_work():
    assert dense_side(-10, 2, 50, Fraction(1)) == 8
    assert dense_side(10**12, 2, 5, Fraction(1)) == 1000
    assert dense_side(10**12, 3, 5, Fraction(1)) == 100
    assert release(blobs(2, 20), 2, clusters=50, epsilon="0.01").clusters == 50


def test_a_tree_is_saved_loaded_drawn_from_and_clustered_again(tmp_path):
    found = release(blobs(4), 4, epsilon="5")
    found.save(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again == found
    assert again.recluster(3, n_init=5, seed=1).shape == (3, 4)
    assert again.rows(50, seed=1).num_rows == 50
    assert again.rows(0).num_rows == 0
    assert abs(again.rows(seed=2).num_rows - 3000) < 100
    assert set(again.label(again.rows(100, seed=1))) <= {0, 1, 2}
    with pytest.raises(InvalidParameter):
        again.recluster(0)


@pytest.mark.parametrize("dimensions", [2, 5])
def test_given_the_noisy_answers_nothing_else_depends_on_the_rows(dimensions, monkeypatch):
    """The structural audit: told the same answers, any two tables give the same release."""

    def told(counts, *, sensitivity, budget, rng):
        budget.spend()
        return np.arange(counts.size, dtype=np.int64).reshape(counts.shape) * 7 % 97

    def choose(scores, *, budget, **_):
        budget.spend()
        return len(scores) - 1

    def size(size, *, budget, rng):
        budget.spend()
        return 4000

    monkeypatch.setattr(run_module, "add_geometric", told)
    monkeypatch.setattr(run_module, "select", choose)
    monkeypatch.setattr(run_module, "noisy_size", size)
    found = [release(rows, dimensions) for rows in ([], blobs(dimensions, 10), blobs(dimensions))]
    assert all(np.array_equal(one.centers, found[0].centers) for one in found)
    assert all(one.metadata() == found[0].metadata() for one in found)


def test_numbers_of_clusters_can_be_tried_on_both_synopses():
    # Six are too many for the grid; a tree of marginals draws stray points, which may earn them.
    for dimensions, candidates in ((2, [2, 3, 6]), (4, [2, 3])):
        blob = release(blobs(dimensions), dimensions, epsilon="5")
        assert best_of(judge_clusters(blob, candidates, seed=1)).n_clusters == 3


def test_every_share_is_refused_beforehand_if_no_noise_can_be_drawn_for_it():
    method = KMeans(n_clusters=3)
    for dimensions in (2, 5):
        with pytest.raises(InvalidParameter):
            method.expected_error(schema_of(dimensions), None, Fraction(1, 10**14))
        few = method.expected_error(schema_of(dimensions), 1000, Fraction(1))
        many = method.expected_error(schema_of(dimensions), None, Fraction(1, 10))
        assert few.figures[few.target] < many.figures[many.target]


# --- neighbors ---------------------------------------------------------------------------------

EPSILON = Fraction(3, 2)
WORLDS = ([], [(0.3, -0.2)], [(1, 1), (1, 1), (-1, 0.5)])
ADDED = ((0, 0), (1, 1), (-1, 0.25), (1, -1))


def grid_loss(monkeypatch):
    """The largest exact loss of a release in two columns, over small worlds."""

    def play(table):
        KMeans(n_clusters=2).release(table, budget=Budget.seeded(EPSILON), rng=seeded(9))

    def replay(points):
        return Replay(1, 400).run(monkeypatch, Points(points, 2), play)

    return max(
        exact_loss(replay(others), replay([*others, added]))
        for others, added in product(WORLDS, ADDED)
    )


def test_a_release_from_a_grid_loses_its_budget_and_no_more(monkeypatch):
    assert grid_loss(monkeypatch) == EPSILON


def test_a_grid_whose_noise_forgets_half_of_what_a_record_does_is_caught(monkeypatch):
    class CountsTwice(BoxGrid):
        def add(self, batch, out):
            super().add(batch, out)
            super().add(batch, out)

    monkeypatch.setattr(eugkm, "BoxGrid", CountsTwice)
    assert grid_loss(monkeypatch) > EPSILON


def tree_loss(monkeypatch, table_share=1):
    """The largest loss of size, tables and round in four columns, its choices told beforehand.

    The choices themselves are audited in test_marginal_tree; they cost exactly their budgets.
    """
    asked = []

    def told(counts, *, sensitivity, budget, rng):
        share = table_share if counts.ndim == 1 and counts.size > 100 else 1
        asked.append((counts.astype(object), budget.spend() / sensitivity * share))
        return np.full(counts.shape, 40, dtype=np.int64)

    def size(exact, *, budget, rng):
        asked.append((np.array(exact, dtype=object), budget.spend()))
        return 4000

    chosen = []

    def choose(scores, *, budget, **_):
        chosen.append(budget.spend())
        return 0

    monkeypatch.setattr(run_module, "add_geometric", told)
    monkeypatch.setattr(run_module, "select", choose)
    monkeypatch.setattr(run_module, "noisy_size", size)
    losses = []
    for others, added in product(([], [(0.3,) * 4]), ((1,) * 4, (-1, 1, -1, 0.5))):
        answers = []
        for rows in (others, [*others, added]):
            asked.clear()
            chosen.clear()
            release(rows, 4, budget=Budget.seeded(EPSILON))
            answers.append(list(asked))
        steps = zip(*answers, strict=True)
        losses.append(sum(r * int(np.abs(a - b).sum()) for (a, r), (b, _) in steps) + sum(chosen))
    return max(losses)


def test_a_release_from_a_tree_loses_its_budget_and_no_more(monkeypatch):
    assert tree_loss(monkeypatch) == EPSILON


def test_a_tree_whose_tables_get_noise_for_one_column_only_is_caught(monkeypatch):
    assert tree_loss(monkeypatch, table_share=4) > EPSILON


# --- names of settings ---------------------------------------------------------------------------


def test_former_names_of_settings_are_understood_where_a_method_has_no_such_setting():
    assert make_method("kmeans", {"clusters": "3"}) == KMeans(n_clusters=3)
    lloyd = make_method("dplloyd", {"clusters": 3, "rounds": "4"})
    assert (lloyd.n_clusters, lloyd.max_iter) == (3, 4)
    assert make_method("eugkm", {"clusters": 3, "starts": 7}).n_init == 7
    assert make_method("pgkm", {"clusters": 3, "rounds": 9}).rounds == 9
    with pytest.raises(InvalidParameter, match="given twice"):
        make_method("kmeans", {"clusters": 3, "n_clusters": 3})
    with pytest.raises(InvalidParameter, match="starts"):
        make_method("kmeans", {"clusters": 3, "starts": 7})

"""The comparison of private WaveClusters: planned, resumed, explained; with a stand-in."""

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.method import setting
from dpublish.core.registry import CATALOG, Entry
from dpublish.core.settings import build
from dpublish.data.box import Box
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import VARIABLE
from dpublish.datasets.shapes import SHAPES, simulated_shapes
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.evaluation.metrics.cells import NONE, cluster_count
from dpublish.evaluation.sklearn_adapter import label_points
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Result
from dpublish.experiments.wavecluster import (
    FIGURES,
    MEASURES,
    METHODS,
    PLAIN,
    STUDY,
    WaveRunner,
    compare,
    in_colors_of,
    store_labels,
    stored_labels,
)
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.wavecluster.plain import PlainWaveCluster
from dpublish.methods.wavecluster.wavecluster import WaveTransform, wave_clusters
from dpublish.plots.comparisons import NOISE, Picture, draw_pictures
from dpublish.randomness import plain_generator


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Perturbs the counts and clusters them, whatever it is called."""

    name: ClassVar[str] = "stand-in"
    cells: int = setting("cells")
    percentile: Fraction = setting("left out")
    adjacency: str = setting("neighbors")
    variant: str = setting("variant", default="auto")
    counts_share: Fraction = setting("share", default=Fraction(1, 2))
    points: str = setting("points", default="even")

    def release(self, table, *, budget, rng, progress=None):
        """Privacy: that of counts in disjoint cells."""
        sides = (self.cells, self.cells)
        counts = table.sum(BoxGrid(Box.of(table.schema), sides))
        noisy = add_geometric(counts, sensitivity=1, budget=budget, rng=rng)
        kept = np.where(noisy > 20, noisy, 0).reshape(sides)
        labels = wave_clusters(kept, WaveTransform(sides), self.percentile, self.adjacency)
        threshold = 12.0 if self.variant == "paper" else None
        significant = int(np.count_nonzero(labels != NONE))
        return SimpleNamespace(labels=labels, threshold=threshold, significant=significant)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch, request):
    monkeypatch.delenv(VARIABLE, raising=False)
    if request.node.get_closest_marker("usefixtures") is not None:  # the methods themselves
        return
    for name in {method.method for method in METHODS.values() if not method.is_plain}:
        entry = Entry(f"{__name__}:StandIn", task="", publishes="", prefer_when="")
        monkeypatch.setitem(CATALOG, name, entry)


WITHOUT_NOISE = MEASURES["reached"].title
SMALL = {"datasets": ("simulated",), "methods": ("privthr", "privqt"), "epsilons": ("0.05", "2")}


@pytest.fixture
def summary(tmp_path):
    return run_experiment("wavecluster", repeats=2, output=tmp_path, **SMALL)


def means_of(summary, measure, method):
    row = next(row for row in summary.rows if row[1:3] == [measure, method])
    return [float(cell.split()[0]) for cell in row[3:]]


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path, summary):
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 2 * (1 + 2 * 2)  # repeats; the plain algorithm, epsilons and methods
    assert all("NOT PRIVATE" in line for line in lines)
    assert summary.headers == ["dataset", "measure", "method", "epsilon 0.05", "epsilon 2"]
    absent = {WITHOUT_NOISE, MEASURES["expected"].title}  # a stand-in has neither
    assert {row[1] for row in summary.rows} == {m.title for m in MEASURES.values()} - absent
    assert "±" in summary.table.read_text()
    assert "<svg" in summary.plot.read_text()
    again = run_experiment("wavecluster", repeats=2, output=tmp_path, **SMALL)
    assert again.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_more_budget_brings_clusters_nearer_to_the_true_ones(summary):
    for measure in ("DSG_C", "OCM", "2CE"):
        worse, better = means_of(summary, measure, "privthr")
        assert 0 <= better < worse
    worse, better = means_of(summary, "F-measure", "privthr")
    assert worse < better <= 1


def test_the_plain_algorithm_is_compared_with_by_its_size_only(summary):
    assert means_of(summary, "clusters", PLAIN) == [5, 5]
    titles = [MEASURES[name].title for name in ("clusters", "cells")]
    assert [row[1] for row in summary.rows if row[2] == PLAIN] == titles


def test_a_published_threshold_is_also_tried_on_values_without_noise():
    settings = {"datasets": ("simulated",), "methods": ("privthr-paper",), "epsilons": ("1",)}
    planned = STUDY.plan(1, **settings)
    plain, private = (planned.run_trial(trial) for trial in planned.trials)
    # Haar's values are half the points of four cells; 24 points and more in four cells.
    rows, shapes = simulated_shapes(), SHAPES["simulated"]
    away = plain_generator(2024).permutation(rows.num_rows) % 10 == 0
    x, y = (rows[name].to_numpy()[~away] for name in ("x", "y"))
    half = shapes.cells // 2
    four = np.histogram2d(x, y, bins=half, range=shapes.bounds)[0]
    assert private["reached"] == np.count_nonzero(four >= 24)
    assert "reached" not in plain


def test_the_page_explains_itself_and_shows_the_shapes(summary):
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "smaller is stronger",
        "a ring around a disc",
        "30,000 points",
        "one point in 10",
        "2 times with fresh noise",
        "PrivTHR: perturbs the counts",
        "for every 100 true ones",
        "True clusters: 5; private ones:",
        ">true</text>",
        ">privqt, ε = 2</text>",
    ):
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_planned_tabled_and_explained(figure):
    chosen = FIGURES[figure]
    method = chosen.methods[-1]
    planned = STUDY.plan(1, figure=figure, datasets=("simulated",), methods=(method,))
    points = {
        trial.setting[chosen.key] if chosen.key else trial.epsilon for trial in planned.trials
    }
    assert len(points - {"none"}) >= 4
    private = dict.fromkeys(MEASURES, 1.0) | store_labels(np.array([[0, NONE], [1, 1]]))
    plain = {"clusters": 2.0, "cells": 3.0} | store_labels(np.array([[0, NONE], [1, NONE]]))
    results = [
        Result(trial, {**(plain if trial.method == PLAIN else private), "seconds": 0.5})
        for trial in planned.trials
    ]
    tabled = STUDY.table(results)
    assert len(tabled.headers) == 3 + len(points - {"none"})
    assert all("±" in cell for row in tabled.rows for cell in row[3:])
    page = STUDY.page(results, ["a note"])
    assert page.title == chosen.title
    assert "a note" in page.sections[-1].paragraphs


def test_lines_of_several_budgets_are_kept_apart_where_something_else_varies():
    settings = {"datasets": ("simulated",), "methods": ("privqt",), "epsilons": ("0.5", "1")}
    planned = STUDY.plan(1, figure="cells", **settings)
    results = [Result(trial, {"dsg": float(trial.epsilon != "1")}) for trial in planned.trials]
    means = {key.epsilon: set(line.values()) for key, line in STUDY.summarize(results).items()}
    assert {epsilon: [c.mean for c in cells] for epsilon, cells in means.items()} == {
        "": [1.0],
        "0.5": [1.0],
        "1": [0.0],
    }


def test_sets_that_are_not_there_are_left_out_with_a_note(tmp_path):
    planned = STUDY.plan(1)
    assert {trial.setting["dataset"] for trial in planned.trials} == {"simulated"}
    left_out = ["ds1", "ds2", "ds3", "gowalla", "gowalla-grid"]
    assert [note.split()[0] for note in planned.notes] == left_out
    with pytest.raises(InvalidParameter, match="ds2 was left out"):
        STUDY.plan(1, datasets=("ds2",))
    with pytest.raises(InvalidParameter, match="at least one dataset"):
        STUDY.plan(1, datasets=())


@pytest.mark.parametrize(
    "options",
    [{"figure": "folds"}, {"datasets": ("iris",)}, {"methods": ("em",)}, {"epsilons": ("-1",)}],
)
def test_what_is_not_known_is_refused(options):
    with pytest.raises(InvalidParameter):
        STUDY.plan(1, **options)


def test_nothing_to_run_is_refused():
    with pytest.raises(InvalidParameter, match="at least one method"):
        STUDY.plan(1, methods=())


def test_every_repeat_leaves_another_tenth_aside():
    runner = WaveRunner(None)
    seen = [runner.cut("simulated", fold).held_out for fold in range(10)]
    together = np.concatenate(seen)
    assert [len(points) for points in seen] == [3_000] * 10
    assert len(np.unique(together, axis=0)) == len(together)
    assert np.abs(together).max() <= 1


def test_equal_clusterings_are_at_distance_zero_and_none_is_far():
    labels = np.full((8, 8), NONE)
    labels[1:3, 1:7], labels[5:7, 1:7] = 0, 1
    points = plain_generator(3).uniform(-1, 1, (500, 2))
    assert compare(labels, labels, points) == {"dsg": 0, "ocm": 0, "2ce": 0, "f": 1}
    nothing = compare(labels, np.full((8, 8), NONE), points)
    assert (nothing["dsg"], nothing["f"]) == (1, 0)
    assert 0.3 < nothing["ocm"] < 0.7  # all in one class, where the truth has two


def test_points_are_labeled_by_the_cells_around_them():
    labeled, labels = np.array([[-0.5, 0.0], [0.5, 0.0]]), np.array([4, 2])
    points = np.array([[-0.9, 0.3], [0.2, -0.8]])
    assert label_points(labeled, labels, points).tolist() == [4, 2]
    assert label_points(labeled[:1], labels[:1], points).tolist() == [4, 4]
    assert label_points(labeled[:0], labels[:0], points).tolist() == [0, 0]
    line = np.linspace(-1, 1, 60).reshape(-1, 1)
    assert label_points(line, np.arange(60), line).tolist() == list(range(60))


def test_labels_of_cells_survive_being_stored_as_figures():
    labels = np.array([[0, NONE, 3], [NONE, NONE, 12]])
    assert np.array_equal(stored_labels(store_labels(labels) | {"dsg": 0.5}), labels)
    assert stored_labels({"dsg": 0.5, "cells": 3.0}) is None


def test_pictures_show_every_cell_once_with_the_second_coordinate_upwards():
    labels = np.array([[0, NONE], [NONE, 1]])
    drawn = draw_pictures([[Picture("a < b", labels)]])
    assert "a &lt; b" in drawn
    assert drawn.count("h1v1h-1z") == 2
    assert '<path d="M0 1h1' in drawn  # the cell at the left below
    assert '<path d="M1 0h1' in drawn  # the cell at the right above


def test_private_clusters_take_the_colors_of_the_true_ones_they_share_most_with():
    true = np.array([0, 0, 0, 0, 1, 1, 1, NONE])
    private = np.array([7, 7, 2, 2, 5, 5, 5, 3])
    assert in_colors_of(private, true).tolist() == [2, 2, 0, 0, 1, 1, 1, 3]
    assert in_colors_of(np.full(8, NONE), true).tolist() == [NONE] * 8


def test_the_plain_algorithm_finds_the_shapes_that_were_simulated():
    shapes = SHAPES["simulated"]
    sides = (shapes.cells, shapes.cells)
    table = open_table(simulated_shapes(), shapes.schema)
    counts = table.sum(BoxGrid(Box.of(shapes.schema), sides))
    labels = wave_clusters(counts, WaveTransform(sides), Fraction(shapes.percentile), "full")
    assert cluster_count(labels) == shapes.clusters


def test_simulated_shapes_depend_on_their_seed_only_and_lie_between_their_bounds():
    first = simulated_shapes(500, 1)
    assert first.equals(simulated_shapes(500, 1))
    assert not first.equals(simulated_shapes(500, 2))
    for name in ("x", "y"):
        assert 0 <= pa.compute.min(first[name]).as_py() < pa.compute.max(first[name]).as_py() <= 100


def test_a_set_is_read_from_the_data_folder(tmp_path):
    shapes = SHAPES["ds2"]
    assert shapes.missing_file(tmp_path) == shapes.file
    pq.write_table(pa.table({"x": [1, 2], "y": [3, 4], "z": [0, 0]}), tmp_path / shapes.file)
    assert shapes.missing_file(tmp_path) is None
    assert shapes.rows(tmp_path).to_pydict() == {"x": [1.0, 2.0], "y": [3.0, 4.0]}
    (tmp_path / shapes.file).write_text("no Parquet")
    with pytest.raises(UnreadableData, match="cannot be read"):
        shapes.rows(tmp_path)
    with pytest.raises(UnreadableData, match="needs a data folder"):
        shapes.rows(None)


real = pytest.mark.usefixtures("tmp_path")


@real
def test_every_method_runs_and_its_number_of_cells_is_compared_with_the_true_one():
    for figure in ("epsilon", "releases"):
        planned = STUDY.plan(1, figure=figure, datasets=("simulated",), epsilons=("1",))
        results = {trial.method: planned.run_trial(trial) for trial in planned.trials}
        true = results.pop(PLAIN)["cells"]
        assert set(results) == set(FIGURES[figure].methods)
        for measured in results.values():
            assert measured["k_error"] == pytest.approx(abs(measured["cells"] - true) / true)
            assert measured["dsg"] >= 0
    assert results["privthr"]["expected"] == pytest.approx(true, abs=1)
    assert results["privqt"]["expected"] == pytest.approx(results["privqt"]["cells"], rel=0.15)
    assert "expected" not in results["psd"]
    # Counts of all cells are worth more to WaveCluster than a grid made for range queries.
    assert results["privthr"]["dsg"] < min(results[name]["dsg"] for name in ("psd", "ug", "ag"))


@real
def test_a_budget_that_is_all_for_one_thing_is_worse_than_a_divided_one():
    chosen = {"datasets": ("simulated",), "methods": ("privthr-paper",), "epsilons": ("0.5",)}
    planned = STUDY.plan(3, figure="shares", values=("0.01", "0.9"), **chosen)
    results = [Result(trial, planned.run_trial(trial)) for trial in planned.trials]
    lines = STUDY.summarize(results)
    means = next(line for key, line in lines.items() if key[1:3] == ("dsg", "privthr-paper"))
    assert means[0.9].mean < means[0.01].mean


@real
def test_cells_for_each_column_and_other_settings_get_to_the_methods():
    given = {"cells": "48,24", "percentile": "0.2", "levels": "1", "wavelet": "bior2.2"}
    planned = STUDY.plan(
        1, datasets=("simulated",), methods=("privthr",), epsilons=("1",), settings=given
    )
    plain, private = (planned.run_trial(trial) for trial in planned.trials)
    for measured in (plain, private):
        assert stored_labels(measured).shape == (24, 12)
    assert "expected" not in private  # of Haar only
    with pytest.raises(InvalidParameter, match="cells along each column"):
        STUDY.plan(1, settings={"rows": "5"})


@real
def test_a_table_of_ones_own_is_compared_in_as_many_columns_as_it_has(tmp_path):
    rng = plain_generator(4)
    points = np.concatenate([rng.normal(c, 0.5, (900, 3)) for c in (2, 7)]).clip(0, 10)
    table = {f"c{i}": points[:, i] for i in range(3)} | {"town": ["a", "b"] * 900}
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    number = 'kind = "numeric"\nbounds = [0, 10]\nbins = 10\n'
    words = 'kind = "category"\nvalues = ["a", "b"]\n'
    schema = tmp_path / "mine.toml"
    schema.write_text(
        "".join(f"[columns.c{i}]\n{number}" for i in range(3)) + f"[columns.town]\n{words}"
    )
    own = {"data": tmp_path / "mine.parquet", "schema": schema, "settings": {"cells": "16"}}
    done = run_experiment(
        "wavecluster",
        repeats=1,
        output=tmp_path / "out",
        methods=("privthr",),
        epsilons=("2",),
        **own,
    )
    assert {row[0] for row in done.rows} == {"mine"}
    counts = {row[2]: row[3] for row in done.rows if row[1] == "clusters"}
    assert counts[PLAIN].startswith("2.0")
    assert "Your own table: 1,800 points" in done.page.read_text()
    schema.write_text(f"[columns.c0]\n{number}[columns.town]\n{words}")
    with pytest.raises(InvalidParameter, match="two or more columns of numbers"):
        STUDY.plan(1, **own)


@real
def test_cells_that_hold_points_and_are_in_no_cluster_are_marked_as_noise():
    planned = STUDY.plan(1, datasets=("simulated",), methods=("privqt",), epsilons=("1",))
    stored = stored_labels(planned.run_trial(planned.trials[0]))
    assert np.count_nonzero(stored == NOISE) > 10
    drawn = draw_pictures([[Picture("true", stored)]])
    assert drawn.count("h1v1h-1z") == np.count_nonzero(stored != NONE)
    renamed = in_colors_of(np.where(stored >= 0, stored, NONE), stored)
    assert renamed.min() == NONE


@pytest.mark.parametrize("name", ["ds3", "gowalla", "gowalla-grid"])
def test_the_sets_of_the_paper_are_read_as_it_describes_them(name, real_data):
    shapes = SHAPES[name]
    rows = shapes.rows(real_data)
    assert rows.num_rows == shapes.records
    settings = {"cells": shapes.cells, "percentile": shapes.percentile}
    plain = build(PlainWaveCluster, "wavecluster", settings)
    assert plain.of_rows(rows, shapes.schema).clusters == shapes.clusters

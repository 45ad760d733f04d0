"""The comparison of private k-means: planned, resumed, explained; with stand-in methods."""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import ClassVar

import pytest

from dpublish.core.method import setting, settings_of
from dpublish.core.registry import CATALOG, Entry
from dpublish.datasets.benchmarks import VARIABLE
from dpublish.datasets.point_clouds import POINT_SETS
from dpublish.errors import InvalidParameter
from dpublish.experiments import kmeans
from dpublish.experiments.kmeans import FIGURES, HEAT_MAP, STUDY, excesses, kmeans_methods
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Key, Result, Trial
from dpublish.methods.kmeans.gkm import GkM
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.plots.comparisons import HeatLayout, HeatPanel, heat_maps
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Publishes centers drawn anywhere, and needs a number of clusters as the others do."""

    name: ClassVar[str] = "stand-in"
    n_clusters: int = setting("clusters")
    blocks: int = setting("blocks", default=1)

    def release(self, table, *, budget, rng, progress=None):
        """Privacy: it looks at no record."""
        budget.spend()
        middles = plain_generator(int(rng.words(1)[0])).uniform(
            -0.1, 0.1, (self.n_clusters, len(table.schema.names))
        )
        receipt = Receipt.issue(
            method=self.name,
            settings=settings_of(self),
            budget=budget,
            neighbors=table.neighbors,
            rng=rng,
        )
        return KMeansRelease(receipt=receipt, schema=table.schema, centers=middles)


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """Clusters by shape: it has no setting for their number."""

    name: ClassVar[str] = "shapes"
    cells: int = setting("cells", default=3)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    for name in [name for name, entry in CATALOG.items() if entry.task == "clustering"]:
        monkeypatch.delitem(CATALOG, name)
    for name, kind in (("gkm", GkM), ("stand-in", StandIn), ("shapes", Shapes)):
        location = f"{kind.__module__}:{kind.__name__}"
        publishes = f"what {name} publishes"
        monkeypatch.setitem(CATALOG, name, Entry(location, "clustering", publishes, ""))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture(scope="module")
def small():
    return {"datasets": ("simulated",), "epsilons": ("0.1", "200"), "repeats": 2}


def test_methods_are_those_with_a_setting_for_the_number_of_clusters():
    assert kmeans_methods() == ("gkm", "stand-in")


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path, small):
    summary = run_experiment("kmeans", output=tmp_path, **small)
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 2  # the reference; repeats, epsilons, methods
    assert all("NOT PRIVATE" in line for line in lines)
    assert summary.headers == ["dataset", "method", "epsilon 0.1", "epsilon 200"]
    assert [row[1] for row in summary.rows] == ["gkm", "stand-in", "noise-free"]
    assert summary.plot is not None
    assert "<svg" in summary.plot.read_text()
    again = run_experiment("kmeans", output=tmp_path, **small)
    assert summary.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_budget_brings_centers_nearer_and_nothing_beats_the_reference(tmp_path, small):
    summary = run_experiment("kmeans", output=tmp_path, **small)
    means = {row[1]: [float(cell.split()[0]) for cell in row[2:]] for row in summary.rows}
    assert means["noise-free"][0] < means["gkm"][1] < means["gkm"][0]
    assert means["noise-free"][0] == means["noise-free"][1]


def test_the_page_explains_itself(tmp_path, small):
    page = run_experiment("kmeans", output=tmp_path, **small).page.read_text()
    for words in (
        "NOT PRIVATE",
        "smaller is stronger",
        "mean squared distance",
        "10,000 points",
        "5 centers are looked for",
        "2 times with fresh noise",
        "publishes what gkm publishes",
        "without privacy",
        "= 200 the nearest centers are those of gkm",
        "seconds",
    ):
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


def test_every_figure_is_planned_tabled_and_explained():
    for figure, chosen in FIGURES.items():
        planned = STUDY.plan(2, figure=figure)
        results = [Result(t, {"nicv": 0.25, "seconds": 1.0}) for t in planned.trials]
        tabled = STUDY.table(results)
        assert len({len(row) for row in tabled.rows} | {len(tabled.headers)}) == 1
        page = STUDY.page(results, ["a note"])
        assert page.title == chosen.title
        assert "a note" in page.sections[-1].paragraphs


def test_blocks_are_what_the_figure_varies():
    planned = STUDY.plan(1, figure="blocks", epsilons=("1",))
    used = {t.setting["blocks"] for t in planned.trials if "blocks" in t.setting}
    assert used == set(FIGURES["blocks"].values)
    assert {t.method for t in planned.trials} == {"gkm", "noise-free"}


def test_a_heat_map_has_a_cloud_for_every_k_and_d(tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES, HEAT_MAP, replace(FIGURES[HEAT_MAP], values=(2, 3)))
    summary = run_experiment("kmeans", output=tmp_path, figure="heat-map", repeats=1)
    assert summary.headers == ["method", "columns", "k = 2", "k = 3"]
    assert [row[:2] for row in summary.rows] == [
        [f"{method}, ε = 1", f"d = {d}"] for method in ("gkm", "stand-in") for d in (2, 3)
    ]
    assert all(float(cell) > 0 for row in summary.rows for cell in row[2:])
    assert summary.page.name == "kmeans-heat-map.html"
    assert "light is good" in summary.page.read_text()


def test_excesses_are_over_the_reference_of_the_same_cloud():
    def result(method, clusters, seed, nicv):
        setting = {"part": HEAT_MAP, "dataset": "clouds", "clusters": clusters, "dimensions": 2}
        epsilon = "none" if method == "noise-free" else "1"
        return Result(Trial("kmeans", method, epsilon, seed, setting), {"nicv": nicv})

    found = excesses(
        [
            result("noise-free", 2, 0, 0.1),
            result("noise-free", 3, 0, 0.05),
            result("gkm", 2, 0, 0.3),
            result("gkm", 2, 1, 0.5),
            result("gkm", 3, 0, 0.15),
        ]
    )
    assert found["gkm", "1"][2, 2] == pytest.approx(0.3)
    assert found["gkm", "1"][3, 2] == pytest.approx(0.1)


def test_means_and_deviations_are_over_repeats():
    def result(method, epsilon, seed, nicv):
        setting = {"part": "epsilon", "dataset": "simulated"}
        return Result(Trial("kmeans", method, epsilon, seed, setting), {"nicv": nicv})

    cells = STUDY.summarize(
        [
            result("noise-free", "none", 0, 0.05),
            result("gkm", "0.5", 0, 0.2),
            result("gkm", "0.5", 1, 0.4),
            result("gkm", "1", 0, 0.1),
        ]
    )
    line, reference = (cells[Key("simulated", "nicv", m)] for m in ("gkm", "noise-free"))
    assert line[0.5].mean == pytest.approx(0.3)
    assert line[0.5].deviation == pytest.approx(0.2 / 2**0.5)
    assert list(reference) == [0.5, 1.0]  # the same everywhere on the axis


def test_a_method_that_takes_minutes_is_run_only_if_it_is_named(monkeypatch):
    monkeypatch.setattr(kmeans, "SLOW", {("simulated", "stand-in"), ("s1", "gkm")})
    planned = STUDY.plan(1)
    assert {trial.method for trial in planned.trials} == {"gkm", "noise-free"}
    assert [note for note in planned.notes if "takes minutes" in note] == [
        "stand-in was left out on simulated, where it takes minutes; name it to run it"
    ]
    named = STUDY.plan(1, methods=("stand-in",))
    assert {trial.method for trial in named.trials} == {"stand-in", "noise-free"}
    assert not any("takes minutes" in note for note in named.notes)


def test_datasets_that_are_not_there_are_left_out_with_a_note(tmp_path):
    planned = STUDY.plan(1)
    assert {trial.setting["dataset"] for trial in planned.trials} == {"simulated"}
    assert len(planned.notes) == len(POINT_SETS) - 1
    assert "s1 was left out: it needs clustering_s_sets.parquet" in planned.notes[0]
    with pytest.raises(InvalidParameter, match="DPUBLISH_DATA"):
        STUDY.plan(1, datasets=("s1",), data_folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "epsilons"}, "epsilon"),
        ({"datasets": ("s2",)}, "s1"),
        ({"figure": "heat-map", "datasets": ("s1",)}, "clouds"),
        ({"methods": ("gmk",)}, "gkm"),
        ({"figure": "blocks", "methods": ("stand-in",)}, "gkm"),
        ({"methods": ()}, "at least one"),
        ({"epsilons": ("0",)}, "epsilon"),
        ({"folds": 3}, "folds"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("kmeans", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="no Matplotlib here")
def test_a_heat_map_shows_its_numbers_and_bears_values_below_zero():
    values = {(2, 2): 0.0123, (3, 2): -0.004, (2, 5): 1.44, (3, 5): 0.31}
    layout = HeatLayout("k", "d", "excess")
    drawn = heat_maps([HeatPanel("one", values), HeatPanel("two", values)], layout)
    for words in (">.012<", ">-.004<", ">1.4<", ">.31<", ">one<", ">two<", ">excess<"):
        assert words in drawn, words
    assert heat_maps([], layout) is None
    alike = heat_maps([HeatPanel("flat", dict.fromkeys(values, 0.5))], layout)
    assert alike.count(">.50<") == 4

"""The comparison of private k-means: planned, resumed, explained; with stand-in methods."""

from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core.method import setting, settings_of
from dpublish.core.registry import CATALOG, Entry, make_method
from dpublish.datasets.benchmarks import VARIABLE
from dpublish.datasets.point_clouds import POINT_SETS, cloud_schema, point_cloud
from dpublish.errors import InvalidParameter
from dpublish.experiments import kmeans
from dpublish.experiments.kmeans import (
    FIGURES,
    HEAT_MAP,
    STUDY,
    excesses,
    kmeans_methods,
    known_lines,
    likelihoods,
    regress,
)
from dpublish.experiments.kmeans_runs import PUBLISHED, Task, release_of
from dpublish.experiments.study import NOISE_FREE, run_experiment
from dpublish.experiments.trials import Key, Result, Trial
from dpublish.methods.kmeans.gkm import GkM
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.plots.comparisons import HeatLayout, HeatPanel, heat_maps
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

REGISTERED = dict(CATALOG)
MEASURED = ("nicv", "seconds", "mse", "variance", "bias", "round", "rho", "k", "validity")


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
        measured = dict.fromkeys(MEASURED, 0.25)
        results = [Result(t, measured) for t in planned.trials]
        tabled = STUDY.table(results)
        assert len({len(row) for row in tabled.rows} | {len(tabled.headers)}) == 1
        page = STUDY.page(results, ["a note"])
        assert page.title == chosen.title
        assert "a note" in page.sections[-1].paragraphs


def test_blocks_are_what_the_figure_varies():
    planned = STUDY.plan(1, figure="blocks", epsilons=("1",))
    used = {t.setting["blocks"] for t in planned.trials if "blocks" in t.setting}
    assert used == set(FIGURES["blocks"].values)
    assert {t.method for t in planned.trials} == {"gkm", "noise-free", "sag", "noise"}


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
    assert found["gkm, ε = 1"][2, 2] == pytest.approx(0.3)
    assert found["gkm, ε = 1"][3, 2] == pytest.approx(0.1)


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


# --- the figures themselves, with the real methods -----------------------------------------------


@pytest.fixture
def real(monkeypatch, stand_ins):
    """Bring the methods back that stand-ins replace."""
    for name, entry in REGISTERED.items():
        monkeypatch.setitem(CATALOG, name, entry)


def run_all(figure, repeats=1, **options):
    planned = STUDY.plan(repeats, figure=figure, **options)
    return [Result(trial, planned.run_trial(trial)) for trial in planned.trials]


def means_of(results, point):
    cells = STUDY.summarize(results)
    return {key.short_name: line[point].mean for key, line in cells.items() if point in line}


def test_methods_as_published_are_methods_with_settings(real):
    for line, (name, settings) in PUBLISHED.items():
        assert make_method(name, {"n_clusters": 2, **settings}).name == name
        assert line in known_lines()
    planned = STUDY.plan(1, methods=tuple(PUBLISHED), datasets=("simulated",), epsilons=("1",))
    assert {trial.method for trial in planned.trials} == {*PUBLISHED, "noise-free"}


def test_a_line_as_published_is_released_with_its_settings(real):
    task = Task.of(cloud_schema(2), point_cloud(3, 2, 500), 3)
    for line, (name, settings) in PUBLISHED.items():
        trial = Trial("kmeans", line, "1", 0, {"part": "published", "dataset": "simulated"})
        receipt = release_of(task, line, trial, "1").receipt
        assert receipt.method == name
        assert receipt.epsilon == 1
        assert receipt.settings.items() >= settings.items()


def test_knobs_go_to_the_methods_that_have_them(real):
    task = Task.of(cloud_schema(2), point_cloud(3, 2, 500), 3)
    given = {"theta": "5/2", "starts": 4, "rounds": 3, "blocks": 7}

    def settings(line):
        return release_of(task, line, Trial("kmeans", line, "1", 0, given), "1").receipt.settings

    assert Fraction(settings("eugkm")["theta"]) == Fraction(5, 2)
    assert settings("eugkm")["n_init"] == 4
    assert settings("dplloyd-halving")["max_iter"] == 3
    assert settings("gkm")["blocks"] == 7
    assert settings("gkm")["max_iter"] == 20


def test_rounds_move_dplloyd_alone_and_too_many_halvings_cannot_run(real):
    results = run_all("rounds", datasets=("simulated",), values=("2", "80"))
    moved = [r.trial.setting.get("rounds") for r in results if r.trial.method == "dplloyd"]
    assert moved == [2, 80]
    assert all("rounds" not in r.trial.setting for r in results if r.trial.method == "gkm-loose")
    rows = {row[1]: row[2:] for row in STUDY.table(results).rows}
    assert rows["dplloyd-halving, ε = 1"][1] == "cannot run"
    means = means_of(results, 2.0)
    assert means["dplloyd-uniform, ε = 1"] < means_of(results, 80.0)["dplloyd-uniform, ε = 1"]


def test_gkm_lies_between_what_its_blocks_and_its_noise_do(real):
    options = {"datasets": ("simulated",), "epsilons": ("1",), "values": ("5", "200")}
    results = run_all("blocks", repeats=2, **options)
    few, many = means_of(results, 5.0), means_of(results, 200.0)
    assert few["noise-free"] <= few["sag"] < few["gkm, ε = 1"]
    assert few["sag"] < few["noise, ε = 1"]  # with few blocks the noise decides
    assert many["noise, ε = 1"] < few["noise, ε = 1"]


def test_more_clusters_move_the_reference_too(real):
    options = {"datasets": ("simulated",), "values": ("2", "6"), "epsilons": ("1",)}
    results = run_all("clusters", methods=("dplloyd",), **options)
    free = next(line for key, line in STUDY.summarize(results).items() if key.method == NOISE_FREE)
    assert free[6.0].mean < free[2.0].mean
    assert means_of(results, 6.0)["dplloyd, ε = 1"] > free[6.0].mean


def test_maps_over_theta_have_a_panel_for_each(real):
    options = {"values": ("5", "50"), "settings": {"sides": "2,3", "starts": 3}}
    results = run_all("theta", **options)
    assert set(excesses(results)) == {"eugkm, θ = 5, ε = 1", "eugkm, θ = 50, ε = 1"}
    assert all(set(line) == {(k, d) for k in (2, 3) for d in (2, 3)}
               for line in excesses(results).values())  # fmt: skip
    with pytest.raises(InvalidParameter, match="sides"):
        STUDY.plan(1, figure="theta", settings={"sides": "two"})


def test_searches_without_privacy_come_nearer_step_by_step(real):
    results = run_all("convergence", datasets=("simulated",), values=("1", "4", "12"))
    assert {r.trial.epsilon for r in results} == {"none"}
    cells = {key.method: line for key, line in STUDY.summarize(results).items()}
    for method in ("lloyd", "gene"):
        assert cells[method][12.0].mean < cells[method][1.0].mean
        assert cells[method][12.0].mean >= cells["noise-free"][1.0].mean * (1 - 1e-6)
    assert cells["lloyd"][4.0].mean < cells["gene"][4.0].mean
    page = STUDY.page(results, [])
    assert "no budget is spent" in page.sections[0].paragraphs[-1]


def test_chosen_numbers_of_clusters_are_counted(real):
    def result(seed, epsilon, clusters, validity):
        setting = {"part": "choose-k", "dataset": "s1", "most": 16}
        method = NOISE_FREE if epsilon == "none" else "eugkm"
        trial = Trial("kmeans", method, epsilon, seed, setting)
        return Result(trial, {"k": clusters, "validity": validity})

    cells = likelihoods(
        [
            result(0, "none", 15.0, 0.06),
            result(0, "1", 15.0, 0.07),
            result(1, "1", 14.0, 0.1),
            result(2, "1", 15.0, 0.09),
            result(0, "2", 15.0, 0.07),
        ]
    )
    chosen = {
        (key.measure, key.method): {epsilon: cell.mean for epsilon, cell in line.items()}
        for key, line in cells.items()
    }
    assert chosen["likelihood", "k = 15"] == pytest.approx({1.0: 2 / 3, 2.0: 1.0})
    assert chosen["likelihood", "k = 14"] == pytest.approx({1.0: 1 / 3, 2.0: 0.0})
    assert chosen["validity", "k = 15"] == pytest.approx({1.0: 0.08, 2.0: 0.07})
    assert chosen["validity", "k = 14"] == pytest.approx({1.0: 0.1})


def test_a_clear_number_of_clusters_is_chosen_from_a_noisy_grid(real):
    options = {"datasets": ("simulated",), "epsilons": ("5",), "settings": {"starts": 3}}
    results = run_all("choose-k", **options)
    assert results[0].trial.method == NOISE_FREE
    assert results[0].trial.setting["most"] == 8
    assert 2 <= results[1].measured["k"] <= 8
    page = STUDY.page(results, [])
    assert any("Without privacy k = " in text for s in page.sections for text in s.paragraphs)


def test_models_are_drawn_beside_what_they_model(real):
    results = run_all("error-model", repeats=8, datasets=("cubes",), epsilons=("0.1", "1"))
    for point in (0.1, 1.0):
        means = means_of(results, point)
        assert means["one-round"] == pytest.approx(means["model-round"], rel=0.7)
        assert means["one-grid"] <= means["model-grid"] + means["model-bias"]
        assert means["model-blocks"] == pytest.approx(means["model-round"])
    assert means_of(results, 1.0)["one-round"] < 0.05 * means_of(results, 0.1)["one-round"]


def test_regression_finds_the_weights_that_made_the_errors():
    def result(clusters, dimensions, percent, worse):
        setting = {"clusters": clusters, "dimensions": dimensions, "percent": percent}
        models = {"variance": clusters**2, "bias": dimensions * 1.5, "round": clusters * dimensions}
        error = 0.5 * models["variance"] - 0.1 * models["bias"] + 0.25 * models["round"] + worse
        return Result(Trial("kmeans", "hybrid-share", "1", 0, setting), models | {
            "mse": error, "rho": 0.1 * dimensions,
        })  # fmt: skip

    results = [
        result(clusters, dimensions, percent, worse)
        for clusters in (3, 5, 9)
        for dimensions in (1, 2, 3)
        for percent, worse in ((10, 0.7), (50, 0.0))
    ]
    found = regress(results)
    assert found[:3] == pytest.approx((0.5, -0.1, 0.25))
    assert found.mean_coordinate == pytest.approx(0.2)
    assert found.clouds == 9
    assert "(ω)" in found.sentence()


def test_a_grid_and_a_round_that_share_the_budget_end_near_the_best_centers(real):
    settings = {"sides": "2,3", "starts": 3}
    results = run_all("shares", values=("20", "80"), settings=settings)
    assert all(r.measured["mse"] < 0.05 for r in results)
    assert {r.measured["rho"] < 0.5 for r in results} == {True}
    page = STUDY.page(results, [])
    assert any("Over 4 simulated tables" in text for s in page.sections for text in s.paragraphs)


def test_a_table_of_ones_own_is_clustered_by_its_numbers(tmp_path, real):
    rows = point_cloud(3, 2, 400)
    kinds = pa.array(["a", "b"] * 200)
    pq.write_table(rows.append_column("kind", kinds), tmp_path / "mine.parquet")
    schema = tmp_path / "mine.toml"
    column = '[[columns]]\nname = "{}"\nkind = "numeric"\nbounds = [-1, 1]\n'
    text = column.format("x1") + column.format("x2")
    text += '[[columns]]\nname = "kind"\nkind = "category"\nvalues = ["a", "b"]\n'
    schema.write_text(text)
    own = {"data": str(tmp_path / "mine.parquet"), "schema": str(schema)}
    options = own | {"epsilons": ("1",), "methods": ("dplloyd",), "settings": {"clusters": 3}}
    planned = STUDY.plan(1, **options)
    results = [Result(trial, planned.run_trial(trial)) for trial in planned.trials]
    assert {trial.dataset for trial in planned.trials} == {"mine"}
    best, private = (result.measured["nicv"] for result in results)
    assert best < private
    page = planned.study.page(results, [])
    assert any("400 points, by x1, x2; 3 centers" in t for s in page.sections for t in s.paragraphs)
    with pytest.raises(InvalidParameter, match="simulated points only"):
        STUDY.plan(1, figure="heat-map", **own)

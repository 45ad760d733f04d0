"""The comparison of private models: planned, resumed, explained; with stand-in methods."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpublish.core.method import setting, settings_of
from dpublish.core.registry import CATALOG, Entry, make_method, method_settings
from dpublish.data.features import Features
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS, VARIABLE
from dpublish.datasets.loans import SCHEMA as LOANS_SCHEMA
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.classification import area_under_curve, mean_area_under_curve
from dpublish.experiments.models import (
    ANY,
    FIGURES,
    KMEANS_METHODS,
    KNOBS,
    METHODS,
    STUDY,
    VARIANTS,
    ModelRunner,
    class_scores,
    method_for,
    models_of,
)
from dpublish.experiments.models_baselines import fit_plain_model
from dpublish.experiments.models_regression import number_column
from dpublish.experiments.models_search import trace_search
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Key, Result, Trial
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

REAL = ("majority", "privpfc")
REAL_SETTINGS = {name: method_settings(name) for name in METHODS}
REAL_CLASSES = {name: type(make_method(name, {"target": "w"})) for name in METHODS}


def make_real(name, settings):
    """Make a method although a stand-in has taken its name."""
    kind = REAL_CLASSES[name]
    entry = Entry(f"{kind.__module__}:{kind.__name__}", task="", publishes="", prefer_when="")
    with patch.dict(CATALOG, {name: entry}):
        return make_method(name, settings)


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Publishes that late payments are bad, with noise, and looks at no record."""

    name: ClassVar[str] = "stand-in"
    target: str = setting("class")
    model: Literal["logistic", "svm"] = setting("model", default="logistic")
    choice: Literal["range", "candidates", "plain"] = setting("choice", default="range")
    parents: int | None = setting("parents", default=None)
    cost: int = setting("C", default=1)
    rounds: int | None = setting("rounds", default=None)

    def release(self, table, *, budget, rng, progress=None):
        """Privacy: no record is looked at."""
        budget.spend()
        features = Features.of(table.schema, self.target)
        draw = plain_generator(int(rng.words(1)[0]))
        weights = draw.normal(0, float(0.02 / budget.epsilon), (1, features.size))
        weights[0, features.names.index("late_payments")] += 5
        weights[0, -1] += 2  # more than two late payments
        receipt = Receipt.issue(
            method=self.name,
            settings=settings_of(self),
            budget=budget,
            neighbors=table.neighbors,
            rng=rng,
        )
        return LinearModelRelease(
            receipt=receipt,
            schema=table.schema,
            model=self.model,
            target=self.target,
            weights=weights,
            expected={},
        )


@dataclass(frozen=True, kw_only=True)
class LogisticStandIn(StandIn):
    """Has no support vector machine."""

    model: Literal["linear", "logistic"] = setting("model", default="logistic")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    for name in METHODS:
        if name not in REAL:
            kind = LogisticStandIn if name == "functional" else StandIn
            entry = Entry(f"{__name__}:{kind.__name__}", task="", publishes="", prefer_when="")
            monkeypatch.setitem(CATALOG, name, entry)
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture(scope="module")
def small():
    return {
        "datasets": ("simulated",),
        "methods": ("privgene", "functional", "majority"),
        "epsilons": ("0.01", "10"),
        "folds": 2,
    }


def means_of(summary, measure):
    return {
        (row[2], row[3]): [float(cell.split()[0]) for cell in row[4:]]
        for row in summary.rows
        if row[1] == measure
    }


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path, small):
    summary = run_experiment("model-fitting", output=tmp_path, **small)
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 2 * (3 + 2 * 4)  # folds, references, epsilons, methods and models
    assert all("NOT PRIVATE" in line for line in lines)
    assert summary.headers[:4] == ["dataset", "measure", "model", "method"]
    assert summary.headers[4:] == ["epsilon 0.01", "epsilon 10"]
    assert [row[1:4] for row in summary.rows][:7] == [
        ["misclassification", "logistic", "privgene"],
        ["misclassification", "logistic", "functional"],
        ["misclassification", "logistic", "noise-free"],
        ["misclassification", "svm", "privgene"],
        ["misclassification", "svm", "noise-free"],
        ["misclassification", "any", "majority"],
        ["misclassification", "any", "majority class"],
    ]
    assert {row[1] for row in summary.rows} == {"misclassification", "auc"}
    assert "±" in summary.table.read_text()
    assert "<svg" in summary.plot.read_text()
    again = run_experiment("model-fitting", output=tmp_path, **small)
    assert summary.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_more_budget_and_the_truth_are_better_than_noise(tmp_path, small):
    summary = run_experiment("model-fitting", output=tmp_path, **small)
    wrong, curve = means_of(summary, "misclassification"), means_of(summary, "auc")
    for model in ("logistic", "svm"):
        free, private = (model, "noise-free"), (model, "privgene")
        assert wrong[free][0] < wrong[private][1] < wrong[private][0]
        assert curve[free][0] > curve[private][1] > curve[private][0]
    assert curve[ANY, "majority"] == curve[ANY, "majority class"] == [0.5, 0.5]
    assert wrong[ANY, "majority"][1] == wrong[ANY, "majority class"][1]


def test_the_page_explains_itself(tmp_path, small):
    summary = run_experiment("model-fitting", output=tmp_path, **small)
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "15 of 100",
        "0.5 is a coin",
        "smaller is stronger",
        "Will a simulated person repay a loan?",
        "20,000 rows, 21 features with the intercept",
        "10 folds",
        "1 time with fresh noise",
        "PrivGene: weights bred",
        "fitted to the true rows",
        "has the best misclassification",
        "Mean time of one fit",
    ):
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_planned_tabled_and_explained(figure):
    chosen = FIGURES[figure]
    options = {"datasets": ("simulated",), "classifiers": chosen.models[:1], "folds": 1}
    planned = STUDY.plan(1, figure=figure, **options)
    fitted = {name for name in chosen.methods if models_of(name, chosen.models[:1])}
    assert {t.method for t in planned.trials if t.epsilon != "none"} == fitted
    measured = {
        "misclassification": 0.25,
        "auc": 0.75,
        "seconds": 2.0,
        "largest loss": 5.0,
        "range": 0.5,
        "error": 0.125,
    }
    results = [Result(trial, measured) for trial in planned.trials]
    tabled = STUDY.table(results)
    points = chosen.values or chosen.epsilons
    assert len(tabled.headers) == 4 + len(points)
    assert {row[1] for row in tabled.rows} == set(chosen.measures)
    shown = {**measured, "ratio": 1.0}
    assert all(cell == f"{shown[row[1]]:.4f} ±0.0000" for row in tabled.rows for cell in row[4:])
    page = STUDY.page(results, ["a note"])
    assert page.title == chosen.title
    assert "a note" in page.sections[-1].paragraphs
    assert all(section.heading for section in page.sections)


def test_k_means_is_that_of_its_own_experiment_with_three_methods(tmp_path):
    options = {"figure": "kmeans", "datasets": ("simulated",), "epsilons": ("1",), "repeats": 1}
    planned = STUDY.plan(1, figure="kmeans", datasets=("simulated",), epsilons=("1",))
    assert tuple(t.method for t in planned.trials) == ("noise-free", *KMEANS_METHODS)
    summary = run_experiment("model-fitting", output=tmp_path, methods=("dplloyd",), **options)
    assert summary.page.name == "model-fitting-kmeans.html"
    assert [row[1] for row in summary.rows] == ["dplloyd", "noise-free"]
    assert "NICV" in summary.page.read_text()
    assert "<svg" in summary.plot.read_text()
    with pytest.raises(InvalidParameter, match="neither classifiers nor folds"):
        run_experiment("model-fitting", output=tmp_path, folds=2, **options)


def test_methods_and_datasets_that_are_not_there_are_left_out_with_a_note(monkeypatch):
    monkeypatch.delitem(CATALOG, "privgene")
    planned = STUDY.plan(1, figure="choice", folds=1)
    assert {trial.method for trial in planned.trials if trial.epsilon != "none"} == {"privlocal"}
    assert [note.partition(":")[0] for note in planned.notes] == [
        "acs was left out",
        "adult was left out",
        "bank was left out",
        "privgene was left out",
        "privgene-em was left out",
        "privgene-plain was left out",
    ]
    with pytest.raises(InvalidParameter, match="no such method"):
        STUDY.plan(1, methods=("privgene",))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "epsilons"}, "epsilon"),
        ({"datasets": ("adlut",)}, "adult"),
        ({"methods": ("privgen",)}, "privgene"),
        ({"methods": ()}, "at least one"),
        ({"epsilons": ("0",)}, "epsilon"),
        ({"classifiers": ("logistics",)}, "logistic"),
        ({"classifiers": ()}, "at least one"),
        ({"folds": 11}, "at most 10"),
        ({"counts": (1,)}, "counts"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("model-fitting", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def method(method, epsilon="1", **given):
    given = {"model": "svm", "dataset": "adult", **given}
    trial = Trial("model-fitting", method, epsilon, 0, given)
    return method_for(trial, "w", BENCHMARKS["adult"].records)


def test_a_trial_sets_what_its_figure_varies_and_nothing_else():
    assert method("privgene") == StandIn(target="w", model="svm")
    assert method("privgene-plain") == StandIn(target="w", model="svm", choice="plain")
    fitted = BENCHMARKS["adult"].records * 9 // 10
    assert method("privgene", rounds_per_1000="1.25").rounds == -(-fitted // 800)
    assert method("privgene", "0.1", rounds_per_1000="1.25").rounds == -(-fitted // 8_000)
    assert method("privgene", "0.001", rounds_per_1000="0.125").rounds == 1
    assert method("privgene", "100", rounds_per_1000="5").rounds == 500
    em = StandIn(target="w", model="svm", choice="candidates")
    assert method("privgene-em") == em
    assert method("privgene-em1") == replace(em, parents=1)
    assert method("privgene-em", parents=3, cost=7) == replace(em, parents=3, cost=7)
    assert method("privgene", waves=3) == StandIn(target="w", model="svm")  # it has no such setting


def test_variants_are_methods_with_settings_that_they_have():
    settings = {name: {one.name for one in REAL_SETTINGS[name]} for name in REAL_SETTINGS}
    for name, variant in VARIANTS.items():
        assert variant.method in METHODS
        assert set(variant.settings) <= settings[variant.method], name
        make_real(variant.method, {"target": "w", **variant.settings})
    for knob in set(KNOBS) - {"number"}:
        assert any(knob in known for known in settings.values())


def test_a_method_is_run_only_for_models_that_it_fits():
    assert models_of("privgene", ("logistic", "svm")) == ("logistic", "svm")
    assert models_of("privgene-plain", ("svm",)) == ("svm",)
    assert models_of("functional", ("logistic", "svm")) == ("logistic",)
    assert models_of("majority", ("logistic", "svm")) == (ANY,)


def test_means_and_deviations_are_over_folds_and_repeats():
    def result(method, epsilon, seed, error):
        given = {"part": "epsilon", "dataset": "simulated", "fold": 0, "model": "svm"}
        return Result(Trial("model-fitting", method, epsilon, seed, given), {"auc": error})

    cells = STUDY.summarize(
        [
            result("privgene", "0.5", 0, 0.2),
            result("privgene", "0.5", 1, 0.4),
            result("privgene", "1", 0, 0.1),
            result("noise-free", "none", 0, 0.05),
        ]
    )
    private, free = (
        cells[Key("simulated", "auc", m, variant=("svm",))] for m in ("privgene", "noise-free")
    )
    assert private[0.5].mean == pytest.approx(0.3)
    assert private[0.5].deviation == pytest.approx(0.2 / 2**0.5)
    assert list(free) == [0.5, 1.0]  # the same everywhere on the axis


def test_a_method_that_would_flatten_all_others_is_tabled_but_not_drawn():
    def result(method, epsilon, error, model="svm"):
        given = {"part": "epsilon", "dataset": "simulated", "fold": 0, "model": model}
        measured = {"misclassification": error, "auc": 0.7}
        return Result(Trial("model-fitting", method, epsilon, 0, given), measured)

    results = [
        result("majority class", "none", 0.3, ANY),
        result("privgene", "0.5", 0.61),
        result("gupt", "0.5", 0.7),
        result("privgene", "1", 0.59),
        result("gupt", "1", 0.61),
    ]
    wrong, curve = STUDY.panels(results, None)
    assert [line.label.partition(":")[0] for line in wrong.lines] == ["PrivGene", "No learning"]
    assert len(curve.lines) == 3
    assert [row[3] for row in STUDY.table(results).rows if row[3] == "gupt"] == ["gupt"] * 2


LETTERS = Schema(
    (
        column("x", "integer", bounds=[0, 10]),
        column("letter", "category", values=["a", "b"]),
        column("kind", "category", values=["u", "v", "w"]),
    )
)


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_the_reference_is_the_best_model_and_finds_separable_classes(model):
    x = np.arange(11).repeat(20)
    kinds = np.array(["u", "v", "w"])[np.where(x < 4, 0, np.where(x > 6, 2, 1))]
    rows = pa.table({"x": x, "letter": np.resize(["a", "b"], x.size), "kind": kinds})
    fitted = fit_plain_model(rows, LETTERS, "kind", model)
    scores = fitted.scores(rows)
    ends = (x < 4) | (x > 6)  # a line cannot set the middle against both ends
    assert np.array_equal(scores.argmax(axis=1)[ends], np.where(x < 4, 0, 2)[ends])
    two = Schema((*LETTERS.columns[:2], column("kind", "category", values=["u", "v"])))
    pair = fit_plain_model(rows.filter(pa.array(ends)), two, "kind", model)
    assert np.array_equal(pair.weights[0], -pair.weights[1])


def test_the_reference_has_the_weights_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    benchmark = BENCHMARKS["simulated"]
    schema, rows = benchmark.schema(None), benchmark.rows(None).slice(0, 2_000)
    fitted = fit_plain_model(rows, schema, benchmark.target, "logistic")
    matrix = fitted.features.matrix(
        {name: schema[name].encode(rows[name])[0] for name in fitted.features.columns}
    )
    peer = linear_model.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=5_000)
    peer.fit(matrix / 1024, schema[benchmark.target].encode(rows[benchmark.target])[0])
    np.testing.assert_allclose(fitted.weights[1], peer.coef_[0], atol=0.02)


def test_scores_follow_how_certain_a_release_is():
    benchmark = BENCHMARKS["simulated"]
    schema, rows = benchmark.schema(None), benchmark.rows(None).slice(0, 500)
    table = open_table(rows, schema)
    for method in ("privgene", *REAL):
        made = make_method(method, {"target": "repaid"})
        release = made.release(table, budget=Budget.seeded(1), rng=seeded(3))
        scores = class_scores(release, rows, "repaid")
        predicted = np.array(schema["repaid"].axis().labels)[scores.argmax(axis=1)]
        assert predicted.tolist() == release.predict(rows).to_pylist()
        if method == "privgene":
            probabilities = release.predict_proba(rows).to_pandas().to_numpy()
            assert np.array_equal(np.argsort(scores[:, 1]), np.argsort(probabilities[:, 1]))


def test_the_area_under_the_curve_is_the_probability_that_a_pair_is_in_order():
    draw = plain_generator(5)
    scores = draw.integers(0, 6, 60).astype(float)  # with ties
    positive = draw.random(60) < 0.3
    pairs = scores[positive][:, None] - scores[~positive]
    expected = np.mean((pairs > 0) + (pairs == 0) / 2)
    assert area_under_curve(scores, positive) == pytest.approx(expected)
    assert area_under_curve(-scores, positive) == pytest.approx(1 - expected)
    assert area_under_curve(np.zeros(60), positive) == 0.5


def test_classes_are_averaged_and_those_that_no_row_has_are_left_out():
    scores = np.array([[3.0, 0, 0], [2, 1, 0], [2, 2, 0], [1, 0, 0]])
    first = area_under_curve(scores[:, 0], np.array([True, True, False, False]))
    second = area_under_curve(scores[:, 1], np.array([False, False, True, True]))
    assert first != second
    true = np.array([0, 0, 1, 1])
    assert mean_area_under_curve(scores, true) == pytest.approx((first + second) / 2)


@pytest.mark.parametrize("count", [0, 3])
def test_one_kind_of_rows_has_no_curve(count):
    with pytest.raises(InvalidParameter, match="both kinds"):
        area_under_curve(np.zeros(count), np.ones(count, dtype=bool))
    with pytest.raises(InvalidParameter, match="two classes"):
        mean_area_under_curve(np.zeros((count, 2)), np.zeros(count, dtype=np.int64))
    with pytest.raises(InvalidParameter, match="as many"):
        area_under_curve(np.zeros(count + 1), np.ones(count, dtype=bool))
    with pytest.raises(InvalidParameter, match="as many"):
        mean_area_under_curve(np.zeros((count + 1, 2)), np.zeros(count, dtype=np.int64))


# --- Rounds, ratios, regression, tables of one's own ----------------------------------------------


def test_a_method_that_fits_none_of_the_models_is_left_out_with_a_note():
    options = {"datasets": ("simulated",), "folds": 1, "classifiers": ("svm",)}
    planned = STUDY.plan(1, methods=("gupt", "functional"), **options)
    assert {t.method for t in planned.trials if t.epsilon != "none"} == {"gupt"}
    note = "functional was left out of linear support vector machine: it does not fit one"
    assert planned.notes == (note,)
    with pytest.raises(InvalidParameter, match="does not fit one"):
        STUDY.plan(1, methods=("functional",), **options)


def test_ratios_are_to_the_error_at_half_a_round_for_1000_records():
    def result(value, error):
        given = {"part": "rounds", "dataset": "simulated", "fold": 0, "model": "svm"}
        trial = Trial("model-fitting", "privgene", "1", 0, given | {"rounds_per_1000": value})
        return Result(trial, {"misclassification": error, "auc": 0.5})

    cells = STUDY.summarize([result("0.25", 0.3), result("0.5", 0.2), result("1.25", 0.1)])
    ratios = cells[Key("simulated", "ratio", "privgene", "1", ("svm",))]
    assert {point: cell.mean for point, cell in ratios.items()} == pytest.approx(
        {0.25: 1.5, 0.5: 1.0, 1.25: 0.5}
    )


def test_a_search_is_followed_round_by_round(tmp_path):
    options = {"datasets": ("simulated",), "folds": 1, "classifiers": ("logistic",)}
    with patch.dict(CATALOG, {"privgene": real_entry("privgene")}):
        summary = run_experiment(
            "model-fitting",
            figure="iterations",
            output=tmp_path,
            values=("1", "6", "99"),
            settings={"population": "60"},
            **options,
        )
    found = {(row[1], row[3].partition(",")[0]): row[4:] for row in summary.rows}
    first, _, last = (float(cell.split()[0]) for cell in found["misclassification", "privgene"])
    assert last < first
    apart = [float(cell.split()[0]) for cell in found["range", "privgene"]]
    largest = [float(cell.split()[0]) for cell in found["largest loss", "privgene"]]
    assert apart[0] > 20 > 1.1 > apart[1] > apart[2]
    assert largest[2] > 2 * apart[2]
    assert found["misclassification", "privgene-em1"] != found["misclassification", "privgene"]


def real_entry(name):
    kind = REAL_CLASSES[name]
    return Entry(f"{kind.__module__}:{kind.__name__}", task="", publishes="", prefer_when="")


def test_the_last_step_of_a_search_is_the_model_that_it_would_publish():
    split = ModelRunner(None, BENCHMARKS).split("simulated", 0, 0)
    small = split._replace(train=split.train.slice(0, 500))
    method = REAL_CLASSES["privgene"](target=split.target, population=40)
    steps = trace_search(small, method, rounds=5, epsilon="2", rng=seeded(4))
    assert len(steps) == 5
    published = replace(method, rounds=5).release(
        open_table(small.train, split.schema), budget=Budget.seeded("2"), rng=seeded(4)
    )
    predicted = np.array(published.predict(split.held_out.rows))
    wrong = np.mean(predicted != np.array(split.held_out.rows[split.target]))
    assert steps[-1].wrong == pytest.approx(wrong)


def test_linear_regression_is_measured_in_parts_of_the_bounds(tmp_path):
    with patch.dict(CATALOG, {name: real_entry(name) for name in ("functional", "model")}):
        summary = run_experiment(
            "model-fitting",
            figure="regression",
            output=tmp_path,
            datasets=("simulated",),
            methods=("functional", "functional-paper"),
            epsilons=("1",),
            folds=1,
            settings={"number": "years_employed"},
        )
    error = {row[3]: float(row[4].split()[0]) for row in summary.rows}
    assert error["noise-free"] < error["functional"] < error["majority class"]
    assert error["functional"] < error["functional-paper"]
    page = summary.page.read_text()
    assert "a number is predicted" in page
    with pytest.raises(InvalidParameter, match="no column of numbers"):
        number_column(BENCHMARKS["simulated"].schema(None), "region")


def test_a_table_of_ones_own_is_cut_into_folds(tmp_path):
    benchmark = BENCHMARKS["simulated"]
    rows = benchmark.rows(None).slice(0, 400)
    parquet.write_table(rows, tmp_path / "mine.parquet")
    (tmp_path / "mine.toml").write_text(LOANS_SCHEMA)
    summary = run_experiment(
        "model-fitting",
        output=tmp_path / "out",
        data=tmp_path / "mine.parquet",
        schema=tmp_path / "mine.toml",
        target="repaid",
        methods=("privgene",),
        epsilons=("1",),
        folds=1,
    )
    assert {row[0] for row in summary.rows} == {"mine"}
    assert "400 rows" in summary.page.read_text()

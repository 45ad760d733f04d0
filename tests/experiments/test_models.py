"""The comparison of private models: planned, resumed, explained; with stand-in methods."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.method import setting, settings_of
from dpublish.core.registry import CATALOG, Entry, make_method
from dpublish.data.features import Features
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS, VARIABLE
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.classification import area_under_curve, mean_area_under_curve
from dpublish.experiments.models import (
    ANY,
    FIGURES,
    KMEANS_METHODS,
    METHODS,
    STUDY,
    VARIANTS,
    class_scores,
    method_for,
    models_of,
)
from dpublish.experiments.models_baselines import fit_plain_model
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Key, Result, Trial
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

REAL = ("majority", "privpfc")


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Publishes that late payments are bad, with noise, and looks at no record."""

    name: ClassVar[str] = "stand-in"
    target: str = setting("class")
    model: Literal["logistic", "svm"] = setting("model", default="logistic")
    choice: Literal["range", "plain"] = setting("choice", default="range")
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
        "20,000 rows",
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
    options = {"datasets": ("simulated",), "classifiers": ("logistic",), "folds": 1}
    planned = STUDY.plan(1, figure=figure, **options)
    assert {t.method for t in planned.trials if t.epsilon != "none"} == set(chosen.methods)
    measured = {"misclassification": 0.25, "auc": 0.75, "seconds": 2.0}
    results = [Result(trial, measured) for trial in planned.trials]
    tabled = STUDY.table(results)
    points = chosen.values or chosen.epsilons
    assert len(tabled.headers) == 4 + len(points)
    assert {row[1] for row in tabled.rows} == set(chosen.measures)
    assert all(cell == f"{measured[row[1]]:.4f} ±0.0000" for row in tabled.rows for cell in row[4:])
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
        "adult was left out",
        "bank was left out",
        "census was left out",
        "privgene was left out",
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
    return method_for(Trial("model-fitting", method, epsilon, 0, given), "w")


def test_a_trial_sets_what_its_figure_varies_and_nothing_else():
    assert method("privgene") == StandIn(target="w", model="svm")
    assert method("privgene-plain") == StandIn(target="w", model="svm", choice="plain")
    fitted = BENCHMARKS["adult"].records * 9 // 10
    assert method("privgene", records_per_round=800).rounds == -(-fitted // 800)
    assert method("privgene", "0.1", records_per_round=800).rounds == -(-fitted // 8_000)
    assert method("privgene", "0.001", records_per_round=6_400).rounds == 1
    assert method("privgene", "100", records_per_round=200).rounds == 500
    assert set(VARIANTS) == {"privgene-plain"}


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

"""The comparison of classifiers: planned, resumed, explained; with a stand-in method."""

from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import ClassVar, Literal

import pyarrow.parquet as pq
import pytest

from dpublish.core.method import setting
from dpublish.core.registry import CATALOG, Entry
from dpublish.data.schema import Schema, column
from dpublish.datasets import table
from dpublish.datasets.benchmarks import BENCHMARKS, VARIABLE
from dpublish.datasets.loans import SCHEMA as LOANS
from dpublish.datasets.loans import loans
from dpublish.errors import InvalidParameter
from dpublish.experiments.classification import FIGURES, STUDY, OnePage, chi_squared_order
from dpublish.experiments.classification_methods import (
    TITLES,
    counts_alone,
    make_run,
    method_of,
    paid_twin,
)
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Key, Result, Trial
from dpublish.methods.histogram.histogram import Histogram
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

FOUR = ("privpfc", "diffgen", "pph", "privbayes")


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Counts late payments and homes by class, whatever it is called."""

    name: ClassVar[str] = "stand-in"
    target: str = setting("class")
    predictors: tuple[str, ...] = setting("columns", default=())
    pool: int = setting("pool", default=10)
    size_share: Fraction = setting("size", default=Fraction(3, 100))
    selection_share: Fraction = setting("selection", default=Fraction(37, 100))
    counts_share: Fraction = setting("counts", default=Fraction(60, 100))
    structure_share: Fraction = setting("structure", default=Fraction(1, 2))
    tree_share: Fraction = setting("tree", default=Fraction(1, 2))
    rounds: int | Literal["auto"] = setting("rounds", default="auto")

    def release(self, table, *, budget, rng, progress=None):
        """Privacy: that of the histogram."""
        method = Histogram(columns=("late_payments", "home", self.target))
        return method.release(table, budget=budget, rng=rng)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    for name in FOUR:
        entry = Entry(f"{__name__}:StandIn", task="", publishes="", prefer_when="")
        monkeypatch.setitem(CATALOG, name, entry)
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture(scope="module")
def small():
    return {
        "datasets": ("simulated",),
        "methods": ("privpfc", "pph"),
        "epsilons": ("0.1", "2"),
        "classifiers": ("direct", "tree"),
        "folds": 2,
    }


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path, small):
    summary = run_experiment("classification", output=tmp_path, **small)
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 2 * (1 + 2 * 2)  # folds, references, epsilons, methods
    assert all("NOT PRIVATE" in line for line in lines)
    assert summary.headers == ["dataset", "classifier", "method", "epsilon 0.1", "epsilon 2"]
    assert [row[1:3] for row in summary.rows] == [
        ["tree", "privpfc"],
        ["tree", "pph"],
        ["tree", "noise-free"],
        ["none", "majority class"],
    ]
    assert "±" in summary.table.read_text()
    assert "<svg" in summary.plot.read_text()
    again = run_experiment("classification", output=tmp_path, **small)
    assert summary.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_more_budget_and_the_truth_are_better_than_noise(tmp_path, small):
    summary = run_experiment("classification", output=tmp_path, **small)
    errors = {row[2]: [float(cell.split()[0]) for cell in row[3:]] for row in summary.rows}
    always = errors["majority class"][0]
    for name in ("privpfc", "pph"):
        assert errors["noise-free"][0] < errors[name][1] < always


def test_the_axis_ends_where_the_dataset_does():
    settings = {"datasets": ("simulated",), "methods": ("pph",), "classifiers": ("tree",)}
    planned = STUDY.plan(1, figure="dimensions", **settings)
    used = [trial.setting["predictors"] for trial in planned.trials]
    assert sorted(set(used)) == [3, 5, 9]


def test_the_page_explains_itself(tmp_path, small):
    summary = run_experiment("classification", output=tmp_path, **small)
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "15 of 100",
        "smaller is stronger",
        "Will a simulated person repay a loan?",
        "20,000 rows",
        "10 folds",
        "1 time with fresh noise",
        "PrivPfC: picks one grid",
        "the majority class",
        "trained on the true rows",
        "of 100 are predicted wrongly",
    ):
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


def test_a_classifier_that_no_method_serves_leaves_a_page_without_a_plot(tmp_path, small):
    one = small | {"folds": 1, "epsilons": ("1",), "classifiers": ("direct",)}
    summary = run_experiment("classification", output=tmp_path, **one)
    assert summary.plot is None
    assert [row[2] for row in summary.rows] == ["majority class"]
    assert "There is no plot" in summary.page.read_text()


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_planned_tabled_and_explained(figure):
    chosen = FIGURES[figure]
    settings = {"datasets": ("simulated",), "folds": 1, "figure": figure}
    settings["methods"] = tuple(m for m in chosen.methods if m.removesuffix("-unpaid") in FOUR)[:2]
    measure = chosen.measures[0] if isinstance(chosen, OnePage) else "tree"
    if not isinstance(chosen, OnePage):
        settings["classifiers"] = ("tree",)
    planned = STUDY.plan(1, **settings)
    points = {trial.setting.get(chosen.key, trial.epsilon) for trial in planned.trials}
    if chosen.key is not None:
        points = {point for point in points if isinstance(point, int)}
    assert len(points) >= 2
    results = [
        Result(trial, {"seconds": 1.0, "majority": 0.5, measure: 0.25}) for trial in planned.trials
    ]
    tabled = STUDY.table(results)
    assert len(tabled.headers) == 3 + len(points - {"none"})
    assert all(cell == "0.2500 ±0.0000" for cell in tabled.rows[0][3:])
    page = STUDY.page(results, ["a note"])
    assert page.title == chosen.title
    assert "a note" in page.sections[-1].paragraphs


def test_figures_do_not_overwrite_each_other(tmp_path, small):
    one = small | {"folds": 1, "epsilons": ("1",), "methods": ("privpfc",)}
    run_experiment("classification", output=tmp_path, **one)
    summary = run_experiment("classification", output=tmp_path, figure="pool", **one)
    assert summary.page.name == "classification-pool.html"
    assert (tmp_path / "classification.html").exists()
    assert summary.headers[3:] == ["pool 100", "pool 1,000", "pool 10,000", "pool 200,000"]


def test_datasets_that_are_not_there_are_left_out_with_a_note(tmp_path):
    settings = {"methods": ("privpfc",), "classifiers": ("tree",)}
    planned = STUDY.plan(1, **settings)
    assert {trial.setting["dataset"] for trial in planned.trials} == {"simulated"}
    assert len(planned.notes) == len(BENCHMARKS) - 1
    assert "adult was left out: it needs adult_ten_folds.parquet" in planned.notes[0]
    with pytest.raises(InvalidParameter, match="DPUBLISH_DATA"):
        STUDY.plan(1, datasets=("adult",), data_folder=tmp_path, **settings)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "epsilons"}, "epsilon"),
        ({"datasets": ("adlut",)}, "adult"),
        ({"methods": ("privpcf",)}, "privpfc"),
        ({"methods": ()}, "at least one"),
        ({"epsilons": ("0",)}, "epsilon"),
        ({"epsilons": ("much",)}, "epsilon"),
        ({"classifiers": ("trees",)}, "tree"),
        ({"folds": 11}, "at most 10"),
        ({"folds": 0}, "folds"),
        ({"counts": (1,)}, "counts"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("classification", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


SCHEMA = Schema(tuple(column(name, "category", values=["a", "b"]) for name in "uvwxyz"))


def run_of(method, epsilon="0.4", **setting):
    return make_run(Trial("classification", method, epsilon, 0, setting), SCHEMA, "w")


def test_a_trial_sets_what_its_figure_varies_and_nothing_else():
    assert run_of("privpfc").method == StandIn(target="w")
    assert run_of("privpfc").epsilon == Fraction(2, 5)
    assert run_of("privpfc", pool=99).method == StandIn(target="w", pool=99)
    shares = run_of("privpfc", selection_percent=20).method
    assert shares.size_share + shares.selection_share + shares.counts_share == 1
    assert (shares.size_share, shares.selection_share) == (Fraction(3, 100), Fraction(1, 5))
    assert run_of("privpfc", part="errors").method == StandIn(target="w", rounds=0)
    limited = make_run(Trial("classification", "pph", "1", 0, {}), SCHEMA, "w", predictors="uv")
    assert limited.method.predictors == ("u", "v")


def test_an_unpaid_structure_leaves_the_rest_of_the_budget_as_it_was():
    epsilon = Fraction(2, 5)
    run = run_of("privpfc-unpaid")
    assert run.method.size_share + run.method.selection_share + run.method.counts_share == 1
    assert run.epsilon * run.method.counts_share == epsilon * Fraction(60, 100)
    assert run.epsilon * run.method.size_share == epsilon * Fraction(3, 100)
    run = run_of("diffgen-unpaid")
    assert run.epsilon * (1 - run.method.tree_share) == epsilon / 2
    run = run_of("privbayes-unpaid")
    after_size = run.epsilon * Fraction(97, 100)
    kept = epsilon * Fraction(97, 100) * Fraction(7, 10)
    assert after_size * (1 - run.method.structure_share) == kept
    for method in ("privpfc", "diffgen", "privbayes"):
        lavish = run_of(f"{method}-unpaid")
        assert lavish.epsilon > 1000  # which its receipt states: no one takes it for private
        assert Budget.seeded(lavish.epsilon).epsilon == lavish.epsilon


def test_an_unpaid_structure_is_not_measured_where_there_was_nothing_to_choose():
    trial = Trial("classification", "privbayes-unpaid", "0.4", 0, {})

    def release(**shares):
        amounts = tuple((f"release/{name}", Fraction(share)) for name, share in shares.items())
        return SimpleNamespace(receipt=SimpleNamespace(shares=amounts))

    assert paid_twin(trial, release(structure="10000", counts="0.3")) is None
    idle = release(size="300", counts="10000")
    assert paid_twin(trial, idle) == replace(trial, method="privbayes")
    assert paid_twin(replace(trial, method="privbayes"), idle) is None


def test_means_and_deviations_are_over_folds_and_repeats():
    def result(method, epsilon, seed, error):
        setting = {"part": "epsilon", "dataset": "simulated", "fold": 0, "classifiers": "tree"}
        return Result(Trial("classification", method, epsilon, seed, setting), {"tree": error})

    cells = STUDY.summarize(
        [
            result("privpfc", "0.5", 0, 0.2),
            result("privpfc", "0.5", 1, 0.4),
            result("privpfc", "1", 0, 0.1),
            result("noise-free", "none", 0, 0.05),
        ]
    )
    private, reference = (cells[Key("simulated", "tree", m)] for m in ("privpfc", "noise-free"))
    assert private[0.5].mean == pytest.approx(0.3)
    assert private[0.5].deviation == pytest.approx(0.2 / 2**0.5)
    assert private[1.0] == (0.1, 0.0, 1)
    assert list(reference) == [0.5, 1.0]  # the same everywhere on the axis


# --- as published, and all methods on one page --------------------------------------------------


@pytest.fixture
def real_methods(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv(VARIABLE, raising=False)


def real_run(method, model=None, **setting):
    trial = Trial("classification", method, "0.5", 0, setting)
    return make_run(trial, SCHEMA, "w", model=model)


def test_competitors_as_published_are_the_registered_methods_with_printed_settings(real_methods):
    paper = real_run("privpfc-paper")
    assert (paper.method.rounds, paper.method.cells_per_record) == (0, Fraction(1, 5))
    assert paper.by_counts
    assert paper.epsilon == Fraction(1, 2)
    shared = real_run("privpfc-paper-10-87").method
    assert (shared.selection_share, shared.counts_share) == (Fraction(1, 10), Fraction(87, 100))
    assert real_run("diffgen-10").method.steps == 10
    assert real_run("diffgen-10", steps=8).method.steps == 8
    assert real_run("diffgen").method.steps == 6
    tree = real_run("diffpc45", depth=5).method
    assert (tree.name, tree.cuts, tree.prune, tree.depth) == ("diffpid3", "staged", True, 5)
    assert real_run("privbayes-paper").method.max_degree == 3
    assert real_run("privbayes-paper", degree=2).method.max_degree == 2
    assert real_run("privgene-plain", "svm").method.choice == "plain"
    assert real_run("privlocal-single", "svm").method.model == "svm"
    assert real_run("privpfc", refinements=0, pool=50).method.pool == 50
    assert all(method_of(name) for name in TITLES)


def test_the_degree_of_printed_privbayes_does_not_depend_on_the_noise(real_methods):
    task = table("loans", 500)
    method = real_run("privbayes-paper").method
    fixed = replace(method, target="repaid")
    rule = replace(fixed, theta=Fraction(4))

    def degree(one):
        release = one.release(task, budget=Budget.seeded("0.1"), rng=seeded(1))
        return max(len(node.parents) for node in release.nodes)

    assert (degree(fixed), degree(rule)) == (3, 0)


def test_a_printed_grid_predicts_by_its_counts_alone(real_methods):
    rows = loans(2_000)
    method = replace(real_run("privpfc-paper").method, target="repaid", pool=200)
    release = method.release(table("loans", 2_000), budget=Budget.seeded("1"), rng=seeded(1))
    printed = counts_alone(release)
    assert printed.predict(rows) == release.predict(rows, rule="counts")
    assert printed.rows(seed=3) == release.rows(seed=3, rule="counts")
    assert printed.receipt == release.receipt


def test_methods_of_every_kind_have_one_line_on_one_page(tmp_path, real_methods):
    summary = run_experiment(
        "classification",
        output=tmp_path,
        figure="logistic",
        datasets=("simulated",),
        methods=("privpfc-paper", "pph", "private-erm"),
        epsilons=("1",),
        settings={"rows": 3_000, "pool": 100},
        folds=1,
    )
    assert [row[:3] for row in summary.rows] == [
        ["simulated", "logistic", "privpfc-paper"],
        ["simulated", "logistic", "pph"],
        ["simulated", "logistic", "private-erm"],
        ["simulated", "logistic", "noise-free"],
        ["simulated", "none", "majority class"],
    ]
    errors = {row[2]: float(row[3].split()[0]) for row in summary.rows}
    assert errors["noise-free"] < errors["private-erm"] < 0.5


def test_a_method_that_cannot_run_has_a_line_that_says_so(tmp_path, real_methods):
    summary = run_experiment(
        "classification",
        output=tmp_path,
        datasets=("simulated",),
        methods=("pph", "diffpid3"),
        epsilons=("1e-9",),
        classifiers=("direct",),
        folds=1,
    )
    lines = {tuple(row[1:3]): row[3] for row in summary.rows}
    assert list(lines) == [("direct", "pph"), ("direct", "diffpid3"), ("none", "majority class")]
    assert lines["direct", "pph"] == "cannot run"
    assert "±" in lines["direct", "diffpid3"]


def test_one_page_refuses_other_classifiers_and_models_it_does_not_have(real_methods):
    with pytest.raises(InvalidParameter, match="has its classifier"):
        STUDY.plan(1, figure="svm", datasets=("simulated",), classifiers=("tree",))
    with pytest.raises(InvalidParameter, match="functional"):
        STUDY.plan(1, figure="svm", datasets=("simulated",), methods=("functional",))
    planned = STUDY.plan(1, figure="svm", datasets=("simulated",))
    methods = {trial.method for trial in planned.trials}
    assert "functional" not in methods
    assert {"privpfc", "diffgen-10", "pph", "privgene", "private-erm", "noise-free"} <= methods


def test_a_method_that_the_axis_does_not_move_is_run_once_and_drawn_level():
    planned = STUDY.plan(
        1, figure="shares", datasets=("simulated",), epsilons=("1",), folds=1, classifiers=("tree",)
    )
    diffgen = [trial for trial in planned.trials if trial.method == "diffgen"]
    assert len(diffgen) == 1
    results = [Result(trial, {"tree": 0.25}) for trial in planned.trials]
    line = STUDY.summarize(results)[Key("simulated", "tree", "diffgen", "1")]
    assert sorted(line) == [10, 20, 37, 50, 67]


def test_columns_come_by_their_association_if_asked():
    rows = loans(3_000)
    order = chi_squared_order(rows, BENCHMARKS["simulated"].schema(None), "repaid")
    assert order[0] == "late_payments"
    assert set(order[-3:]) & {"purpose", "region", "children"}
    assert "repaid" not in order
    with pytest.raises(InvalidParameter, match="chi2"):
        STUDY.plan(1, datasets=("simulated",), settings={"order": "alphabet"})


def test_a_table_of_ones_own_is_compared_on(tmp_path, real_methods):
    pq.write_table(loans(600), tmp_path / "mine.parquet")
    (tmp_path / "mine.toml").write_text(LOANS)
    summary = run_experiment(
        "classification",
        output=tmp_path / "out",
        data=str(tmp_path / "mine.parquet"),
        schema=str(tmp_path / "mine.toml"),
        target="repaid",
        methods=("pph", "diffpc45"),
        epsilons=("1",),
        classifiers=("direct",),
        folds=1,
    )
    assert {row[0] for row in summary.rows} == {"mine"}
    assert "Which value of repaid" in summary.page.read_text()
    with pytest.raises(InvalidParameter, match="--target"):
        STUDY.plan(1, data=str(tmp_path / "mine.parquet"), schema=str(tmp_path / "mine.toml"))

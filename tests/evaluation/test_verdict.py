"""The verdict on a release: its scale on known cases, and every kind of release."""

import tomllib
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpublish import Budget, datasets, evaluate, seeded
from dpublish.core.registry import CATALOG, make_method
from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.datasets.census import census
from dpublish.datasets.loans import SCHEMA as LOANS_TEXT
from dpublish.datasets.loans import loans
from dpublish.errors import InvalidParameter, InvalidType, UnreadableData
from dpublish.evaluation import evaluations
from dpublish.evaluation.report import STAMP, EvaluationReport
from dpublish.evaluation.score import GOOD, ROUGH, Part, figure, scaled, verdict_of
from dpublish.randomness import plain_generator
from evaluation_rows import CENSUS, rows_release
from method_examples import CASES, SCHEMA, arrow_table

LOANS = from_dict(tomllib.loads(LOANS_TEXT))
TRUE = census(8_000)


def taken(rows, indices):
    return rows.take(pa.array(indices))


def bootstrap(rows, seed=3):
    return taken(rows, plain_generator(seed).integers(0, rows.num_rows, rows.num_rows))


def independent(rows, seed=4):
    """Shuffle each column by itself: marginals stay, pairs are lost."""
    rng = plain_generator(seed)
    return pa.table(
        {name: rows[name].take(pa.array(rng.permutation(rows.num_rows))) for name in CENSUS.names}
    )


def uniform(count, schema=CENSUS, seed=5):
    """Draw every value of the schema as often as any other."""
    rng = plain_generator(seed)
    columns = {}
    for one in schema.columns:
        axis = one.axis()
        codes = rng.integers(0, axis.taxonomy.size, count)
        if axis.leaf_edges is None:
            labels = np.array(axis.leaf_labels, dtype=object)
            columns[one.name] = pa.array(labels[codes].tolist(), pa.string())
        else:
            edges = np.array(axis.leaf_edges)
            columns[one.name] = pa.array(edges[:-1][np.minimum(codes, len(edges) - 2)])
    return pa.table(columns)


def mixed(rows, part, seed=6):
    """Replace a part of the rows by uniform ones."""
    number = round(part * rows.num_rows)
    kept = rows.select(list(CENSUS.names)).slice(number)
    noise = uniform(number, seed=seed)
    return pa.concat_tables([kept, noise.cast(kept.schema)])


def scores(given, against=TRUE, **options):
    report = evaluate(rows_release(given), against, **options)
    return {part.name: part.score for part in report.parts}


# --- The scale ------------------------------------------------------------------------------------


def test_a_bootstrap_of_the_true_rows_is_as_good_as_it_gets():
    found = scores(bootstrap(TRUE))
    assert set(found) == {"marginals", "pairs", "triples", "queries"}
    assert min(found.values()) >= 95


def test_uniform_rows_are_worth_nothing():
    report = evaluate(rows_release(uniform(8_000)), TRUE)
    assert report.score <= 5
    assert {part.grade for part in report.parts} == {"poor"}
    assert report.verdict.startswith(f"{round(report.score)} of 100: not good enough for")


def test_independent_columns_keep_marginals_and_lose_pairs():
    found = scores(independent(TRUE))
    assert found["marginals"] >= 95
    assert found["pairs"] <= 10
    assert found["triples"] <= 10
    assert found["queries"] > found["pairs"]


def test_the_score_falls_as_noise_is_added():
    parts = (0.0, 0.1, 0.3, 0.6, 1.0)
    means = [
        np.mean([evaluate(rows_release(mixed(TRUE, part, seed)), TRUE).score for seed in (6, 7)])
        for part in parts
    ]
    assert all(before > after + 3 for before, after in pairwise(means)), means


def test_the_scale_is_linear_between_what_scores_100_and_0():
    assert scaled(0.3, 0.1, 0.5) == pytest.approx(50)
    assert [scaled(x, 0.1, 0.5) for x in (0.05, 0.1, 0.5, 9.0)] == [100, 100, 0, 0]
    assert [scaled(x, 0.1, 0.5) for x in (float("nan"), float("inf"))] == [0, 0]
    assert [scaled(x, 0.2, 0.2) for x in (0.2, 0.21)] == [100, 0]


def test_a_baseline_that_is_too_near_is_moved_and_says_so():
    part = Part.of(
        "pairs", "pairs", "it", 0.03, reference=("best", 0.02), baseline=("worst", 0.03),
        least_gap=0.05,
    )  # fmt: skip
    assert part.score == pytest.approx(80)
    assert part.baseline == pytest.approx(0.07)
    assert "worst" not in part.sentence
    assert "0.05 more: 0.07" in part.sentence


def test_the_verdict_names_every_purpose_once_under_its_grade():
    parts = [
        Part("a", "apples", "m", 0, 0, 1, GOOD, "best", "worst"),
        Part("b", "pears", "m", 0, 0, 1, ROUGH, "best", "worst"),
        Part("c", "plums", "m", 0, 0, 1, ROUGH - 0.1, "best", "worst"),
        Part("d", "plums", "m", 0, 0, 1, 0, "best", "worst"),
    ]
    assert verdict_of(parts) == (
        "51 of 100: good enough for apples; a rough guide for pears; not good enough for plums."
    )
    assert verdict_of([]) == "Nothing could be scored."


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (0.00001, "0.00001"), (0.5, "0.5"), (12.345, "12.3"), (1234.5, "1,234")],
)
def test_figures_have_no_exponents(number, text):
    assert figure(number) == text
    assert figure(float("inf")) == "unlimited"


# --- Every kind of release ------------------------------------------------------------------------


def published(name, settings, rows=None, schema=SCHEMA, epsilon="1.5"):
    table = open_table(arrow_table() if rows is None else rows, schema)
    return make_method(name, settings).release(table, budget=Budget.seeded(epsilon), rng=seeded(7))


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_every_method_gets_a_verdict(name, settings):
    report = evaluate(published(name, settings), arrow_table(), classifiers=None)
    assert report.parts
    assert 0 <= report.score <= 100
    assert all(0 <= part.score <= 100 for part in report.parts)
    assert report.verdict.endswith(".")
    assert all(part.sentence.endswith(").") for part in report.parts)


def test_all_methods_of_the_catalog_were_tried():
    assert {name for name, _ in CASES} == set(CATALOG)


def test_parts_that_a_large_epsilon_makes_good():
    """Noise next to nothing: what a method publishes exactly must score high."""
    cases = {
        "histogram": ({"columns": ("late_payments", "home", "repaid")}, {"marginals", "pairs"}),
        "topk": ({"column": "purpose", "count": 3, "with_counts": True}, {"top-k", "counts"}),
        "statistics": (
            {"measures": ("count", "mean(age)", "std(income)", "median(debt)"), "by": ("home",)},
            {"statistics"},
        ),
        "kmeans": ({"n_clusters": 3, "columns": ("age", "income")}, {"clusters"}),
        "privpfc": ({"target": "repaid"}, {"prediction", "ranking"}),
        "model": ({"target": "repaid"}, {"prediction", "ranking"}),
    }
    rows = loans(4_000)
    for name, (settings, good) in cases.items():
        release = published(name, settings, rows, LOANS, epsilon="200")
        report = evaluate(release, rows, classifiers=["direct"] if "target" in settings else None)
        found = {part.name: part.score for part in report.parts}
        assert good <= found.keys(), name
        assert min(found[part] for part in good) >= 85, (name, found)


def test_less_noise_scores_higher():
    rows = loans(2_000)
    settings = {"measures": ("count", "mean(age)"), "by": ("purpose", "home")}
    found = [
        evaluate(published("statistics", settings, rows, LOANS, epsilon=epsilon), rows).score
        for epsilon in ("0.01", "0.1", "1")
    ]
    assert found[0] + 5 < found[1] < found[2] - 5


def test_intervals_of_statistics_are_counted():
    rows = loans(2_000)
    settings = {"measures": ("count", "sum(age)", "variance(age)"), "by": ("purpose",)}
    (finding,) = evaluate(published("statistics", settings, rows, LOANS), rows)
    assert all(one["intervals_hold"] >= 0.75 for one in finding.figures["numbers"])
    other = loans(500, seed=9)  # rows that it was not made from: their counts are others
    (finding,) = evaluate(published("statistics", settings, rows, LOANS), other)
    assert finding.figures["numbers"][0]["intervals_hold"] == 0


def test_numbers_are_predicted_better_than_by_the_mean():
    rng = plain_generator(1)
    x = rng.uniform(0, 10, 3_000)
    rows = pa.table({"x": x, "y": np.clip(2 * x + rng.normal(0, 1, 3_000), 0, 20)})
    schema = Schema(
        (column("x", "numeric", bounds=[0, 10]), column("y", "numeric", bounds=[0, 20]))
    )
    release = published("model", {"target": "y"}, rows, schema, epsilon="50")
    (finding,) = evaluate(release, rows)
    assert finding.name == "regression"
    assert finding.parts[0].score >= 85
    assert finding.figures["rmse"] < 0.5 * finding.figures["rmse_of_the_mean"]
    worse = published("model", {"target": "y"}, rows, schema, epsilon="0.0001")
    assert evaluate(worse, rows).score < finding.parts[0].score


def test_auc_stands_beside_the_error():
    rows = loans(3_000)
    release = published("privpfc", {"target": "repaid"}, rows, LOANS, epsilon="2")
    found = evaluate(release, loans(1_000, seed=2), classifiers=["direct", "tree"])[-1]
    areas = {one["classifier"]: one["auc"] for one in found.figures["scores"]}
    assert areas["majority"] is None
    assert all(areas[name] > 0.75 for name in ("direct", "tree", "ridge"))
    assert found.headers[2] == "AUC"


@pytest.mark.parametrize("name", ["diffgen", "pph", "privbayes", "diffpid3", "model", "privpfc"])
def test_released_classifiers_rank_rows(name):
    rows = loans(4_000)
    release = published(name, {"target": "repaid"}, rows, LOANS, epsilon="20")
    found = evaluate(release, loans(1_000, seed=2), classifiers=["direct"])[-1]
    assert found.figures["scores"][0]["auc"] > 0.6


# --- What is returned -----------------------------------------------------------------------------


def test_the_report_is_a_sequence_with_a_verdict(tmp_path):
    release = rows_release(bootstrap(TRUE))
    report = evaluate(release, TRUE)
    assert isinstance(report, EvaluationReport)
    assert [one.name for one in report] == [report[i].name for i in range(len(report))]
    assert [one.name for one in report[:2]] == ["marginals", "association"]
    assert [part.name for part in report.parts] == ["marginals", "pairs", "triples", "queries"]
    assert report.score == pytest.approx(np.mean([part.score for part in report.parts]))
    told = report.to_dict()
    assert told["stamp"] == STAMP
    assert {"score", "verdict", "parts", "evaluations"} <= told.keys()
    assert told["parts"][1]["grade"] == "good"
    text = str(report)
    assert text.startswith("NOT PRIVATE")
    assert report.verdict in text
    assert "NOT PRIVATE" in repr(report)
    html = report._repr_html_()
    assert "NOT PRIVATE" in html
    assert "<svg" in html
    pytest.importorskip("pandas")
    assert report.to_pandas()["name"].tolist() == [part.name for part in report.parts]
    assert set(report.to_pandas()["stamp"]) == {STAMP}
    assert report.to_polars()["name"].to_list() == [part.name for part in report.parts]
    drawn = report.plot().axes[0]
    assert sorted(column.get_width() for column in drawn.patches) == pytest.approx(
        sorted(part.score for part in report.parts)
    )


def test_a_folder_is_as_good_as_a_release(tmp_path):
    rows = loans(500)
    release = published("histogram", {"columns": ("home", "repaid")}, rows, LOANS)
    release.save(tmp_path / "loans")
    by_path = evaluate(tmp_path / "loans", rows)
    assert by_path.to_dict() == evaluate(release, rows).to_dict()
    assert evaluate(str(tmp_path / "loans"), rows).score == by_path.score


# --- What cannot be measured ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "against", "options", "error", "word"),
    [
        (3, TRUE, {}, InvalidType, "folder"),
        (None, 3, {}, InvalidType, "Arrow-compatible"),
        (None, TRUE, {"classifiers": "tree", "target": "sex"}, InvalidType, "list of names"),
        (None, TRUE, {"step": "hour"}, InvalidParameter, "streams"),
        (None, TRUE, {"target": "sx"}, InvalidParameter, "sex"),
        (None, TRUE.drop_columns(["age"]), {}, InvalidParameter, "age"),
        (None, TRUE.slice(0, 0), {}, InvalidParameter, "none of the true rows"),
        (None, "nowhere.csv", {}, UnreadableData, "no file"),
    ],
)
def test_wrong_requests_say_what_is_wrong(release, against, options, error, word):
    with pytest.raises(error, match=word):
        evaluate(rows_release(TRUE) if release is None else release, against, **options)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("statistics", {"measures": ("mean(age)",)}),
        ("bounds", {"column": "age"}),
        ("topk", {"column": "town", "count": 2}),
        ("kmeans", {"n_clusters": 2}),
        ("privthr", {"cells": 8}),
        ("model", {"target": "sex"}),
        ("model", {"target": "age", "predictors": ("sex", "height")}),
        ("personalized-em", {
            "statistic": "median", "column": "age", "preference": "sex",
            "rule": "Female=1.5; Male=3", "levels": ("1.5", "3"), "derived": True,
            "mode": "values-only"}),
    ],
)  # fmt: skip
def test_empty_tables_are_refused_and_one_row_is_enough(name, settings):
    release = published(name, settings)
    with pytest.raises(InvalidParameter, match=r"no row|none of"):
        evaluate(release, arrow_table().slice(0, 0))
    assert 0 <= evaluate(release, arrow_table().slice(0, 1)).score <= 100


def test_one_row_and_a_release_without_rows_are_scored():
    assert 0 <= evaluate(rows_release(TRUE), TRUE.slice(0, 1)).score <= 100
    report = evaluate(rows_release(TRUE.slice(0, 0)), TRUE)
    assert report.score <= 5


def test_without_scikit_learn_the_release_itself_is_measured(monkeypatch):
    monkeypatch.setattr(evaluations, "has_sklearn", lambda: False)
    rows = loans(1_000)
    release = published("privpfc", {"target": "repaid"}, rows, LOANS, epsilon="2")
    found = evaluate(release, rows)
    assert {"prediction", "ranking"} <= {part.name for part in found.parts}
    plain = published("histogram", {"columns": ("home", "repaid")}, rows, LOANS)
    report = evaluate(plain, rows, target="repaid")
    assert "prediction" not in {part.name for part in report.parts}


def test_counts_of_people_are_not_compared_with_rows():
    table, schema = datasets.hospital(300), datasets.schema("hospital")
    method = make_method("topk", {"column": "ward", "count": 3, "with_counts": True})
    release = method.release(open_table(table, schema), budget=Budget.seeded("1"), rng=seeded(1))
    report = evaluate(release, table)
    assert [part.name for part in report.parts] == ["top-k"]
    assert "counts people and not rows" in str([finding.notes for finding in report])

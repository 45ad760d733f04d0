"""`evaluate`, `predict` and the options of `experiment`."""

import json
import shutil
import tomllib
from fractions import Fraction
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dpublish.cli import use
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.datasets.loans import SCHEMA, loans
from dpublish.evaluation import evaluations
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.privpfc.privpfc import PrivPfC
from dpublish.privacy.budget import Budget
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.randomness import seeded
from stream_world import METHOD, arguments, make_ledger, write_snapshots
from stream_world import SCHEMA as RIDES
from stream_world import rows as rides


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Publish home, late payments and class of some loans; keep others to measure on."""
    workdir = tmp_path_factory.mktemp("published")
    schema = from_dict(tomllib.loads(SCHEMA))
    method = Histogram(columns=("late_payments", "home", "repaid"))
    table = open_table(loans(3_000), schema)
    method.release(table, budget=Budget.seeded(2), rng=seeded(1)).save(workdir / "loans")
    pq.write_table(loans(3_000), workdir / "train.parquet")
    pq.write_table(loans(1_000, seed=1), workdir / "test.parquet")
    csv.write_csv(loans(1_000, seed=1), workdir / "test.csv")
    (workdir / "test.html").write_text("kept")
    (workdir / "people.csv").write_text("age,sex\n31,Female\n")
    return workdir


@pytest.fixture(scope="module")
def refined(published):
    """Publish a classifier that a column outside its grid refines; say which columns refine it."""
    schema = from_dict(tomllib.loads(SCHEMA))
    method = PrivPfC(target="repaid", rounds=4)
    release = method.release(
        open_table(loans(3_000), schema), budget=Budget.seeded(Fraction(1, 5)), rng=seeded(1)
    )
    outside = {one.axis.column for one in release.refinements}
    outside -= {axis.column for axis in release.axes}
    assert outside, "no refinement outside the grid: the test would show nothing"
    release.save(published / "refined")


@pytest.fixture
def loan_release(published, run, tmp_path):
    """Put all of it where the command is run."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_release_is_measured_and_stamped(run, loan_release):
    words = ["evaluate", "loans", "--against", "test.parquet", "--target", "repaid"]
    done = run(*words, "--classifiers", "tree,logistic", "--train", "train.parquet")
    assert done.code == 0, done.err
    assert done.out.startswith("NOT PRIVATE")
    assert "1,000 rows" in done.out
    for name in ("decision tree", "logistic regression", "always the majority class"):
        assert name in done.out
    told = run(*words, "--classifiers", "tree", "--json").json()
    assert told["stamp"].startswith("NOT PRIVATE")
    assert [one["name"] for one in told["evaluations"]] == [
        "marginals",
        "association",
        "queries",
        "shares",
        "classification",
    ]
    found = told["evaluations"][-1]
    scores = {(s["classifier"], s["basis"]): s["misclassification"] for s in found["scores"]}
    assert set(scores) == {("tree", "release"), ("majority", "true rows"), ("ridge", "true rows")}
    assert scores["tree", "release"] < scores["majority", "true rows"]


def test_synthetic_rows_are_measured_without_a_class_column(run, loan_release):
    done = run("evaluate", "loans", "--against", "test.parquet", "--page", "page.html")
    assert done.code == 0, done.err
    for words in ("NOT PRIVATE", "total variation", "Cramer's V", "Random range counts"):
        assert words in done.out, words
    assert "Misclassification" not in done.out
    assert "page: page.html" in done.out
    page = (loan_release / "page.html").read_text()
    assert "NOT PRIVATE" in page
    assert "late_payments" in page


def test_a_classifier_refined_by_columns_outside_its_grid_is_measured(run, refined, loan_release):
    words = ["evaluate", "refined", "--against", "test.parquet", "--classifiers", "direct,tree"]
    done = run(*words, "--page", "good.html", "--json")
    assert done.code == 0, done.err
    names = [one["name"] for one in done.json()["evaluations"]]
    assert names == ["marginals", "association", "queries", "shares", "classification"]
    assert (loan_release / "good.html").exists()


def test_what_gives_no_rows_needs_a_class_column(run, loan_release, monkeypatch):
    monkeypatch.setattr(evaluations, "gives_rows", lambda release: False)
    done = run("evaluate", "loans", "--against", "test.parquet")
    assert done.code == 1
    assert "--target" in done.err


def test_csv_and_parquet_measure_the_same(run, loan_release):
    words = ["--target", "repaid", "--classifiers", "tree,boosting", "--json"]
    both = [
        run("evaluate", "loans", "--against", f"test.{e}", *words).out for e in ("csv", "parquet")
    ]
    assert json.loads(both[0]) == json.loads(both[1])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"page": "page.pdf"}, ".html"),
        ({"page": "test.html"}, "exists already"),
        ({"page": "nowhere/page.html"}, "create it first"),
        ({"target": "repayed"}, "repaid"),
        ({"classifiers": "trees"}, "tree"),
        ({"classifiers": "direct"}, "serves none"),
        ({"classifiers": ","}, "at least one"),
        ({"against": "people.csv"}, "column"),
        ({"against": "nowhere.csv"}, "no file"),
        ({"seed": "-1"}, "seed"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(run, loan_release, options, word):
    given = {"against": "test.parquet", "target": "repaid", "classifiers": "tree"} | options
    words = [w for k, v in given.items() if v is not None for w in (f"--{k}", v)]
    done = run("evaluate", "loans", *words)
    assert done.code in (1, 3)
    assert word in done.err
    assert done.err.count("\n") == 1


class Predicting:
    """Says yes to owners; stands in for a release that classifies."""

    receipt = SimpleNamespace(settings={"target": "repaid"})
    schema = SimpleNamespace(names=("home", "repaid"))

    def predict(self, rows):
        return pa.array(
            ["yes" if x in ("Paid off", "Mortgage") else None for x in rows["home"].to_pylist()]
        )


def test_predict_adds_a_column_and_keeps_the_rows(run, loan_release, monkeypatch):
    monkeypatch.setattr(use, "load", lambda path: Predicting())
    done = run("predict", "loans", "test.csv", "-o", "predicted.csv")
    assert done.code == 0, done.err
    predicted, rows = csv.read_csv("predicted.csv"), csv.read_csv("test.csv")
    assert predicted.drop_columns(["predicted_repaid"]).equals(rows)
    owners = [home in ("Paid off", "Mortgage") for home in rows["home"].to_pylist()]
    assert [label == "yes" for label in predicted["predicted_repaid"].to_pylist()] == owners
    again = run("predict", "loans", "predicted.csv", "-o", "twice.csv")
    assert "already" in again.err
    assert run("predict", "loans", "test.csv", "-o", "predicted.csv").code == 1
    assert run("predict", "loans", "test.csv", "-o", "predicted.xls").code == 1
    assert run("predict", "loans", "test.parquet", "-o", "predicted.parquet").code == 0
    assert pq.read_table("predicted.parquet").num_rows == 1_000


def test_a_release_that_does_not_classify_says_so(run, loan_release):
    done = run("predict", "loans", "test.csv", "-o", "predicted.csv")
    assert done.code == 1
    assert "does not classify" in done.err


def test_an_experiment_refuses_options_that_it_does_not_have(run, tmp_path):
    done = run("experiment", "svt-vs-em", "--classifiers", "svm", "--repeats", "1")
    assert done.code == 1
    assert "no option of svt-vs-em 'classifiers'" in done.err
    assert not (tmp_path / "results").exists()


def test_an_experiment_takes_its_options_from_the_command_line(run, tmp_path):
    words = ["--repeats", "1", "--epsilons", "0.5,1", "--methods", "EM, one-shot", "-o", "new"]
    done = run("experiment", "svt-vs-em", *words)
    assert done.code == 0, done.err
    assert len((tmp_path / "new" / "svt-vs-em.jsonl").read_text().splitlines()) == 2 * 2 * 7


def test_a_stream_is_measured_on_its_snapshots(run, tmp_path):
    make_ledger(tmp_path)
    started = StreamOperator.start(tmp_path / "s", METHOD, RIDES, **arguments(tmp_path))
    with started as operator:
        for number in (1, 2, 3):
            operator.next(rides(number), f"t{number}")
    write_snapshots(tmp_path / "snapshots", 3)
    done = run("evaluate", "out", "--against", "snapshots", "--json")
    assert done.code == 0, done.err
    told = done.json()
    assert [part["name"] for part in told["parts"]] == ["stream"]
    assert [step["time"] for step in told["evaluations"][0]["steps"]] == ["t1", "t2", "t3"]


def test_the_verdict_comes_first_and_brief_leaves_out_the_tables(run, loan_release):
    words = ["evaluate", "loans", "--against", "test.parquet"]
    told = run(*words, "--json").json()
    done = run(*words)
    lines = done.out.splitlines()
    assert lines[0].startswith("NOT PRIVATE")
    assert lines[2] == f"score: {told['verdict']}"
    assert "Random range counts" in done.out
    brief = run(*words, "--brief")
    assert brief.out.splitlines()[2] == lines[2]
    assert "Random range counts" not in brief.out
    assert all(part["sentence"] in brief.out for part in told["parts"])
    assert run(*words, "--page", "verdict.html").code == 0
    page = (loan_release / "verdict.html").read_text()
    assert page.index(told["verdict"]) < page.index("<h2>What this page shows")
    assert all(f">{part['name']}</text>" in page for part in told["parts"])


def test_a_step_column_is_for_streams(run, loan_release):
    done = run("evaluate", "loans", "--against", "test.parquet", "--step", "home")
    assert done.code == 1
    assert "no steps" in done.err


def test_help_answers(run):
    for command in ("evaluate", "predict"):
        assert run(command, "--help").code == 0
    assert "NOT PRIVATE" in run("evaluate", "--help").out

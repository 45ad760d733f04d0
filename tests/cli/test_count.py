"""`dpublish count`: one query or many, of a release or of rows in the clear."""

import csv
import io
from dataclasses import replace

import pytest

from dpublish.core.folder.folder import load
from dpublish.methods.histogram.released import HistogramRelease

QUERIES = ["age in 30..39", "sex = Male", "", "age >= 35 and sex = Female", "sex = Male"]


@pytest.fixture
def published(release, workdir):
    assert release(epsilon="2").code == 0
    return workdir


def write(workdir, lines):
    (workdir / "queries.txt").write_text("# a comment\n" + "\n".join(lines) + "\n\n")


def test_a_workload_is_answered_as_each_of_its_queries(run, published):
    write(published, QUERIES)
    asked = [query for query in QUERIES if query]
    found = run("count", "out", "--workload", "queries.txt", "--json").json()
    assert [one["query"] for one in found] == asked
    loaded = load(published / "out")
    for one in found:
        answer = loaded.count(one["query"])
        assert (one["value"], one["low"], one["high"]) == (answer.value, answer.low, answer.high)


def test_a_workload_is_printed_as_a_table_or_as_csv(run, published):
    write(published, QUERIES)
    told = run("count", "out", "--workload", "queries.txt")
    assert told.code == 0
    assert "age >= 35 and sex = Female" in told.out
    assert told.out.count("note: records are assumed") == 1
    rows = list(
        csv.DictReader(io.StringIO(run("count", "out", "--workload", "queries.txt", "--csv").out))
    )
    assert [row["query"] for row in rows] == [query for query in QUERIES if query]
    assert float(rows[0]["low"]) <= float(rows[0]["value"]) <= float(rows[0]["high"])


def test_every_form_of_an_answer_names_the_kind_of_its_interval(run, published, monkeypatch):
    plain = HistogramRelease.count

    def count(self, query="", *, confidence=0.95):
        found = plain(self, query, confidence=confidence)
        if "Male" in query:
            return replace(found, assumption="sexes follow a model", kind="model")
        return replace(found, low=None, high=None) if "age" in query else found

    monkeypatch.setattr(HistogramRelease, "count", count)
    kinds = {"sex = Male": "model", "sex = Female": "confidence", "age < 30": None}
    write(published, kinds)
    words = ("count", "out", "--workload", "queries.txt")
    assert {one["query"]: one["interval"] for one in run(*words, "--json").json()} == kinds
    rows = csv.DictReader(io.StringIO(run(*words, "--csv").out))
    assert {row["query"]: row["interval"] or None for row in rows} == kinds
    told = run(*words).out.splitlines()
    assert told[0].split() == ["query", "count", "low", "high", "interval"]
    assert [line.split()[-1] for line in told[1:4]] == ["model", "confidence", "-"]
    assert "  note: sexes follow a model" in told
    single = run("count", "out", "sex = Male")
    assert "(95 % model interval " in single.out
    assert "  note: sexes follow a model\n" in single.out
    assert run("count", "out", "sex = Male", "--json").json()["interval"] == "model"


def test_a_workload_comes_from_standard_input_too(run, published, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffsex = Male\n\nsex = Female\n"))
    assert len(run("count", "out", "--workload", "-", "--json").json()) == 2


def test_thousands_of_queries_are_answered(run, published):
    write(published, [f"age in {n % 90}..{n % 90 + n % 7} and sex = Male" for n in range(3000)])
    assert len(run("count", "out", "--workload", "queries.txt", "--json").json()) == 3000


def test_rows_of_a_public_file_are_counted_as_they_are(run, published):
    done = run("count", "people.csv", "age >= 35 and sex = Male", "--schema", "people.toml")
    assert done.out.startswith("40 (no confidence interval is offered)")
    assert "read as public" in done.out
    found = run("count", "people.csv", "--schema", "people.toml", "--json").json()
    assert (found["value"], found["low"]) == (200, None)
    assert "plain count" in found["assumption"]
    write(published, QUERIES)
    many = run(
        "count", "people.csv", "--schema", "people.toml", "--workload", "queries.txt", "--json"
    )
    # Of each five rows two are 31, three men; one woman is 35 or older, and is 99.
    assert [one["value"] for one in many.json()] == [80, 120, 40, 120]


def test_a_confidence_next_to_1_is_not_printed_as_1(run, published):
    told = run("count", "out", "age < 30", "--confidence", "0.9999999999999")
    assert "(99.99999999999 % confidence interval " in told.out


def test_synthetic_rows_are_counted_like_the_release_they_come_from(run, published):
    run("rows", "out", "-o", "synthetic.parquet", "--seed", "1")
    rows = run("count", "synthetic.parquet", "age < 30", "--schema", "people.toml", "--json").json()
    estimates = load(published / "out").estimates.reshape(10, 2)
    assert rows["value"] == estimates[:3].sum()


@pytest.mark.parametrize(
    ("words", "code", "advice"),
    [
        (["out", "age is 3"], 1, "column = value"),
        (["out", "agee = 3"], 1, "did you mean 'age'"),
        (["out", "income = 3"], 1, "only of age, sex"),
        (["out", "age = 3", "--workload", "queries.txt"], 1, "not both"),
        (["out", "--workload", "bad.txt"], 1, "line 4: "),
        (["out", "--workload", "absent.txt"], 3, "cannot read"),
        (["out", "--workload", "latin.txt"], 3, "UTF-8"),
        (["out", "--workload", "queries.txt", "--json", "--csv"], 1, "--json or --csv"),
        (["out", "--csv"], 1, "--workload"),
        (["out", "--schema", "people.toml"], 1, "files of rows"),
        (["out", "--confidence", "1"], 1, "confidence"),
        (["people.csv"], 1, "--schema"),
        (["people.csv", "income = 3", "--schema", "people.toml"], 1, "these rows tell nothing"),
        (["absent.csv", "", "--schema", "people.toml"], 3, "absent.csv"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(run, published, words, code, advice):
    write(published, QUERIES)
    (published / "bad.txt").write_text("# first\nage = 3\n\nage or 3\n")
    (published / "latin.txt").write_bytes(b"sex = M\xe4nnlich\n")
    done = run("count", *words)
    assert done.code == code, done.err
    assert done.err.startswith("dpublish: ")
    assert done.err.count("\n") == 1
    assert advice in done.err

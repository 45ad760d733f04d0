"""Bad input: one line that says what to do, the right exit code, no row value, nothing lost."""

import os
import stat
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.cli import main
from dpublish.core.folder.folder import load
from dpublish.ledger.ledger import Ledger
from dpublish.methods.histogram.histogram import Histogram

SECRETS = ("Martian", "4711", "31.5")


def spent(workdir):
    with Ledger(workdir / "books.db") as ledger:
        return ledger.status("people").spent


def refused(done, code, *words):
    assert done.code == code, (done.code, done.err)
    assert done.err.startswith("dpublish: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err
    for secret in SECRETS:
        assert secret not in done.err


@pytest.mark.parametrize("epsilon", ["0", "-1", "0.1x", "nan", "inf", "", "1/0", "1e-30"])
def test_an_epsilon_that_is_none_costs_nothing(release, workdir, epsilon):
    refused(release(epsilon=epsilon), 1, "epsilon" if epsilon != "1e-30" else "")
    assert spent(workdir) == 0
    assert not (workdir / "out").exists()


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"columns": "agee"}, 1, "did you mean 'age'"),
        ({"columns": "age,age"}, 1, "twice"),
        ({"columns": "age@9"}, 1, "level"),
        ({"columns": ""}, 1, "column"),
        ({"columns": None}, 1, "--columns"),
        ({"method": "histogramm"}, 1, "did you mean 'histogram'"),
        ({"color": "red"}, 1, "color"),
        ({"threshold": "many"}, 1, "threshold"),
        ({"threshold": "0"}, 1, "threshold"),
        ({"threshold": str(2**62)}, 1, "threshold"),
        ({"method": "topk", "columns": None, "column": "age", "selection": "best"}, 1, "best"),
        (
            {"method": "topk", "columns": None, "column": "age", "with-counts": "yes"}
            | {"counts-share": "1e-13"},
            1,
            "rate",
        ),
        ({"dataset": "peoples"}, 1, "did you mean 'people'"),
        ({"data": "absent.csv"}, 3, "absent.csv"),
        ({"data": "-"}, 1, "standard input is for `dpublish stream next` only"),
        ({"color": "red"}, 1, "there is no histogram setting 'color'"),
        ({"schema": "absent.toml"}, 3, "absent.toml"),
        ({"ledger": "absent.db"}, 3, "absent.db"),
        ({"epsilon": "2.01"}, 2, "2"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_spent(release, workdir, changes, code, word):
    refused(release(**changes), code, word)
    assert spent(workdir) == 0
    assert not (workdir / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "age,sex\n",
        "age,sex\n31,Female\n",
        "age,sex\n4711,Martian\nNaN,Female\ninf,Male\n-inf,\n,\n31.5,Male\n",
        'age,sex\n1,2,3,4\n7\n\n"unterminated,Male\n',
        "sex,extra,age\nMale,x,4\n",
    ],
    ids=["no rows", "one row", "nan and inf", "ragged", "other order"],
)
def test_odd_rows_do_not_stop_a_release(release, workdir, text):
    (workdir / "people.csv").write_text(text)
    done = release()
    assert done.code == 0, done.err
    assert load(workdir / "out").size == 20


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "header"),
        ("age,age,sex\n1,2,Male\n", "age"),
        ("years,sex\n1,Male\n", "age"),
    ],
    ids=["empty file", "duplicate names", "missing column"],
)
def test_a_table_without_the_right_columns_costs_nothing(release, workdir, text, word):
    (workdir / "people.csv").write_text(text)
    done = release()
    refused(done, done.code, word)
    assert done.code in (1, 3)
    assert spent(workdir) == 0


def test_a_file_that_is_not_what_its_name_says(release, workdir):
    (workdir / "people.parquet").write_text("age,sex\n4711,Martian\n")
    refused(release(data="people.parquet"), 3, "people.parquet")
    assert spent(workdir) == 0


def test_a_huge_domain_is_refused_with_a_way_out_that_works(release, workdir):
    columns = "\n".join(f'[columns.c{i}]\nkind = "integer"\nbounds = [1, 100]\n' for i in range(6))
    (workdir / "wide.toml").write_text(columns)
    table = pa.table({f"c{i}": np.arange(1, 101).repeat(3) for i in range(6)})
    pq.write_table(table, workdir / "wide.parquet")
    wide = {"columns": "c0,c1,c2,c3,c4,c5", "data": "wide.parquet", "schema": "wide.toml"}
    refused(release(**wide), 1, "1,000,000,000,000 cells", "--threshold auto")
    refused(release(**wide, threshold="1"), 1, "empty cells")
    assert spent(workdir) == 0
    assert release(**wide, threshold="auto").code == 0
    assert load(workdir / "out").size == 10**12


def test_a_full_cap_says_what_is_left(release, workdir):
    assert release(output="a", epsilon="1.5").code == 0
    refused(release(output="b", epsilon="1"), 2, "0.5")
    assert spent(workdir) == Fraction(3, 2)


def test_a_folder_that_exists_is_not_touched(release, workdir):
    (workdir / "out").mkdir()
    (workdir / "out" / "thesis.txt").write_text("ten years of work")
    refused(release(), 1, "exists")
    assert (workdir / "out" / "thesis.txt").read_text() == "ten years of work"
    assert spent(workdir) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_ledger_is_refused(release, workdir):
    (workdir / "books.db").chmod(stat.S_IRUSR)
    refused(release(), 3, "books.db")


@pytest.mark.parametrize(
    "damage",
    [
        lambda out: (out / "release.json").unlink(),
        lambda out: (out / "release.json").write_text("{"),
        lambda out: (out / "release.json").write_text("[]"),
        lambda out: (out / "release.json").write_text('{"format": 99}'),
        lambda out: (out / "data" / "counts.parquet").write_bytes(b"PAR1"),
        lambda out: (out / "data" / "counts.parquet").unlink(),
    ],
    ids=["no head", "cut head", "not a head", "newer", "changed data", "no data"],
)
def test_a_corrupted_release_is_recognized(release, run, workdir, damage):
    assert release().code == 0
    damage(workdir / "out")
    refused(run("count", "out", "age > 3"), 3, "out")
    refused(run("rows", "out", "-o", "x.csv"), 3, "out")
    refused(run("report", "out"), 3, "out")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("salary > 3", "salary"),
        ("age >", "value"),
        ("sex > Male", "order"),
        ("sex = Femal", "Female"),
        ("age = old", "age"),
    ],
)
def test_a_query_that_cannot_be_answered(release, run, query, word):
    assert release().code == 0
    refused(run("count", "out", query), 1, word)


def test_numbers_that_cannot_be_drawn(release, run):
    assert release().code == 0
    refused(run("rows", "out", "-n", "5", "--seed", "-1", "-o", "x.csv"), 1, "seed")
    refused(run("rows", "out", "-n", str(10**12), "-o", "x.csv"), 1, "rows")
    words = ["plan", "--method", "histogram", "--columns", "age", "--schema", "people.toml"]
    refused(run(*words, "--epsilon", "1", "--rows", "-5"), 1, "rows")
    refused(run("demo", "story", "--patients", "-5"), 1, "patients")


def test_a_report_is_not_written_through_a_link(release, run, workdir):
    assert release().code == 0
    (workdir / "victim").write_text("ten years of work")
    (workdir / "out-report.html").symlink_to(workdir / "victim")
    assert run("report", "out").code == 0
    assert (workdir / "victim").read_text() == "ten years of work"
    assert not (workdir / "out-report.html").is_symlink()


def test_unknown_commands_and_options_are_requests_that_are_wrong(run, workdir):
    for words in (["nonsense"], ["rows"], ["count", "out", "--confidence", "high"]):
        assert run(*words).code == 1
    refused(run("count", "nowhere", "age > 3"), 3, "nowhere")
    refused(run("experiment", "nonsense"), 1, "nonsense")


@pytest.mark.parametrize(("fault", "code"), [(MemoryError, 3), (RuntimeError, 70)])
def test_an_unforeseen_error_does_not_quote_its_text(release, workdir, monkeypatch, fault, code):
    def fail(*_, **__):
        raise fault("Unable to allocate an array with shape (4711,) for a Martian")

    monkeypatch.setattr(Histogram, "release", fail)
    refused(release(), code)
    assert spent(workdir) == 1
    monkeypatch.setenv("DPUBLISH_TRACEBACK", "1")
    if fault is RuntimeError:
        with pytest.raises(RuntimeError):
            main(["release", *WORDS, "-o", "b"])


WORDS = ["--method", "histogram", "--columns", "age", "--data", "people.csv"]
WORDS += [
    "--schema",
    "people.toml",
    "--epsilon",
    "1",
    "--ledger",
    "books.db",
    "--dataset",
    "people",
]


def test_a_file_in_a_folder_that_is_not_there_is_refused_by_the_folder(release, run):
    release("out")
    for where in ("nodir", "/dev/full"):
        done = run("rows", "out", "-o", f"{where}/x.csv")
        refused(done, 3, f"{where} is not a folder; create it first")
        assert "partial" not in done.err


def test_a_bad_schema_is_told_as_json_too(run, workdir):
    (workdir / "bad.toml").write_text('[columns.age]\nkind = "integer"\n')
    checked = run("schema", "check", "bad.toml", "--json")
    assert checked.code == 1
    assert checked.json()["errors"]


def test_columns_that_the_schema_does_not_name_are_named_if_there_is_a_header(run, workdir):
    (workdir / "more.csv").write_text("age,sex,town\n31,Male,Ost\n")
    assert "does not name ('town')" in run("schema", "check", "people.toml", "more.csv").out
    (workdir / "bare.csv").write_text("31,Male,Ost\n31,Male,Ost\n")
    assert "Ost" not in run("schema", "check", "people.toml", "bare.csv").out

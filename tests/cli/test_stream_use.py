"""A stream's folder is used like any release: loaded, counted, reported and verified."""

import pytest

import dpublish
from dpublish.core.folder.folder import folder_hash
from dpublish.data.schema_file import dumps_toml
from dpublish.methods.streams.folder import head_hash
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(SCHEMA))
    path = tmp_path / "rides.stream"
    with StreamOperator.start(path, METHOD, SCHEMA, **arguments(tmp_path)) as operator:
        operator.next(rows(1), "t1")
    return tmp_path


def test_a_stream_is_loaded_and_known_by_its_head(workspace):
    stream = dpublish.load(workspace / "out")
    assert (stream.kind, stream.times) == ("histogram-stream", ("t1",))
    assert folder_hash(workspace / "out") == head_hash(workspace / "out")


def test_a_stream_answers_counts_and_rewrites_its_report(run, workspace):
    done = run("count", "out", "zone = north", "--json")
    assert done.code == 0, done.err
    assert done.json()["low"] is not None
    assert run("count", "out", "zone = north", "--time", "t1", "--json").json() == done.json()
    assert run("count", "out", "", "--time", "t9").code == 1
    assert run("report", "out").code == 0
    assert "Change seen at each step" in (workspace / "out-report.html").read_text()


def test_the_ledger_vouches_for_a_stream_that_has_grown(run, workspace):
    with StreamOperator.open(workspace / "rides.stream") as operator:
        operator.next(rows(2), "t2")
    done = run("ledger", "verify", "books.db", "--release", "out")
    assert (done.code, "the chain is whole" in done.out) == (0, True), done.err
    head = workspace / "out" / "stream.json"
    head.write_text(head.read_text().replace('"rides"', '"roads"', 1))
    assert run("ledger", "verify", "books.db", "--release", "out").code == 3


def test_stream_methods_are_listed_and_planned_like_others(run, tmp_path):
    schema = tmp_path / "s.toml"
    schema.write_text('unit = "user"\n[columns.zone]\nkind = "category"\nvalues = ["n", "s"]\n')
    assert "dsat-w" in run("methods", "--task", "streams").out
    assert "--horizon" in run("methods", "dsat").out
    asked = ["plan", "--method", "dsat", "--columns", "zone", "--horizon", "50"]
    told = run(*asked, "--schema", str(schema), "--epsilon", "1").out
    assert "each published count within" in told

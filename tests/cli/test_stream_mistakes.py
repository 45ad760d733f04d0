"""`dpublish stream`: mistakes that would cost a paid stream are named, and cost nothing."""

import io
import os
import shutil
import subprocess
import sys

import pytest

from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.folder import load_stream
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import METHOD, SCHEMA, arguments, make_ledger, write_snapshots


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(SCHEMA))
    write_snapshots(tmp_path / "in", 3)
    return tmp_path


@pytest.fixture
def started(workspace):
    StreamOperator.start(workspace / "rides.stream", METHOD, SCHEMA, **arguments(workspace)).close()
    return workspace


def test_a_stray_file_in_a_folder_is_named_and_left_out(run, started):
    shutil.copy(started / "in" / "t1.parquet", started / "in" / "zz backup.parquet")
    done = run("stream", "next", "rides.stream", "in")
    assert (done.code, load_stream(started / "out").times) == (0, ("t1", "t2", "t3"))
    assert "zz backup.parquet is left out" in done.err
    assert "--new-labels" in done.err
    shutil.copy(started / "in" / "t1.parquet", started / "in" / "t4.parquet")
    assert run("stream", "next", "rides.stream", "in").code == 0
    assert load_stream(started / "out").times[-1] == "t4"
    assert run("stream", "next", "rides.stream", "in", "--new-labels").code == 0
    assert load_stream(started / "out").times[-1] == "zz backup"


def test_a_label_unlike_the_last_is_refused_unless_it_is_meant(run, started):
    run("stream", "next", "rides.stream", "in/t1.parquet")
    words = ("stream", "next", "rides.stream", "in/t2.parquet", "--time", "u2")
    done = run(*words)
    assert (done.code, "'u2' differs from 't1'" in done.err) == (1, True)
    assert run(*words, "--new-labels").code == 0


def test_a_file_that_is_not_there_is_told_before_its_label(run, started):
    run("stream", "next", "rides.stream", "in/t1.parquet")
    done = run("stream", "next", "rides.stream", "nosuch.csv")
    assert (done.code, "there is no file nosuch.csv" in done.err) == (3, True), done.err


def test_an_empty_standard_input_is_called_so(run, started, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    done = run("stream", "next", "rides.stream", "-", "--time", "t1")
    assert (done.code, "standard input has no header line" in done.err) == (3, True), done.err


def test_amounts_are_rounded_for_people_and_exact_for_programs(run, workspace):
    given = "--method dsat --columns zone --horizon 50 --schema rides.toml --epsilon 1"
    rest = ["--dataset", "rides", "--ledger", "books.db", "-o", "out"]
    assert run("stream", "start", "rides.stream", *given.split(), *rest).code == 0
    done = run("stream", "next", "rides.stream", "in/t1.parquet")
    assert "published with epsilon ≈0." in done.out
    words = run("stream", "status", "rides.stream").out
    assert "spent so far: ≈0." in words
    page = (workspace / "out" / "report.html").read_text()
    exact = run("stream", "status", "rides.stream", "--json").json()["spent"]
    assert "/" in exact
    assert "≈0." in page
    assert exact not in done.out + words + page
    told = run("stream", "next", "rides.stream", "in/t2.parquet", "--json").json()
    assert run("stream", "status", "rides.stream", "--json").json()["spent"] == told["spent"]


def test_a_start_that_differs_names_all_that_differs(run, started):
    given = "--method per-snapshot --columns zone,hour --window 7 --schema rides.toml --epsilon 1"
    rest = [*given.split(), "--dataset", "rides", "--ledger", "books.db", "-o", "out"]
    done = run("stream", "start", "rides.stream", *rest)
    assert (done.code, "and its epsilon and window differ;" in done.err) == (1, True), done.err


def test_a_schema_without_users_is_answered_with_the_option(run, workspace):
    (workspace / "rows.toml").write_text('[columns.zone]\nkind = "category"\nvalues = ["north"]\n')
    given = "--method per-snapshot --columns zone --window 4 --schema rows.toml --epsilon 1"
    rest = [*given.split(), "--dataset", "rides", "--ledger", "books.db", "-o", "out"]
    done = run("stream", "start", "rides.stream", *rest)
    assert (done.code, "--trust-rows" in done.err, "1 record in" in done.err) == (1, True, True)


def test_how_many_rows_people_have_is_not_measured_for_a_stream(run, workspace):
    given = "--method per-snapshot --columns zone --window 4 --schema rides.toml --epsilon 1"
    rest = [*given.split(), "--dataset", "rides", "--ledger", "books.db", "-o", "out"]
    for command in (
        ("stream", "start", "rides.stream", *rest, "--contribution", "auto"),
        ("plan", *given.split(), "--contribution", "auto"),
    ):
        done = run(*command)
        assert (done.code, "before the first snapshot" in done.err) == (1, True), done.err
        assert "--contribution 1" in done.err
    assert not (workspace / "rides.stream").exists()


def test_a_folder_in_a_list_is_refused(run, started):
    (started / "list.txt").write_text("in/t1.parquet\nin\n")
    done = run("stream", "next", "rides.stream", "--files", "list.txt")
    assert (done.code, "names the folder in" in done.err) == (1, True)
    assert load_stream(started / "out").times == ("t1",)


def test_a_file_whose_name_cannot_be_a_label_is_named_and_the_others_are_taken(run, started):
    long = "x" * 240
    shutil.copy(started / "in" / "t1.parquet", started / "in" / f"{long}.parquet")
    strange = os.fsencode(started / "in") + b"/t2\xff.parquet"  # no text in UTF-8
    shutil.copy(started / "in" / "t1.parquet", strange)
    done = run("stream", "next", "rides.stream", "in")
    assert (done.code, load_stream(started / "out").times) == (0, ("t1", "t2", "t3"))
    assert f"in/{long}.parquet is left out: a step's time" in done.err
    assert "at most 200" in done.err
    assert "must be one line of text" in done.err


def test_a_state_file_that_is_not_there_gets_no_lock(run, workspace):
    before = set(workspace.iterdir())
    done = run("stream", "next", "nope.stream", "in")
    assert (done.code, "does not exist; `dpublish stream start`" in done.err) == (3, True)
    assert set(workspace.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "dsft", "--threshold", f"{10**31}/1"],
        ["--method", "dsat", "--controller", "schedule", "--proportional-gain", "9" * 400 + "/1"],
        ["--method", "dsat", "--controller", "schedule", "--derivative-gain", "9" * 30 + "e50"],
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_before_it_is_paid_for(run, workspace, words):
    given = "--columns zone --horizon 9 --schema rides.toml --epsilon 1 --dataset rides"
    rest = [*given.split(), "--ledger", "books.db", "-o", "out"]
    done = run("stream", "start", "rides.stream", *words, *rest)
    assert done.code == 1, done.err
    assert not (workspace / "rides.stream").exists()
    with Ledger(workspace / "books.db") as ledger:
        assert ledger.status("rides").spent == 0


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_stream_says_with_which_key_it_was_signed(run, workspace):
    words = run("key", "create", "owner.key").out.split()[-1]
    given = "--method per-snapshot --columns zone --horizon 9 --schema rides.toml --epsilon 1"
    rest = [*given.split(), "--dataset", "rides", "--ledger", "books.db", "-o", "out"]
    start = ("stream", "start", "rides.stream", *rest, "--sign", "owner.key")
    assert f"signed with {words}" in run(*start).out
    again = run(*start)
    assert (again.code, "rides.stream was started already and is paid for;" in again.out) == (0, 1)
    stopped = run("stream", "stop", "rides.stream", "--sign", "owner.key")
    assert f"signed with {words}" in stopped.out


@pytest.mark.parametrize(
    "words",
    [
        ["in/t1.parquet"],  # published already
        ["in/t7.parquet"],
        ["in/t2.parquet", "--time", "u2"],
    ],
)
def test_a_step_that_is_not_done_leaves_a_signed_folder_alone(run, started, words):
    run("key", "create", "owner.key")
    sign = ("--sign", "owner.key")
    assert run("stream", "next", "rides.stream", "in/t1.parquet", *sign).code == 0
    before = files_of(started / "out")
    for seed in range(4):  # the order of a set must not be what a manifest hangs on
        subprocess.run(
            [sys.executable, "-m", "dpublish", "stream", "next", "rides.stream", *words],
            cwd=started,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=False,
        )
    assert files_of(started / "out") == before
    assert run("verify", "out", "--key", "owner.pub").code == 0


def test_a_stopped_stream_keeps_its_signature_and_a_step_says_that_it_goes(run, started):
    run("key", "create", "owner.key")
    run("stream", "next", "rides.stream", "in/t1.parquet", "--sign", "owner.key")
    done = run("stream", "next", "rides.stream", "in/t2.parquet")
    assert f"dpublish sign {started / 'out'} --key FILE" in done.err
    assert run("sign", "out", "--key", "owner.key").code == 0
    before = files_of(started / "out")
    assert run("stream", "stop", "rides.stream").code == 0
    assert run("stream", "next", "rides.stream", "in/t3.parquet").code == 1
    assert files_of(started / "out") == before

"""`dpublish stream`: start, next, status, stop, and the ways in which snapshots come in."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from pyarrow import csv

from dpublish.cli import stream_feed
from dpublish.data.schema_file import dumps_toml
from dpublish.methods.streams.folder import load_stream
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import SCHEMA, make_ledger, rows, write_snapshots


@pytest.fixture
def begin(run, tmp_path):
    """Start a stream with any option replaced."""
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(SCHEMA))

    def call(state="rides.stream", **changes):
        options = {
            "method": "per-snapshot",
            "columns": "zone,hour",
            "window": "4",
            "schema": "rides.toml",
            "epsilon": "2",
            "ledger": "books.db",
            "dataset": "rides",
        }
        options |= changes
        words = [w for k, v in options.items() if v is not None for w in (f"--{k}", v)]
        return run("stream", "start", state, *words, "-o", "out")

    return call


@pytest.fixture
def started(begin, tmp_path):
    done = begin()
    assert done.code == 0, done.err
    return tmp_path


def test_a_start_says_what_it_costs_and_what_is_secret(begin):
    done = begin()
    assert done.code == 0
    assert "debited: epsilon 2, for every 4 consecutive steps" in done.out
    assert "secrets" in done.out


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"method": "persnapshot"}, 1, "did you mean 'per-snapshot'"),
        ({"horizon": "10"}, 1, "either horizon"),
        ({"epsilon": "6"}, 2, "left of its cap"),
        ({"columns": "street"}, 1, "no column 'street'"),
        ({"schema": "none.toml"}, 3, "cannot read the schema"),
        ({"ledger": "none.db"}, 3, "does not exist"),
    ],
)
def test_a_start_that_is_refused_says_why(begin, tmp_path, changes, code, words):
    done = begin(**changes)
    assert (done.code, words in done.err) == (code, True), done.err
    assert not (tmp_path / "rides.stream").exists()


def test_a_file_is_published_under_its_name_and_once(run, started):
    write_snapshots(started / "in", 2)
    done = run("stream", "next", "rides.stream", "in/t1.parquet")
    assert done.out == "t1: step 1, published with epsilon 0.5\n"
    done = run("stream", "next", "rides.stream", "in/t1.parquet")
    assert (done.code, "published already" in done.out) == (0, True)
    named = ("stream", "next", "rides.stream", "in/t2.parquet", "--time", "t9")
    assert run(*named).code == 0
    assert load_stream(started / "out").times == ("t1", "t9")
    late = run("stream", "next", "rides.stream", "in/t2.parquet")
    assert (late.code, "late" in late.err) == (1, True)


def test_a_folder_is_published_in_natural_order_and_only_what_is_new(run, started):
    write_snapshots(started / "in", 11)
    for name in (".t12.parquet", "t13.parquet.tmp", "t14.part", "t15.csv.partial", "notes.txt"):
        (started / "in" / name).write_text("")
    done = run("stream", "next", "rides.stream", "in")
    assert done.code == 0, done.err
    assert load_stream(started / "out").times == tuple(f"t{n}" for n in range(1, 12))
    done = run("stream", "next", "rides.stream", "in")
    assert (done.code, done.out) == (0, "")
    shutil.copy(started / "in" / "t1.parquet", started / "in" / "t0.parquet")
    shutil.copy(started / "in" / "t1.parquet", started / "in" / "t12.parquet")
    done = run("stream", "next", "rides.stream", "in", "--pattern", "*.parquet", "--json")
    assert json.loads(done.out) == {
        "time": "t12",
        "action": "published",
        "number": 12,
        "spent": "2",
    }
    assert "t0.parquet is left out: 't0' does not come after 't11'" in done.err


def test_the_help_warns_of_exact_labels_and_of_time_limits(run):
    words = " ".join(run("stream", "next", "--help").out.split())
    assert "Labels and the number of snapshots are published exactly" in words
    assert "Set no time limit that a step may reach" in words


def test_rows_on_standard_input_are_one_snapshot(run, started, monkeypatch):
    text = io.BytesIO()
    csv.write_csv(rows(1), text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.getvalue())))
    assert "--time" in run("stream", "next", "rides.stream", "-").err
    done = run("stream", "next", "rides.stream", "-", "--time", "noon")
    assert done.out == "noon: step 1, published with epsilon 0.5\n"


@pytest.mark.parametrize("names", ["-", "list.txt"])
def test_a_list_of_files_is_published_as_its_lines_come(run, started, monkeypatch, names):
    write_snapshots(started / "in", 2)
    text = "in/t1.parquet\n\nin/t2.parquet\n"
    (started / "list.txt").write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert run("stream", "next", "rides.stream", "--files", names).code == 0
    assert load_stream(started / "out").times == ("t1", "t2")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 1, "one SOURCE"),
        (["in", "--files", "-"], 1, "one SOURCE"),
        (["in", "--time", "t1"], 1, "--time is for one snapshot"),
        (["in/t1.parquet", "--watch"], 1, "for a folder"),
        (["in/t1.parquet", "--pattern", "*"], 1, "for a folder"),
        (["in/t7.parquet"], 3, "no file"),
        (["--files", "no-list.txt"], 3, "cannot be read"),
        (["in/t1.parquet", "--ledger", "none.db"], 3, "does not exist"),
        (["in/t1.parquet", "--output", "in"], 1, "not the release folder"),
    ],
)
def test_a_step_that_is_refused_says_why_and_is_not_done(run, started, words, code, told):
    write_snapshots(started / "in", 1)
    done = run("stream", "next", "rides.stream", *words)
    assert (done.code, told in done.err) == (code, True), done.err
    assert load_stream(started / "out").times == ()


def test_the_end_of_the_horizon_is_told_and_no_error(run, begin, tmp_path):
    begin(window=None, horizon="2")
    write_snapshots(tmp_path / "in", 4)
    done = run("stream", "next", "rides.stream", "in")
    assert (done.code, done.out.splitlines()[-1][:18]) == (0, "the stream is over")
    assert run("stream", "next", "rides.stream", "in/t3.parquet").code == 2


def test_a_broken_file_in_a_folder_ends_the_command_and_costs_nothing(run, started):
    write_snapshots(started / "in", 3)
    (started / "in" / "t2.parquet").write_bytes(b"cut")
    done = run("stream", "next", "rides.stream", "in")
    assert done.code == 3
    assert load_stream(started / "out").times == ("t1",)
    write_snapshots(started / "again", 3)
    assert run("stream", "next", "rides.stream", "again").code == 0
    assert load_stream(started / "out").times == ("t1", "t2", "t3")


def test_the_status_shows_steps_budget_and_commitments(run, started):
    write_snapshots(started / "in", 2)
    run("stream", "next", "rides.stream", "in")
    words = run("stream", "status", "rides.stream").out
    assert "a person is hidden within any 4 consecutive steps, at epsilon 2" in words
    assert "steps done: 2" in words
    assert "(whole)" in words
    assert "used already in its window" in words
    plain = run("stream", "status", "rides.stream", "--json").json()
    assert [each["used"] for each in plain["commitments"]] == ["1", "1", "0.5", "0"]
    assert (plain["spent"], plain["worst"], plain["last"]["time"]) == ("1", "1", "t2")
    shutil.rmtree(started / "out" / "data" / "time=t1")
    assert "1 steps are missing" in run("stream", "status", "rides.stream").out


def test_a_stopped_stream_takes_no_further_step(run, started):
    write_snapshots(started / "in", 1)
    assert "stays debited" in run("stream", "stop", "rides.stream").out
    done = run("stream", "next", "rides.stream", "in/t1.parquet")
    assert (done.code, "stopped for good" in done.err) == (1, True)
    assert ", stopped:" in run("stream", "status", "rides.stream").out


def test_the_report_is_written_once_for_all_steps_of_a_command(run, started, monkeypatch):
    write_snapshots(started / "in", 3)
    written = []
    original = StreamOperator.write_pages
    monkeypatch.setattr(
        StreamOperator, "write_pages", lambda self, *key: (written.append(1), original(self, *key))
    )
    run("stream", "next", "rides.stream", "in")
    assert len(written) == 1
    page = (started / "out" / "report.html").read_text()
    for words in ("t3", "Change seen at each step", "within any 4 consecutive steps"):
        assert words in page


def test_a_watched_folder_is_published_as_files_come_until_it_is_interrupted(started):
    write_snapshots(started / "in", 2)
    words = ["stream", "next", "rides.stream", "in", "--watch", "--poll", "0.1"]
    watcher = subprocess.Popen(
        [sys.executable, "-m", "dpublish", *words],
        cwd=started,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watcher.stdout.readline().startswith("t1: step 1")
        assert watcher.stdout.readline().startswith("t2: step 2")
        shutil.copy(started / "in" / "t1.parquet", started / "in" / ".t3.parquet")
        os.replace(started / "in" / ".t3.parquet", started / "in" / "t3.parquet")
        assert watcher.stdout.readline().startswith("t3: step 3")
        watcher.send_signal(signal.SIGINT)
        out, err = watcher.communicate(timeout=60)
    finally:
        if watcher.poll() is None:
            watcher.kill()
            watcher.wait()
    assert (watcher.returncode, "every step so far is whole" in out) == (0, True), err
    assert load_stream(started / "out").times == ("t1", "t2", "t3")


def test_a_file_that_is_still_written_is_waited_for(tmp_path, monkeypatch):
    folder = tmp_path / "in"
    write_snapshots(folder, 2)
    old = time.time() - 100
    os.utime(folder / "t2.parquet", (old, old))
    naps = []
    monkeypatch.setattr(stream_feed.time, "sleep", naps.append)
    feed = stream_feed.watched(folder, None, 50.0)
    assert next(feed) is None  # t1 is fresh, and t2 must not overtake it
    (folder / "t1.parquet").write_bytes(b"longer than it was")
    assert next(feed) is None
    assert [next(feed).name, next(feed).name] == ["t1.parquet", "t2.parquet"]
    assert naps == [50.0, 50.0]


def test_a_stream_on_a_server_is_run_by_the_same_commands(begin, run, tmp_path, postgres_database):
    state = f"{postgres_database}#rides"
    assert begin(state).code == 0
    write_snapshots(tmp_path / "in", 3)
    assert run("stream", "next", state, "in/t1.parquet", "--lease", "5").code == 0
    with StreamOperator.open(state):
        shown = run("stream", "status", state)
        assert f"at work on it: process {os.getpid()} on" in shown.out
        assert "its lease ends at" in shown.out
        refused = run("stream", "next", state, "in/t2.parquet", "--wait", "0.3")
        assert (refused.code, "another operator is at work" in refused.err) == (3, True)
        assert run("stream", "next", state, "in", "--take-over").code == 0
    assert load_stream(tmp_path / "out").times == ("t1", "t2", "t3")
    status = json.loads(run("stream", "status", state, "--json").out)
    assert (status["steps"], status["operator"], status["folder_problem"]) == (3, None, None)
    assert run("stream", "stop", state).code == 0
    assert "stopped for good" in run("stream", "next", state, "in/t3.parquet", "--time", "t4").err


@pytest.mark.parametrize("words", [("--lease", "0"), ("--wait", "-1"), ("--take-over",)])
def test_a_claim_that_makes_no_sense_is_refused(started, run, words):
    write_snapshots(started / "in", 1)
    assert run("stream", "next", "rides.stream", "in", *words).code == 1
    assert load_stream(started / "out").times == ()

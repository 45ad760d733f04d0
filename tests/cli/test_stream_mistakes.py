"""`dpublish stream`: mistakes that would cost a paid stream are named, and cost nothing."""

import os
import shutil

import pytest

from dpublish.data.schema_file import dumps_toml
from dpublish.privacy.ledger import Ledger
from dpublish.publishing.stream_operator import StreamOperator
from dpublish.release.stream_folder import load_stream
from stream_world import RECIPE, SCHEMA, arguments, make_ledger, write_snapshots


@pytest.fixture
def place(tmp_path):
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(SCHEMA))
    write_snapshots(tmp_path / "in", 3)
    return tmp_path


@pytest.fixture
def started(place):
    StreamOperator.start(place / "rides.stream", RECIPE, SCHEMA, **arguments(place)).close()
    return place


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


def test_a_state_file_that_is_not_there_gets_no_lock(run, place):
    before = set(place.iterdir())
    done = run("stream", "next", "nope.stream", "in")
    assert (done.code, "there is no state file" in done.err) == (3, True)
    assert set(place.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "dsft", "--threshold", f"{10**31}/1"],
        ["--method", "dsat", "--controller", "schedule", "--gain", "9" * 400 + "/1"],
        ["--method", "dsat", "--controller", "schedule", "--slope-gain", "9" * 30 + "e50"],
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_before_it_is_paid_for(run, place, words):
    given = "--columns zone --horizon 9 --schema rides.toml --epsilon 1 --dataset rides"
    rest = [*given.split(), "--ledger", "books.db", "-o", "out"]
    done = run("stream", "start", "rides.stream", *words, *rest)
    assert done.code == 1, done.err
    assert not (place / "rides.stream").exists()
    with Ledger(place / "books.db") as ledger:
        assert ledger.status("rides").spent == 0

"""Copies of a state file: whichever is used, a grant pays for one stream and each step once."""

import json
import os
import shutil
from contextlib import closing

import pytest

from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.folder import load_stream, put_line
from dpublish.publishing.streams import operator as stream_operator
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.state import STARTING, StreamFile
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    return tmp_path


@pytest.fixture
def state(workspace):
    return workspace / "rides.stream"


def start(workspace, **changes):
    path = changes.pop("path", workspace / "rides.stream")
    return StreamOperator.start(path, METHOD, SCHEMA, **arguments(workspace, **changes))


def interrupt(monkeypatch, workspace, owner, name, when=lambda: None):
    """Start a stream and be interrupted where `owner.name` would be called."""

    def interrupted(*_, **__):
        when()
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(workspace)
    monkeypatch.undo()


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_start_that_was_finished_cannot_be_finished_again_from_a_copy(
    workspace, state, monkeypatch
):
    interrupt(monkeypatch, workspace, StreamFile, "begin")
    shutil.copy(state, workspace / "copy")
    with start(workspace) as operator:
        operator.next(rows(1), "t1")
    os.replace(workspace / "copy", state)
    shutil.move(workspace / "out", workspace / "first")  # so that its path is free again
    with pytest.raises(InvalidParameter, match="paid for another stream"):
        start(workspace)
    with Ledger(workspace / "books.db") as ledger:
        (grant,) = ledger.status("rides").grants
    assert grant.release_id == load_stream(workspace / "first").receipt.release_id
    assert not (workspace / "out").exists()
    with closing(StreamFile(state)) as file:
        assert file.phase == STARTING  # no second stream was made from the grant


def test_of_two_streams_that_found_one_grant_only_that_in_the_ledger_goes_on(
    workspace, state, monkeypatch
):
    interrupt(monkeypatch, workspace, StreamFile, "begin")
    shutil.copy(state, workspace / "copy")
    interrupt(monkeypatch, workspace, stream_operator, "check_grant")  # a stream, not yet entered
    shutil.copy(state, workspace / "late")
    os.replace(workspace / "copy", state)
    with start(workspace) as operator:
        operator.next(rows(1), "t1")
    with pytest.raises(InvalidParameter, match="paid for another stream"):
        StreamOperator.open(workspace / "late", output=workspace / "elsewhere")
    assert not (workspace / "elsewhere").exists()


def test_a_stream_that_loses_the_race_for_its_grant_takes_no_step(workspace, state, monkeypatch):
    interrupt(monkeypatch, workspace, StreamFile, "begin")
    shutil.copy(state, workspace / "copy")
    interrupt(monkeypatch, workspace, stream_operator, "check_grant")
    shutil.copy(state, workspace / "late")
    os.replace(workspace / "copy", state)
    start(workspace).close()
    monkeypatch.setattr(stream_operator, "check_grant", lambda *_: None)  # looked too early
    with pytest.raises(InvalidParameter, match="paid for another stream"):
        StreamOperator.open(workspace / "late", output=workspace / "elsewhere")


def test_of_two_operators_on_copies_the_second_is_refused_before_it_reads_a_row(workspace, state):
    start(workspace).close()
    shutil.copy(state, workspace / "copy")
    with StreamOperator.open(state) as one, StreamOperator.open(workspace / "copy") as other:
        one.next(rows(1), "t1")
        before = tree(workspace / "out")
        with pytest.raises(CorruptRelease, match="older copy"):
            other.next("a file that is never opened", "t1")
        assert tree(workspace / "out") == before
        assert one.next(rows(2), "t2").number == 2


def test_a_step_made_on_a_copy_never_replaces_a_published_one(workspace, state, monkeypatch):
    start(workspace).close()
    shutil.copy(state, workspace / "copy")
    with StreamOperator.open(state) as one, StreamOperator.open(workspace / "copy") as other:
        one.next(rows(1), "t1")
        before = tree(workspace / "out")
        monkeypatch.setattr(stream_operator, "mend_list", lambda *_: None)  # looked too early
        for _ in range(2):  # the step, and its delivery once more
            with pytest.raises(CorruptRelease, match="older copy"):
                other.next(rows(1), "t1")
        assert tree(workspace / "out") == before
        assert one.next(rows(2), "t2").number == 2


def test_a_line_is_written_over_a_beginning_of_itself_only(workspace):
    start(workspace).close()
    folder = workspace / "out"
    put_line(folder, 0, b"one")
    put_line(folder, 0, b"one\n")
    put_line(folder, 4, b"two\n")
    for line in (b"", b"two", b"tow\n", b"\n"):
        with pytest.raises(CorruptRelease):
            put_line(folder, 4, line)
    assert (folder / "steps.jsonl").read_bytes() == b"one\ntwo\n"


def test_another_folder_does_not_make_an_older_state_file_good(workspace, state):
    with start(workspace) as operator:
        operator.next(rows(1), "t1")
        shutil.copy(state, workspace / "old")
        operator.next(rows(2), "t2")
    os.replace(workspace / "old", state)
    with pytest.raises(CorruptRelease, match="older copy"):
        StreamOperator.open(state, output=workspace / "new")
    assert not (workspace / "new").exists()
    with pytest.raises(CorruptRelease, match="older copy"):
        StreamOperator.open(state)  # and the folder is still the recorded one


def test_a_stream_has_one_folder_at_a_time(workspace, state):
    with start(workspace) as operator:
        operator.next(rows(1), "t1")
    shutil.copytree(workspace / "out", workspace / "second")
    for folder in ("second", "third"):
        with pytest.raises(InvalidParameter, match="still at"):
            StreamOperator.open(state, output=workspace / folder)
    assert not (workspace / "third").exists()
    (workspace / "alias").symlink_to(workspace / "out")
    StreamOperator.open(state, output=workspace / "alias").close()
    (workspace / "alias").unlink()
    shutil.rmtree(workspace / "out")
    with StreamOperator.open(state, output=workspace / "second") as operator:
        assert operator.next(rows(2), "t2").number == 2


def test_a_folder_that_vanishes_is_noticed_before_a_row_is_read(workspace):
    with start(workspace) as operator:
        operator.next(rows(1), "t1")
        shutil.move(workspace / "out", workspace / "away")
        with pytest.raises(CorruptRelease, match="gone"):
            operator.next("a file that is never opened", "t2")
        assert not (workspace / "out").exists()
        shutil.move(workspace / "away", workspace / "out")
        assert operator.next(rows(2), "t2").number == 2


def test_a_folder_whose_head_is_broken_is_named(workspace, state):
    start(workspace).close()
    head = workspace / "out" / "stream.json"
    plain = json.loads(head.read_text())
    head.write_text(json.dumps(plain | {"receipt": []}))
    with pytest.raises(CorruptRelease, match=r"does not hold what its stream\.json says"):
        StreamOperator.open(state)

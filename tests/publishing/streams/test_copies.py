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
def place(tmp_path):
    make_ledger(tmp_path)
    return tmp_path


@pytest.fixture
def state(place):
    return place / "rides.stream"


def start(place, **changes):
    path = changes.pop("path", place / "rides.stream")
    return StreamOperator.start(path, METHOD, SCHEMA, **arguments(place, **changes))


def interrupt(monkeypatch, place, owner, name, when=lambda: None):
    """Start a stream and be interrupted where `owner.name` would be called."""

    def interrupted(*_, **__):
        when()
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(place)
    monkeypatch.undo()


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_start_that_was_finished_cannot_be_finished_again_from_a_copy(place, state, monkeypatch):
    interrupt(monkeypatch, place, StreamFile, "begin")
    shutil.copy(state, place / "copy")
    with start(place) as operator:
        operator.next(rows(1), "t1")
    os.replace(place / "copy", state)
    shutil.move(place / "out", place / "first")  # so that its place is free again
    with pytest.raises(InvalidParameter, match="paid for another stream"):
        start(place)
    with Ledger(place / "books.db") as ledger:
        (grant,) = ledger.status("rides").grants
    assert grant.release_id == load_stream(place / "first").receipt.release_id
    assert not (place / "out").exists()
    with closing(StreamFile(state)) as file:
        assert file.phase == STARTING  # no second stream was made from the grant


def test_of_two_streams_that_found_one_grant_only_that_in_the_ledger_goes_on(
    place, state, monkeypatch
):
    interrupt(monkeypatch, place, StreamFile, "begin")
    shutil.copy(state, place / "copy")
    interrupt(monkeypatch, place, stream_operator, "check_grant")  # a stream, not yet entered
    shutil.copy(state, place / "late")
    os.replace(place / "copy", state)
    with start(place) as operator:
        operator.next(rows(1), "t1")
    with pytest.raises(InvalidParameter, match="paid for another stream"):
        StreamOperator.open(place / "late", output=place / "elsewhere")
    assert not (place / "elsewhere").exists()


def test_a_stream_that_loses_the_race_for_its_grant_takes_no_step(place, state, monkeypatch):
    interrupt(monkeypatch, place, StreamFile, "begin")
    shutil.copy(state, place / "copy")
    interrupt(monkeypatch, place, stream_operator, "check_grant")
    shutil.copy(state, place / "late")
    os.replace(place / "copy", state)
    start(place).close()
    monkeypatch.setattr(stream_operator, "check_grant", lambda *_: None)  # looked too early
    with pytest.raises(InvalidParameter, match="paid for another stream"):
        StreamOperator.open(place / "late", output=place / "elsewhere")


def test_of_two_operators_on_copies_the_second_is_refused_before_it_reads_a_row(place, state):
    start(place).close()
    shutil.copy(state, place / "copy")
    with StreamOperator.open(state) as one, StreamOperator.open(place / "copy") as other:
        one.next(rows(1), "t1")
        before = tree(place / "out")
        with pytest.raises(CorruptRelease, match="older copy"):
            other.next("a file that nobody opens", "t1")
        assert tree(place / "out") == before
        assert one.next(rows(2), "t2").number == 2


def test_a_step_made_on_a_copy_never_replaces_a_published_one(place, state, monkeypatch):
    start(place).close()
    shutil.copy(state, place / "copy")
    with StreamOperator.open(state) as one, StreamOperator.open(place / "copy") as other:
        one.next(rows(1), "t1")
        before = tree(place / "out")
        monkeypatch.setattr(stream_operator, "mend_list", lambda *_: None)  # looked too early
        for _ in range(2):  # the step, and its delivery once more
            with pytest.raises(CorruptRelease, match="older copy"):
                other.next(rows(1), "t1")
        assert tree(place / "out") == before
        assert one.next(rows(2), "t2").number == 2


def test_a_line_is_written_over_a_beginning_of_itself_only(place):
    start(place).close()
    folder = place / "out"
    put_line(folder, 0, b"one")
    put_line(folder, 0, b"one\n")
    put_line(folder, 4, b"two\n")
    for line in (b"", b"two", b"tow\n", b"\n"):
        with pytest.raises(CorruptRelease):
            put_line(folder, 4, line)
    assert (folder / "steps.jsonl").read_bytes() == b"one\ntwo\n"


def test_another_folder_does_not_make_an_older_state_file_good(place, state):
    with start(place) as operator:
        operator.next(rows(1), "t1")
        shutil.copy(state, place / "old")
        operator.next(rows(2), "t2")
    os.replace(place / "old", state)
    with pytest.raises(CorruptRelease, match="older copy"):
        StreamOperator.open(state, output=place / "new")
    assert not (place / "new").exists()
    with pytest.raises(CorruptRelease, match="older copy"):
        StreamOperator.open(state)  # and the folder is still the recorded one


def test_a_stream_has_one_folder_at_a_time(place, state):
    with start(place) as operator:
        operator.next(rows(1), "t1")
    shutil.copytree(place / "out", place / "second")
    for folder in ("second", "third"):
        with pytest.raises(InvalidParameter, match="still at"):
            StreamOperator.open(state, output=place / folder)
    assert not (place / "third").exists()
    (place / "alias").symlink_to(place / "out")
    StreamOperator.open(state, output=place / "alias").close()
    (place / "alias").unlink()
    shutil.rmtree(place / "out")
    with StreamOperator.open(state, output=place / "second") as operator:
        assert operator.next(rows(2), "t2").number == 2


def test_a_folder_that_vanishes_is_noticed_before_a_row_is_read(place):
    with start(place) as operator:
        operator.next(rows(1), "t1")
        shutil.move(place / "out", place / "away")
        with pytest.raises(CorruptRelease, match="gone"):
            operator.next("a file that nobody opens", "t2")
        assert not (place / "out").exists()
        shutil.move(place / "away", place / "out")
        assert operator.next(rows(2), "t2").number == 2


def test_a_folder_whose_head_is_broken_is_named(place, state):
    start(place).close()
    head = place / "out" / "stream.json"
    plain = json.loads(head.read_text())
    head.write_text(json.dumps(plain | {"receipt": []}))
    with pytest.raises(CorruptRelease, match=r"does not hold what its stream\.json says"):
        StreamOperator.open(state)

"""The operator: each step is done once, is durable before it leaves, and can be taken up again."""

import json
import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import (
    BudgetExhausted,
    CorruptRelease,
    InputError,
    InvalidParameter,
    LedgerUnavailable,
    UnreadableData,
)
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.folder import head_hash, load_stream
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.publishing.streams import delivery as stream_delivery
from dpublish.publishing.streams import grant as stream_grant
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.state import StreamStore
from dpublish.publishing.streams.status import stream_status
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows, write_snapshots


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    return tmp_path


@pytest.fixture
def state(workspace):
    return workspace / "rides.stream"


@pytest.fixture(params=["file", "server"])
def anywhere(request, workspace):
    """Where the state of a stream may be kept."""
    if request.param == "file":
        return workspace / "rides.stream"
    return request.getfixturevalue("postgres_database") + "#rides"


def start(workspace, method=METHOD, **changes):
    path = changes.pop("path", workspace / "rides.stream")
    return StreamOperator.start(path, method, SCHEMA, **arguments(workspace, **changes))


def spent(workspace):
    with Ledger(workspace / "books.db") as ledger:
        return ledger.status("rides").spent


class Watched:
    """A table that notes when it is read, and may fail then."""

    schema = SCHEMA

    def __init__(self, error=None):
        self._table = open_table(rows(1), SCHEMA)
        self.neighbors = self._table.neighbors
        self.error = error
        self.reads = 0

    def bound(self, *given):
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self._table.bound(*given)


def test_steps_are_published_in_the_folder_and_the_ledger_is_debited_once(workspace, anywhere):
    with start(workspace, path=anywhere) as operator:
        for number in (1, 2, 3):
            step = operator.next(rows(number), f"t{number}")
            assert (step.number, step.action) == (number, "published")
        operator.write_pages()
    stream = load_stream(workspace / "out")
    assert stream.times == ("t1", "t2", "t3")
    assert np.array_equal(stream.at().ravel(), step.estimate)
    assert spent(workspace) == 2
    with Ledger(workspace / "books.db") as ledger:
        (grant,) = ledger.status("rides").grants
        assert (grant.state, grant.release_hash) == ("published", head_hash(workspace / "out"))
        assert grant.release_id == stream.receipt.release_id
    assert {path.name for path in (workspace / "out").iterdir()} == {
        "stream.json",
        "steps.jsonl",
        "data",
        "datapackage.json",
        "manifest.json",
        "report.html",
    }


def test_a_stream_goes_on_where_it_was_left(workspace, anywhere):
    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
        before = operator.stream.estimate
    with StreamOperator.open(anywhere) as operator:
        assert np.array_equal(operator.stream.estimate, before)
        assert operator.next(rows(2), "t2").number == 2


def test_the_secret_noise_of_a_threshold_survives_and_is_kept_in_the_state_file_only(
    workspace, state
):
    method = make_stream_method("dsft", {"columns": ("zone", "hour"), "horizon": 50, "releases": 5})
    with start(workspace, method, epsilon="0.00000001") as operator:  # a long threshold
        for number in range(1, 6):
            operator.next(rows(1), f"t{number}")
        operator.write_pages()
        secret = operator.stream.state().secret
    noise = secret["vector"]["threshold_noise"]
    assert abs(noise) > 10**6
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert shows(state, noise)
    with StreamOperator.open(state) as operator:
        assert operator.stream.state().secret == secret
    public = [path for path in (workspace / "out").rglob("*") if path.is_file()]
    assert len(public) == 10
    assert [path for path in public if shows(path, noise)] == []
    for time in load_stream(workspace / "out").times:
        for values in load_stream(workspace / "out").table(time).itercolumns():
            assert noise not in values.to_pylist()


def shows(path, number):
    """Say whether a file has a number in it, in one of the forms in which it could be written."""
    whole, real = abs(number), float(abs(number))
    texts = [f"{whole}", f"{whole:,}", f"{whole:_}", f"{whole:x}", f"{whole:X}", f"{real:.6e}"]
    forms = [text.encode() for text in texts]
    for order in "<>":
        forms += [struct.pack(f"{order}q", sign * whole) for sign in (1, -1)]
        forms += [struct.pack(f"{order}d", sign * real) for sign in (1, -1)]
    content = path.read_bytes()
    return any(form in content for form in forms)


@pytest.mark.parametrize(
    "leak",
    [
        lambda noise: str(noise).encode(),
        lambda noise: f"a threshold of {noise:,}".encode(),
        lambda noise: hex(noise).encode(),
        lambda noise: np.array([1, noise, 3]).tobytes(),
        lambda noise: np.array([0.5, noise]).tobytes(),
    ],
)
@pytest.mark.parametrize("noise", [123_456_789, -987_654_321])
def test_a_number_that_were_let_out_would_be_seen(tmp_path, leak, noise):
    path = tmp_path / "leak"
    path.write_bytes(b"before " + leak(noise) + b" after")
    assert shows(path, noise)
    assert not shows(path, noise + 1)


def test_a_time_that_was_published_is_neither_read_nor_spent_again(workspace, anywhere):
    table = Watched()
    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
        before = operator.stream.spent
        assert operator.next(table, "t1") is None
        assert (operator.stream.number, operator.stream.spent, table.reads) == (1, before, 0)


@pytest.mark.parametrize("label", ["t9", "T10", "t010", "a", "t"])
def test_a_late_label_is_refused_before_a_row_is_read(workspace, label):
    table = Watched()
    with start(workspace) as operator:
        operator.next(rows(1), "t10")
        with pytest.raises(InvalidParameter, match="late"):
            operator.next(table, label)
        assert table.reads == 0
        assert operator.next(table, "t11").number == 2


@pytest.mark.parametrize("label", ["", "  ", "two\nlines", "x" * 300, 7])
def test_a_label_that_cannot_name_a_step_is_refused(workspace, label):
    with start(workspace) as operator, pytest.raises(InvalidParameter, match="time"):
        operator.next(Watched(), label)


def test_a_second_operator_is_refused_at_once_and_told_who_holds_the_stream(workspace, anywhere):
    with start(workspace, path=anywhere):
        with pytest.raises(InputError, match=f"another operator.*process {os.getpid()} on"):
            StreamOperator.open(anywhere)
        probe = (
            "import sys\n"
            "from dpublish.errors import InputError\n"
            "from dpublish.publishing.streams.operator import StreamOperator\n"
            "try:\n"
            f"    StreamOperator.open({str(anywhere)!r})\n"
            "except InputError as error:\n"
            "    sys.exit(0 if 'another operator' in str(error) else str(error))\n"
            "sys.exit('not refused')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", probe], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert stream_status(anywhere).operator["pid"] == os.getpid()
    assert stream_status(anywhere).operator is None
    StreamOperator.open(anywhere).close()


def test_an_operator_whose_lock_was_lost_cannot_commit(workspace, state):
    with start(workspace) as first:
        (state.parent / (state.name + ".lock")).unlink()  # a lock that does not hold
        with StreamOperator.open(state) as second:
            with pytest.raises(InputError, match="another operator has moved"):
                first.next(rows(1), "t1")
            assert second.next(rows(1), "t1").number == 1


@pytest.mark.parametrize(
    "error", [UnreadableData("cannot be read"), MemoryError("5 GB"), KeyboardInterrupt()]
)
def test_a_step_that_fails_while_reading_was_not_done_and_can_be_repeated(
    workspace, anywhere, error
):
    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
        before = stream_state(operator)
        kind = InputError if isinstance(error, MemoryError) else type(error)
        with pytest.raises(kind) as caught:
            operator.next(Watched(error), "t2")
        assert "5 GB" not in str(caught.value)
        assert stream_state(operator) == before
        assert not (workspace / "out" / "data" / "time=t2").exists()
        assert operator.next(rows(2), "t2").number == 2


def stream_state(operator):
    state = operator.stream.state()
    return state.public, state.secret, {name: a.tolist() for name, a in state.arrays.items()}


def test_a_repeated_attempt_draws_fresh_noise(workspace, anywhere, monkeypatch):
    drawn = []

    def refuse(self, state, *, content, **named):
        drawn.append(content)
        raise InputError("the disk went away")

    monkeypatch.setattr(StreamStore, "commit_step", refuse)
    with start(workspace, path=anywhere) as operator:
        for _ in range(3):
            with pytest.raises(InputError):
                operator.next(rows(1), "t1")
        assert not list((workspace / "out" / "data").iterdir())
        assert len(set(drawn)) == 3


def test_a_full_disk_is_noticed_before_a_row_is_read(workspace, anywhere, monkeypatch):
    table = Watched()
    monkeypatch.setattr(
        stream_delivery.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20)
    )
    with start(workspace, path=anywhere) as operator:
        with pytest.raises(InputError, match="no row was read"):
            operator.next(table, "t1")
        assert table.reads == 0


def test_a_step_that_cannot_be_delivered_is_kept_and_delivered_later(
    workspace, anywhere, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
        monkeypatch.setattr(stream_delivery, "write_file", full)
        with pytest.raises(InputError, match="done and kept"):
            operator.next(rows(2), "t2")
        assert stream_status(anywhere).undelivered == 2
        assert load_stream(workspace / "out").times == ("t1",)
    monkeypatch.undo()
    with StreamOperator.open(anywhere) as operator:
        assert load_stream(workspace / "out").times == ("t1", "t2")
        assert operator.next(rows(2), "t2") is None
    assert stream_status(anywhere).undelivered is None


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_a_list_of_steps_that_was_cut_is_mended(workspace, anywhere, cut):
    with start(workspace, path=anywhere) as operator:
        for number in (1, 2):
            operator.next(rows(number), f"t{number}")
    listed = workspace / "out" / "steps.jsonl"
    whole = listed.read_bytes()
    listed.write_bytes(whole[:cut])
    StreamOperator.open(anywhere).close()
    assert listed.read_bytes() == whole


def test_an_older_copy_of_the_state_file_is_refused(workspace, state):
    with start(workspace) as operator:
        operator.next(rows(1), "t1")
        shutil.copy(state, workspace / "old")
        operator.next(rows(2), "t2")
    os.replace(workspace / "old", state)
    with pytest.raises(CorruptRelease, match="older copy"):
        StreamOperator.open(state)


def test_a_folder_that_was_moved_is_taken_up_where_it_is_now(workspace, anywhere):
    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
    (workspace / "out").rename(workspace / "moved")
    with pytest.raises(CorruptRelease, match="--output"):
        StreamOperator.open(anywhere)
    with StreamOperator.open(anywhere, output=workspace / "moved") as operator:
        operator.next(rows(2), "t2")
    with StreamOperator.open(anywhere):
        assert load_stream(workspace / "moved").times == ("t1", "t2")


def test_a_folder_that_is_lost_is_begun_anew_and_says_what_is_missing(workspace, anywhere):
    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
    shutil.rmtree(workspace / "out")
    with StreamOperator.open(anywhere, output=workspace / "new") as operator:
        operator.next(rows(2), "t2")
    stream = load_stream(workspace / "new")
    assert (stream.times, stream.missing()) == (("t1", "t2"), ["t1"])
    assert "first of t1" in stream_status(anywhere).folder_problem


def test_the_folder_of_another_stream_is_refused(workspace, anywhere):
    start(workspace, path=anywhere).close()
    start(workspace, path=workspace / "other.stream", output=workspace / "other").close()
    with pytest.raises(InvalidParameter, match="not the release folder of this stream"):
        StreamOperator.open(anywhere, output=workspace / "other")


def test_a_ledger_that_made_no_grant_for_the_stream_is_refused(workspace, state, tmp_path_factory):
    start(workspace).close()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    make_ledger(elsewhere)
    with pytest.raises(InvalidParameter, match="has no grant for this stream"):
        StreamOperator.open(state, ledger=elsewhere / "books.db")
    with pytest.raises(LedgerUnavailable):
        StreamOperator.open(state, ledger=elsewhere / "nothing.db")
    StreamOperator.open(state).close()  # a wrong answer is not remembered


def test_a_ledger_that_was_moved_is_found_again(workspace, anywhere):
    start(workspace, path=anywhere).close()
    (workspace / "books.db").rename(workspace / "moved.db")
    with pytest.raises(LedgerUnavailable):
        StreamOperator.open(anywhere)
    StreamOperator.open(anywhere, ledger=workspace / "moved.db").close()
    StreamOperator.open(anywhere).close()


def test_after_the_horizon_nothing_more_is_published(workspace, anywhere):
    method = PerSnapshot(columns=("zone",), horizon=2)
    with start(workspace, method=method, path=anywhere) as operator:
        operator.next(rows(1), "t1")
        operator.next(rows(2), "t2")
        assert operator.is_over
        with pytest.raises(BudgetExhausted, match="2 steps are all published"):
            operator.next(Watched(), "t3")
    assert stream_status(anywhere).spent == 2


def test_a_stopped_stream_is_over_for_good_and_its_budget_stays_debited(workspace, anywhere):
    with start(workspace, path=anywhere) as operator:
        operator.next(rows(1), "t1")
        operator.stop()
    with StreamOperator.open(anywhere) as operator:
        with pytest.raises(InvalidParameter, match="stopped for good"):
            operator.next(Watched(), "t2")
        assert operator.next(Watched(), "t1") is None
    assert spent(workspace) == 2


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"epsilon": "6"}, BudgetExhausted),
        ({"epsilon": "0"}, InvalidParameter),
        ({"epsilon": float("nan")}, InvalidParameter),
        ({"epsilon": "2000000"}, InvalidParameter),
        ({"dataset": "roads"}, InvalidParameter),
        ({"purpose": "two\nlines"}, InvalidParameter),
        ({"output": "/nowhere/at/all"}, InputError),
        ({"ledger": "/nowhere.db"}, LedgerUnavailable),
        ({"method": PerSnapshot(columns=("wealth",), window=3)}, InvalidParameter),
        ({"method": PerSnapshot(columns=("user",), window=3)}, InvalidParameter),
    ],
)
def test_a_start_that_is_refused_is_free_and_leaves_nothing_behind(
    workspace, state, changes, error
):
    with pytest.raises(error):
        start(workspace, **changes)
    assert spent(workspace) == 0
    assert not state.exists()
    assert not (workspace / "out").exists()
    start(workspace).close()
    assert spent(workspace) == 2


def test_a_start_that_is_repeated_when_it_was_finished_costs_nothing(workspace, anywhere):
    with start(workspace, path=anywhere) as first:
        assert first.is_new
        name = first.stream.receipt.release_id
    with start(workspace, path=anywhere) as again:
        assert not again.is_new
        assert again.stream.receipt.release_id == name
    assert spent(workspace) == 2
    with pytest.raises(InvalidParameter, match="its epsilon differs; go on with `dpublish stream"):
        start(workspace, path=anywhere, epsilon="1")
    assert spent(workspace) == 2


def test_an_interrupted_start_is_finished_by_the_same_start_only(workspace, anywhere, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamStore, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(workspace, path=anywhere)
    monkeypatch.undo()
    assert spent(workspace) == 2
    with pytest.raises(InvalidParameter, match="repeat `dpublish stream start`"):
        StreamOperator.open(anywhere)
    with pytest.raises(InvalidParameter, match="its epsilon differs"):
        start(workspace, path=anywhere, epsilon="1")
    start(workspace, path=anywhere).close()
    assert spent(workspace) == 2
    assert load_stream(workspace / "out").receipt.ledger_entry == 3


def test_a_twin_that_forgets_its_grant_pays_twice(workspace, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamStore, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(workspace)
    monkeypatch.undo()
    original = stream_grant.obtain_budget

    def forgetful(file, hides):
        file.put(token="another")
        return original(file, hides)

    monkeypatch.setattr(stream_grant, "obtain_budget", forgetful)
    start(workspace).close()
    assert spent(workspace) == 4


@pytest.mark.parametrize("content", [b"", b"not a database", b"x" * 5000])
def test_a_foreign_file_is_no_state_file_and_stays_as_it_is(workspace, state, content):
    state.write_bytes(content)
    for use in (StreamOperator.open, stream_status):
        with pytest.raises(InputError, match="not the state of a stream"):
            use(state)
    with pytest.raises(InputError, match="not the state of a stream"):
        start(workspace)
    assert state.read_bytes() == content


def test_a_missing_a_newer_and_a_damaged_state_file_are_refused(workspace, state):
    for use in (StreamOperator.open, stream_status):
        with pytest.raises(InputError, match="does not exist; `dpublish stream start`"):
            use(state)
    start(workspace).close()
    older = "has format {}, of an older dpublish.*: go on with the version of dpublish that started"
    said_of = {4: "newer than 3: upgrade dpublish", 2: older.format(2), 1: older.format(1)}
    for number, said in said_of.items():
        with sqlite3.connect(state) as connection:
            connection.execute(f"PRAGMA user_version = {number}")
        connection.close()
        content = state.read_bytes()
        for use in (StreamOperator.open, stream_status):
            with pytest.raises(InputError, match=said):
                use(state)
        assert state.read_bytes() == content
    with sqlite3.connect(state) as connection:
        connection.execute("PRAGMA user_version = 3")
        connection.execute("UPDATE metadata SET value = '{' WHERE name = 'public'")
    connection.close()
    with pytest.raises(InputError, match="damaged"):
        StreamOperator.open(state)


def test_a_snapshot_file_that_cannot_be_read_costs_nothing(workspace):
    bad = workspace / "t1.parquet"
    bad.write_bytes(b"no rows")
    with start(workspace) as operator:
        for source in (bad, workspace / "nothing.csv"):
            with pytest.raises(UnreadableData):
                operator.next(source, "t1")
        assert operator.stream.number == 0
        write_snapshots(workspace / "in", 1)
        assert operator.next(workspace / "in" / "t1.parquet", "t1").number == 1


def test_a_table_of_another_schema_is_refused(workspace):
    other = Schema((column("zone", "category", values=["north"]),), unit="user")
    table = open_table(rows(1), other)
    with start(workspace) as operator, pytest.raises(InvalidParameter, match="another schema"):
        operator.next(table, "t1")


def test_the_status_tells_what_coming_windows_have_used(workspace, anywhere):
    with start(workspace, path=anywhere) as operator:
        for number in (1, 2):
            operator.next(rows(number), f"t{number}")
    found = stream_status(anywhere)
    half = Fraction(1, 2)
    assert (found.spent, found.worst, found.steps) == (1, 1, 2)
    assert found.commitments == ((3, 2 * half), (4, 2 * half), (5, half), (6, 0))
    assert (found.last.time, found.folder_problem) == ("t2", None)
    assert json.loads(json.dumps(found.to_dict()))["commitments"][2] == {"step": 5, "used": "0.5"}


def test_empty_and_one_row_snapshots_are_published_like_any_other(workspace):
    with start(workspace) as operator:
        assert operator.next(rows(1).slice(0, 0), "t1").number == 1
        assert operator.next(rows(1).slice(0, 1), "t2").number == 2

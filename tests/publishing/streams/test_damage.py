"""A state file that does not hold what was written: said in advice, never in what it holds."""

import contextlib
import json
import sqlite3
from dataclasses import replace

import pytest

from dpublish.errors import DPublishError, InputError, LedgerTampered
from dpublish.methods.streams.method import make_stream_method
from dpublish.publishing.streams.grant import check_grant
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.state import StreamFile
from dpublish.publishing.streams.status import stream_status
from stream_world import SCHEMA, arguments, make_ledger, rows

METHOD = make_stream_method("dsft", {"columns": ("zone", "hour"), "horizon": 9, "releases": 3})
SECRET = "no one may read this"
WRONG = ["null", "7", "[]", "{}", '"text"', f'["{SECRET}"]', f'{{"{SECRET}": 1}}', f"{SECRET}"]


@pytest.fixture
def state(tmp_path):
    """A stream that has a threshold, a step in its list and one that waits to be delivered."""
    make_ledger(tmp_path)
    path = tmp_path / "rides.stream"
    with StreamOperator.start(path, METHOD, SCHEMA, **arguments(tmp_path)) as operator:
        for number in (1, 2):
            operator.next(rows(number), f"t{number}")
    return path


def change(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as connection, connection:
        connection.execute(statement, values)


def test_a_receipt_for_more_than_the_ledger_debited_is_refused(state):
    with contextlib.closing(StreamFile(state)) as file:
        receipt, ledger = file.stream().receipt, file.text("ledger")
    check_grant(ledger, receipt)
    twice = tuple((purpose, 2 * share) for purpose, share in receipt.shares)
    forged = replace(receipt, epsilon=2 * receipt.epsilon, shares=twice)
    with pytest.raises(LedgerTampered, match="did not debit"):
        check_grant(ledger, forged)


def use(path):
    """Look at a stream and take it up; give the complaints."""
    complaints = []
    try:
        stream_status(path).to_dict()
    except DPublishError as error:
        complaints.append(error)
    try:
        with StreamOperator.open(path) as operator:
            operator.problem_with("t3")
    except DPublishError as error:
        complaints.append(error)
    return complaints


@pytest.mark.parametrize(
    "name",
    [
        "phase",
        "method",
        "settings",
        "schema",
        "receipt",
        "public",
        "secret",
        "output",
        "ledger",
        "dataset",
        "operator",
    ],
)
def test_a_fact_that_is_lost_or_wrong_is_told_without_its_text(state, name):
    whole = state.read_bytes()
    for value in WRONG:
        change(state, "UPDATE metadata SET value = ? WHERE name = ?", value, name)
        for error in use(state):
            assert SECRET not in str(error)
            assert error.exit_code in (1, 3)
        state.write_bytes(whole)
    if name == "operator":  # no one has opened it yet: that is allowed
        return
    change(state, "DELETE FROM metadata WHERE name = ?", name)
    complaints = use(state)
    assert complaints
    assert all(isinstance(error, InputError) for error in complaints)
    assert all(str(error) == f"the state file {state} is damaged" for error in complaints)


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("public", "history"),
        ("public", "account"),
        ("public", "estimate"),
        ("secret", "vector"),
        ("receipt", "epsilon"),
        ("receipt", "release_id"),
    ],
)
def test_a_part_that_is_missing_is_damage(state, part, key):
    file = StreamFile(state)
    plain = file.metadata(part)
    file.close()
    del plain[key]
    change(state, "UPDATE metadata SET value = ? WHERE name = ?", json.dumps(plain), part)
    assert [str(error) for error in use(state)] == [f"the state file {state} is damaged"] * 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE arrays SET type = 'O'",
        "UPDATE arrays SET type = '<i4'",
        "UPDATE arrays SET shape = '[3]'",
        "UPDATE arrays SET shape = '{'",
        "UPDATE arrays SET data = NULL",
        "DELETE FROM arrays",
        "DROP TABLE arrays",
        "DROP TABLE metadata",
        "DROP TABLE steps",
        "UPDATE steps SET line = 'text'",
        "UPDATE steps SET line = x'7b7d'",
        "DELETE FROM steps WHERE number = 2",
        "UPDATE metadata SET value = CAST(x'ff' || value AS TEXT) WHERE name = 'secret'",
    ],
)
def test_tables_that_were_tampered_with_are_damage(state, statement):
    change(state, statement)
    complaints = use(state)
    assert len(complaints) == 2
    for error in complaints:
        assert isinstance(error, InputError)
        assert "damaged" in str(error)
        assert "threshold_noise" not in str(error)


def test_a_step_that_waits_and_is_damaged_is_not_delivered(state):
    change(state, "INSERT INTO outbox VALUES (2, 'text')")
    assert [str(error) for error in use(state)] == [f"the state file {state} is damaged"] * 2


def test_a_status_shows_one_state_although_a_step_is_committed_meanwhile(state, monkeypatch):
    original = StreamFile.stream

    def overtaken(self):
        stream = original(self)
        line = self.last_step().to_line().replace(b'"number": 2', b'"number": 3')
        with contextlib.suppress(sqlite3.OperationalError):  # the status may make it wait
            change(state, "INSERT INTO steps VALUES (3, 't3', ?, 9999)", line)
        return stream

    monkeypatch.setattr(StreamFile, "stream", overtaken)
    found = stream_status(state)
    assert (found.steps, found.last.number, found.folder_problem) == (2, 2, None)


def test_a_status_takes_a_line_that_has_just_come_for_no_problem(state):
    content = (state.parent / "out" / "data" / "time=t2" / "counts.parquet").read_bytes()
    change(state, "INSERT INTO outbox VALUES (2, ?)", content)  # delivered, but not yet marked
    found = stream_status(state)
    assert (found.undelivered, found.folder_problem) == (2, None)
    with (state.parent / "out" / "steps.jsonl").open("rb+") as listed:
        listed.truncate(10)
    assert stream_status(state).folder_problem == "the list of steps is not whole"


def test_an_operator_may_be_closed_twice_and_is_then_of_no_use(state):
    operator = StreamOperator.open(state)
    operator.close()
    with StreamOperator.open(state) as second:
        operator.close()  # and does not close what the second has opened since
        assert second.next(rows(3), "t3").number == 3
        assert stream_status(state).operator is not None
    with pytest.raises(InputError, match="was closed"):
        operator.next(rows(4), "t4")


def test_a_state_file_that_is_not_there_gets_no_lock(tmp_path):
    with pytest.raises(InputError, match="does not exist; `dpublish stream start`"):
        StreamOperator.open(tmp_path / "nope.stream")
    assert list(tmp_path.iterdir()) == []

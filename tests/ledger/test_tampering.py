"""Whatever someone with a plain SQLite tool does to the file, `verify` finds it."""

import sqlite3
from dataclasses import replace

import pytest

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import plain_generator, secure
from ledger.ledger_backends import clone, files_only
from ledger.ledger_forgery import KINDS, make_honest, read, renumber, reseal, tamper, verify, write

COLUMNS = ("time", "kind", "dataset", "body", "previous", "hash")
VALUES = {"other text": "'forged'"}
BYTES = {  # a server's columns hold text and nothing else
    "a number": "7",
    "the same as bytes": "CAST({} AS BLOB)",
    "not quite text": "CAST(x'ff' AS TEXT)",
}
ROWS = range(1, len(KINDS) + 1)


@pytest.fixture(scope="module")
def originals():
    """The honest ledger of each backend, made once."""
    return {}


@pytest.fixture
def honest(originals, backend, tmp_path_factory, request):
    if backend not in originals:
        folder = tmp_path_factory.mktemp("honest")
        if backend == "sqlite":
            originals[backend] = make_honest(folder / "books.db")
        else:
            database = request.getfixturevalue("ledger_database")
            originals[backend] = make_honest(f"{database}#{__name__.replace('.', '_')}")
    return originals[backend]


@pytest.fixture
def path(honest, locate):
    return clone(honest, locate())


def test_an_honest_ledger_is_intact_and_tampering_with_nothing_leaves_it_so(path):
    before = verify(path)
    assert (before.entries, before.problems, before.is_intact) == (len(KINDS), (), True)
    tamper(path)
    write(path, reseal(read(path)))
    assert verify(path) == before


@pytest.mark.parametrize("number", ROWS)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", VALUES)
def test_an_edited_field_is_found(path, number, column, value):
    is_found(path, number, column, VALUES[value])


@files_only
@pytest.mark.parametrize("number", ROWS)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", BYTES)
def test_a_field_that_is_no_text_is_found(path, number, column, value):
    is_found(path, number, column, BYTES[value].format(column))


def is_found(path, number, column, forged):
    tamper(path, f"UPDATE entries SET {column} = {forged} WHERE number = {number}")
    assert any(f"entry {number}:" in problem for problem in verify(path).problems)


@files_only
def test_bytes_that_only_look_like_the_text_are_found(locate):
    path = locate("bytes")
    with Ledger.create(path) as ledger:
        ledger.add("\ufffd")  # what a careless reader makes of bytes that are no text
    tamper(path, "UPDATE entries SET dataset = CAST(x'ff' AS TEXT) WHERE number = 2")
    assert not verify(path).is_intact


@pytest.mark.parametrize("number", ROWS)
def test_a_field_with_one_letter_more_is_found(path, number):
    for column in COLUMNS:
        tamper(path, f"UPDATE entries SET {column} = {column} || ' ' WHERE number = {number}")
        assert not verify(path).is_intact, column
        tamper(path, f"UPDATE entries SET {column} = rtrim({column}) WHERE number = {number}")
    assert verify(path).is_intact


@pytest.mark.parametrize("number", ROWS)
@pytest.mark.parametrize("to", [0, -5, 100])
def test_a_renumbered_entry_is_found(path, number, to):
    tamper(path, f"UPDATE entries SET number = {to} WHERE number = {number}")
    assert not verify(path).is_intact


@pytest.mark.parametrize("number", ROWS)
def test_a_removed_entry_is_found(path, number):
    tamper(path, f"DELETE FROM entries WHERE number = {number}")
    assert not verify(path).is_intact


@pytest.mark.parametrize("number", ROWS)
def test_a_removed_entry_is_found_even_if_the_gap_is_closed(path, number):
    entries = read(path)
    removed = entries.pop(number - 1)
    write(path, renumber(entries))
    if number == len(KINDS):  # the forger also set the head back: an older, honest ledger
        assert verify(path).is_intact
        assert not verify(path, anchors=[(8, removed.hash)]).is_intact
    else:
        assert not verify(path).is_intact


def test_the_last_entries_cannot_be_removed_without_the_head(path):
    tamper(path, "DELETE FROM entries WHERE number > 4")
    assert any("the head does not match" in problem for problem in verify(path).problems)


@pytest.mark.parametrize("first", ROWS[:-1])
def test_two_swapped_entries_are_found(path, first):
    second = first + 1
    tamper(
        path,
        f"UPDATE entries SET number = 99 WHERE number = {first}",
        f"UPDATE entries SET number = {first} WHERE number = {second}",
        f"UPDATE entries SET number = {second} WHERE number = 99",
    )
    assert not verify(path).is_intact


@pytest.mark.parametrize("index", ROWS)
def test_an_inserted_entry_is_found(path, index):
    entries = read(path)
    forged = replace(entries[2], number=index)
    entries.insert(index - 1, replace(forged, hash=forged.digest()))
    write(path, renumber(entries))
    assert not verify(path).is_intact


@files_only
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE head SET entries = 7",
        "UPDATE head SET entries = 9",
        "UPDATE head SET entries = 'x'",
        "UPDATE head SET hash = 'forged'",
        "UPDATE head SET hash = (SELECT hash FROM entries WHERE number = 7)",
        "UPDATE head SET hash = x'00'",
        "DELETE FROM head",
        "DELETE FROM entries",
        "DROP TABLE entries",
        "DROP TABLE head",
        "DROP INDEX entries_of",
        "ALTER TABLE entries ADD COLUMN more TEXT",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN DELETE FROM fingerprints; END",
        "DELETE FROM fingerprints",
        "UPDATE fingerprints SET fingerprint = 'g'",
        "UPDATE fingerprints SET fingerprint = x'ff'",
        "UPDATE fingerprints SET seal = 'g'",
        "UPDATE fingerprints SET entry = 3",
        "INSERT INTO fingerprints VALUES (3, 'f', 's')",
    ],
)
def test_an_edited_head_table_or_fingerprint_is_found(path, statement):
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.close()
    bare = verify(path).problems  # every trigger that is gone
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert set(verify(path).problems) - set(bare)


@files_only
def test_every_dropped_trigger_is_found(path):
    connection = sqlite3.connect(path)
    names = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    ]
    connection.close()
    assert len(names) == 10
    for name in names:
        connection = sqlite3.connect(path)
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", (name,)
        ).fetchone()
        connection.execute(f"DROP TRIGGER {name}")
        connection.close()
        assert [name in problem for problem in verify(path).problems] == [True]
        with Ledger(path) as ledger, pytest.raises(LedgerTampered, match=name):
            ledger.grant(
                "census", epsilon="0.1", purpose="p", hides=AddRemoveRecord(), rng=secure()
            )
        connection = sqlite3.connect(path)
        connection.execute(sql)
        connection.close()
    assert verify(path).is_intact


@files_only
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET dataset = 'x' WHERE number = 3",
        "UPDATE OR REPLACE entries SET number = 3 WHERE number = 4",
        "DELETE FROM entries WHERE number = 8",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE number = 8",
        "INSERT INTO entries SELECT 10, time, kind, dataset, body, hash, 'x' FROM entries LIMIT 1",
        "INSERT INTO entries SELECT 9, time, kind, dataset, body, 'x', 'x' FROM entries LIMIT 1",
        "UPDATE head SET entries = 7",
        "UPDATE head SET hash = 'x'",
        "DELETE FROM head",
        "INSERT OR REPLACE INTO head VALUES (1, 0, 'x')",
        "UPDATE fingerprints SET fingerprint = 'g'",
        "DELETE FROM fingerprints",
        "INSERT OR REPLACE INTO fingerprints VALUES (6, 'g', 's')",
    ],
)
def test_triggers_refuse_what_is_not_an_append(path, statement):
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert verify(path).is_intact


@files_only
def test_no_flipped_byte_of_the_file_changes_what_a_ledger_says_unnoticed(path):
    original, known = path.read_bytes(), read(path)
    draw = plain_generator(5)
    noticed = 0
    for index in draw.integers(len(original), size=600):
        damaged = bytearray(original)
        damaged[index] ^= 1 << draw.integers(8)
        path.write_bytes(damaged)
        try:
            with Ledger(path) as ledger:
                noticed += (is_found := not ledger.verify().is_intact)
                assert is_found or ledger.entries() == tuple(known)
        except (LedgerUnavailable, LedgerTampered):
            noticed += 1
        for leftover in ("books.db-journal", "books.db-wal", "books.db-shm"):
            path.with_name(leftover).unlink(missing_ok=True)
    assert noticed > 30  # the rest hit unused bytes

"""Things that hide in a database behind something that looks right."""

import sqlite3
from contextlib import closing

import pytest

from dpublish.errors import BudgetExhausted, LedgerTampered
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_forgery import make_honest, tamper, verify


@pytest.fixture
def path(tmp_path):
    return tmp_path / "books.db"


def open_books(path, name="census"):
    with Ledger.create(path) as ledger:
        ledger.add(name, cap="1")
    return path


def grant(ledger, name="census", **changes):
    asked = {"epsilon": "1", "purpose": "p", "hides": AddRemoveRecord(), "rng": secure()}
    return ledger.grant(name, **asked | changes)


def plain(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def take_triggers_off(connection):
    """Drop every trigger; return the statements that put them back."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = found.fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    return [sql for _, sql in triggers]


def put_in_front_of_head(path, trigger):
    """Add a trigger that has the name of the table `head`, before that table."""
    with plain(path) as connection:
        triggers = take_triggers_off(connection)
        rows = connection.execute("SELECT * FROM head").fetchall()
        query = "SELECT sql FROM sqlite_master WHERE name = 'head'"
        (table,) = connection.execute(query).fetchone()
        connection.execute("DROP TABLE head")
        connection.execute(trigger)
        connection.execute(table)
        connection.executemany("INSERT INTO head VALUES (?, ?, ?)", rows)
        for sql in triggers:
            connection.execute(sql)


SWALLOW = "WHEN NEW.kind = 'grant' BEGIN SELECT RAISE(IGNORE); END"


def test_a_trigger_that_hides_behind_a_tables_name_is_found(path):
    open_books(path)
    put_in_front_of_head(path, f"CREATE TRIGGER head BEFORE INSERT ON entries {SWALLOW}")
    assert "'head' of the database was added, removed or changed" in verify(path).problems
    with Ledger(path) as ledger, pytest.raises(LedgerTampered, match="'head' of its database"):
        grant(ledger)


@pytest.mark.parametrize(
    "trigger",
    [
        f"BEFORE INSERT ON entries {SWALLOW}",
        "AFTER UPDATE ON head BEGIN UPDATE head SET hash = 'x'; END",
        "AFTER INSERT ON entries BEGIN UPDATE entries SET time = 'x'; END",
        "BEFORE INSERT ON fingerprints BEGIN SELECT RAISE(IGNORE); END",
    ],
)
def test_an_entry_that_does_not_stay_is_not_granted(path, trigger):
    """A second line of defense: a trigger of this connection alone is in no schema."""
    with Ledger(open_books(path)) as ledger:
        connection = ledger._store._connection
        ours = ("entry_is_final", "head_follows_entry")
        known = "SELECT name, sql FROM sqlite_master WHERE name IN (?, ?)"
        guards = connection.execute(known, ours).fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"CREATE TEMP TRIGGER mine {trigger.replace(' ON ', ' ON main.')}")
        ledger._store.changed_parts = set
        with pytest.raises(LedgerTampered, match="does not keep what is written"):
            grant(ledger, fingerprint="f")
        connection.execute("DROP TRIGGER mine")
        for _, sql in guards:
            connection.execute(sql)
        assert ledger.status("census").spent == 0


def test_bytes_are_not_taken_for_the_text_that_describes_them(path):
    name = "b'abc'"
    with Ledger(open_books(path, name)) as ledger:
        grant(ledger, name)
    assert verify(path).is_intact
    tamper(path, "UPDATE entries SET dataset = x'616263' WHERE number = 3")
    assert any("entry 3: it was edited" in problem for problem in verify(path).problems)
    with Ledger(path) as ledger, pytest.raises(LedgerTampered):
        grant(ledger, name)


def test_a_fingerprint_of_bytes_is_not_taken_for_the_text_that_describes_it(path):
    with Ledger(open_books(path)) as ledger:
        grant(ledger, fingerprint="b'f'")
    tamper(path, "UPDATE fingerprints SET fingerprint = x'66'")
    (problem,) = verify(path).problems
    assert "its fingerprint was added, removed or edited" in problem


def change_schema(path, name, change, *work):
    """Do some work under another definition of a table, and put the right one back."""
    with plain(path) as connection:
        triggers = take_triggers_off(connection)
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        (sql,) = connection.execute(query, (name,)).fetchone()
    for definition, statements in ((change(sql), work), (sql, triggers)):
        with plain(path) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            update = "UPDATE sqlite_master SET sql = ? WHERE name = ?"
            connection.execute(update, (definition, name))
        with plain(path) as connection:
            for statement in statements:
                connection.execute(statement)


def test_a_number_is_not_taken_for_the_text_that_it_looks_like(path):
    with Ledger(open_books(path, "7")) as ledger:
        grant(ledger, "7")

    def loosen(sql):
        return sql.replace("dataset TEXT", "dataset")

    work = "UPDATE entries SET dataset = 7 WHERE number = 3"
    change_schema(path, "entries", loosen, work)
    assert any("entry 3: it was edited" in problem for problem in verify(path).problems)


def test_an_index_that_leaves_the_last_grant_out_hides_nothing(path):
    with Ledger(open_books(path)) as ledger:
        grant(ledger)
    change_schema(path, "entries_of", lambda sql: f"{sql} WHERE number < 3", "REINDEX")
    assert any("damaged" in problem for problem in verify(path).problems)
    with Ledger(path) as ledger, pytest.raises(BudgetExhausted):
        grant(ledger)


def test_statistics_that_a_tool_added_are_reported(path):
    make_honest(path)
    with plain(path) as connection:
        connection.execute("ANALYZE")
    (problem,) = verify(path).problems
    assert "'sqlite_stat1' of the database was added" in problem
    with plain(path) as connection:
        connection.execute("DROP TABLE sqlite_stat1")
    assert verify(path).is_intact

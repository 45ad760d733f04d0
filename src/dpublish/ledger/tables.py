"""The tables of a ledger file, and the triggers that refuse to edit what is there.

Triggers are a guard rail for honest mistakes: the chain of hashes is what shows the work of
someone who removes the rail.
"""

import sqlite3
from collections import Counter
from functools import cache

from dpublish.ledger.chain import FORMAT, ORIGIN, Entry

APPLICATION = 0x6450_4C31  # "dPL1" in the file's header: this database is a ledger
TABLES = frozenset({"entries", "head", "fingerprints"})

_PARTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_GUARDS = {
    "entry_follows_head": """BEFORE INSERT ON entries WHEN NOT EXISTS (
        SELECT 1 FROM head WHERE NEW.number = entries + 1 AND NEW.previous = hash)""",
    "entry_is_final": "BEFORE UPDATE ON entries",
    "entry_stays": "BEFORE DELETE ON entries",
    "head_is_one": "BEFORE INSERT ON head WHEN EXISTS (SELECT 1 FROM head)",
    "head_follows_entry": """BEFORE UPDATE ON head WHEN NEW.entries <> OLD.entries + 1
        OR NOT EXISTS (SELECT 1 FROM entries WHERE number = NEW.entries AND hash = NEW.hash)""",
    "head_stays": "BEFORE DELETE ON head",
    "fingerprint_is_new": """BEFORE INSERT ON fingerprints WHEN
        NEW.entry IS NOT (SELECT entries FROM head)
        OR EXISTS (SELECT 1 FROM fingerprints WHERE entry = NEW.entry)""",
    "fingerprint_is_final": "BEFORE UPDATE ON fingerprints",
    "fingerprint_stays": "BEFORE DELETE ON fingerprints",
}
_STATEMENTS = [
    """CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL,
        kind TEXT NOT NULL, dataset TEXT NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    "CREATE INDEX entries_of ON entries (dataset, number)",
    """CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1),
        entries INTEGER NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE fingerprints (entry INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TRIGGER head_moves AFTER INSERT ON entries
        BEGIN UPDATE head SET entries = NEW.number, hash = NEW.hash; END""",
] + [
    f"CREATE TRIGGER {name} {event} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
    for name, event in _GUARDS.items()
]


def lay_out(connection: sqlite3.Connection, first: Entry) -> None:
    """Make the tables of a new ledger, whose `first` entry is there at once or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for statement in _STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (ORIGIN,))
    row = tuple(vars(first).values())
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.execute("COMMIT")


def changed_parts(connection: sqlite3.Connection) -> set[str]:
    """Name the tables and triggers that are not those of a ledger.

    Whole rows are counted: a trigger may have a table's name, and must not hide behind it.
    """
    found, expected = Counter(connection.execute(_PARTS)), Counter(_expected_parts())
    return {str(name) for _, name, *_ in (found - expected) + (expected - found)}


@cache
def _expected_parts() -> tuple[tuple[object, ...], ...]:
    connection = sqlite3.connect(":memory:")
    try:
        for statement in _STATEMENTS:
            connection.execute(statement)
        return tuple(connection.execute(_PARTS))
    finally:
        connection.close()

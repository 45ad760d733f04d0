"""Tools of someone who tampers with a ledger behind its back."""

import json
import sqlite3
from dataclasses import replace

import psycopg

from dpublish.ledger.chain import ORIGIN
from dpublish.ledger.ledger import Ledger
from dpublish.ledger.postgres_store import _TRIGGERS
from dpublish.ledger.store import TABLES, seal_fingerprint
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.storage.address import is_address, read_address

KINDS = ("create", "add", "grant", "publish", "add", "grant", "cap", "grant")


def make_honest(path):
    """Make a ledger that has entries of all kinds, two datasets and a fingerprint."""
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
        first = ledger.grant(
            "census", epsilon="0.4", purpose="ages", hides=AddRemoveRecord(), rng=secure()
        )
        ledger.publish(first.grant, "id", "hash")
        ledger.add("clinic")
        ledger.grant(
            "clinic",
            epsilon="0.5",
            purpose="wards",
            hides=AddRemoveRecord(),
            rng=secure(),
            fingerprint="f",
        )
        ledger.change_cap("census", "2", reason="asked")
        ledger.grant(
            "census", epsilon="0.1", purpose="sexes", hides=AddRemoveRecord(), rng=secure()
        )
        assert tuple(entry.kind for entry in ledger.entries()) == KINDS
    return path


def tamper(path, *statements, values=()):
    """Run SQL on the file with its triggers out of the way, and put them back."""
    run(path, *[(statement, values) for statement in statements])


def run(path, *steps):
    if is_address(path):
        run_on_server(path, *steps)
        return
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")  # a forger need not wait for the disk
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement, values in steps:
        connection.execute(statement, values)
    for _, sql in triggers:
        connection.execute(sql)
    connection.commit()
    connection.close()


def run_on_server(path, *steps):
    address = read_address(path)
    off = [f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in TABLES]
    on = [
        f"ALTER TABLE {trigger.table} ENABLE ALWAYS TRIGGER {name}"
        for name, trigger in _TRIGGERS.items()
    ]
    with psycopg.connect(address.uri, options=f"-csearch_path={address.schema}") as connection:
        connection.execute("; ".join(["SET synchronous_commit = off", *off]))
        for statement, values in steps:
            connection.execute(statement.replace("?", "%s"), values)
        connection.execute("; ".join(on))


def read(path):
    with Ledger(path) as ledger:
        return list(ledger.entries())


def verify(path, **known):
    with Ledger(path) as ledger:
        return ledger.verify(**known)


def write(path, entries):
    """Replace the entries that are there by `entries`; head and fingerprints fit them."""
    steps = [(f"DELETE FROM {table}", ()) for table in ("entries", "head", "fingerprints")]
    for entry in entries:
        row = tuple(vars(entry).values())
        steps.append(("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row))
        if '"fingerprinted":true' in entry.body.replace(" ", ""):
            row = (entry.number, "f", seal_fingerprint(entry.hash, "f"))
            steps.append(("INSERT INTO fingerprints VALUES (?, ?, ?)", row))
    steps.append(("INSERT INTO head VALUES (1, ?, ?)", (len(entries), entries[-1].hash)))
    run(path, *steps)


def renumber(entries):
    return [replace(entry, number=number) for number, entry in enumerate(entries, start=1)]


def reseal(entries):
    """Recompute every number, link and hash, as a forger who knows the format would."""
    return relink(renumber(entries))


def relink(entries):
    previous, sealed = ORIGIN, []
    for entry in entries:
        linked = replace(entry, previous=previous)
        sealed.append(replace(linked, hash=linked.digest()))
        previous = sealed[-1].hash
    return sealed


def edit_body(entry, **changes):
    return replace(entry, body=json.dumps(json.loads(entry.body) | changes))

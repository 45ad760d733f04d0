"""Releases with their ledgers, of each kind that a certificate is written about."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from dpublish.core.folder.signing import create_key
from dpublish.core.registry import make_method
from dpublish.data.publication import Publication
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.ledger.ledger import Ledger
from dpublish.methods.histogram.histogram import Histogram
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.table import publish
from stream_world import METHOD, arguments, rows
from stream_world import SCHEMA as RIDES

PUBLISHER, CONTACT = "City of Example, Statistics Office", "privacy@example.org"
STATED = Publication(title="People by age", license="CC-BY-4.0", publisher="City of Example")
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("sex", "category", values=["Female", "Male"]),
        column("own", "numeric", bounds=[0, 3]),
    ),
    name="people",
    publication=STATED,
)
ROWS = pa.table(
    {
        "age": [31, 8, 64, 99, 31] * 40,
        "sex": ["Female", "Male", "Male", "Female", "Male"] * 40,
        "own": [0.02, 0.1, 0.5, 1.0, 2.0] * 40,
    }
)
LEVELS = ("0.01", "0.1", "0.5", "1", "1.5", "2", "2.5", "3")


class Made(NamedTuple):
    """A release folder, its ledger and the public key of its owner."""

    folder: Path
    ledger: Path
    key: Path


def make_plain(home, *, name="ages", **options):
    """Publish a signed histogram; more of them share the ledger."""
    books, key = _books(home, "people", cap="2"), home / "owner.key"
    if not key.exists():
        create_key(key)
    with Ledger(books) as ledger:
        publish(
            Histogram(columns=("age", "sex")),
            open_table(ROWS, SCHEMA),
            home / name,
            ledger=ledger,
            dataset="people",
            epsilon="0.5",
            **{"purpose": "yearly tables", "sign": key} | options,
        )
    return Made(home / name, books, home / "owner.pub")


def make_personal(home):
    """Publish by level, of more levels than one page lists."""
    settings = {"preference": "own", "levels": LEVELS}
    method = make_method("minimum", {"inner": "histogram columns=age", **settings})
    books = _books(home, "staff", levels=LEVELS)
    with Ledger(books) as ledger:
        publish(
            method,
            open_table(ROWS, method.prepare(SCHEMA)),
            home / "staff",
            ledger=ledger,
            dataset="staff",
            epsilon="1",
            purpose="ages by level",
        )
    return Made(home / "staff", books, home / "owner.pub")


def make_stream(home):
    """Publish two steps of an endless stream."""
    _books(home, "rides", cap="5")
    create_key(home / "owner.key")
    with StreamOperator.start(home / "s.stream", METHOD, RIDES, **arguments(home)) as operator:
        for number in (1, 2):
            operator.next(rows(number), f"2024-01-{number:02}")
        operator.write_pages(sign=home / "owner.key")
    return Made(home / "out", home / "books.db", home / "owner.pub")


def _books(home, dataset, **options):
    path = home / "books.db"
    if not path.exists():
        with Ledger.create(path) as ledger:
            ledger.add(dataset, publisher=PUBLISHER, contact=CONTACT, **options)
    return path


KINDS = {"plain": make_plain, "personal": make_personal, "stream": make_stream}

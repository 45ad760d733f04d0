"""Addresses of databases on a PostgreSQL server: a URI, and a schema after `#`.

    postgresql://ada@db.example.org/books          the schema `dpublish`
    postgresql://db.example.org/books#team         the schema `team`
    postgresql://?service=books                    what the service file says

An address holds no password.  It would show in lists of processes, in state files and in logs.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from dpublish.errors import InvalidParameter
from dpublish.storage.files import printable
from dpublish.storage.postgres_address import sets_secret

SCHEMA = "dpublish"
"""The schema that an address means if it names none."""

_SCHEME = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)  # what PostgreSQL keeps of a name
_HOST = r"(?:[^@/?#]*@)?(?:\[[^\]/?#@]*\]|[^:\[\],@/?#]*)(?::[0-9]*)?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*(?:[/?#]|$)")
_TAKEN = ("public", "information_schema")


@dataclass(frozen=True)
class Address:
    """Where a database is kept: how to connect, and the schema there."""

    uri: str
    """How to connect, as PostgreSQL's own programs take it."""
    schema: str = SCHEMA

    @property
    def text(self) -> str:
        """All of it, to be kept and read again."""
        return self.uri if self.schema == SCHEMA else f"{self.uri}#{self.schema}"

    @property
    def shown(self) -> str:
        """What messages call it: without the options of the connection."""
        host = self.uri.partition("?")[0]
        return host if self.schema == SCHEMA else f"{host}#{self.schema}"


def is_address(location: object) -> bool:
    """Return whether this names a database on a server, not a file.

    >>> is_address("postgresql://localhost/books"), is_address("books.db")
    (True, False)
    """
    return isinstance(location, str) and _SCHEME.match(location) is not None


def read_address(text: str) -> Address:
    """Read an address; no message repeats one that may hold a password.

    >>> read_address("postgres://localhost/books#team")
    Address(uri='postgresql://localhost/books', schema='team')
    """
    rest = _SCHEME.sub("", text, count=1)
    if re.search(r":[^@]*@", rest) or sets_secret(rest):
        raise InvalidParameter(
            "the address holds a password, which lists of processes and logs would show: leave it "
            "out, and give it by PGPASSFILE, PGSERVICE or PGPASSWORD (an @ or : that belongs to a "
            "name is written %40 or %3A)"
        )
    if not _HOSTS.match(rest):  # what is taken for a port may be a password
        raise InvalidParameter(
            "the address is not postgresql://USER@HOST:PORT/DATABASE: the port is a number, and a "
            "password is given by PGPASSFILE, PGSERVICE or PGPASSWORD"
        )
    where, mark, schema = rest.partition("#")
    if not where.isprintable() or " " in where:
        raise InvalidParameter("the address must be one line without spaces; write %20 for one")
    if mark and (not _NAME.fullmatch(schema) or schema in _TAKEN or schema.startswith("pg_")):
        raise InvalidParameter(
            "after # an address names a schema of its own: letters, digits and underscores, not "
            "beginning with a digit or pg_, such as #team"
        )
    return Address(f"postgresql://{where}", schema or SCHEMA)


def whole_location(location: str | os.PathLike[str]) -> str:
    """Write a path or an address so that it means the same wherever the process goes.

    >>> whole_location("postgres://localhost/books"), whole_location("/data/books.db")
    ('postgresql://localhost/books', '/data/books.db')
    """
    if isinstance(location, str) and is_address(location):
        return read_address(location).text
    return str(Path(location).absolute())


def shown_location(location: str | os.PathLike[str]) -> str:
    """Write a path or an address for a message."""
    if isinstance(location, str) and is_address(location):
        return read_address(location).shown
    return printable(Path(location))

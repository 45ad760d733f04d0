"""Where tests keep their ledgers: in a file, and on a server.

A test whose ledger comes from `locate` runs on both.  `files_only` and `servers_only` in
`ledger_backends` keep it to one.
"""

import os

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request):
    return request.param


@pytest.fixture(scope="session")
def ledger_database(postgres_server):
    """One database for the ledgers of all tests: each has a schema of its own."""
    name = "ledgers"  # left to the end of the server: dropping thousands of tables takes long
    postgres_server.execute(f"CREATE DATABASE {name}")
    return postgres_server.uri(name)


@pytest.fixture
def locate(backend, request, tmp_path):
    """Return a function that gives a ledger's location by its name."""
    if backend == "sqlite":
        return lambda name="books": tmp_path / f"{name}.db"
    database = request.getfixturevalue("ledger_database")
    test = os.urandom(5).hex()
    return lambda name="books": f"{database}#t{test}_{name}"


@pytest.fixture
def path(locate):
    """The location of a ledger that is not there yet."""
    return locate()

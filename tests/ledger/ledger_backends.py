"""Keep a test to one of the two ways in which a ledger is kept; and copy a ledger as it is."""

import shutil

import pytest

from dpublish.ledger.opening import open_store
from dpublish.ledger.postgres_store import PostgresStore, _insert_all
from dpublish.storage.address import is_address, read_address

files_only = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
servers_only = pytest.mark.parametrize("backend", ["postgres"], indirect=True)


def clone(source, target):
    """Copy a ledger entry for entry, as someone does who copies its files."""
    if not is_address(source):
        return shutil.copy(source, target)
    store = open_store(source, 5)
    with store.reading():
        prints = store.fingerprints()
        copied = [(entry, prints.get(entry.number)) for entry in store.entries()]
    store.close()
    PostgresStore.kind.create(read_address(target), lambda c: _insert_all(c, copied))
    return target

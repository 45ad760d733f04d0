"""A releasing process killed at any moment overspends nothing and publishes nothing by halves."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from dpublish.errors import CorruptRelease
from dpublish.privacy.ledger import Ledger
from dpublish.release.folder import load

SCHEMA = """
[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 10

[columns.sex]
kind = "category"
values = ["Female", "Male"]
"""
KILLS = 200
pytestmark = pytest.mark.xdist_group("killed release")  # one run serves all tests here


@pytest.fixture(scope="module")
def battlefield(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "out").mkdir()
    csv.write_csv(
        pa.table({"age": list(range(100)) * 20, "sex": ["Female", "Male"] * 1000}),
        folder / "people.csv",
    )
    with Ledger.create(folder / "books.db") as ledger:
        ledger.add("people", cap="100")
    worker = Path(__file__).with_name("killed_release_worker.py")
    done = subprocess.run(
        [sys.executable, str(worker), str(folder), str(KILLS), "11"],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_spent_covers_everything_published_and_the_chain_verifies(battlefield):
    with Ledger(battlefield / "books.db") as ledger:
        assert ledger.verify().problems == ()
        status = ledger.status("people")
    published = []
    for folder in sorted((battlefield / "out").iterdir()):
        if not folder.name.endswith(".partial"):
            published.append(load(folder).receipt)  # whatever has its own name is whole
    assert sum((receipt.epsilon for receipt in published), Fraction(0)) <= status.spent
    granted = {grant.entry for grant in status.grants}
    assert {receipt.ledger_entry for receipt in published} <= granted
    # Kills came early and late: some releases were finished, some interrupted, some never begun.
    assert 3 < len(published) < KILLS + 3
    assert len(published) < len(granted) < KILLS + 3


def test_what_the_ledger_calls_published_is_there(battlefield):
    with Ledger(battlefield / "books.db") as ledger:
        grants = ledger.status("people").grants
    loaded = {
        load(f).receipt.release_id for f in (battlefield / "out").iterdir() if "." not in f.name
    }
    assert {g.release_id for g in grants if g.release_id} <= loaded


def test_unfinished_folders_do_not_load(battlefield):
    for folder in (battlefield / "out").glob(".*.partial"):
        with pytest.raises(CorruptRelease, match="interrupted"):
            load(folder)

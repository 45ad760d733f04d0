"""A releasing process killed at any moment overspends nothing and publishes nothing by halves."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from dpublish.core.folder.folder import load
from dpublish.errors import CorruptRelease
from dpublish.ledger.ledger import Ledger

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


def test_killed_at_200_random_moments_nothing_is_overspent_or_published_by_halves(battlefield):
    # One test, so that the run is made once however the tests are divided over processes.
    out = battlefield / "out"
    with Ledger(battlefield / "books.db") as ledger:
        assert ledger.verify().problems == ()
        status = ledger.status("people")
    for unfinished in out.glob(".*.partial"):
        with pytest.raises(CorruptRelease, match="interrupted"):
            load(unfinished)
    # Whatever has a name of its own is whole.
    published = [load(f).receipt for f in sorted(out.iterdir()) if not f.name.startswith(".")]
    assert sum((receipt.epsilon for receipt in published), Fraction(0)) <= status.spent
    granted = {grant.entry for grant in status.grants}
    assert {receipt.ledger_entry for receipt in published} <= granted
    # What the ledger calls published is there.
    recorded = {grant.release_id for grant in status.grants if grant.release_id}
    assert recorded <= {receipt.release_id for receipt in published}
    # Kills came early and late: some releases were finished, some interrupted, some never begun.
    assert 3 < len(published) < len(granted) < KILLS + 3

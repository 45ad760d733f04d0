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


def kill_at_random(tmp_path_factory, kills):
    """Run releases that are killed so many times, and return the folder of it all."""
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
        [sys.executable, str(worker), str(folder), str(kills), "11"],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.parametrize("kills", [50, pytest.param(200, marks=pytest.mark.audit)])
def test_killed_at_random_moments_nothing_is_overspent_or_published_by_halves(
    tmp_path_factory, kills
):
    folder = kill_at_random(tmp_path_factory, kills)
    out = folder / "out"
    with Ledger(folder / "books.db") as ledger:
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
    assert 3 < len(published) < len(granted) < kills + 3

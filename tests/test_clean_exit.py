"""A finished program leaves no native thread behind that could abort it at exit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpublish import Histogram, open_table, publish
from dpublish.data.schema import Schema
from dpublish.datasets.census import SCHEMA, census
from dpublish.ledger.ledger import Ledger

ROOT = Path(__file__).resolve().parent.parent
CAMPAIGN = ROOT / "benchmarks" / "reliability" / "clean_exits.py"

THREADS = "len(os.listdir('/proc/self/task'))"
PROGRAM = f"""
import os
import numpy, scipy.special, pyarrow.parquet, pyarrow.compute
import dpublish
before = {THREADS}
release = dpublish.load("ages")
release.count("age in 31..45")
release.rows(100, seed=1)
print({THREADS} - before)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.toml").write_text(SCHEMA)
    schema = Schema.read(tmp_path / "people.toml")
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("census", cap="1")
        publish(
            Histogram(columns=("age", "sex")),
            open_table(census(200), schema),
            tmp_path / "ages",
            ledger=ledger,
            dataset="census",
            epsilon="0.5",
        )
    return tmp_path


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_using_a_release_starts_no_native_thread(folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


@pytest.mark.audit
@pytest.mark.parametrize("program", ["load", "parquet", "csv"])
def test_programs_exit_cleanly_on_a_busy_machine(program):
    command = [sys.executable, str(CAMPAIGN), "--program", program, "--runs", "100"]
    at_once = str(6 * (os.cpu_count() or 2))
    done = subprocess.run(
        [*command, "--at-once", at_once], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "100 passed, 0 failed" in done.stdout

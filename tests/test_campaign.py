"""The campaigns themselves: they run, and they notice what is wrong."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from campaign.faults import _untrue
from campaign.run import CAMPAIGNS, LIBRARY
from campaign.world import HANG, Outcome, build_fault_library, check_books, release_words, run
from campaign.world import write_inputs as lay_out

TESTS = Path(__file__).parent
NAME = "kills-every-operation"


@pytest.fixture
def world(tmp_path):
    lay_out(tmp_path / "world", records=20)
    return tmp_path / "world"


def test_a_release_that_is_whole_passes_and_one_that_lost_a_file_does_not(world):
    done = run(release_words("out/r"), world)
    assert done.code == 0, done.text
    books, problems = check_books(world)
    assert (books.granted, books.published, problems) == (1, 1, [])
    (world / "out" / "r" / "release.json").unlink()
    assert "r has its name and does not load" in check_books(world)[1]


def test_a_command_that_does_not_end_is_ended(world):
    words = ["schema", "check", "people.toml"]
    assert run(words, world).code == 0
    assert run(words, world, first=lambda: time.sleep(60), seconds=0.5).code == HANG


def test_untrue_messages_are_noticed():
    def said(code, text):
        return Outcome(code, text, 0)

    metadata = {"stands": False, "debited": True, "name": "r1"}
    assert not list(_untrue(said(3, "no space (ledger entry 4 stays debited)"), **metadata))
    assert list(_untrue(said(3, "no space; nothing was granted"), **metadata))
    assert list(_untrue(said(0, "published"), **metadata))
    assert list(_untrue(said(70, "a fault; entry 4 stays debited"), **metadata))


def test_a_short_campaign_counts_kills_at_file_operations(tmp_path):
    library = build_fault_library(tmp_path)
    if library is None:
        pytest.skip("needs Linux and a C compiler (cc)")
    done = subprocess.run(
        [sys.executable, "-m", "campaign.run", "--child", NAME, "--seconds", "5"],
        env=os.environ
        | {LIBRARY: str(library), "LD_PRELOAD": str(library), "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    passed, failed, skipped = map(int, done.stdout.splitlines()[-1].split())
    assert passed > 0, done.stdout + done.stderr
    assert (failed, skipped) == (0, 0)
    assert NAME in CAMPAIGNS

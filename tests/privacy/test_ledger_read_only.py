"""A ledger without the right to write it can be read, and grants nothing.

The superuser has every right, so the scripts step down first.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from dpublish.privacy.ledger import Ledger
from dpublish.randomness import secure
from privacy.ledger_script import run_script

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "books.db"
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="100")
    return path


@pytest.fixture
def open_folder():
    """A folder that others may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


STEP_DOWN = """
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""
READ_AND_TRY = (
    STEP_DOWN
    + """
with Ledger(path) as ledger:
    print(ledger.status("census").left, ledger.verify().is_intact)
    try:
        grant(ledger)
    except LedgerUnavailable as error:
        print(error)
"""
)


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o555), (0o444, 0o777)])
def test_a_read_only_ledger_can_be_shown_and_verified_but_grants_nothing(
    path, open_folder, file_mode, folder_mode
):
    copy = shutil.copy(path, open_folder / "books.db")
    before = copy.read_bytes()
    copy.chmod(file_mode)
    open_folder.chmod(folder_mode)
    try:
        state, message = run_script(READ_AND_TRY, copy)
    finally:
        open_folder.chmod(0o755)
    assert state == "100 True"
    assert "cannot be written: make the file and its folder writable" in message
    assert copy.read_bytes() == before


def test_a_read_only_ledger_with_entries_in_its_log_is_not_shown_without_them(path, open_folder):
    with Ledger(path) as ledger:
        ledger.grant("census", epsilon="0.1", purpose="ages", rng=secure())
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", open_folder / f"books.db{suffix}")
    for file in open_folder.iterdir():
        file.chmod(0o444)
    open_folder.chmod(0o555)
    script = (
        STEP_DOWN
        + """
try:
    print(Ledger(path).status("census").left)
except LedgerUnavailable as error:
    print(error)
"""
    )
    try:
        (message,) = run_script(script, open_folder / "books.db")
    finally:
        open_folder.chmod(0o755)
    assert "cannot be opened: you need to be allowed to write it and its folder" in message


def test_a_ledger_that_may_not_be_read_says_so(path, open_folder):
    copy = shutil.copy(path, open_folder / "books.db")
    copy.chmod(0o000)
    script = (
        STEP_DOWN
        + """
try:
    Ledger(path)
except LedgerUnavailable as error:
    print(error)
"""
    )
    (message,) = run_script(script, copy)
    assert "cannot be opened" in message

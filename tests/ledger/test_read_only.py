"""A ledger without the right to write it can be read, and grants nothing.

The superuser has every right, so the scripts step down first.
"""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_script import run_script, start_script

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


TRY_TO_SHOW = (
    STEP_DOWN
    + """
try:
    print(Ledger(path).status("census").left)
except LedgerUnavailable as error:
    print(error)
"""
)


def show_read_only(folder):
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        (message,) = run_script(TRY_TO_SHOW, folder / "books.db")
    finally:
        folder.chmod(0o755)
    return message


def test_a_read_only_ledger_left_in_the_middle_of_a_change_is_not_shown(path, open_folder):
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")  # it writes to the file before it commits
    writer.execute("BEGIN")
    writer.execute("CREATE TABLE more AS SELECT randomblob(500000)")
    for suffix in ("", "-journal"):
        shutil.copy(f"{path}{suffix}", open_folder / f"books.db{suffix}")
    writer.close()
    assert "cannot be" in show_read_only(open_folder)
    with Ledger(open_folder / "books.db") as ledger:  # whoever may write it takes the change back
        assert ledger.verify().is_intact


def test_a_read_only_ledger_with_a_log_of_its_own_is_not_shown(path, open_folder):
    old = sqlite3.connect(path)
    assert old.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    old.close()
    shutil.copy(path, open_folder / "books.db")
    assert "cannot be written: make the file and its folder writable" in show_read_only(open_folder)


def test_a_reader_without_the_right_to_write_sees_what_is_granted_meanwhile(path, open_folder):
    copy = shutil.copy(path, open_folder / "books.db")
    copy.chmod(0o644)
    script = (
        STEP_DOWN
        + """
ledger = Ledger(path)
print(ledger.status("census").spent, flush=True)
sys.stdin.readline()
print(ledger.status("census").spent, ledger.verify().problems)
"""
    )
    with start_script(script, copy) as reader:
        assert reader.stdout.readline() == "0\n"
        with Ledger(copy) as ledger:
            for _ in range(40):
                ledger.grant(
                    "census", epsilon="0.1", purpose="ages", hides=AddRemoveRecord(), rng=secure()
                )
        assert reader.communicate("\n")[0] == "4 ()\n"


def test_a_ledger_in_a_folder_that_may_not_be_entered_says_so(path, open_folder):
    shutil.copy(path, open_folder / "books.db")
    open_folder.chmod(0o000)
    try:
        (message,) = run_script(TRY_TO_SHOW, open_folder / "books.db")
    finally:
        open_folder.chmod(0o755)
    assert message.endswith("cannot be reached: you may not enter its folder")


def test_a_ledger_that_may_not_be_read_says_so(path, open_folder):
    copy = shutil.copy(path, open_folder / "books.db")
    copy.chmod(0o000)
    (message,) = run_script(TRY_TO_SHOW, copy)
    assert "cannot be opened" in message

"""Copies, links and second connections never make one ledger two accounts."""

import os
import shutil
import sqlite3
from fractions import Fraction

import pytest

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.ledger.chain import Granted
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_script import run_script


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "books.db"
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
    return path


def grant(ledger, epsilon="1"):
    return ledger.grant(
        "census", epsilon=epsilon, purpose="ages", hides=AddRemoveRecord(), rng=secure()
    )


LOOK = 'print(Ledger(path).status("census").spent)'


def test_a_copy_made_by_the_granting_process_loses_no_grant(path, tmp_path):
    with Ledger(path) as ledger:
        ledger.status("census")
        shutil.copy(path, tmp_path / "backup.db")  # POSIX: drops this process's locks
        assert run_script(LOOK, path) == ["0"]
        grant(ledger)
        assert run_script(LOOK, path) == ["1"]
    with Ledger(path) as ledger:
        assert ledger.status("census").left == 0


def test_a_copy_of_an_open_ledger_holds_every_grant_and_nothing_lies_beside_it(path, tmp_path):
    with Ledger(path) as ledger:
        grant(ledger)
        copy = shutil.copy(path, tmp_path / "copy.db")
        with Ledger(copy) as other:
            assert other.status("census").left == 0
        assert sorted(file.name for file in tmp_path.iterdir()) == ["books.db", "copy.db"]


def test_a_ledger_with_a_write_ahead_log_is_converted_with_all_that_is_in_the_log(path):
    other = sqlite3.connect(path)
    assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    other.close()
    with Ledger(path) as ledger:
        assert grant(ledger).epsilon == 1
        connection = ledger._store._connection
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert ledger.verify().is_intact


def test_a_ledger_that_is_given_a_log_while_it_is_open_grants_nothing(path):
    with Ledger(path) as ledger:
        ledger.status("census")
        other = sqlite3.connect(path)
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        with pytest.raises(LedgerUnavailable, match="write-ahead log: open it anew"):
            grant(ledger)
        other.close()
    with Ledger(path) as ledger:
        assert ledger.status("census").spent == 0
        grant(ledger)


def test_a_second_name_for_the_file_is_refused(path, tmp_path):
    with Ledger(path) as ledger:
        grant(ledger, "0.1")
        os.link(path, tmp_path / "link.db")
        with pytest.raises(LedgerUnavailable, match="hard link"):
            grant(ledger, "0.1")
        for name in ("books.db", "link.db"):
            with pytest.raises(LedgerUnavailable, match="hard link"):
                Ledger(tmp_path / name)
        (tmp_path / "link.db").unlink()
        assert grant(ledger, "0.1").epsilon == Fraction(1, 10)


def test_a_symbolic_link_leads_to_the_same_account(path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    with Ledger(path) as ledger, Ledger(tmp_path / "link.db") as other:
        grant(ledger, "0.4")
        assert other.status("census").spent == Fraction(2, 5)


def test_an_older_copy_written_over_the_open_file_is_noticed(path, tmp_path):
    with Ledger(path) as ledger:
        grant(ledger, "0.5")
        shutil.copy(path, tmp_path / "older.db")
        grant(ledger, "0.5")
        path.write_bytes((tmp_path / "older.db").read_bytes())  # the same file, set back
        for act in (lambda: grant(ledger, "0.5"), lambda: ledger.status("census")):
            with pytest.raises(LedgerTampered, match="entries that were there are gone"):
                act()
        assert ledger.verify().problems == ("entries that were there are gone, or are others now",)
    with Ledger(path) as ledger:  # whoever never saw the newer one cannot know
        assert ledger.verify().is_intact


def test_what_another_process_grants_is_not_mistaken_for_tampering(path):
    with Ledger(path) as ledger, Ledger(path) as other:
        for _ in range(3):
            grant(ledger, "0.1")
            grant(other, "0.1")
        assert ledger.status("census").spent == Fraction(6, 10)
        assert ledger.verify().is_intact


def test_an_entry_that_was_taken_back_is_not_missed(path):
    def fail(ledger):
        with ledger._store.writing():
            totals = {"cap": "1", "spent": "1", "epsilon": "1"}
            ledger._append("census", Granted(**totals, purpose="p", fingerprinted=False))
            raise RuntimeError

    with Ledger(path) as ledger:
        with pytest.raises(RuntimeError):
            fail(ledger)
        assert grant(ledger).epsilon == 1

"""A ledger file that is missing, foreign, locked, replaced or on a full disk."""

import os
import shutil
import sqlite3
import stat
import sys
from contextlib import suppress
from fractions import Fraction

import pytest

from dpublish.errors import LedgerUnavailable
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_script import run_script


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "books.db"
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="100")
    return path


def grant(ledger, epsilon="0.1"):
    return ledger.grant(
        "census", epsilon=epsilon, purpose="ages", hides=AddRemoveRecord(), rng=secure()
    )


def refuses(path, match, **settings):
    with pytest.raises(LedgerUnavailable, match=match) as caught:
        Ledger(path, **settings)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_ledger_is_not_made_by_accident(tmp_path):
    refuses(tmp_path / "books.db", "does not exist; `dpublish ledger create`")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_ledger(tmp_path):
    refuses(tmp_path, "is a folder")


@pytest.mark.parametrize("content", [b"name,age\nAnn,33\n" * 99, b"\x00" * 5000])
def test_another_file_is_not_a_ledger_and_stays_as_it_was(tmp_path, content):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    refuses(path, "is not a ledger")
    assert path.read_bytes() == content


def test_an_empty_file_is_not_a_ledger(tmp_path):
    path = tmp_path / "books.db"
    path.touch()
    refuses(path, "creation was interrupted")


def test_another_database_is_not_a_ledger_and_stays_as_it_was(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE entries (x)")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    before = path.read_bytes()
    refuses(path, "is some other database")
    assert path.read_bytes() == before


def test_a_newer_format_is_refused(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    refuses(path, "has format 7, newer than 6: upgrade dpublish")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_format_whose_grants_do_not_say_what_they_hide_is_refused(path, version):
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    refuses(path, f"has format {version}, whose grants do not say what they hide")


@pytest.mark.parametrize("version", [0, -1])
def test_a_format_that_never_was_is_not_a_ledgers(path, version):
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    refuses(path, "is not a ledger")


def test_a_name_that_no_file_can_have_is_refused_in_one_line(tmp_path):
    for name, match in {"x" * 300: "File name too long", "a\x00b": "no file can have"}.items():
        for use in (Ledger, Ledger.create):
            with pytest.raises(LedgerUnavailable, match=match):
                use(tmp_path / name)
    with pytest.raises(LedgerUnavailable, match="does not exist") as caught:
        Ledger(tmp_path / "two\nlines")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are POSIX")
def test_a_pipe_is_not_a_ledger(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refuses(tmp_path / "pipe", "is no ordinary file")


def test_a_ledger_stays_the_same_when_the_process_goes_to_another_folder(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with Ledger(path.name) as ledger:
        (path.parent / "below").mkdir()
        monkeypatch.chdir(path.parent / "below")
        assert grant(ledger).epsilon == Fraction(1, 10)


def test_a_ledger_is_never_replaced(path):
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match="exists already; a ledger is never replaced"):
        Ledger.create(path)
    assert path.read_bytes() == before


def test_a_ledger_in_a_folder_that_is_not_there_cannot_be_created(tmp_path):
    with pytest.raises(LedgerUnavailable, match="cannot be created: No such file"):
        Ledger.create(tmp_path / "nowhere" / "books.db")


def test_a_ledger_is_readable_by_its_owner_only(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["a b.db", "50%?#.db", "büch'er.db", "-.db"])
def test_any_file_name_will_do(tmp_path, name):
    with Ledger.create(tmp_path / name) as ledger:
        ledger.add("census")
    with Ledger(str(tmp_path / name)) as ledger:
        assert ledger.datasets() == ("census",)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_busy_ledger_says_so_after_waiting(path):
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with Ledger(path, wait_seconds=0.1) as ledger:
        with pytest.raises(LedgerUnavailable, match="is busy: another process kept it locked"):
            grant(ledger)
        assert ledger.status("census").spent == 0  # reading goes on
        blocker.execute("ROLLBACK")
        assert grant(ledger).epsilon == Fraction(1, 10)
    blocker.close()


def test_a_closed_ledger_says_so(path):
    ledger = Ledger(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        grant(ledger)


def test_a_ledger_that_was_replaced_or_removed_meanwhile_grants_nothing(path, tmp_path):
    older = shutil.copy(path, tmp_path / "older.db")
    with Ledger(path) as ledger:
        grant(ledger)
        os.replace(older, path)
        with pytest.raises(LedgerUnavailable, match=r"was replaced.* open it again"):
            grant(ledger)
        path.unlink()
        with pytest.raises(LedgerUnavailable, match="is gone"):
            grant(ledger)


def test_a_full_database_grants_nothing_and_keeps_what_it_has(path):
    with Ledger(path) as ledger:
        pages = ledger._store._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._store._connection.execute(f"PRAGMA max_page_count = {pages}")
        granted, reason = grant_until_refused(ledger)
        assert "the disk is full, so this entry was not made" in reason
        assert ledger.status("census").spent == Fraction(granted, 10)
    with Ledger(path) as ledger:
        assert ledger.verify().is_intact
        grant(ledger)


def grant_until_refused(ledger):
    for granted in range(500):
        try:
            grant(ledger)
        except LedgerUnavailable as error:
            return granted, str(error)
    raise AssertionError("it never ran full")


@pytest.mark.skipif(os.name != "posix", reason="limits of file size are POSIX")
def test_a_disk_that_runs_full_while_writing_loses_no_grant_and_makes_up_none(path):
    granted, message = run_script(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
        granted = 0
        with Ledger(path) as ledger:
            try:
                while granted < 5000:
                    grant(ledger)
                    granted += 1
            except LedgerUnavailable as error:
                print(granted)
                print(error)
        """,
        path,
    )
    assert int(granted) > 5
    assert "the disk is full" in message
    with Ledger(path) as ledger:
        assert ledger.verify().is_intact
        assert ledger.status("census").spent == Fraction(int(granted), 10)


@pytest.mark.skipif(os.name != "posix", reason="forks are POSIX")
def test_a_ledger_is_not_carried_over_a_fork(path):
    (message,) = run_script(
        """
        ledger = Ledger(path)
        child = os.fork()
        if child == 0:
            try:
                grant(ledger)
            except LedgerUnavailable as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        grant(ledger)
        ledger.close()
        """,
        path,
    )
    assert "this process was forked; open it again" in message
    with Ledger(path) as ledger:
        assert ledger.status("census").spent == Fraction(1, 10)


@pytest.mark.skipif(os.name != "posix", reason="forks are POSIX")
def test_a_fork_waits_for_a_grant_under_way_so_that_the_child_can_close_the_ledger(path):
    lines = run_script(
        """
        import signal, threading, time
        ledger, is_over = Ledger(path), threading.Event()
        def keep_granting():
            while not is_over.wait(0.0005):
                ledger.grant(
                    "census", epsilon="0.001", purpose="a", hides=AddRemoveRecord(), rng=secure()
                )
        thread = threading.Thread(target=keep_granting)
        thread.start()
        ends = set()
        for _ in range(30):
            time.sleep(0.002)
            child = os.fork()
            if child == 0:
                signal.alarm(1)  # forked in the middle of a change, it would wait forever
                ledger.close()
                os._exit(0)
            ends.add(os.waitpid(child, 0)[1])
        is_over.set()
        thread.join()
        print(ends, ledger.verify().is_intact)
        """,
        path,
    )
    assert lines == ["{0} True"]


def test_an_interrupt_at_any_line_leaves_the_ledger_usable(path):
    with Ledger(path) as ledger:
        lines = read_interrupted(ledger, at=0)
        assert lines > 5
        for line in range(1, lines + 1):
            read_interrupted(ledger, at=line)
            assert ledger.status("census").spent == 0


def read_interrupted(ledger, at):
    """Read, and be interrupted at a line of the storage; return how many lines there are."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.endswith("storage/sqlite.py"):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            ledger.status("census")
    finally:
        sys.settrace(before)
    return seen

"""Whatever is interrupted, the command says truly what stands and what is left to do."""

import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpublish.cli import release as release_command
from dpublish.core.folder import folder
from dpublish.core.folder.folder import load
from dpublish.core.released import Release
from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger
from dpublish.ledger.store import LedgerStore
from dpublish.methods.streams import folder as stream_folder
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import SCHEMA, make_ledger

FULL = Path("/dev/full")


def interrupt(*_, **__):
    raise KeyboardInterrupt


def entries(workdir):
    with Ledger(workdir / "books.db") as ledger:
        return [entry.kind for entry in ledger.entries()]


def fail_after_rename(monkeypatch, module, name, failure):
    """Let waiting for the disk fail once the folder has its final name."""
    plain = getattr(module, name)

    def fail(path):
        if path == Path.cwd():
            raise failure
        plain(path)

    monkeypatch.setattr(module, name, fail)


@contextmanager
def full_disk_for(monkeypatch, kind):
    """Let the ledger's disk be full for one kind of entry."""
    plain = LedgerStore.append

    def append(store, entry, fingerprint=None):
        if entry.kind == kind:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        plain(store, entry, fingerprint)

    with monkeypatch.context() as patched:
        patched.setattr(LedgerStore, "append", append)
        yield


def test_a_disk_that_fills_up_before_the_debit_grants_nothing(release, workdir, monkeypatch):
    with full_disk_for(monkeypatch, "grant"):
        done = release()
    assert done.code == 3
    assert "the disk is full, so this entry was not made" in done.err
    assert "stays debited" not in done.err
    assert not (workdir / "out").exists()
    assert entries(workdir) == ["create", "add"]


def test_a_disk_that_fills_up_after_the_debit_is_not_called_no_grant(
    release, run, workdir, monkeypatch
):
    with full_disk_for(monkeypatch, "publish"):
        done = release()
    assert done.code == 3
    assert "nothing was granted" not in done.err
    assert "the release is published, whole in out; do not repeat it" in done.err
    assert entries(workdir) == ["create", "add", "grant"]
    assert run("ledger", "record", "books.db", "out").code == 0  # as the message says
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


def test_a_whole_rename_is_a_publication_even_if_the_disk_does_not_confirm_it(
    release, run, workdir, monkeypatch
):
    fail_after_rename(monkeypatch, folder, "sync", OSError(5, "Input/output error"))
    done = release()
    assert (done.code, done.err) == (0, "")
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


def test_an_interrupt_after_the_rename_says_it_is_published(release, run, workdir, monkeypatch):
    with monkeypatch.context() as patched:
        fail_after_rename(patched, folder, "sync", KeyboardInterrupt())
        done = release()
    assert done.code == 130
    assert "the release is published, whole in out; do not repeat it" in done.err
    assert load(workdir / "out").receipt.ledger_entry == 3
    assert run("ledger", "record", "books.db", "out").code == 0
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


def test_an_interrupt_before_the_rename_says_nothing_is_published(release, workdir, monkeypatch):
    monkeypatch.setattr(folder, "json_bytes", interrupt)
    done = release()
    assert done.code == 130
    assert "nothing was published; ledger entry 3 stays debited" in done.err
    assert not list(workdir.glob(".*.partial"))
    assert not (workdir / "out").exists()


def test_a_foreign_folder_of_that_name_is_not_called_published(release, workdir, monkeypatch):
    def appear(*_, **__):
        (workdir / "out").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "json_bytes", appear)
    done = release()
    assert done.code == 130
    assert "nothing was published" in done.err


def test_a_release_that_is_saved_elsewhere_says_where_and_that_it_is_entered(
    release, run, workdir, monkeypatch, tmp_path_factory
):
    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    rename = os.rename

    def fail(source, target):
        if Path(target).name == "out":
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    done = release()
    assert done.code == 3
    assert "entered in the ledger: move it" in done.err
    (saved,) = spare.glob("dpublish-rescued-*/release")
    assert str(saved) in done.err
    assert run("ledger", "verify", "books.db", "--release", saved).code == 0


def test_an_interrupt_while_the_result_is_printed(release, run, workdir, monkeypatch):
    monkeypatch.setattr(release_command, "_say_cost", interrupt)
    done = release()
    assert done.code == 130
    assert "out is published and entered in the ledger; do not repeat the command" in done.err
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


def process(workdir, *words, **streams):
    command = [sys.executable, "-m", "dpublish", *map(str, words)]
    return subprocess.run(command, cwd=workdir, stderr=subprocess.PIPE, text=True, **streams)


def words_of_a_release(output):
    return (
        *("release", "--method", "histogram", "--columns", "age", "--data", "people.csv"),
        *("--schema", "people.toml", "--epsilon", "0.5", "--ledger", "books.db"),
        *("--dataset", "people", "-o", output),
    )


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_full_standard_output_does_not_hide_that_it_is_published(workdir, run):
    with FULL.open("w") as full:
        done = process(workdir, *words_of_a_release("out"), stdout=full)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "standard output cannot be written (No space left on device)" in done.stderr
    assert "out is published and entered in the ledger" in done.stderr
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


def test_a_reader_that_goes_away_does_not_make_a_release_a_wrong_request(workdir, run):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = process(workdir, *words_of_a_release("out"), stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


@pytest.fixture
def start(run, tmp_path):
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(SCHEMA))

    def call(epsilon="2"):
        words = ("--method", "per-snapshot", "--columns", "zone,hour", "--window", "4")
        paid = ("--epsilon", epsilon, "--ledger", "books.db", "--dataset", "rides")
        return run(
            *("stream", "start", "rides.stream", *words, "--schema", "rides.toml", *paid),
            *("-o", "out"),
        )

    return call


@pytest.mark.parametrize("late", ["the pages", "the folder's rename", "nothing"])
def test_a_start_that_was_interrupted_late_is_repeated_and_paid_once(
    start, tmp_path, monkeypatch, late
):
    with monkeypatch.context() as patched:
        if late == "the pages":
            patched.setattr(StreamOperator, "write_pages", interrupt)
        elif late == "the folder's rename":
            fail_after_rename(patched, stream_folder, "sync", KeyboardInterrupt())
        first = start()
    assert first.code == (0 if late == "nothing" else 130)
    if late == "the pages":
        assert "is started and paid for; the same command may be repeated" in first.err
    again = start()
    assert again.code == 0, again.err
    assert "was started already and is paid for" in again.out
    assert entries(tmp_path).count("grant") == 1
    assert (tmp_path / "out" / "report.html").is_file()


def test_another_start_on_the_same_file_is_refused(start, run, tmp_path):
    assert start().code == 0
    other = start(epsilon="1")
    assert other.code == 1
    assert "its epsilon differs" in other.err
    assert run("stream", "stop", "rides.stream").code == 0
    stopped = start()
    assert stopped.code == 1
    assert "stopped for good" in stopped.err
    assert entries(tmp_path).count("grant") == 1


def test_notes_of_an_unforeseen_error_are_not_printed(release, workdir, monkeypatch):
    def fail(*_, **__):
        error = ZeroDivisionError("secret")
        error.add_note("secret")
        raise error

    monkeypatch.setattr(Release, "save", fail)
    done = release()
    assert done.code == 70
    assert "secret" not in done.err
    assert "ledger show" in done.err

"""`ledger verify` blames what is wrong: the ledger, its anchor, the release or the request."""

import json
import shutil

import pytest

from dpublish.ledger.ledger import Ledger
from ledger.ledger_forgery import read, write


@pytest.fixture
def books(run, tmp_path):
    """A ledger with an anchor and three entries."""
    run("ledger", "create", "a.db", "--anchor", "anchor")
    run("ledger", "add", "a.db", "people", "--cap", "1")
    run("ledger", "cap", "a.db", "people", "0.5", "--reason", "less")
    return tmp_path / "a.db"


def refused(done, code=3):
    assert done.code == code
    assert len(done.err.splitlines()) == 1
    assert "a.db is not to be trusted" not in done.err
    return done.err


@pytest.mark.usefixtures("books")
def test_an_anchor_that_is_not_there_is_not_blamed_on_the_ledger(run, tmp_path):
    told = refused(run("ledger", "verify", "a.db", "--anchor", "nosuch"))
    assert "nosuch cannot be read: No such file" in told
    assert "check the name after --anchor" in told
    (tmp_path / "anchor").unlink()
    told = refused(run("ledger", "verify", "a.db"))
    assert "dpublish ledger anchor a.db FILE --lost" in told
    assert "a cut-off end would not show" in told


@pytest.mark.usefixtures("books")
def test_an_anchor_that_is_empty_or_was_set_back_is_not_blamed_on_the_ledger(run, tmp_path):
    lines = (tmp_path / "anchor").read_text().splitlines(keepends=True)
    (tmp_path / "anchor").write_text("".join(lines[:2]))
    told = refused(run("ledger", "verify", "a.db"))
    assert "ends at entry 1, and the ledger at entry 3" in told
    assert told.count("--lost") == 1
    (tmp_path / "anchor").write_text("")
    assert "is some other file, or was damaged" in refused(run("ledger", "verify", "a.db"))


@pytest.mark.usefixtures("books")
def test_the_anchor_of_another_ledger_is_called_that(run):
    run("ledger", "create", "b.db", "--anchor", "other")
    told = refused(run("ledger", "verify", "a.db", "--anchor", "other"))
    assert "belongs to another ledger: the wrong file was named, or" in told


@pytest.mark.usefixtures("books")
@pytest.mark.parametrize("head", ["zzz", "", "A" * 64, "0" * 63])
def test_a_head_that_is_no_hash_is_a_wrong_request(run, head):
    assert "is not a hash" in refused(run("ledger", "verify", "a.db", "--head", head), code=1)


def test_a_changed_release_is_blamed_on_the_release(release, run, workdir):
    release("out")
    shutil.copytree(workdir / "out", workdir / "forged")
    head = json.loads((workdir / "forged" / "release.json").read_text())
    head["receipt"]["created"] = "1999-12-31T00:00:00+00:00"
    (workdir / "forged" / "release.json").write_text(json.dumps(head))
    checked = run("ledger", "verify", "books.db", "--release", "forged")
    assert checked.code == 3
    assert "the release is not to be trusted, and books.db is in order: forged" in checked.err
    assert "release.json" in checked.err


def test_a_release_with_another_hash_than_the_ledger_accuses_neither_alone(release, run, workdir):
    release("out")
    write(workdir / "books.db", read(workdir / "books.db")[:2])
    checked = run("ledger", "verify", "books.db", "--release", "out")
    assert checked.code == 3
    assert "books.db and out contradict each other: release.json shows entry 3" in checked.err
    assert "set back to an older copy, or the release was changed" in checked.err


def test_setting_another_anchor_gives_its_advice_once(books, run, tmp_path):
    lines = (tmp_path / "anchor").read_text().splitlines(keepends=True)
    (tmp_path / "anchor").write_text("".join(lines[:2]))
    assert run("ledger", "anchor", "a.db", "second").err.count("--lost") == 1


def test_a_new_ledger_names_its_anchor(run):
    assert "with its anchor c.anchor" in run("ledger", "create", "c.db", "--anchor", "c.anchor").out


# What it was compared with


def test_success_says_with_what_the_ledger_was_compared(books, run, release, tmp_path):
    done = run("ledger", "verify", "a.db")
    assert f"compared with the anchor {tmp_path / 'anchor'}, up to entry 3" in done.out
    release("out")
    done = run("ledger", "verify", "books.db", "--release", "out")
    assert "compared with the release out, which shows entry 3" in done.out
    done = run("ledger", "verify", "books.db")
    assert "compared with nothing kept elsewhere" in done.out
    told = run("ledger", "verify", "books.db", "--json").json()
    assert told["compared"] == []
    done = run("ledger", "verify", "books.db", "--head", told["head"])
    assert "compared with the noted head, which is entry 4" in done.out


@pytest.mark.usefixtures("books")
def test_an_anchor_that_was_declared_lost_is_not_forgotten(run, tmp_path):
    (tmp_path / "anchor").unlink()
    run("ledger", "anchor", "a.db", "second", "--lost")
    for command in ("verify", "show"):
        done = run("ledger", command, "a.db")
        assert done.code == 0
        assert "warning: by entry 4 the anchor until then was declared lost" in done.err


# What is shown


def test_showing_a_ledger_that_was_cut_warns(books, run, tmp_path):
    assert run("ledger", "show", "a.db").err == ""
    whole = read(books)
    write(books, whole[:-1])
    for words in ((), ("--json",)):
        shown = run("ledger", "show", "a.db", *words)
        assert shown.code == 0
        assert "entry 3 is gone" in shown.err
        assert "may leave out what was spent" in shown.err
    write(books, whole)
    (tmp_path / "anchor").unlink()
    shown = run("ledger", "show", "a.db")
    assert shown.code == 0
    assert "cannot be read" in shown.err


def test_an_interrupted_confirmation_is_not_warned_of(books, tmp_path):
    lines = (tmp_path / "anchor").read_text().splitlines(keepends=True)
    (tmp_path / "anchor").write_text("".join(lines[:-1]))  # prepared, not confirmed
    with Ledger(books) as ledger:
        assert ledger.anchor_warnings() == ()

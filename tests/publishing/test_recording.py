"""Releases are compared with the ledger that paid, and entered if their command was cut off."""

import pyarrow as pa
import pytest

from dpublish import Histogram, Schema, column, load, open_table, publish
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.publishing.recording import checked_receipt, compare_releases, record_release

SCHEMA = Schema((column("sex", "category", values=["F", "M"]),))


@pytest.fixture
def books(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap="3")
        yield ledger


def make(books, path):
    table = open_table(pa.table({"sex": ["F", "M", "F"]}), SCHEMA)
    publish(Histogram(columns=["sex"]), table, path, ledger=books, dataset="people", epsilon="1")
    return path


def make_cut_off(books, path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "publish", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make(books, path)
    return path


def compare(books, path):
    return compare_releases(books, "books.db", {str(path): load(path).receipt})


def test_what_was_cut_off_is_entered_once(books, tmp_path, monkeypatch):
    path = make_cut_off(books, tmp_path / "sexes", monkeypatch)
    assert compare(books, path).unrecorded == [str(path)]
    first, second = record_release(books, path), record_release(books, path)
    assert (first.is_new, second.is_new, first.entry == second.entry) == (True, False, True)
    found = compare(books, path)
    assert (found.is_right, found.unrecorded) == (True, [])
    assert books.verify().is_intact


def test_a_release_that_this_ledger_did_not_pay_for_is_refused(books, tmp_path):
    with Ledger.create(tmp_path / "other.db") as other:
        other.add("people", cap="3")
        path = make(other, tmp_path / "sexes")
    with pytest.raises(InvalidParameter, match="did not make"):
        record_release(books, path)
    assert "contradict" in compare(books, path).contradictions[0]


def test_another_release_under_the_same_entry_is_found(books, tmp_path, monkeypatch):
    path = make(books, tmp_path / "sexes")
    receipt = load(path).receipt
    monkeypatch.setattr("dpublish.publishing.recording.folder_hash", lambda path: "0" * 64)
    found = compare_releases(books, "books.db", {str(path): receipt})
    assert "is not the release that the ledger recorded" in found.problems[0]
    assert not found.is_right
    behind = compare_releases(books, "books.db", {str(path): receipt}, is_in_order=False)
    assert behind.problems == []  # a broken ledger is blamed first


def test_a_changed_release_shows_no_receipt(books, tmp_path):
    path = make(books, tmp_path / "sexes")
    assert checked_receipt(path).epsilon == 1
    (path / "added.txt").write_text("x")
    with pytest.raises(CorruptRelease, match=r"added\.txt"):
        checked_receipt(path)

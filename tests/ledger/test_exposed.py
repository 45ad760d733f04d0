"""A ledger that other users may write is not used without a word."""

import os
import stat
import warnings

import pytest

from dpublish.errors import LedgerExposed
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_forgery import verify

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs modes of files")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "office").mkdir(mode=0o755)
    path = tmp_path / "office" / "books.db"
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
    return path


def grant(path):
    asked = {"purpose": "ages", "hides": AddRemoveRecord(), "rng": secure()}
    with Ledger(path) as ledger:
        return ledger.grant("census", epsilon="0.1", **asked)


CASES = {
    "everyone may write the file": ("", 0o666, "everyone may write the ledger: chmod go-w"),
    "everyone may write the folder": ("..", 0o777, "everyone may write the folder of the ledger"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_grant_warns_and_verify_reports_it(path, case):
    where, mode, told = CASES[case]
    (path.parent if where else path).chmod(mode)
    for _ in range(2):
        with pytest.warns(LedgerExposed, match=told):
            grant(path)
    found = verify(path)
    assert [told in text for text in found.warnings] == [True]
    assert found.is_intact


@pytest.mark.parametrize(("mode", "is_told"), [(0o660, True), (0o640, False), (0o600, False)])
def test_a_group_counts_unless_it_is_the_owners_alone(path, mode, is_told, monkeypatch):
    path.chmod(mode)
    monkeypatch.setattr("dpublish.storage.files._is_own_group", lambda status: False)
    assert [
        text.startswith("its group may write the ledger") for text in verify(path).warnings
    ] == ([True] * is_told)
    monkeypatch.setattr("dpublish.storage.files._is_own_group", lambda status: True)
    assert verify(path).warnings == ()


def test_a_folder_in_which_everyone_keeps_their_own_files_will_do(path):
    path.parent.chmod(0o1777)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grant(path)
    assert verify(path).warnings == ()


def test_the_folder_that_a_link_leads_to_counts_too(path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    path.parent.chmod(0o777)
    assert str(path.parent) in verify(tmp_path / "link.db").warnings[0]


def test_a_new_ledger_and_its_anchor_are_their_owners_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        with Ledger.create(tmp_path / "books.db", anchor=tmp_path / "anchor") as ledger:
            ledger.add("census", cap="1")
    finally:
        os.umask(before)
    for name in ("books.db", "anchor"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

"""Files are written whole or not at all."""

import os

import pytest

from dpublish.errors import InputError, InvalidParameter
from dpublish.storage.files import whole_file, write_text


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "page.html"
    with whole_file(path) as draft:
        draft.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left"), ValueError])
def test_whatever_interrupts_leaves_the_old_file(tmp_path, failure):
    path = tmp_path / "page.html"
    path.write_text("old")
    kind = InputError if isinstance(failure, OSError) else (KeyboardInterrupt, ValueError)

    def write():
        with whole_file(path, replaces=True) as draft:
            draft.write_text("half")
            raise failure

    with pytest.raises(kind):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_does_not_confirm_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def fail(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="nothing is left there"):
        write_text(path, "new", replaces=True)
    assert path.read_text() == "old"


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "rows.csv"

    def write():
        with whole_file(path) as draft:
            draft.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(InvalidParameter, match="exists already"):
        write()
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_ordinary_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(InvalidParameter, match="ordinary"):
            write_text(tmp_path / name, "text", replaces=True)

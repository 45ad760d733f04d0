"""Progress is shown on terminals and in notebooks, after a second, and nowhere else."""

import io
import sys

import pytest

from dpublish.core import progress as shown
from dpublish.core.progress import showing_progress
from dpublish.errors import InvalidType


class Screen(io.StringIO):
    def isatty(self):
        return True


def run(monkeypatch, screen, *, notebook=False, patience=0.0, given=True):
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(shown, "is_notebook", lambda: notebook)
    with showing_progress(given, patience=patience) as show:
        if show is not None:
            show(3, 10, "counts\x1b[2J")
    return screen.getvalue()


def test_nothing_is_shown_where_no_one_looks(monkeypatch):
    assert run(monkeypatch, io.StringIO()) == ""
    assert run(monkeypatch, Screen(), given=False) == ""


def test_quick_work_shows_nothing(monkeypatch):
    assert run(monkeypatch, Screen(), patience=60) == ""


def test_a_notebook_gets_one_meter_that_is_taken_away(monkeypatch):
    text = run(monkeypatch, io.StringIO(), notebook=True)
    assert "counts\\x1b[2J [######--------------] 30 % (3 of 10)" in text
    assert text.split("\r")[-1].strip() == ""


def test_a_terminal_gets_a_meter(monkeypatch):
    assert "counts" in run(monkeypatch, Screen())


def test_what_is_no_function_is_refused():
    with pytest.raises(InvalidType, match="progress must be"), showing_progress("yes"):
        pass

"""`dpublish audit`: what it prints, and the code with which it leaves."""

import json
from importlib.metadata import EntryPoint

import pytest

from auditing.broken_methods import BROKEN
from dpublish.auditing.audit import auditable
from dpublish.cli.main import main
from dpublish.core import plugins as plugins_module


@pytest.fixture
def run(capsys):
    """Run the command; give its exit code, and what it printed."""

    def leave(*words):
        with pytest.raises(SystemExit) as left:
            main(["audit", *words])
        printed = capsys.readouterr()
        return left.value.code, printed.out, printed.err

    return leave


@pytest.fixture
def broken(monkeypatch):
    """Install the broken methods, as packages of their own would be."""
    points = [
        EntryPoint(kind.name, f"auditing.broken_methods:{kind.__name__}", plugins_module.GROUP)
        for kind in BROKEN
    ]
    monkeypatch.setattr(plugins_module, "entry_points", lambda group: points)
    plugins_module.plugins.cache_clear()
    yield
    plugins_module.plugins.cache_clear()


QUICK = ("--runs", "10", "--seed", "1")


def test_a_method_that_passes(run):
    code, printed, _ = run("majority", *QUICK)
    assert code == 0
    assert "FAILED" not in printed
    for words in ("not checked", "docs/proofs/", "a broken twin", "evidence, not a proof"):
        assert words in printed


def test_a_broken_method_leaves_with_a_code_of_its_own(run, broken):
    code, printed, _ = run("half-noise", "--columns", "sex", *QUICK)
    assert code == 4
    assert "FAILED" in printed


@pytest.mark.parametrize("name", ["exact-total", "leaves"])
def test_programs_read_why_a_check_failed(run, broken, name):
    code, printed, _ = run(name, "--set", "columns=sex", "--json", *QUICK)
    found = json.loads(printed)
    assert code == 4
    assert not found["passed"]
    assert any(not check["passed"] and check["reason"] for check in found["checks"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["histogramm"], "did you mean"),
        (["half-noise"], "another package"),
        (["histogram", "--columns", "nowhere"], "nowhere"),
        (["histogram", "--runs", "many"], "runs"),
        (["histogram", "--runs", "0"], "at least 10"),
        (["histogram", "--epsilon", "0"], "greater than 0"),
        (["all", "--columns", "sex"], "mean nothing"),
    ],
)
def test_a_wrong_request(run, broken, words, said):
    code, printed, complaint = run(*words)
    assert code == 1
    assert printed == ""
    assert said in complaint


def test_without_a_method_it_lists_them(run):
    code, printed, _ = run()
    assert code == 0
    assert ", ".join(auditable()) in printed


def test_what_would_be_checked(run):
    code, printed, _ = run("dsft", "--list")
    assert code == 0
    for words in ("resuming", "unrelated rows", "stored vector", "measured loss"):
        assert words in printed
    code, printed, _ = run("dsft", "--list", "--json")
    assert {check["part"] for check in json.loads(printed)["dsft"]} >= {"replay", "black box"}

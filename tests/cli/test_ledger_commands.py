"""The ledger's commands believe no receipt that the books do not bear out."""

import json
import shutil

import pytest

from dpublish.cli.output import say_table
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import open_table
from dpublish.privacy.ledger import Ledger
from dpublish.randomness import secure
from dpublish.recipes import make_recipe
from privacy.ledger_forgery import edit_body, read, reseal, write


def grant(place, epsilon="1"):
    with Ledger(place / "books.db") as ledger:
        return ledger.grant("people", epsilon=epsilon, purpose="ages", rng=secure())


@pytest.fixture
def late(place):
    """A release that is paid for and saved, but not yet recorded."""
    table = open_table(str(place / "people.csv"), load_schema(place / "people.toml"))
    recipe = make_recipe("histogram", {"columns": ("age",)})
    recipe.release(table, budget=grant(place), rng=secure()).save(place / "late")
    return place / "late"


def forge(folder, copy, **changes):
    """Copy a release and change its receipt."""
    shutil.copytree(folder, folder.with_name(copy))
    file = folder.with_name(copy) / "release.json"
    head = json.loads(file.read_text())
    head["receipt"].update(changes)
    file.write_text(json.dumps(head))
    return copy


def test_a_release_that_waits_to_be_recorded_is_not_called_tampering(late, run):
    checked = run("ledger", "verify", "books.db", "--release", "late")
    assert checked.code == 3
    assert "run: dpublish ledger record books.db late" in checked.err
    assert "not to be trusted" not in checked.err
    assert "the chain is whole" in checked.out
    told = run("ledger", "verify", "books.db", "--release", "late", "--json")
    assert told.json()["unrecorded"] == ["late"]
    assert told.json()["problems"] == []


def test_a_release_recorded_with_another_hash_is_called_so(late, run):
    assert run("ledger", "record", "books.db", "late").code == 0
    other = forge(late, "other", created="1999-12-31T00:00:00+00:00")
    checked = run("ledger", "verify", "books.db", "--release", other)
    assert checked.code == 3
    assert "other is not the release that the ledger recorded" in checked.err
    assert "dpublish ledger record" not in checked.err


def cheap_grant(place):
    cheap = grant(place, "0.1").grant
    return {"ledger_entry": cheap.entry, "ledger_hash": cheap.entry_hash}


def test_a_release_that_cost_more_than_its_grant_is_neither_recorded_nor_believed(late, run, place):
    forged = forge(late, "forged", **cheap_grant(place))
    recorded = run("ledger", "record", "books.db", forged)
    assert recorded.code == 1
    assert "forged claims epsilon 1, but entry 4 debited 0.1" in recorded.err
    checked = run("ledger", "verify", "books.db", "--release", forged)
    assert checked.code == 3
    assert "claims epsilon 1, but entry 4 debited 0.1" in checked.err


@pytest.mark.parametrize(
    "changes",
    [{"dataset": "others"}, {"ledger_entry": 10**30}, {"ledger_entry": 2}, {"ledger_hash": "0"}],
)
def test_a_receipt_that_names_another_grant_is_refused(late, run, place, changes):
    with Ledger(place / "books.db") as ledger:
        ledger.add("others")
    forged = forge(late, "forged", **changes)
    recorded = run("ledger", "record", "books.db", forged)
    assert recorded.code in (1, 3)
    assert len(recorded.err.splitlines()) == 1
    assert run("ledger", "verify", "books.db", "--release", forged).code == 3
    with Ledger(place / "books.db") as ledger:
        assert [entry.kind for entry in ledger.entries()].count("publish") == 0


def test_one_release_does_not_close_two_grants(late, run, place):
    assert run("ledger", "record", "books.db", "late").code == 0
    second = grant(place).grant
    changes = {"ledger_entry": second.entry, "ledger_hash": second.entry_hash}
    recorded = run("ledger", "record", "books.db", forge(late, "again", **changes))
    assert recorded.code == 1
    assert "is recorded already" in recorded.err


def test_a_forged_purpose_cannot_write_on_the_terminal(run, place):
    grant(place)
    entries = read(place / "books.db")
    entries[-1] = edit_body(entries[-1], purpose="\x1b]0;owned\x07\x1b[2Kages\r\n\u202eX")
    write(place / "books.db", reseal(entries))
    shown = run("ledger", "show", "books.db")
    assert shown.code in (0, 3)
    for unseen in "\x1b\x07\r\u202e":
        assert unseen not in shown.out + shown.err
    assert run("ledger", "verify", "books.db").code == 3


def test_a_table_writes_out_what_cannot_be_printed(capsys):
    say_table(["name"], [["a\x1b[31m\u202e é"]])
    assert "a\\x1b[31m\\u202e é" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a\x1b[31m.db", "x" * 300, "two\nlines"])
def test_a_ledger_that_cannot_be_there_is_refused_in_one_line(run, name):
    shown = run("ledger", "show", name)
    assert shown.code == 3
    assert len(shown.err.splitlines()) == 1
    assert "\x1b" not in shown.err

"""Publisher and contact: public words in the chain, of which the last ones count."""

import json
import sqlite3
from dataclasses import replace

import pytest

from dpublish.errors import BudgetExhausted, InvalidParameter, LedgerUnavailable
from dpublish.ledger import chain
from dpublish.ledger.chain import DESCRIBED_FORMAT, FORMAT, MOST_STATED
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.storage.address import is_address
from ledger.ledger_forgery import read, reseal, verify, write

CITY, MAIL = "City of Example, Statistics Office", "privacy@example.org"


@pytest.fixture
def ledger(path):
    with Ledger.create(path) as made:
        made.add("census", cap="1", publisher=CITY)
        yield made


def grant(ledger, epsilon="0.3"):
    asked = {"epsilon": epsilon, "purpose": "ages", "hides": AddRemoveRecord(), "rng": secure()}
    return ledger.grant("census", **asked).grant


def stated(ledger, dataset="census"):
    status = ledger.status(dataset)
    return status.publisher, status.contact


def test_what_was_stated_last_counts_and_all_of_it_stays_on_record(ledger, path):
    assert stated(ledger) == (CITY, "")
    ledger.describe("census", contact=MAIL)
    assert stated(ledger) == (CITY, MAIL)
    ledger.describe("census", publisher="State of Example")
    assert stated(ledger) == ("State of Example", MAIL)
    ledger.describe("census", publisher="", contact="https://example.org")
    assert stated(ledger) == ("", "https://example.org")
    told = [entry.kind for entry in read(path)]
    assert told == ["create", "add", "describe", "describe", "describe"]
    assert verify(path).problems == ()


def test_a_description_changes_no_amount_and_grants_go_on_after_it(ledger, path):
    grant(ledger)
    ledger.describe("census", contact=MAIL)
    with pytest.raises(BudgetExhausted, match=r"has 0\.7 left"):
        grant(ledger, "0.8")
    paid = grant(ledger, "0.7")
    ledger.publish(paid, "id", "hash")
    status = ledger.status("census")
    assert (status.spent, status.left, status.contact) == (1, 0, MAIL)
    assert status.to_dict()["contact"] == MAIL
    assert verify(path).problems == ()


def test_a_dataset_with_levels_is_described_too(path):
    with Ledger.create(path) as ledger:
        ledger.add("survey", levels=("0.1", "1"), contact=MAIL)
        ledger.describe("survey", publisher=CITY)
        assert stated(ledger, "survey") == (CITY, MAIL)
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    "text", ["two\nlines", "bell\a", "   ", "\u202eelif", "x" * (MOST_STATED + 1)], ids=ascii
)
@pytest.mark.parametrize("which", ["publisher", "contact"])
def test_texts_that_no_certificate_could_show_are_refused(ledger, which, text):
    before = ledger.entries()
    with pytest.raises(InvalidParameter, match=which):
        ledger.describe("census", **{which: text})
    with pytest.raises(InvalidParameter, match=which):
        ledger.add("other", **{which: text})
    assert ledger.entries() == before


def test_a_description_of_nothing_or_of_no_dataset_is_refused(ledger):
    with pytest.raises(InvalidParameter, match="publisher, the contact"):
        ledger.describe("census")
    with pytest.raises(InvalidParameter, match="census"):
        ledger.describe("sensus", publisher=CITY)


def forged(body, **changes):
    return json.dumps(json.loads(body) | changes, separators=(",", ":"), sort_keys=True)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"spent": "0"}, "totals are not what"),
        ({"cap": "5"}, "totals are not what"),
        ({"contact": "two\nlines"}, "contact is not one line"),
    ],
)
def test_a_description_cannot_smuggle_anything_in(ledger, path, changes, problem):
    grant(ledger)
    ledger.describe("census", contact=MAIL)
    ledger.close()
    *others, last = read(path)
    write(path, reseal([*others, replace(last, body=forged(last.body, **changes))]))
    assert any(problem in found for found in verify(path).problems)


def test_an_entry_without_a_statement_looks_as_it_always_did():
    body = chain.Added(cap="1", spent="0", note="")
    entry = chain.seal(2, "2026-01-01T00:00:00+00:00", "census", body, chain.ORIGIN)
    assert set(json.loads(entry.body)) == {"cap", "note", "salt", "spent"}


def test_an_older_program_is_told_to_upgrade_once_there_is_a_description(tmp_path, monkeypatch):
    path = tmp_path / "books.db"
    with Ledger.create(path) as ledger:
        ledger.add("census", publisher=CITY)
        assert version(path) == FORMAT  # older programs read this, and pass the publisher over
        ledger.describe("census", contact=MAIL)
    assert version(path) == DESCRIBED_FORMAT
    kind = type(ledger._store).kind
    monkeypatch.setattr(type(ledger._store), "kind", older(kind))
    with pytest.raises(LedgerUnavailable, match="upgrade dpublish"):
        Ledger(path)


def version(path):
    connection = sqlite3.connect(path)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return found


def older(kind):
    """Return the kind of file as the program before this one knew it."""
    return type(kind)(**vars(kind) | {"newest": DESCRIBED_FORMAT - 1})


def test_a_described_ledger_moves_with_its_description(locate, backend):
    source, target = locate("source"), locate("target")
    with Ledger.create(source) as ledger:
        ledger.add("census")
        ledger.describe("census", publisher=CITY, contact=MAIL)
        ledger.move_to(target)
    for each in (source, target):
        assert verify(each).problems == ()
        if not is_address(each):
            assert version(each) == DESCRIBED_FORMAT
    with Ledger(target) as moved:
        assert stated(moved) == (CITY, MAIL)
        moved.describe("census", contact="")
        assert stated(moved) == (CITY, "")
        grant(moved)
    with Ledger(source) as closed, pytest.raises(LedgerUnavailable, match="closed"):
        closed.describe("census", contact="else@example.org")


def test_the_anchor_follows_a_description(tmp_path):
    with Ledger.create(tmp_path / "books.db", anchor=tmp_path / "anchor") as ledger:
        ledger.add("census", contact=MAIL)
        ledger.describe("census", publisher=CITY)
        found = ledger.verify()
    assert found.problems == ()
    assert found.compared[0].endswith("up to entry 3")


def test_the_history_tells_what_was_left_after_every_entry(ledger):
    paid = grant(ledger)
    ledger.publish(paid, "id7", "hash")
    ledger.change_cap("census", "2", reason="second wave")
    grant(ledger, "0.5")
    ledger.describe("census", contact=MAIL)
    told = [(event.kind, event.what, float(event.left)) for event in ledger.history("census")]
    assert told == [
        ("add", f"added with a cap of 1; publisher: {CITY}", 1.0),
        ("grant", "ages", 0.7),
        ("publish", "published for entry 3: release id7", 0.7),
        ("cap", "cap changed to 2: second wave", 1.7),
        ("grant", "ages", 1.2),
        ("describe", f"publisher: {CITY}; contact: {MAIL}", 1.2),
    ]
    states = [event.grant.state for event in ledger.history("census") if event.grant]
    assert states == ["published", "interrupted or running"]
    assert ledger.history("census")[1].to_dict()["grant"]["release_id"] == "id7"

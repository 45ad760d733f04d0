"""A forger who knows the format reseals everything; totals and anchors still give him away."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dpublish.errors import GrantPublished, InvalidParameter, LedgerTampered
from dpublish.ledger.history import history_of
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Grant
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_backends import clone
from ledger.ledger_forgery import (
    edit_body,
    make_honest,
    read,
    relink,
    reseal,
    tamper,
    verify,
    write,
)


@pytest.fixture(scope="module")
def originals():
    """The honest ledger of each backend, made once."""
    return {}


@pytest.fixture
def honest(originals, backend, tmp_path_factory, request):
    if backend not in originals:
        folder = tmp_path_factory.mktemp("honest")
        if backend == "sqlite":
            originals[backend] = make_honest(folder / "books.db")
        else:
            database = request.getfixturevalue("ledger_database")
            originals[backend] = make_honest(f"{database}#{__name__.replace('.', '_')}")
    return originals[backend]


@pytest.fixture
def path(honest, locate):
    return clone(honest, locate())


FORGERIES = {
    "a raised cap": (2, {"cap": "9"}, "totals are not what"),
    "a cheaper grant": (3, {"epsilon": "0.1"}, "totals are not what"),
    "a smaller total": (3, {"spent": "0.1"}, "totals are not what"),
    "a smaller last total": (8, {"spent": "0.1"}, "totals are not what"),
    "an overspent cap": (6, {"epsilon": "5", "spent": "5"}, "spent more than its cap"),
    "a publication of nothing": (4, {"grant": 7}, "no grant of this dataset"),
    "a publication of another's grant": (4, {"grant": 6}, "no grant of this dataset"),
    "an amount that is no number": (3, {"epsilon": "1e9"}, "cannot be read"),
    "a field of another type": (3, {"purpose": 5}, "cannot be read"),
    "a text of two lines": (3, {"purpose": "a\nb"}, "its purpose is not one line of text"),
    "a text that turns around": (7, {"reason": "\u202ex"}, "its reason is not one line of text"),
    "an empty text": (4, {"release_hash": ""}, "its release_hash is not one line of text"),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_totals_that_do_not_add_up_are_found_behind_fitting_hashes(path, case):
    number, changes, message = FORGERIES[case]
    entries = read(path)
    entries[number - 1] = edit_body(entries[number - 1], **changes)
    write(path, reseal(entries))
    problems = verify(path).problems
    assert any(message in problem for problem in problems), problems
    assert not any("hash does not fit" in problem for problem in problems)


STRUCTURE = {
    "a grant before its dataset": lambda e: [e[0], e[2], e[1], *e[3:]],
    "a dataset added twice": lambda e: [*e, edit_body(e[1], cap="2", spent="0.5")],
    "a grant of a dataset that never was": lambda e: [*e, replace(e[5], dataset="ghost")],
    "a grant published twice": lambda e: [*e[:4], e[3], *e[4:]],
    "a release recorded for two grants": lambda e: [
        *e,
        edit_body(e[3], grant=8, cap="2", spent="0.5"),
    ],
    "a name of two lines": lambda e: [*e, replace(e[4], dataset="a\nb")],
    "a second creation": lambda e: [*e, e[0]],
    "no creation": lambda e: e[1:],
    "an unknown kind": lambda e: [*e[:3], replace(e[3], kind="gift"), *e[4:]],
}


@pytest.mark.parametrize("case", STRUCTURE)
def test_entries_that_make_no_sense_are_found_behind_fitting_hashes(path, case):
    write(path, reseal(STRUCTURE[case](read(path))))
    problems = verify(path).problems
    assert problems
    assert not any("hash does not fit" in problem for problem in problems)


@pytest.mark.parametrize("number", range(1, 9))
def test_an_entry_that_was_edited_and_resealed_alone_is_found(path, number):
    entries = read(path)
    forged = replace(entries[number - 1], time="1999-12-31T00:00:00+00:00")
    values = (forged.time, forged.digest())
    tamper(path, f"UPDATE entries SET time = ?, hash = ? WHERE number = {number}", values=values)
    assert not verify(path).is_intact


def test_a_gap_in_the_numbers_is_found_behind_fitting_hashes(path):
    entries = read(path)
    write(path, relink([*entries[:-1], replace(entries[-1], number=9)]))
    (problem,) = verify(path).problems
    assert "entry 9: it should be number 8" in problem


def test_only_anchors_find_a_ledger_that_was_rewritten_from_end_to_end(path):
    old = read(path)
    noted, receipt = verify(path).head, (old[2].number, old[2].hash)
    assert verify(path, expected_head=noted, anchors=[receipt]).is_intact
    cheaper = [entry for entry in old if entry.number != 8]  # forget the last grant
    cheaper[2] = edit_body(cheaper[2], purpose="something else")
    write(path, reseal(cheaper))
    assert verify(path).is_intact  # what a chain without a key cannot show
    assert "no entry has the expected hash" in verify(path, expected_head=noted).problems[0]
    (problem,) = verify(path, anchors=[receipt]).problems
    assert "entry 3 does not have the hash that its receipt shows" in problem


def test_an_anchor_beyond_the_end_finds_an_older_copy(honest, path):
    with Ledger(path) as ledger:
        later = ledger.grant(
            "census", epsilon="0.1", purpose="p", hides=AddRemoveRecord(), rng=secure()
        ).grant
    assert verify(path, anchors=[(later.entry, later.entry_hash)]).is_intact
    assert not verify(honest, anchors=[(later.entry, later.entry_hash)]).is_intact


def test_a_head_noted_earlier_still_stands_when_the_ledger_has_grown(path):
    noted = verify(path).head
    with Ledger(path) as ledger:
        ledger.grant("census", epsilon="0.1", purpose="p", hides=AddRemoveRecord(), rng=secure())
    assert verify(path, expected_head=noted).is_intact


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = replace(body, '0.5', '0.0') WHERE number = 8",
        "DELETE FROM entries WHERE number = 8",
        "UPDATE head SET hash = 'x'",
        "UPDATE head SET entries = 7, hash = (SELECT hash FROM entries WHERE number = 7)",
        "DELETE FROM head",
    ],
)
def test_nothing_is_granted_or_shown_from_a_visibly_broken_ledger(path, statement):
    tamper(path, statement)
    with Ledger(path) as ledger:
        before = ledger.entries()
        for act in (
            lambda: ledger.grant(
                "census", epsilon="0.1", purpose="p", hides=AddRemoveRecord(), rng=secure()
            ),
            lambda: ledger.add("new"),
            lambda: ledger.change_cap("census", "3", reason="r"),
            lambda: ledger.status("census"),
        ):
            with pytest.raises(LedgerTampered, match="run `dpublish ledger verify`"):
                act()
        assert ledger.entries() == before


def test_a_datasets_last_entry_is_checked_wherever_it_stands(path):
    body = json.dumps(json.loads(read(path)[5].body) | {"spent": "0"})
    tamper(path, "UPDATE entries SET body = ? WHERE number = 6", values=(body,))
    with Ledger(path) as ledger, pytest.raises(LedgerTampered, match="entry 6 was edited"):
        ledger.grant("clinic", epsilon="0.1", purpose="p", hides=AddRemoveRecord(), rng=secure())


def test_a_datasets_last_entry_with_a_fitting_hash_of_its_own_is_still_noticed(path):
    entry = edit_body(read(path)[5], spent="0")
    values = (entry.body, entry.digest())
    tamper(path, "UPDATE entries SET body = ?, hash = ? WHERE number = 6", values=values)
    with Ledger(path) as ledger, pytest.raises(LedgerTampered, match="entry 6 was edited"):
        ledger.grant("clinic", epsilon="0.1", purpose="p", hides=AddRemoveRecord(), rng=secure())


@pytest.mark.parametrize(
    "forge",
    [
        lambda last: edit_body(last, cap="1e9"),
        lambda last: replace(last, kind="continue", body='{"source": "books.db", "salt": ""}'),
    ],
)
def test_a_last_entry_that_does_not_say_how_its_dataset_stands_pays_for_nothing(path, forge):
    entries = read(path)
    write(path, reseal([*entries[:-1], forge(entries[-1])]))
    with Ledger(path) as ledger:
        for act in (grant, lambda each: each.status("census"), lambda each: each.history("census")):
            with pytest.raises(LedgerTampered, match="entry 8 cannot be read"):
                act(ledger)


def test_an_entry_that_no_program_writes_is_not_passed_over_in_search_of_an_anchor(path):
    entries = read(path)
    forged = replace(entries[-1], kind="anchor", dataset="", body="{}")
    write(path, reseal([*entries, forged]))
    with Ledger(path) as ledger:
        with pytest.raises(LedgerTampered, match="entry 9 was edited"):
            grant(ledger)
        with pytest.raises(LedgerTampered, match="entry 9 was edited"):
            _ = ledger.anchor
    assert any("entry 9: its contents cannot be read" in text for text in verify(path).problems)


def test_no_history_is_told_that_does_not_add_up(path):
    entries = read(path)
    entries[2] = edit_body(entries[2], epsilon="0.1")
    write(path, reseal(entries))
    with Ledger(path) as ledger:
        for tell in (ledger.history, ledger.status):
            with pytest.raises(LedgerTampered, match="entry 3: its totals are not what"):
                tell("census")
        assert [event.kind for event in ledger.history("clinic")] == ["add", "grant"]


def test_a_history_is_that_of_the_dataset_alone(path):
    entries = [entry for entry in read(path) if entry.dataset != "census"]
    assert [entry.kind for entry in entries] == ["create", "add", "grant"]
    told = history_of(entries)
    assert [(event.entry, event.kind) for event in told] == [(5, "add"), (6, "grant")]
    with Ledger(path) as ledger:
        assert told == ledger.history("clinic")


# A text that says a thing twice is read by what it means, not by what can be found in it.


def say_twice(entry, said, again):
    assert entry.body.count(said) == 1
    return replace(entry, body=entry.body.replace(said, f"{said},{again}"))


def test_a_publication_is_that_of_the_grant_that_its_content_names(path):
    entries = read(path)
    with Ledger(path) as ledger:
        paid = Grant("census", 3, entries[2].hash)
        assert ledger.grant_status(paid).release_id == "id"
    entries[3] = say_twice(entries[3], '"grant":3', '"grant":6')
    write(path, reseal(entries))
    with Ledger(path) as ledger:
        assert ledger.grant_status(paid).release_id is None
    assert any("entry 6 is no grant of this dataset" in text for text in verify(path).problems)


def test_a_grant_that_is_asked_for_once_is_the_one_whose_content_has_the_purpose(path):
    with Ledger(path) as ledger, pytest.raises(GrantPublished):
        grant(ledger, epsilon="0.4", purpose="ages", once=True)
    entries = read(path)
    entries[2] = say_twice(entries[2], '"purpose":"ages"', '"purpose":"wards"')
    write(path, reseal(entries))
    with Ledger(path) as ledger:
        made = grant(ledger, epsilon="0.4", purpose="ages", once=True).grant
        assert (made.entry, ledger.status("census").spent) == (9, Fraction(9, 10))


# What is missing


def test_no_anchor_is_made_for_a_ledger_whose_first_entry_is_gone(path, tmp_path):
    tamper(path, "DELETE FROM entries WHERE number = 1")
    with Ledger(path) as ledger, pytest.raises(LedgerTampered, match="its first entry is gone"):
        ledger.set_anchor(tmp_path / "anchor")
    assert not (tmp_path / "anchor").exists()


def test_a_ledger_without_entries_has_no_last_one(path):
    tamper(path, "DELETE FROM entries")
    with Ledger(path) as ledger:
        with ledger._store.reading(), pytest.raises(LedgerTampered, match="its entries are gone"):
            ledger._last_entry()
        with pytest.raises(LedgerTampered, match="its last entry was edited or removed"):
            grant(ledger)


def test_a_dataset_that_is_listed_and_has_no_entry_is_not_taken_for_a_new_one(path, monkeypatch):
    with Ledger(path) as ledger:
        last_entry = ledger._store.last_entry
        monkeypatch.setattr(  # as where an index leaves rows out
            ledger._store, "last_entry", lambda of=None: None if of == "census" else last_entry(of)
        )
        for act in (grant, lambda each: each.status("census")):
            with pytest.raises(LedgerTampered, match="the entries of 'census' are not where they"):
                act(ledger)
        assert ledger.status("clinic").spent == Fraction(1, 2)


@pytest.mark.parametrize(
    "head", ["", "abc", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n"]
)
def test_a_noted_head_that_is_no_hash_is_refused_and_not_compared(path, head):
    with pytest.raises(InvalidParameter, match="is not a hash: give the 64 characters"):
        verify(path, expected_head=head)


def grant(ledger, **changes):
    asked = {"epsilon": "0.1", "purpose": "p", "hides": AddRemoveRecord(), "rng": secure()}
    return ledger.grant("census", **asked | changes)

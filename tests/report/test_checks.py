"""What is checked of a release for its owner's pages, and what is said where it is wrong."""

import json
import shutil

import pytest

from dpublish.core.folder.folder import sign_folder
from dpublish.core.folder.signing import SigningKey, create_key
from dpublish.errors import CorruptRelease
from dpublish.ledger.ledger import Ledger
from dpublish.report.checks import examine
from ledger.ledger_forgery import read, write
from owners_world import CONTACT, KINDS, PUBLISHER, make_plain


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_plain(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def copy(made, tmp_path):
    """The release and its ledger, to be damaged."""
    folder, ledger = tmp_path / "ages", tmp_path / "books.db"
    shutil.copytree(made.folder, folder)
    shutil.copy(made.ledger, ledger)
    return made._replace(folder=folder, ledger=ledger)


def results(examined):
    return {check.what: check.result for check in examined.checks}


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_that_its_ledger_recorded_has_no_problem(kind, tmp_path):
    home = KINDS[kind](tmp_path)
    examined = examine(home.folder, home.ledger)
    assert examined.problems == ()
    assert results(examined)["ledger entry"] == "right"
    assert examined.grant.release_id == examined.release.receipt.release_id
    if kind != "stream":
        assert (examined.status.publisher, examined.status.contact) == (PUBLISHER, CONTACT)
        assert examined.manifest_digest == examined.digest
    else:
        assert examined.manifest == "manifest.json"
        assert examined.manifest_digest != examined.digest


def test_an_open_ledger_stays_open(made):
    with Ledger(made.ledger) as books:
        assert examine(made.folder, books).problems == ()
        assert books.datasets() == ("people",)


def test_a_signature_is_right_only_if_it_was_checked_with_a_key(made, tmp_path):
    assert examine(made.folder, made.ledger).signature.state == "not checked"
    right = examine(made.folder, made.ledger, key=made.key)
    assert (right.signature.state, right.problems) == ("valid", ())
    create_key(tmp_path / "other.key")
    wrong = examine(made.folder, made.ledger, key=tmp_path / "other.pub")
    assert wrong.problems == (
        "The signature is not right: it is signed with another key than the one given.",
    )
    assert right.signature.fingerprint == wrong.signature.fingerprint  # what it names itself


def test_a_release_that_is_not_signed_is_wrong_where_a_key_was_given(copy):
    (copy.folder / "release.sig").unlink()
    assert examine(copy.folder, copy.ledger).signature.state == "not signed"
    told = examine(copy.folder, copy.ledger, key=copy.key).problems
    assert told == (
        "The signature is not right: it is not signed, though a key was given to check it with.",
    )


def test_a_hidden_file_in_the_folder_is_told_and_a_changed_one_refused(copy):
    (copy.folder / ".notes").write_text("x")
    (told,) = examine(copy.folder, copy.ledger).problems
    assert told.startswith("The folder is not as it was published: added")
    (copy.folder / "report.html").write_text("other")
    with pytest.raises(CorruptRelease, match=r"report\.html"):
        examine(copy.folder, copy.ledger)


def test_an_entry_that_the_ledger_does_not_have_is_told(copy, tmp_path):
    write(copy.ledger, read(copy.ledger)[:2])
    examined = examine(copy.folder, copy.ledger)
    assert examined.problems == (
        "The ledger does not vouch for this release: it names entry 3, and the ledger has no "
        "such entry.",
    )
    assert examined.grant is None
    assert examined.status is not None  # the dataset is there
    with Ledger.create(tmp_path / "empty.db"):
        pass
    empty = examine(copy.folder, tmp_path / "empty.db")
    assert "no such entry" in empty.problems[0]
    assert (empty.status, empty.history) == (None, ())


def test_an_entry_with_another_hash_is_told(copy, tmp_path):
    (tmp_path / "other").mkdir()
    other = make_plain(tmp_path / "other")
    examined = examine(copy.folder, other.ledger)
    assert examined.problems == (
        "The ledger does not vouch for this release: it names entry 3, which has another hash in "
        "this ledger.",
    )


def test_another_release_under_the_same_entry_is_told(copy):
    head = json.loads((copy.folder / "release.json").read_text())
    head["receipt"]["created"] = "1999-12-31T00:00:00+00:00"
    (copy.folder / "release.json").write_text(json.dumps(head))
    (told,) = examine(copy.folder, copy.ledger).problems
    assert "is not the release that the ledger recorded" in told


def test_a_claim_of_less_epsilon_than_was_debited_is_told(copy):
    head = json.loads((copy.folder / "release.json").read_text())
    head["receipt"]["epsilon"] = "0.25"
    head["receipt"]["shares"][0]["epsilon"] = "0.25"
    (copy.folder / "release.json").write_text(json.dumps(head))
    (told,) = examine(copy.folder, copy.ledger).problems
    assert "claims epsilon 0.25, but entry 3 debited 0.5" in told


def test_a_release_that_was_paid_for_and_not_recorded_is_told(copy):
    write(copy.ledger, read(copy.ledger)[:3])
    examined = examine(copy.folder, copy.ledger)
    assert "has not recorded it as published (dpublish ledger record)" in examined.problems[0]
    assert examined.grant.purpose == "yearly tables"


def test_a_ledger_that_was_edited_is_told_without_naming_its_files(copy):
    first, second, *others = read(copy.ledger)
    write(copy.ledger, [first, second.__class__(**vars(second) | {"time": "x"}), *others])
    examined = examine(copy.folder, copy.ledger)
    told = examined.problems[0]
    assert told.startswith("The ledger is not in order: ")
    assert "problem" in told
    assert "entry 2: it was edited" in {c.what: c.found for c in examined.checks}["ledger"]
    assert str(copy.ledger) not in " ".join(examined.problems)


def test_a_ledger_that_was_closed_is_not_the_one_to_ask(copy, tmp_path):
    with Ledger(copy.ledger) as books:
        books.move_to(tmp_path / "new.db")
    assert examine(copy.folder, copy.ledger).problems == (
        "The ledger is not in order: it was closed and goes on elsewhere: ask that one.",
    )
    assert examine(copy.folder, tmp_path / "new.db").problems == ()


def test_a_release_that_no_ledger_paid_for_is_told(copy):
    head = json.loads((copy.folder / "release.json").read_text())
    for name in ("dataset", "ledger_entry", "ledger_hash"):
        head["receipt"][name] = None
    (copy.folder / "release.json").write_text(json.dumps(head))
    examined = examine(copy.folder, copy.ledger)
    assert "no ledger paid for it" in examined.problems[0]
    assert examined.status is None


def test_a_signature_of_what_was_changed_since_is_wrong(copy, made):
    head = json.loads((copy.folder / "release.json").read_text())
    head["receipt"]["created"] = "1999-12-31T00:00:00+00:00"
    (copy.folder / "release.json").write_text(json.dumps(head))
    assert examine(copy.folder, copy.ledger, key=copy.key).signature.state == "changed"
    sign_folder(copy.folder, SigningKey.read(made.key.with_suffix(".key")))
    again = examine(copy.folder, copy.ledger, key=copy.key)
    assert again.signature.state == "valid"
    assert len(again.problems) == 1  # the ledger still knows better

"""`dpublish key`, `sign`, `verify` and `--sign`: whose release it is, without the ledger."""

import json

import pytest

from dpublish.core.folder.signing import PASSPHRASE, create_key, signing_key
from dpublish.errors import InvalidParameter


@pytest.fixture
def owner(run, workdir):
    done = run("key", "create", "owner.key")
    assert done.code == 0
    assert "owner.pub (give it to readers)" in done.out
    return done.out.split()[-1]


def test_a_release_is_signed_and_verified_without_the_ledger(owner, release, run, workdir):
    assert release(sign="owner.key").code == 0
    (workdir / "books.db").unlink()
    done = run("verify", "out", "--key", "owner.pub")
    assert done.code == 0
    assert f"signed with the key given, {owner}" in done.out
    assert run("key", "fingerprint", "owner.pub").out.strip() == owner
    unchecked = run("verify", "out")
    assert unchecked.code == 0
    assert "NOT checked" in unchecked.out
    assert "signed with" not in unchecked.out


def test_a_release_that_is_not_signed_is_said_to_be(owner, release, run):
    assert release().code == 0
    assert "it is not signed" in run("verify", "out").out
    refused = run("verify", "out", "--key", "owner.pub")
    assert refused.code == 3
    assert "not signed" in refused.err
    assert run("sign", "out", "--key", "owner.key").code == 0
    assert run("verify", "out", "--key", "owner.pub").code == 0


@pytest.mark.parametrize("command", [["verify", "out"], ["ledger", "verify", "books.db"]])
def test_what_differs_is_named(release, run, workdir, command):
    assert release().code == 0
    words = command if command[0] == "verify" else [*command, "--release", "out"]
    assert run(*words).code == 0
    (workdir / "out" / "report.html").write_text("nothing to see here")
    (workdir / "out" / "datapackage.json").unlink()
    (workdir / "out" / "extra.csv").write_text("age\n31\n")
    done = run(*words)
    assert done.code == 3
    assert "changed or cut: report.html" in done.err
    assert "missing: datapackage.json" in done.err
    assert "added (not in the manifest): extra.csv" in done.err
    assert len(done.err.splitlines()) == 1


def test_programs_get_json(owner, release, run, workdir):
    assert release(sign="owner.key").code == 0
    told = run("verify", "out", "--key", "owner.pub", "--json").json()
    assert told == {
        "changed": [],
        "missing": [],
        "added": [],
        "signed": True,
        "signature": "valid",
        "checked_with": owner,
        "ok": True,
    }
    (workdir / "out" / "report.html").write_text("other")
    done = run("verify", "out", "--json")
    assert (done.code, json.loads(done.out)["changed"]) == (3, ["report.html"])
    assert not json.loads(done.out)["ok"]


def other_key(run, folder):
    run("key", "create", "other.key")
    run("sign", folder, "--key", "other.key")


def resealed(run, folder):
    head = folder / "release.json"
    head.write_bytes(head.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("spoil", "state"),
    [
        (other_key, "other key"),
        (resealed, "changed"),
        (lambda run, folder: (folder / "release.sig").write_text("?"), "unreadable"),
        (lambda run, folder: (folder / "release.sig").unlink(), "none"),
    ],
)
def test_programs_see_that_a_signature_fails(owner, release, run, workdir, spoil, state):
    assert release(sign="owner.key").code == 0
    spoil(run, workdir / "out")
    done = run("verify", "out", "--key", "owner.pub", "--json")
    assert done.code == 3
    told = done.json()
    assert (told["signature"], told["ok"], told["checked_with"]) == (state, False, None)
    told = run("verify", "out", "--json").json()
    assert told["signature"] == ("none" if state == "none" else "not checked")
    assert (told["ok"], told["checked_with"]) == (True, None)


def test_signing_says_which_key_it_replaces_and_which_it_used(owner, release, run):
    assert f"signed with {owner}" in release(sign="owner.key").out
    assert "replaces" not in run("sign", "out", "--key", "owner.key").out
    run("key", "create", "other.key")
    assert (
        f"replaces a signature with another key, {owner}"
        in run("sign", "out", "--key", "other.key").out
    )


def test_a_public_key_cannot_sign_whatever_its_mode(owner, release, run):
    refused = release(sign="owner.pub")
    assert refused.code == 1
    assert "owner.pub is a public key" in refused.err
    assert "owner.key" in refused.err
    assert "chmod" not in refused.err


@pytest.mark.parametrize("given", [None, ""])
def test_a_passphrase_that_no_one_can_give_is_asked_for_in_words(run, workdir, monkeypatch, given):
    monkeypatch.delenv(PASSPHRASE, raising=False)
    if given is not None:
        monkeypatch.setenv(PASSPHRASE, given)
    refused = run("key", "create", "owner.key", "--encrypt")
    assert refused.code == 1
    assert PASSPHRASE in refused.err
    assert not (workdir / "owner.key").exists()


def test_an_encrypted_key_takes_its_passphrase_from_a_variable(run, release, monkeypatch):
    monkeypatch.setenv(PASSPHRASE, "long and secret")
    assert run("key", "create", "owner.key", "--encrypt").code == 0
    assert release(sign="owner.key").code == 0
    monkeypatch.delenv(PASSPHRASE)
    refused = run("sign", "out", "--key", "owner.key")
    assert refused.code == 1
    assert PASSPHRASE in refused.err


def test_a_wrong_key_is_refused_before_the_ledger_is_debited(release, run):
    refused = release(sign="nowhere.key")
    assert refused.code == 3
    assert run("ledger", "show", "books.db", "--json").json()[0]["spent"] == "0"


def test_the_report_is_written_beside_the_folder_which_stays_as_it_was(release, run, workdir):
    assert release().code == 0
    before = {p: p.read_bytes() for p in (workdir / "out").rglob("*") if p.is_file()}
    done = run("report", "out/")
    assert done.code == 0
    page = (workdir / "out-report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "# the folder out\n" in page
    assert "<code>out/data/counts.parquet</code>" in page
    assert "# this folder\n" in (workdir / "out" / "report.html").read_text()
    assert {p: p.read_bytes() for p in (workdir / "out").rglob("*") if p.is_file()} == before
    refused = run("report", "out", "-o", "out/report.html")
    assert refused.code == 1
    assert "inside the release folder" in refused.err
    (workdir / "page.html").write_text("precious")
    refused = run("report", "out", "-o", "page.html")
    assert (refused.code, (workdir / "page.html").read_text()) == (1, "precious")
    assert "exists already; name a file that does not exist yet" in refused.err
    assert run("report", "out").code == 0  # the default name is ours, and may be replaced
    for words in (["rows", "out", "-o", "out/rows.csv"], ["choose-k", "out", "-o", "out/a.svg"]):
        assert "inside the release folder" in run(*words).err
    assert run("verify", "out").code == 0


@pytest.mark.parametrize(
    "words", [["verify"], ["report"], ["sign", "--key", "owner.key"]], ids=lambda words: words[0]
)
def test_a_folder_that_is_no_release_is_called_so(owner, run, workdir, words):
    (workdir / "other").mkdir()
    done = run(words[0], "other", *words[1:])
    assert (done.code, "other is not a release folder" in done.err) == (3, True), done.err


def test_python_says_how_to_open_an_encrypted_key(workdir):
    create_key(workdir / "owner.key", "long and secret")
    with pytest.raises(InvalidParameter, match=r"SigningKey\.read") as refused:
        signing_key(workdir / "owner.key")
    assert PASSPHRASE in str(refused.value)

"""A signature shows whose release it is; nothing that comes with the release is believed."""

import base64
import json
import shutil
import subprocess
import sys

import pytest

from dpublish.core.folder import signing
from dpublish.core.folder.folder import is_signed, load, sign_folder
from dpublish.core.folder.signing import (
    RELEASE_TAG,
    STREAM_TAG,
    PassphraseNeeded,
    PublicKey,
    SigningKey,
    create_key,
)
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InputError, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Budget
from dpublish.publishing import publish
from dpublish.randomness import secure
from method_examples import SCHEMA, arrow_table


@pytest.fixture
def keys(tmp_path):
    create_key(tmp_path / "owner.key")
    create_key(tmp_path / "other.key")
    return tmp_path


@pytest.fixture
def release():
    method = make_method("histogram", {"columns": ("age",)})
    return method.release(open_table(arrow_table(), SCHEMA), budget=Budget.seeded(1), rng=secure())


@pytest.fixture
def signed(release, keys):
    return release.save(keys / "out", sign=keys / "owner.key")


def test_a_signed_release_opens_with_the_owners_key_and_without(signed, keys, release):
    assert load(signed, key=keys / "owner.pub") == release
    assert load(signed) == release
    assert is_signed(signed)


def test_another_key_does_not_open_it(signed, keys):
    with pytest.raises(CorruptRelease, match="another key"):
        load(signed, key=keys / "other.pub")


def test_a_release_without_a_signature_does_not_open_with_a_key(release, keys):
    folder = release.save(keys / "out")
    with pytest.raises(CorruptRelease, match="not signed"):
        load(folder, key=keys / "owner.pub")


def reseal(folder, **changes):
    """Change release.json as a forger would who cannot sign."""
    head = json.loads((folder / "release.json").read_text()) | changes
    (folder / "release.json").write_text(json.dumps(head))


def test_a_changed_manifest_does_not_fit_the_signature(signed, keys):
    reseal(signed, expected_error={})
    assert load(signed)  # without a key no one would know
    with pytest.raises(CorruptRelease, match="does not fit"):
        load(signed, key=keys / "owner.pub")


def test_a_forger_who_signs_with_a_key_of_their_own_is_found_out(signed, keys):
    reseal(signed, expected_error={})
    sign_folder(signed, SigningKey.read(keys / "other.key"))
    told = json.loads((signed / "release.sig").read_text())
    told["key"] = PublicKey.read(keys / "owner.pub").fingerprint
    (signed / "release.sig").write_text(json.dumps(told))
    with pytest.raises(CorruptRelease, match="does not fit"):
        load(signed, key=keys / "owner.pub")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"algorithm": "none"},
        {"algorithm": "hmac-sha256"},
        {"algorithm": None},
        {"signature": ""},
        {"signature": "x"},
        {"signature": None},
        {"signature": base64.b64encode(bytes(64)).decode()},
    ],
    ids=str,
)
def test_a_signature_file_that_says_something_else_is_refused(signed, keys, changes):
    told = json.loads((signed / "release.sig").read_text()) | changes
    (signed / "release.sig").write_text(json.dumps(told))
    with pytest.raises(CorruptRelease, match="signature"):
        load(signed, key=keys / "owner.pub")


@pytest.mark.parametrize("content", [b"", b"[" * 5_000, b"[]", b"\xff", b"x" * 20_000])
def test_a_signature_file_that_is_none_is_refused(signed, keys, content):
    (signed / "release.sig").write_bytes(content)
    with pytest.raises(CorruptRelease):
        load(signed, key=keys / "owner.pub")


def test_a_signature_of_one_kind_of_file_is_none_of_another(keys):
    key = SigningKey.read(keys / "owner.key")
    signature = key.sign(STREAM_TAG, b"content")
    key.public.check(STREAM_TAG, b"content", signature)
    for tag, content in ((RELEASE_TAG, b"content"), (STREAM_TAG, b"other"), (b"", b"content")):
        with pytest.raises(CorruptRelease, match="does not fit"):
            key.public.check(tag, content, signature)


def test_signing_later_writes_one_file_and_changes_no_other(release, keys):
    folder = release.save(keys / "out")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    sign_folder(folder, SigningKey.read(keys / "owner.key"))
    after = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert set(after) - set(before) == {folder / "release.sig"}
    assert before.items() <= after.items()
    assert load(folder, key=keys / "owner.pub") == release
    # When it was signed may be when the release ended, which tells of its rows.
    times = {path.stat().st_mtime for path in [folder, *folder.rglob("*")]}
    assert times == {(folder / "release.json").stat().st_mtime}


def test_a_changed_release_is_not_signed(release, keys):
    folder = release.save(keys / "out", extras={"report.html": b"true"})
    (folder / "report.html").write_bytes(b"false")
    with pytest.raises(CorruptRelease, match=r"report\.html"):
        sign_folder(folder, SigningKey.read(keys / "owner.key"))
    assert not is_signed(folder)


def test_the_private_key_is_for_its_owners_eyes_only(keys):
    path = keys / "owner.key"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(InvalidParameter, match="chmod 600"):
        SigningKey.read(path)


def test_keys_are_never_replaced(keys):
    before = (keys / "owner.key").read_bytes()
    with pytest.raises(InvalidParameter, match="exists already"):
        create_key(keys / "owner.key")
    (keys / "third.pub").touch()
    with pytest.raises(InvalidParameter, match="exists already"):
        create_key(keys / "third.key")
    assert not (keys / "third.key").exists()
    assert (keys / "owner.key").read_bytes() == before


def test_an_encrypted_key_needs_its_passphrase(tmp_path):
    made = create_key(tmp_path / "owner.key", "long and secret")
    assert b"ENCRYPTED" in (tmp_path / "owner.key").read_bytes()
    assert SigningKey.read(tmp_path / "owner.key", "long and secret").public == made
    with pytest.raises(PassphraseNeeded):
        SigningKey.read(tmp_path / "owner.key")
    with pytest.raises(InvalidParameter, match="passphrase is wrong"):
        SigningKey.read(tmp_path / "owner.key", "guess")


def test_keys_are_not_confused(keys):
    with pytest.raises(InvalidParameter, match="private key"):
        PublicKey.read(keys / "owner.key")
    (keys / "owner.pub").chmod(0o600)
    with pytest.raises(InvalidParameter, match="is a public key"):
        SigningKey.read(keys / "owner.pub")
    with pytest.raises(InvalidParameter, match="not a key file"):
        PublicKey.read("/dev/zero")
    with pytest.raises(InputError, match="cannot read"):
        PublicKey.read(keys / "nowhere.pub")
    with pytest.raises(InvalidParameter, match=r"owner\.key"):
        create_key(keys / "mine.pub")


def test_a_key_that_cannot_be_read_costs_nothing(tmp_path):
    method = make_method("histogram", {"columns": ("age",)})
    table = open_table(arrow_table(), SCHEMA)
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap=1)
        options = {"ledger": ledger, "dataset": "people", "epsilon": 1}
        with pytest.raises(InputError, match="cannot read"):
            publish(method, table, tmp_path / "out", sign=tmp_path / "no.key", **options)
        assert ledger.status("people").spent == 0
        create_key(tmp_path / "owner.key")
        publish(method, table, tmp_path / "out", sign=tmp_path / "owner.key", **options)
    assert load(tmp_path / "out", key=tmp_path / "owner.pub")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="compares with OpenSSL")
def test_other_tools_can_check_a_signature(signed, keys):
    told = json.loads((signed / "release.sig").read_text())
    (keys / "raw.sig").write_bytes(base64.b64decode(told["signature"]))
    (keys / "message").write_bytes(RELEASE_TAG + (signed / "release.json").read_bytes())
    words = "openssl pkeyutl -verify -pubin -inkey owner.pub -rawin -in message -sigfile raw.sig"
    done = subprocess.run(words.split(), cwd=keys, capture_output=True, text=True, check=False)
    assert "Verified Successfully" in done.stdout


def test_without_the_library_a_clear_word_says_what_to_install(signed, keys, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert load(signed)
    for attempt in (
        lambda: load(signed, key=keys / "owner.pub"),
        lambda: signing.create_key(keys / "new.key"),
    ):
        with pytest.raises(InputError, match=r"pip install 'dpublish\[sign\]'"):
            attempt()
    assert not (keys / "new.key").exists()

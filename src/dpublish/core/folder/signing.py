"""Sign a release's manifest with a key of the owner, and check such a signature.

A digest in a folder shows that a file was changed by accident, or by someone who did not change
the digest as well.  A signature shows whose list of digests it is.  The key that checks it must
have reached the reader in another way than the release: a key that comes with the release proves
nothing, so none is read from there.

Signatures are Ed25519 over a tag and the manifest's bytes.  The tag says what is signed, so that
a signature of one kind of file never passes for one of another kind.
"""

import base64
import binascii
import hashlib
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpublish.core.folder.manifest import SIGNATURE
from dpublish.core.folder.opening import read_file
from dpublish.errors import CorruptRelease, InputError, InvalidParameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

RELEASE_TAG = b"dpublish release v1\0"
STREAM_TAG = b"dpublish stream v1\0"
_MOST_SIGNATURE_BYTES = 10_000
_ALGORITHM = "ed25519"
_FORMAT = 1
_MOST_KEY_BYTES = 100_000


PASSPHRASE = "DPUBLISH_KEY_PASSPHRASE"
"""The variable from which commands take a passphrase instead of asking for it."""


class BadSignature(CorruptRelease):
    """A release is not signed with the key given; `state` says in one word why."""

    def __init__(
        self, state: Literal["other key", "changed", "unreadable", "none"], text: str
    ) -> None:
        super().__init__(text)
        self.state = state


class PassphraseNeeded(InvalidParameter):
    """The private key is encrypted, and no passphrase was given."""


@dataclass(frozen=True)
class PublicKey:
    """The key by which readers check who signed a release."""

    _key: "Ed25519PublicKey"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "PublicKey":
        """Read a public key file (PEM), such as `dpublish key create` writes."""
        crypto = _cryptography()
        content = _read_key_file(Path(path))
        if b"PRIVATE KEY" in content:
            raise InvalidParameter(
                f"{path} is a private key, which signs; give readers, and name here, the public "
                "one (owner.pub)"
            )
        try:
            key = crypto.serialization.load_pem_public_key(content)
        except (ValueError, crypto.UnsupportedAlgorithm):
            key = None
        if not isinstance(key, crypto.ed25519.Ed25519PublicKey):
            raise InvalidParameter(f"{path} is not an Ed25519 public key (PEM)")
        return cls(key)

    @property
    def fingerprint(self) -> str:
        """A short name of the key, to compare by another way, such as by telephone."""
        crypto = _cryptography()
        raw = self._key.public_bytes(
            crypto.serialization.Encoding.Raw, crypto.serialization.PublicFormat.Raw
        )
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"

    def to_pem(self) -> bytes:
        """Write the key as the content of a file."""
        crypto = _cryptography()
        return self._key.public_bytes(
            crypto.serialization.Encoding.PEM,
            crypto.serialization.PublicFormat.SubjectPublicKeyInfo,
        )

    def check(self, tag: bytes, content: bytes, signature: bytes) -> None:
        """Refuse a content that the owner of this key has not signed.

        `signature` is the content of a signature file.  Nothing in it is believed: the key is
        this one, whatever key the file names, and the algorithm is this key's.
        """
        crypto = _cryptography()
        signed, named = _read_signature(signature)
        try:
            self._key.verify(signed, tag + content)
        except crypto.InvalidSignature:
            if named != self.fingerprint:
                raise BadSignature(
                    "other key",
                    "the signature was made with another key than the one given "
                    f"({self.fingerprint}); ask the owner, by another way, which key is theirs",
                ) from None
            raise BadSignature(
                "changed",
                "the signature does not fit: what was signed has been changed since; "
                "ask for the release again",
            ) from None


@dataclass(frozen=True)
class SigningKey:
    """The owner's private key."""

    _key: "Ed25519PrivateKey"

    @classmethod
    def generate(cls) -> "SigningKey":
        """Make a new key from the operating system's randomness."""
        return cls(_cryptography().ed25519.Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: str | os.PathLike[str], passphrase: str | None = None) -> "SigningKey":
        """Read a private key file (PEM) that no one else may read."""
        crypto = _cryptography()
        content = _read_key_file(Path(path), is_private=True)
        try:
            key = crypto.serialization.load_pem_private_key(
                content, None if passphrase is None else passphrase.encode()
            )
        except TypeError:
            if passphrase is None:
                raise PassphraseNeeded(
                    f"{path} is encrypted; open it with SigningKey.read(path, passphrase), or on "
                    f"the command line put its passphrase into the variable {PASSPHRASE}"
                ) from None
            return cls.read(path)  # not encrypted, so there is nothing to open with it
        except (ValueError, crypto.UnsupportedAlgorithm):
            raise InvalidParameter(
                f"{path} is not an Ed25519 private key (PEM), or the passphrase is wrong"
            ) from None
        if not isinstance(key, crypto.ed25519.Ed25519PrivateKey):
            raise InvalidParameter(f"{path} is not an Ed25519 private key (PEM)")
        return cls(key)

    @property
    def public(self) -> PublicKey:
        """The key that checks what this one signs."""
        return PublicKey(self._key.public_key())

    def to_pem(self, passphrase: str | None) -> bytes:
        """Write the key as the content of a file, encrypted if there is a passphrase."""
        serialization = _cryptography().serialization
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()
            if passphrase is None
            else serialization.BestAvailableEncryption(passphrase.encode()),
        )

    def sign(self, tag: bytes, content: bytes) -> bytes:
        """Sign a content; gives the content of a signature file."""
        signed = base64.b64encode(self._key.sign(tag + content)).decode("ascii")
        told = {
            "format": _FORMAT,
            "algorithm": _ALGORITHM,
            "key": self.public.fingerprint,
            "signature": signed,
        }
        return json.dumps(told, indent=1).encode("ascii") + b"\n"


def create_key(path: str | os.PathLike[str], passphrase: str | None = None) -> PublicKey:
    """Make a key: the private one at `path`, for its owner's eyes only, the public one beside it.

    Files that are there are never replaced.
    """
    private, public = Path(path), public_path(path)
    key = SigningKey.generate()
    _write_new(private, key.to_pem(passphrase), 0o600)
    try:
        _write_new(public, key.public.to_pem(), 0o644)
    except BaseException:
        private.unlink()
        raise
    return key.public


def public_path(path: str | os.PathLike[str]) -> Path:
    """Return where the public key of a private key file is written: owner.key, owner.pub."""
    private = Path(path)
    if private.suffix == ".pub":
        raise InvalidParameter(f"{path}: name the private key's file, such as owner.key")
    return private.with_suffix(".pub")


def read_signature(folder: Path) -> bytes:
    """Read the signature file of a release folder, which must have one."""
    if not os.path.lexists(folder / SIGNATURE):
        raise BadSignature(
            "none",
            f"{folder} is not signed: it has no {SIGNATURE}; ask its owner to sign it "
            "(dpublish sign), or open it without a key",
        )
    try:
        return read_file(folder, SIGNATURE, _MOST_SIGNATURE_BYTES)
    except CorruptRelease as error:
        raise BadSignature("unreadable", str(error)) from None


def named_key(folder: Path) -> str | None:
    """Return the fingerprint that a folder's signature names; it may be wrong, or unreadable."""
    try:
        return str(_read_signature(read_signature(folder))[1])
    except BadSignature as problem:
        return None if problem.state == "none" else "(unreadable)"


def signing_key(sign: "SigningKey | str | os.PathLike[str] | None") -> SigningKey | None:
    """Take a key, or read the one that a path names."""
    return sign if sign is None or isinstance(sign, SigningKey) else SigningKey.read(sign)


def public_key(key: "PublicKey | str | os.PathLike[str] | None") -> PublicKey | None:
    """Take a public key, or read the one that a path names."""
    return key if key is None or isinstance(key, PublicKey) else PublicKey.read(key)


def _read_signature(content: bytes) -> tuple[bytes, Any]:
    """Return the signature, and the key that the file names."""
    told: Any = None
    with suppress(ValueError, RecursionError):
        told = json.loads(content.decode("ascii"))
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        raise BadSignature("unreadable", "the signature file is not one that this version can read")
    if told.get("algorithm") != _ALGORITHM:
        raise BadSignature("unreadable", "the signature is of another algorithm than Ed25519")
    try:
        return base64.b64decode(told["signature"], validate=True), told.get("key")
    except (KeyError, TypeError, binascii.Error):
        raise BadSignature("unreadable", "the signature file holds no signature") from None


def _read_key_file(path: Path, *, is_private: bool = False) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_KEY_BYTES:
                raise InvalidParameter(f"{path} is not a key file")
            content = file.read(_MOST_KEY_BYTES)
            if is_private:
                _require_private(path, content, about.st_mode)
            return content
    except OSError as error:
        raise InputError(
            f"cannot read the key {path} ({error.strerror or 'unknown reason'})"
        ) from None


def _require_private(path: Path, content: bytes, mode: int) -> None:
    """Refuse a public key, and a private one that others may read."""
    if b"BEGIN PUBLIC KEY" in content:
        raise InvalidParameter(
            f"{path} is a public key, which checks signatures; sign with the private one that was "
            f"made with it, such as {path.with_suffix('.key')}"
        )
    if mode & 0o077:
        raise InvalidParameter(f"{path} may be read by others; run: chmod 600 {path}")


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InvalidParameter(
            f"{path} exists already; name a key that does not exist yet"
        ) from None
    except OSError as error:
        raise InputError(f"cannot write {path} ({error.strerror or 'unknown reason'})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(f"cannot write {path} ({error.strerror or 'unknown reason'})") from None


@dataclass(frozen=True)
class _Cryptography:
    """The parts of the library that are used here."""

    ed25519: Any
    serialization: Any
    InvalidSignature: type[Exception]
    UnsupportedAlgorithm: type[Exception]


def _cryptography() -> _Cryptography:
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InputError(
            "signatures need the library cryptography, which is not installed; run: "
            "pip install 'dpublish[sign]'"
        ) from None
    return _Cryptography(ed25519, serialization, InvalidSignature, UnsupportedAlgorithm)

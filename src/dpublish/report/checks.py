"""What can be checked of a release with its ledger and its owner's key, each with its result.

The report to keep and the certificate state the results.  What is wrong is stated first and in
red: a page that is refused hides what was found, and a page that hides it is worse.
"""

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from dpublish.core.folder.folder import (
    differences,
    folder_hash,
    is_signed,
    load,
    manifest_name,
)
from dpublish.core.folder.opening import Fingerprint, read_file
from dpublish.core.folder.recorded import is_recorded, paid_by
from dpublish.core.folder.signing import BadSignature, PublicKey, named_key, public_key
from dpublish.core.released import Release
from dpublish.errors import InvalidParameter, LedgerTampered
from dpublish.ledger.account import GrantStatus, Status
from dpublish.ledger.chain import Moved
from dpublish.ledger.history import Event
from dpublish.ledger.ledger import Ledger
from dpublish.ledger.verify import Verification
from dpublish.privacy.receipt import Receipt

Result = Literal["right", "WRONG", "not checked"]
THE_RELEASE = "this release"
"""What messages call the folder: a certificate is given away, and no one needs its path."""
_MOST_TOLD = 3
_SIGNATURES = {
    "other key": "it is signed with another key than the one given",
    "changed": "what was signed has changed since, or not all of it is signed yet",
    "unreadable": "its signature cannot be read",
    "none": "it is not signed, though a key was given to check it with",
}


class Check(NamedTuple):
    """What was checked, what came of it, and what was found.

    `brief` is the same for outsiders, where what was found names files of the owner's.
    """

    what: str
    result: Result
    found: str
    brief: str = ""

    def tell(self) -> str:
        """Write what is wrong as a sentence, for outsiders."""
        text = _TOLD_OF[self.what].format(self.brief or self.found)
        return text if text.endswith(".") else f"{text}."


@dataclass(frozen=True)
class Signature:
    """What is known of a release's signature.

    Attributes:
        state: valid, none, not checked, or why it is wrong, as `dpublish verify --json` says.
        fingerprint: Of the key that was given, if it is valid; else of the key that it names.
    """

    state: str
    fingerprint: str | None = None

    def check(self) -> Check:
        """Return the result in words."""
        if self.state == "valid":
            return Check("signature", "right", f"signed with the key given, {self.fingerprint}")
        if self.state == "not checked":
            found = f"signed, as it says with {self.fingerprint}; no public key was given to check"
            return Check("signature", "not checked", found)
        if self.state == "not signed":
            return Check("signature", "not checked", "it is not signed")
        return Check("signature", "WRONG", _SIGNATURES[self.state])


@dataclass(frozen=True)
class Examined:
    """A release, what its ledger knows of it, and all that was checked.

    Attributes:
        folder: Where it is.
        release: The release.
        digest: The digest by which the ledger knows it.
        manifest: The file that lists all others, or the list that a stream's signature signs.
        manifest_digest: The digest of that file.
        signature: What is known of its signature.
        checks: What was checked.
        status: How its dataset stands in the ledger; None if the ledger does not know it.
        grant: The grant that paid for it; None if the ledger does not have that.
        history: All entries about its dataset.
    """

    folder: Path
    release: Release
    digest: str
    manifest: str
    manifest_digest: str
    signature: Signature
    checks: tuple[Check, ...]
    status: Status | None = None
    grant: GrantStatus | None = None
    history: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def account(self) -> Status | None:
        """How the dataset stands that paid for it; None if this ledger does not vouch for it.

        A ledger that did not pay may have a dataset of the same name, with another cap.
        """
        return None if self.grant is None else self.status

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, a sentence each."""
        return tuple(check.tell() for check in self.checks if check.result == "WRONG")


def examine(
    folder: str | os.PathLike[str],
    ledger: Ledger | str | os.PathLike[str],
    *,
    key: PublicKey | str | os.PathLike[str] | None = None,
) -> Examined:
    """Check a release folder against its manifest, its ledger and, with `key`, its signature.

    A folder that does not open, since its files were changed, is refused as by `load`.
    """
    path, owner = Path(folder), public_key(key)
    release = load(path)
    digest, manifest, signature = folder_hash(path), manifest_name(path), _signature(path, owner)
    with ExitStack() as opened:
        books = ledger if isinstance(ledger, Ledger) else opened.enter_context(Ledger(ledger))
        verified = books.verify()
        status, history = _account(books, release.receipt.dataset)
        entry, grant = _entry(books, release.receipt, digest)
        last = books.entries()[-1:]
    checks = [_files(path, manifest), signature.check(), _chain(verified), entry]
    if last and last[0].kind == Moved.kind:
        checks.append(Check("ledger", "WRONG", "it was closed and goes on elsewhere: ask that one"))
    return Examined(
        folder=path,
        release=release,
        digest=digest,
        manifest=manifest,
        manifest_digest=Fingerprint.of(read_file(path, manifest)).sha256,
        signature=signature,
        checks=tuple(checks),
        status=status,
        grant=grant,
        history=history,
    )


def _files(folder: Path, manifest: str) -> Check:
    found = differences(folder)
    if found:
        return Check("files", "WRONG", found.tell())
    return Check("files", "right", f"every file is as {manifest} lists it")


def _signature(folder: Path, owner: PublicKey | None) -> Signature:
    if owner is None:
        state = "not checked" if is_signed(folder) else "not signed"
        return Signature(state, named_key(folder))
    try:
        load(folder, key=owner)
    except BadSignature as problem:
        return Signature(problem.state, named_key(folder))
    return Signature("valid", owner.fingerprint)


def _chain(verified: Verification) -> Check:
    if not verified.is_intact:
        number = len(verified.problems)
        brief = f"{number:,} problem{'' if number == 1 else 's'} (dpublish ledger verify)"
        return Check("ledger", "WRONG", _first(verified.problems), brief)
    compared = "; ".join(verified.compared) or "nothing kept elsewhere"
    found = f"{verified.entries:,} entries, the chain is whole, compared with {compared}"
    return Check("ledger", "right", "; ".join([found, *verified.warnings]))


def _account(books: Ledger, dataset: str | None) -> tuple[Status | None, tuple[Event, ...]]:
    """Read how the dataset stands; nothing, where the ledger does not know it or is broken."""
    try:
        if dataset is None or dataset not in books.datasets():
            return None, ()
        return books.status(dataset), books.history(dataset)
    except LedgerTampered:
        return None, ()


def _entry(books: Ledger, receipt: Receipt, digest: str) -> tuple[Check, GrantStatus | None]:
    """Compare a release with the entry that it names."""
    what = "ledger entry"
    if receipt.anchor is None:
        return Check(what, "WRONG", "no ledger paid for it: nothing adds it to others"), None
    try:
        _, grant = paid_by(books, THE_RELEASE, receipt)
        if is_recorded(books, THE_RELEASE, receipt, digest):
            found = f"entry {grant.entry:,} paid for it, and the ledger recorded this very release"
            return Check(what, "right", found), grant
    except InvalidParameter as problem:
        return Check(what, "WRONG", _why_not(books, receipt, str(problem))), None
    except LedgerTampered as problem:
        return Check(what, "WRONG", str(problem)), None
    found = f"entry {grant.entry:,} paid for it, but the ledger has not recorded it as published"
    return Check(what, "WRONG", f"{found} (dpublish ledger record)"), grant


def _why_not(books: Ledger, receipt: Receipt, problem: str) -> str:
    """Say whether the entry that a release names is missing, or another one."""
    known = {entry.number: entry.hash for entry in books.entries()}
    number = receipt.ledger_entry or 0
    if number not in known:
        return f"it names entry {number:,}, and the ledger has no such entry"
    if known[number] != receipt.ledger_hash:
        return f"it names entry {number:,}, which has another hash in this ledger"
    return problem


def _first(problems: tuple[str, ...]) -> str:
    rest = len(problems) - _MOST_TOLD
    told = "; ".join(problems[:_MOST_TOLD])
    return f"{told}; and {rest:,} more" if rest > 0 else told


_TOLD_OF: dict[str, str] = {
    "files": "The folder is not as it was published: {}",
    "signature": "The signature is not right: {}",
    "ledger": "The ledger is not in order: {}",
    "ledger entry": "The ledger does not vouch for this release: {}",
}

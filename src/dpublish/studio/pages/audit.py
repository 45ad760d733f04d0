"""Audit: verify the ledger, its anchor, every release of the folder, and who signed them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from dpublish.core.folder.folder import is_signed, load
from dpublish.core.folder.signing import BadSignature, PublicKey, named_key
from dpublish.core.folder.verification import verify_folder
from dpublish.core.released import Release
from dpublish.errors import DPublishError
from dpublish.ledger.account import GrantStatus
from dpublish.ledger.ledger import Ledger
from dpublish.studio.pages.documents import PUBLIC_KEYS
from dpublish.studio.pages.releases import Standing, standing_in
from dpublish.studio.visit import Page, Visit


class Audited(NamedTuple):
    """A release of the folder and what was found of it.

    Attributes:
        name: Its folder.
        release: The release, if it opens.
        problem: Why it does not open; empty if it does.
        standing: What the ledger says of it.
        signature: Who signed it, in words.
    """

    name: str
    release: Release | None
    problem: str
    standing: Standing | None
    signature: str


class Open(NamedTuple):
    """A grant for which the ledger knows no release."""

    dataset: str
    grant: GrantStatus


def audit(visit: Visit) -> Response:
    """Verify all there is; nothing is changed."""
    if not visit.desk.has_ledger:
        return visit.show("no_ledger.html")
    head = visit.query.get("head", "").strip()
    keys = _public_keys(visit)
    with visit.desk.open_ledger() as ledger:
        verified = ledger.verify(expected_head=head or None)
        in_order = not [each for each in verified.problems if each != verified.anchor_problem]
        releases = [
            _audited(visit, name, ledger, keys, is_in_order=in_order)
            for name in visit.desk.list_releases()
        ]
        grants = _without_release(ledger) if in_order else []
        anchor = ledger.anchor
    return visit.show(
        "audit.html",
        verified=verified,
        head=head,
        in_order=in_order,
        anchor=anchor,
        releases=releases,
        grants=grants,
        agreeing=_agreeing(releases),
        keys=keys,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _agreeing(releases: Sequence[Audited]) -> tuple[str, ...]:
    """Say how many releases show an entry that the ledger has."""
    number = sum(
        each.standing is not None and each.standing.state in ("recorded", "open")
        for each in releases
    )
    if not number:
        return ()
    return (f"{number:,} release{'' if number == 1 else 's'} of the folder",)


def _public_keys(visit: Visit) -> dict[str, PublicKey | str]:
    """Read the public keys of the folder; of what is none, why not."""
    found: dict[str, PublicKey | str] = {}
    for name in visit.desk.list_files(PUBLIC_KEYS):
        try:
            found[name] = PublicKey.read(visit.desk.file(name))
        except DPublishError as error:
            found[name] = str(error)
    return found


def _audited(
    visit: Visit,
    name: str,
    ledger: Ledger,
    keys: Mapping[str, PublicKey | str],
    *,
    is_in_order: bool,
) -> Audited:
    try:
        path = visit.desk.release(name)
        verify_folder(path).require_right()
        found = load(path)
    except DPublishError as error:
        return Audited(name, None, str(error), None, "")
    standing = standing_in(ledger, visit, name, found, is_in_order=is_in_order)
    return Audited(name, found, "", standing, _signature(visit, name, keys))


def _signature(visit: Visit, name: str, keys: Mapping[str, PublicKey | str]) -> str:
    """Say with which of the folder's public keys a release is signed."""
    path = visit.desk.release(name)
    if not is_signed(path):
        return "not signed"
    for file, key in keys.items():
        if isinstance(key, PublicKey) and _fits(path, key):
            return f"signed with {file}"
    return f"not checked; names the key {named_key(path)}"


def _fits(path: Path, key: PublicKey) -> bool:
    try:
        load(path, key=key)
    except BadSignature:
        return False
    return True


def _without_release(ledger: Ledger) -> list[Open]:
    return [
        Open(name, grant)
        for name in ledger.datasets()
        for grant in ledger.status(name).grants
        if grant.release_id is None
    ]


PAGES = (Page("/audit", audit),)

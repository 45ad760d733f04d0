"""Releases: what there is, what each guarantees and holds, its report, and whether it is whole."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from starlette.responses import HTMLResponse, Response

from dpublish.core.coverage import coverage_of
from dpublish.core.folder.folder import HEAD, folder_hash, is_signed, load, manifest_name
from dpublish.core.folder.signing import PublicKey, named_key
from dpublish.core.folder.verification import verify_folder
from dpublish.core.released import Release
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.privacy.meaning import two_sentences
from dpublish.publishing.recording import compare_releases, record_release
from dpublish.publishing.statistics_tables import statistics_of
from dpublish.report.page import page_title, render_report, share_rows
from dpublish.studio.pages import comparing, using
from dpublish.studio.pages.documents import DOCUMENT_POLICY, PUBLIC_KEYS, documents
from dpublish.studio.pages.documents import PAGES as DOCUMENTS
from dpublish.studio.visit import Page, Visit

_PER_PAGE = 50
_KEPT_REPORTS = 16


class Row(NamedTuple):
    """A release of the folder as the list shows it; `problem` says why it does not open."""

    name: str
    title: str = ""
    release: Release | None = None
    is_signed: bool = False
    problem: str = ""


class Standing(NamedTuple):
    """What the ledger says of a release.

    Attributes:
        state: `recorded`, `open` (paid for, not entered), `wrong` or `unknown`.
        said: The same in words.
    """

    state: str
    said: str


def releases(visit: Visit) -> Response:
    """List the releases of the folder, the newest first."""
    names = visit.desk.list_releases()
    pages = max(1, -(-len(names) // _PER_PAGE))
    asked = visit.query.get("page", "1")
    page = min(int(asked), pages) if asked.isdecimal() and len(asked) < 6 and int(asked) else 1
    shown = names[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    return visit.show(
        "releases.html",
        rows=[_row(visit, name) for name in shown],
        number=len(names),
        page=page,
        pages=pages,
    )


def release(visit: Visit) -> Response:
    """Show one release: what it is, what it guarantees, and all that can be done with it."""
    name = visit.part("name")
    path = visit.desk.release(name)
    found = load(path)
    return visit.show(
        "release.html",
        name=name,
        title=page_title(found),
        release=found,
        receipt=found.receipt,
        sentences=_sentences(found),
        covered=coverage_of(found),
        shares=share_rows(found.receipt),
        uses=_uses(found),
        documents=documents(visit, name),
        is_signed=is_signed(path),
        standing=_standing(visit, name, found),
    )


def report(visit: Visit) -> Response:
    """Write the report anew from the release, once its files have been checked."""
    path = visit.desk.release(visit.part("name"))
    found = load(path)  # refuses a folder that was changed since it was written
    is_final = (path / HEAD).is_file()  # a stream grows, and its digest does not tell
    text = _report(path, folder_hash(path)) if is_final else render_report(found)
    return HTMLResponse(text, headers={"Content-Security-Policy": DOCUMENT_POLICY})


def verify(visit: Visit) -> Response:
    """Check files, signature and ledger entry of a release."""
    name, key = visit.part("name"), visit.query.get("key", "").strip()
    path = visit.desk.release(name)
    owner = PublicKey.read(visit.desk.file(key)) if key else None
    checked = verify_folder(path, owner)
    standing = _standing(visit, name, load(path)) if not checked.differences else None
    return visit.show(
        "verify.html",
        name=name,
        key=key,
        keys=visit.desk.list_files(PUBLIC_KEYS),
        checked=checked,
        manifest=manifest_name(path),
        named=named_key(path),
        digest=folder_hash(path),
        standing=standing,
    )


def record(visit: Visit) -> Response:
    """Enter a release that is whole and paid for, and that the ledger does not know."""
    name = visit.part("name")
    path = visit.desk.release(name)
    with visit.desk.open_ledger() as ledger:
        record_release(ledger, path)
    return visit.go(f"/releases/{name}")


@lru_cache(_KEPT_REPORTS)
def _report(path: Path, digest: str) -> str:
    """Render the report of a folder that does not change; its charts take most of the time."""
    return render_report(load(path))


def _row(visit: Visit, name: str) -> Row:
    try:
        path = visit.desk.release(name)
        found = load(path)
        return Row(name, page_title(found), found, is_signed(path))
    except DPublishError as error:
        return Row(name, problem=str(error))


def _sentences(found: Release) -> str:
    receipt = found.receipt
    if not receipt.is_private:
        return receipt.guarantee()
    return two_sentences(receipt.epsilon, receipt.neighbors, receipt.personal)


def _uses(found: Release) -> list[dict[str, str]]:
    """List what a release offers, each with its page."""
    kind = type(found)
    offers: list[tuple[bool, str, str, str]] = [
        (kind.count is not Release.count, "ask", "Ask", "Counts with intervals, by a query."),
        (
            _gives_rows(found),
            "rows",
            "Draw rows",
            "Synthetic rows, as many and as often as you want.",
        ),
        (
            kind.predict is not Release.predict,
            "predict",
            "Predict",
            "The class of your own rows; for the owner's eyes.",
        ),
        (
            isinstance(found, KMeansRelease),
            "choose-k",
            "Choose k",
            "How many clusters the release shows.",
        ),
        (_has_statistics(found), "statistics", "Statistics", "Each group with its intervals."),
        (True, "compare", "Compare", "With another release, side by side."),
        (True, "export", "Export", "CSV, JSON, Parquet or Excel."),
        (True, "verify", "Verify", "Files, signature and ledger entry."),
        (True, "evaluate", "Evaluate", "Against true rows; for the owner's eyes."),
    ]
    return [{"page": p, "name": n, "what": w} for there, p, n, w in offers if there]


def _gives_rows(found: Release) -> bool:
    kind = type(found)
    return kind.rows is not Release.rows or kind.row_batches is not Release.row_batches


def _has_statistics(found: Release) -> bool:
    try:
        return bool(statistics_of(found))
    except InvalidParameter:
        return False


def _standing(visit: Visit, name: str, found: Release) -> Standing:
    """Look up what the ledger of the studio says of a release."""
    if not visit.desk.has_ledger:
        return Standing("unknown", "the studio has no ledger to compare it with")
    try:
        with visit.desk.open_ledger() as ledger:
            return standing_in(ledger, visit, name, found)
    except DPublishError as error:  # it cannot be opened
        return Standing("wrong", str(error))


def standing_in(
    ledger: Ledger, visit: Visit, name: str, found: Release, *, is_in_order: bool = True
) -> Standing:
    """Compare a release with a ledger that is open, and in order or not."""
    if found.receipt.anchor is None:
        return Standing("unknown", "no ledger paid for it")
    receipts = {str(visit.desk.release(name)): found.receipt}
    shown = visit.desk.shown_ledger
    try:
        compared = compare_releases(ledger, shown, receipts, is_in_order=is_in_order)
    except DPublishError as error:
        return Standing("wrong", str(error))
    if not compared.is_right:
        return Standing("wrong", "; ".join([*compared.contradictions, *compared.problems]))
    if not is_in_order:
        return Standing("unknown", "not compared, because the ledger is not in order")
    entry = f"entry {found.receipt.ledger_entry:,}"
    if compared.unrecorded:
        return Standing("open", f"{entry} paid for it, but the ledger has not recorded it")
    return Standing("recorded", f"{entry} paid for it, and the ledger recorded this very release")


PAGES = (
    Page("/releases", releases),
    Page("/releases/{name}", release),
    Page("/releases/{name}/report", report),
    Page("/releases/{name}/verify", verify),
    Page("/releases/{name}/record", record, "POST"),
    *DOCUMENTS,
    *using.PAGES,
    *comparing.PAGES,
)

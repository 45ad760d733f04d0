"""The owner's documents about a release: the report to keep, and the certificate.

They are made when they are asked for, from the release and the ledger, and lie in no folder.
"""

from starlette.responses import HTMLResponse, Response

from dpublish.core.folder.signing import PublicKey, named_key
from dpublish.errors import DPublishError
from dpublish.report.certificate import render_certificate
from dpublish.report.checks import Examined, examine
from dpublish.report.keep import render_keep
from dpublish.studio.pages.using import attached
from dpublish.studio.visit import Page, Visit

DOCUMENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox"
)
"""What a report may do: it has its styles and drawings within, and no script."""
PUBLIC_KEYS = (".pub", ".pem")


def keep(visit: Visit) -> Response:
    """Show the report to keep."""
    return _document(visit, "keep", render_keep(_examined(visit)))


def certificate(visit: Visit) -> Response:
    """Show the certificate, on one page to print."""
    return _document(visit, "certificate", render_certificate(_examined(visit)))


def documents(visit: Visit, name: str) -> list[tuple[str, str]]:
    """List the documents that a visitor may see: what each is, and where."""
    found = [("Certificate", f"/releases/{name}/certificate")]
    if visit.session.may_spend:
        found.insert(0, ("Report to keep", f"/releases/{name}/keep"))
    return found if visit.desk.has_ledger else []


def _examined(visit: Visit) -> Examined:
    """Check a release against its ledger, and by the key that its signature names."""
    path = visit.desk.release(visit.part("name"))
    with visit.desk.open_ledger() as ledger:
        return examine(path, ledger, key=_key(visit, named_key(path)))


def _key(visit: Visit, fingerprint: str | None) -> PublicKey | None:
    """Find the public key that was asked for, or the one of the folder that a signature names."""
    if asked := visit.query.get("key", "").strip():
        return PublicKey.read(visit.desk.file(asked))
    for name in visit.desk.list_files(PUBLIC_KEYS) if fingerprint else ():
        try:
            key = PublicKey.read(visit.desk.file(name))
        except DPublishError:  # another file that is called so
            continue
        if key.fingerprint == fingerprint:
            return key
    return None


def _document(visit: Visit, what: str, text: str) -> Response:
    headers = {"Content-Security-Policy": DOCUMENT_POLICY}
    if visit.query.get("download") == "yes":
        headers |= attached(f"{visit.part('name')}-{what}.html")
    return HTMLResponse(text, headers=headers)


PAGES = (
    Page("/releases/{name}/keep", keep, owner_only=True),
    Page("/releases/{name}/certificate", certificate),
)

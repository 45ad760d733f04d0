"""The certificate: one page that states what is guaranteed for a release, and what was checked.

It is made from the release and the ledger, for whoever has to sign for a publication, and is
written outside of every release folder.  What does not fit one page is cut with a word that says
so; what is wrong stands at the top, in red.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version

from dpublish.core.folder.signing import PublicKey
from dpublish.core.proofs import proof_link, proofs_of
from dpublish.errors import InvalidParameter
from dpublish.ledger.account import Status
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.epsilon import format_rounded, quoted
from dpublish.privacy.meaning import most_sure, percent_at_most, two_sentences
from dpublish.privacy.neighbors import UserInWindow
from dpublish.privacy.receipt import Receipt
from dpublish.report.about import ends, statement_of, tell_date, tell_steps, what_is_learned
from dpublish.report.checks import Examined, examine
from dpublish.report.html import render_template
from dpublish.report.keep import Clock, now, owners_page
from dpublish.report.page import page_title
from dpublish.report.section import Listing
from dpublish.storage.files import write_text

NOT_COVERED = (
    "The guarantee does not cover what is true of many people and so can be said of each of them, "
    "what other tables, or releases from other ledgers, reveal about the same people, and whether "
    "the table itself is right."
)
_LONGEST = 160  # characters of what an owner may write at any length
_MOST_LEVELS = 6
_LONGEST_NAME = 100
_MOST_PROBLEMS = 4
_MOST_ASSUMED = 2
_EVEN = Fraction(1, 2)
_PER_LINE, _PER_LINE_OF_PAIRS = 110, 56  # characters in the usual print, be they wide ones
_MOST_LINES = 35
"""Lines of what varies for which the usual print has room on either paper, A4 or Letter."""


@dataclass(frozen=True)
class Certificate:
    """What the page shows, in its order.

    Attributes:
        title: What was released.
        problems: What is wrong, in red.
        release: Names and texts about the release: id, digest, signature, date, version.
        owner: Names and texts about whose it is, and what it cost.
        guarantee: What is guaranteed, a paragraph each.
        tables: What an attacker could learn; what each level paid.
        proofs: Names and addresses of the proof pages.
        not_covered: What the guarantee does not cover.
        made: When and by what the page was made.
    """

    title: str
    problems: Sequence[str]
    release: Mapping[str, str]
    owner: Mapping[str, str]
    guarantee: Sequence[str]
    tables: Sequence[Listing]
    proofs: Mapping[str, str]
    not_covered: str
    made: str

    @property
    def heading(self) -> str:
        """The heading of the guarantee: a claim, where something is wrong."""
        return "What the release claims; see above" if self.problems else "What is guaranteed"

    @property
    def is_dense(self) -> bool:
        """Whether so much is to be said that only a smaller print leaves it on one page."""
        named = [*self.release.values(), *self.owner.values()]
        lines = sum(_lines(text, _PER_LINE) for text in self.guarantee)
        lines += sum(_lines(text, _PER_LINE_OF_PAIRS) for text in named)
        lines += sum(2 * _lines(text, _PER_LINE_OF_PAIRS) for text in self.problems)
        lines += sum(len(each.rows) for each in self.tables) + len(self.proofs) // 4
        return lines > _MOST_LINES


def write_certificate(
    folder: str | os.PathLike[str],
    ledger: Ledger | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    key: PublicKey | str | os.PathLike[str] | None = None,
    proofs: str = "",
    replaces: bool = False,
) -> Examined:
    """Write the certificate of a release, as a new HTML file outside of every release folder.

    Args:
        folder: The release folder.
        ledger: The ledger that paid for it, open or by its location.
        output: The file to write.
        key: The owner's public key, with which the signature is checked.
        proofs: The address below which the proof pages are published; where the package says
            if it is left out.
        replaces: Whether a file that is there is replaced.

    Returns:
        What was checked; `problems` are stated in red on the page.
    """
    _require_base(proofs)
    path = owners_page(output, replaces=replaces)
    examined = examine(folder, ledger, key=key)
    write_text(path, render_certificate(examined, proofs=proofs), replaces=replaces)
    return examined


def _require_base(proofs: str) -> None:
    """Refuse what is no address of pages: a certificate holds links, not scripts."""
    scheme, colon, _ = proofs.partition(":")
    if colon and scheme not in ("http", "https"):
        raise InvalidParameter(
            f"proofs ({quoted(proofs)}) must be a web address or a folder: https://example.org/proofs"
        )


def render_certificate(examined: Examined, *, proofs: str = "", clock: Clock | None = None) -> str:
    """Write the certificate, from what was examined."""
    return render_template(
        "certificate.html", page=certificate_of(examined, proofs=proofs, clock=clock)
    )


def certificate_of(
    examined: Examined, *, proofs: str = "", clock: Clock | None = None
) -> Certificate:
    """Collect what a certificate states."""
    release, receipt = examined.release, examined.release.receipt
    named = proofs_of(receipt)
    return Certificate(
        title=clipped(page_title(release), _LONGEST_NAME),
        problems=[*receipt.stamps, *map(clipped, _some(examined.problems, _MOST_PROBLEMS))],
        release=_release(examined),
        owner=_owner(examined, tell_date(now(clock))),
        guarantee=_guarantee(receipt),
        tables=_tables(receipt, examined.account),
        proofs={name: proof_link(name, proofs) for name in named},
        not_covered=NOT_COVERED,
        made=f"Certificate of {tell_date(now(clock))}, made by dpublish {version('dpublish')}.",
    )


def clipped(text: str, most: int = _LONGEST) -> str:
    """Cut a text that would not fit; it then ends with dots.

    >>> clipped("a short one"), clipped("abcdef", most=4)
    ('a short one', 'abc…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _lines(text: str, width: int) -> int:
    return -(-len(text) // width)


def _some(texts: Sequence[str], most: int) -> list[str]:
    rest = len(texts) - most
    return [*texts[:most], *([f"And {rest:,} more."] if rest > 0 else [])]


def _release(examined: Examined) -> dict[str, str]:
    release, receipt = examined.release, examined.release.receipt
    pairs = {
        "release id": receipt.release_id,
        "dataset": clipped(receipt.dataset or "no ledger paid for it", _LONGEST_NAME),
        "method": _method(receipt),
        "released": f"{tell_date(receipt.created)}{tell_steps(release)}",
        "code version": f"dpublish {receipt.package_version}",
        "digest (SHA-256)": examined.digest,
    }
    if examined.manifest_digest != examined.digest:
        pairs[f"of {examined.manifest}"] = examined.manifest_digest
    if receipt.ledger_entry is not None:
        pairs["ledger entry"] = f"{receipt.ledger_entry:,}, hash {receipt.ledger_hash}"
    return pairs | {"signature": _signature(examined)}


def _method(receipt: Receipt) -> str:
    """Name the method, and the one that it runs, if there is one within it."""
    inner = receipt.settings.get("inner")
    within = inner.get("method") if isinstance(inner, Mapping) else None
    return receipt.method if within is None else f"{receipt.method}, which runs {within}"


def _signature(examined: Examined) -> str:
    check = examined.signature.check()
    found = check.found if check.result != "WRONG" else f"WRONG: {check.found}"
    return clipped(f"{found[:1].upper()}{found[1:]}", 200)


def _owner(examined: Examined, today: str) -> dict[str, str]:
    receipt, status = examined.release.receipt, examined.account
    stated = statement_of(examined.release)
    return {
        "publisher": _stated(status.publisher if status else "", stated.get("publisher")),
        "contact": _stated(status.contact if status else "", stated.get("contact")),
        "hidden": clipped(receipt.neighbors.brief()),
        "ε of this release": _epsilon(receipt),
        "total so far": _total(receipt, status, today),
    }


def _stated(in_ledger: str, in_release: str | None) -> str:
    """Return what the ledger states; else what the release does, and whose word it is."""
    if in_ledger:
        return in_ledger
    return "not stated" if in_release is None else f"{clipped(in_release)} (by the release)"


def _epsilon(receipt: Receipt) -> str:
    said = format_rounded(receipt.epsilon)
    if receipt.personal:
        return f"{said} at most; by level, see below"
    if isinstance(receipt.neighbors, UserInWindow):
        return f"{said} in any {receipt.neighbors.window:,} consecutive snapshots"
    return said


def _total(receipt: Receipt, status: Status | None, today: str) -> str:
    if status is None:
        return "unknown: the ledger does not vouch for this release"
    cap, spent, left = map(format_rounded, (status.cap, status.spent, status.left))
    scope = " at the highest level" if status.levels else ""
    if status.window is not None:
        scope = f" in any {status.window:,} consecutive snapshots of each stream"
    return f"{spent} of a cap of {cap}{scope}; {left} left on {today}"


def _guarantee(receipt: Receipt) -> list[str]:
    said = [receipt.guarantee()]
    if receipt.is_private:
        said.append(two_sentences(receipt.epsilon, receipt.neighbors, receipt.personal))
    if receipt.assumptions:
        assumed = "; ".join(clipped(text) for text in _some(receipt.assumptions, _MOST_ASSUMED))
        said.append(f"The proof takes for granted: {assumed}")
    return said


def _tables(receipt: Receipt, status: Status | None) -> list[Listing]:
    if receipt.personal:
        return [_by_level(receipt, status)]
    return what_is_learned(receipt)


def _by_level(receipt: Receipt, status: Status | None) -> Listing:
    spent = {} if status is None else {each.level: each.spent for each in status.levels}
    rows = [
        [
            format_rounded(level),
            format_rounded(paid),
            format_rounded(spent[level]) if level in spent else "unknown",
            percent_at_most(most_sure(_EVEN, paid)),
        ]
        for level, paid in receipt.personal
    ]
    shown, left_out = ends(rows, _MOST_LEVELS)
    rest = f" {left_out:,} levels between them are not shown." if left_out else ""
    headers = ["level (its own cap)", "ε of this release", "total so far", "50 % becomes at most"]
    return Listing(headers, shown, f"What each level paid, and how sure anyone can become.{rest}")

"""Compare published folders with the ledger that paid for them, and enter those that it lacks.

A command that is interrupted between publishing and recording leaves a release that is whole and
paid for, but not entered: `record_release` enters it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dpublish.core.folder.folder import differences, folder_hash, head_name, load
from dpublish.core.folder.recorded import is_recorded, paid_by
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.receipt import Receipt

AnyPath = str | Path


class Recorded(NamedTuple):
    """The entry of a release, and whether it was entered just now."""

    entry: int
    is_new: bool


def record_release(books: Ledger, folder: AnyPath) -> Recorded:
    """Enter a release whose command was interrupted; one that is entered stays as it is."""
    path = Path(folder)
    receipt, digest = load(path).receipt, folder_hash(path)
    grant, _ = paid_by(books, str(folder), receipt)
    if is_recorded(books, str(folder), receipt, digest):
        return Recorded(grant.entry, False)
    books.publish(grant, receipt.release_id, digest)
    return Recorded(grant.entry, True)


def checked_receipt(folder: AnyPath) -> Receipt:
    """Read the receipt of a release that is as it was published; name the files that are not."""
    differences(folder).require_none(Path(folder))
    return load(folder).receipt


@dataclass
class Compared:
    """What comparing releases with a ledger has shown.

    Attributes:
        contradictions: The entry that a release shows is another one in the ledger, or gone.
        problems: The ledger knows a release otherwise than its receipt says.
        unrecorded: Folders that are paid for and not entered.
        compared: Releases whose entry is the one that they show.
    """

    contradictions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether nothing was found wrong; a release that is not entered yet is not wrong."""
        return not self.contradictions and not self.problems


def compare_releases(
    books: Ledger,
    path: str,
    receipts: Mapping[str, Receipt],
    *,
    is_in_order: bool = True,
) -> Compared:
    """Compare releases, by the names of their folders, with the ledger at `path`.

    Where the ledger itself is not in order, only the entries that receipts show are compared.
    """
    known = {entry.number: entry.hash for entry in books.entries()}
    found = Compared()
    for folder, receipt in receipts.items():
        if _shows(found, path, folder, receipt, known) and is_in_order:
            _compare(found, books, folder, receipt)
    return found


def _shows(
    found: Compared, path: str, folder: str, receipt: Receipt, known: Mapping[int, str]
) -> bool:
    """Compare the entry that a receipt shows with the ledger's, if it shows one."""
    if receipt.anchor is None:
        return True
    number, shown = receipt.anchor
    if known.get(number) == shown:
        found.compared.append(f"the release {folder}, which shows entry {number}")
        return True
    has = "with another hash" if number in known else "and the ledger has none"
    head = head_name(Path(folder))
    found.contradictions.append(
        f"{path} and {folder} contradict each other: {head} shows entry {number}, "
        f"{has}. Either the ledger was rewritten or set back to an older copy, or the release "
        "was changed or is another ledger's; compare both with other releases, or with the anchor"
    )
    return False


def _compare(found: Compared, books: Ledger, folder: str, receipt: Receipt) -> None:
    try:
        if not is_recorded(books, folder, receipt, folder_hash(Path(folder))):
            found.unrecorded.append(folder)
    except InvalidParameter as error:
        found.problems.append(f"{error} (see its {head_name(Path(folder))})")


def checked_receipts(folders: Iterable[AnyPath]) -> dict[str, Receipt]:
    """Read the receipts of releases that are as they were published, by folder."""
    return {str(folder): checked_receipt(folder) for folder in folders}

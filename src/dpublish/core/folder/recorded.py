"""Which entry of a ledger paid for a release folder, and whether it recorded this very folder."""

from dpublish.errors import InvalidParameter
from dpublish.ledger.account import GrantStatus
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.receipt import Receipt


def paid_by(books: Ledger, folder: str, receipt: Receipt) -> tuple[Grant, GrantStatus]:
    """Look up the grant that paid for a release; refuse a receipt that says otherwise."""
    if receipt.dataset is None or receipt.anchor is None:
        raise InvalidParameter(f"{folder} was not paid for from any ledger")
    grant = Grant(receipt.dataset, *receipt.anchor)
    try:
        status = books.grant_status(grant)
    except InvalidParameter:
        raise InvalidParameter(f"{folder} names a grant that the ledger did not make") from None
    if status.epsilon != receipt.epsilon:
        raise InvalidParameter(
            f"{folder} claims epsilon {format_short(receipt.epsilon)}, "
            f"but entry {grant.entry} debited {format_short(status.epsilon)}"
        )
    _require_levels_paid(folder, receipt, grant, status)
    if status.hides != receipt.neighbors:
        raise InvalidParameter(
            f"{folder} claims to hide {receipt.neighbors.brief()}, but entry {grant.entry} paid "
            f"to hide {status.hides.brief()}"
        )
    return grant, status


def _require_levels_paid(folder: str, receipt: Receipt, grant: Grant, status: GrantStatus) -> None:
    """Refuse a receipt by which some level pays more than was debited there."""
    paid, claimed = dict(status.levels), dict(receipt.personal)
    if paid and paid.keys() != claimed.keys():
        raise InvalidParameter(f"{folder} has other levels than entry {grant.entry} debited")
    for level, amount in claimed.items():
        if amount > (debited := paid.get(level, status.epsilon)):
            raise InvalidParameter(
                f"{folder} claims epsilon {format_short(amount)} at level {format_short(level)}, "
                f"but entry {grant.entry} debited {format_short(debited)} there"
            )


def is_recorded(books: Ledger, folder: str, receipt: Receipt, digest: str) -> bool:
    """Return whether the ledger has recorded a release; refuse another one under its entry.

    `folder` is what messages call it, `digest` its `folder_hash`.
    """
    _, status = paid_by(books, folder, receipt)
    if status.release_id is None:
        return False
    if (status.release_id, status.release_hash) != (receipt.release_id, digest):
        raise InvalidParameter(f"{folder} is not the release that the ledger recorded")
    return True

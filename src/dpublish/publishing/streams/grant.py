"""What ties a stream to its ledger: one grant, found again if its start was interrupted.

The purpose of the grant ends in a random word that the state file holds before the grant is
made.  A start reads no rows, so a grant for which the ledger knows no stream has paid for
nothing, and the repeated start may use it.  The ledger learns a stream's name before its first
step, and one name only: so a grant pays for one stream, whatever copies there are of its file.
"""

from pathlib import Path

from dpublish.errors import InvalidParameter, LedgerTampered
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.privacy.neighbors import Neighbors
from dpublish.privacy.receipt import Receipt
from dpublish.publishing.streams.state import StreamFile
from dpublish.randomness import secure


def obtain_budget(file: StreamFile, hides: Neighbors) -> Budget:
    """Debit the ledger for a stream that is being started, unless that was done before.

    `hides` is what the stream hides.  The caller holds the stream's lock, and the state file
    holds no stream yet.
    """
    dataset, epsilon = file.text("dataset"), parse_epsilon(file.text("epsilon"))
    purpose = f"{file.text('purpose')} [stream {file.text('token')}]"
    with Ledger(file.text("ledger")) as ledger:
        for grant in ledger.status(dataset).grants:
            if grant.purpose == purpose and grant.epsilon == epsilon:
                if grant.release_id is not None:
                    raise _is_taken(file.path)
                entry = ledger.entries()[grant.entry - 1]
                return ledger.reopen(Grant(dataset, entry.number, entry.hash, entry.time))
        return ledger.grant(
            dataset,
            epsilon=epsilon,
            purpose=purpose,
            hides=hides,
            rng=secure(),
            all_have_levels=bool(file.metadata("all_have_levels", default=False)),
        )


def check_grant(path: Path, receipt: Receipt) -> None:
    """Refuse to go on with a stream that the ledger did not pay for."""
    grant = _grant(receipt, path)
    with Ledger(path) as ledger:
        try:
            status = ledger.grant_status(grant)
        except InvalidParameter:
            raise InvalidParameter(
                f"the ledger {path} has no grant for this stream; name the one that paid for it"
            ) from None
    if (status.epsilon, status.hides) != (receipt.epsilon, receipt.neighbors):
        raise LedgerTampered(f"the ledger {path} did not debit what this stream costs")
    if status.release_id not in (None, receipt.release_id):
        raise _is_taken(path)


def record_stream(path: Path, receipt: Receipt, head_hash: str) -> None:
    """Enter the stream in the ledger, if it is not there yet; refused if another one is."""
    grant = _grant(receipt, path)
    with Ledger(path) as ledger:
        known = ledger.grant_status(grant).release_id
        if known is None:
            ledger.publish(grant, receipt.release_id, head_hash)
        elif known != receipt.release_id:
            raise _is_taken(path)


def _grant(receipt: Receipt, path: Path) -> Grant:
    if receipt.dataset is None or receipt.anchor is None:
        raise InvalidParameter(f"no grant of the ledger {path} paid for this stream")
    return Grant(receipt.dataset, *receipt.anchor)


def _is_taken(path: Path) -> InvalidParameter:
    return InvalidParameter(
        f"{path}: the grant has paid for another stream already, so this state file is an older "
        "copy; put the newest back, or start a new stream under another name"
    )

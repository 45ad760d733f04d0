"""What ties a stream to its ledger: one grant, found again if its start was interrupted.

The purpose of the grant ends in a random word that the state file holds before the grant is
made.  A start reads no rows, so a grant whose stream never came to be has paid for nothing,
and the repeated start may use it.
"""

from pathlib import Path

from dpublish.errors import InvalidParameter, LedgerTampered
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.privacy.ledger import Ledger
from dpublish.privacy.receipt import Receipt
from dpublish.publishing.stream_file import StreamFile
from dpublish.randomness import secure


def obtain_budget(file: StreamFile) -> Budget:
    """Debit the ledger for a stream that is being started, unless that was done before.

    The caller holds the stream's lock, and the state file holds no stream yet.
    """
    dataset, epsilon = file.fact("dataset"), parse_epsilon(file.fact("epsilon"))
    purpose = f"{file.fact('purpose')} [stream {file.fact('token')}]"
    with Ledger(file.fact("ledger")) as ledger:
        for grant in ledger.status(dataset).grants:
            if grant.purpose == purpose and grant.epsilon == epsilon:
                entry = ledger.entries()[grant.entry - 1]
                return Budget(epsilon, purpose, grant=Grant(dataset, entry.number, entry.hash))
        return ledger.grant(dataset, epsilon=epsilon, purpose=purpose, rng=secure())


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
    if status.epsilon != receipt.epsilon:
        raise LedgerTampered(f"the ledger {path} did not debit what this stream costs")


def record_stream(path: Path, receipt: Receipt, head_hash: str) -> None:
    """Enter the stream in the ledger, if it is not there yet."""
    grant = _grant(receipt, path)
    with Ledger(path) as ledger:
        if ledger.grant_status(grant).release_id is None:
            ledger.publish(grant, receipt.release_id, head_hash)


def _grant(receipt: Receipt, path: Path) -> Grant:
    if receipt.dataset is None or receipt.anchor is None:
        raise InvalidParameter(f"no grant of the ledger {path} paid for this stream")
    return Grant(receipt.dataset, *receipt.anchor)

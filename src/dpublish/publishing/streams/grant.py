"""Start a stream, paid for once by one grant, and check that grant whenever it goes on.

The state is written first, with all that was asked for; then the ledger is debited; then the
stream is written into the state.  So an interrupted start can be repeated.

The purpose of the grant ends in a random word that the state holds before the grant is made.
A start reads no rows, so a grant for which the ledger knows no stream has paid for nothing, and
the repeated start may use it.  The ledger learns a stream's name before its first step, and one
name only: so a grant pays for one stream, whatever copies there are of its file.
"""

import json
import secrets
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpublish.core.folder.folder import require_new_folder
from dpublish.core.folder.opening import require_loadable
from dpublish.core.method import settings_of
from dpublish.data import schema_file
from dpublish.data.schema import Schema
from dpublish.errors import (
    BudgetExhausted,
    DPublishError,
    GrantPublished,
    InvalidParameter,
    LedgerTampered,
)
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.method import StreamMethod, make_stream_method
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.neighbors import Neighbors
from dpublish.privacy.receipt import Receipt
from dpublish.publishing.state_file import RUNNING, STARTING, STOPPED, StoredState
from dpublish.publishing.streams.record_steps import NO_STEPS, StreamSteps
from dpublish.publishing.streams.state import StreamStore
from dpublish.randomness import secure
from dpublish.storage.address import shown_location


@dataclass(frozen=True)
class Request:
    """What is asked for when a stream is started."""

    method: StreamMethod
    schema: Schema
    ledger: str
    dataset: str
    epsilon: Fraction
    output: str
    purpose: str
    all_have_levels: bool = False
    steps: StreamSteps = NO_STEPS

    def to_dict(self) -> dict[str, Any]:
        """Turn the request into plain values for the state file."""
        return {
            "method": self.method.name,
            "settings": settings_of(self.method),
            "schema": schema_file.to_dict(self.schema),
            "ledger": self.ledger,
            "dataset": self.dataset,
            "epsilon": format_epsilon(self.epsilon),
            "output": self.output,
            "purpose": self.purpose,
            "all_have_levels": self.all_have_levels,
            **({"steps": self.steps.to_dict()} if self.steps.texts else {}),
        }


def require_readable(request: Request) -> None:
    """Refuse, before it is paid for, a stream that could not be opened again from its file."""
    require_loadable(request.schema)
    plain = json.loads(json.dumps(request.to_dict()))
    try:
        method = make_stream_method(plain["method"], plain["settings"])
        schema = schema_file.from_dict(plain["schema"])
    except DPublishError as error:
        raise InvalidParameter(
            f"a stream must read its settings back, and cannot: {error}"
        ) from None
    if (method, schema) != (request.method, request.schema):
        raise InvalidParameter("a stream must read its settings back, and these come back changed")


def new_state(request: Request) -> dict[str, Any]:
    """Write what the state of a stream holds before it is paid for; refuse what cannot be."""
    require_new_folder(Path(request.output))
    with Ledger(request.ledger) as ledger:  # found wanting now, it leaves nothing behind
        ledger.status(request.dataset)
    return {"phase": STARTING, "token": secrets.token_hex(8), **request.to_dict()}


def start_stream(state: StreamStore, request: Request, *, is_new: bool) -> bool:
    """Pay for a stream and write it into its state, which the caller holds.

    False means that the same request has started the stream before: nothing is debited again.
    """
    _require_same(state, request)
    if state.phase == RUNNING:
        return False
    budget = _debit(state, is_new, request.method.neighbors(request.schema))
    steps = request.steps.texts
    stream = request.method.start(request.schema, budget=budget, rng=secure(), steps=steps)
    state.begin(stream.state(), phase=RUNNING, receipt=stream.receipt.to_dict())
    return True


def _debit(state: StreamStore, is_new: bool, hides: Neighbors) -> Budget:
    state.require_held()  # whoever has it now may have paid
    try:
        return obtain_budget(state, hides)
    except (BudgetExhausted, InvalidParameter):  # refused, so nothing was granted
        if is_new:
            state.discard()
        raise


def _require_same(file: StreamStore, request: Request) -> None:
    phase = file.phase
    if phase == STOPPED:
        raise InvalidParameter(f"{file.shown} was stopped for good; name another state")
    names = _differing(file, request)
    if not names:
        return
    differ = f"its {' and '.join(names)} {'differs' if len(names) == 1 else 'differ'}"
    if phase == STARTING:
        raise InvalidParameter(
            f"the start of another stream was interrupted at {file.shown}: {differ}; repeat that "
            "start, or name another state"
        )
    raise InvalidParameter(
        f"{file.shown} exists already, and {differ}; go on with `dpublish stream next`, or name "
        "another state"
    )


def _differing(file: StreamStore, request: Request) -> list[str]:
    """Name what a stream was started with otherwise, the settings of its method one by one."""
    asked = request.to_dict()
    whole = {"steps": {}} | asked
    before = {name: file.metadata(name, {} if name == "steps" else None) for name in whole}
    names = [name for name in whole if name != "settings" and before[name] != whole[name]]
    then, now = before["settings"], asked["settings"]
    inner = [name for name in then | now if then.get(name) != now.get(name)]
    found = [*names, *inner] if "method" not in names else names
    return [{"steps": "list of steps"}.get(name, name) for name in found]


def obtain_budget(file: StoredState, hides: Neighbors, noun: str = "stream") -> Budget:
    """Debit the ledger for a stream that is being started, unless that was done before.

    `hides` is what the stream hides.  The caller holds the stream's lock, and the state file
    holds no stream yet.  What is started may be called otherwise: `noun`.
    """
    dataset, epsilon = file.text("dataset"), parse_epsilon(file.text("epsilon"))
    purpose = f"{file.text('purpose')} [{noun} {file.text('token')}]"
    with Ledger(file.text("ledger")) as ledger:
        try:
            return ledger.grant(
                dataset,
                epsilon=epsilon,
                purpose=purpose,
                hides=hides,
                rng=secure(),
                all_have_levels=bool(file.metadata("all_have_levels", default=False)),
                once=True,  # whoever took this start over may have been granted meanwhile
            )
        except GrantPublished:
            raise _is_taken(file.shown, noun) from None


def check_grant(location: str, receipt: Receipt, noun: str = "stream") -> bool:
    """Refuse to go on with a stream that the ledger did not pay for.

    Returns whether the stream is entered in the ledger: until then it has told nothing.
    """
    grant = _grant(receipt, location, noun)
    with Ledger(location) as ledger:
        try:
            status = ledger.grant_status(grant)
        except InvalidParameter:
            raise InvalidParameter(
                f"the ledger {shown_location(location)} has no grant for this {noun}; name the one "
                "that paid for it"
            ) from None
    if (status.epsilon, status.hides) != (receipt.epsilon, receipt.neighbors):
        where = shown_location(location)
        raise LedgerTampered(f"the ledger {where} did not debit what this {noun} costs")
    if status.release_id not in (None, receipt.release_id):
        raise _is_taken(shown_location(location), noun)
    return status.release_id is not None


def record_stream(location: str, receipt: Receipt, head_hash: str, noun: str = "stream") -> None:
    """Enter the stream in the ledger, if it is not there yet; refused if another one is."""
    grant = _grant(receipt, location, noun)
    with Ledger(location) as ledger:
        known = ledger.grant_status(grant).release_id
        if known is None:
            ledger.publish(grant, receipt.release_id, head_hash)
        elif known != receipt.release_id:
            raise _is_taken(shown_location(location), noun)


def _grant(receipt: Receipt, location: str, noun: str) -> Grant:
    if receipt.dataset is None or receipt.anchor is None:
        where = shown_location(location)
        raise InvalidParameter(f"no grant of the ledger {where} paid for this {noun}")
    return Grant(receipt.dataset, *receipt.anchor)


def _is_taken(where: object, noun: str) -> InvalidParameter:
    return InvalidParameter(
        f"{where}: the grant has paid for another {noun} already, so this state is an older "
        f"copy; put the newest back, or start a new {noun} under another name"
    )

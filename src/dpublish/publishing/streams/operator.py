"""Run a stream for years: one step at a time, each done once, whatever happens in between.

The order is the guarantee.  What can be wrong with a request is found before a row is read.
A step's outcome and the state that it led to become durable in one transaction, and only then
does anything of the step leave.  What was interrupted before that never happened; what was
interrupted after it is delivered next time (docs/proofs/stream_operator.md).
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from dpublish.core.folder.signing import SigningKey, signing_key
from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.errors import BudgetExhausted, DPublishError, InputError, InvalidParameter
from dpublish.methods.streams.folder import counts_file, head_of, is_current
from dpublish.methods.streams.listing import StepRecord, clean_label, label_problem
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.released import FREE_STANDING
from dpublish.methods.streams.stream import Step, Stream
from dpublish.privacy.epsilon import EpsilonLike
from dpublish.publishing.streams.delivery import (
    deliver,
    mend_list,
    require_room,
    settle_folder,
    shown_time,
    write_pages,
)
from dpublish.publishing.streams.grant import (
    Request,
    check_grant,
    new_state,
    record_stream,
    require_readable,
    start_stream,
)
from dpublish.publishing.streams.lease import LEASE_SECONDS, Claim
from dpublish.publishing.streams.locations import make_state, take_state
from dpublish.publishing.streams.record_steps import StreamSteps
from dpublish.publishing.streams.state import STARTING, STOPPED, StreamStore
from dpublish.publishing.table import may_be_debited, read_epsilon
from dpublish.randomness import secure
from dpublish.storage.address import whole_location

AnyPath = str | os.PathLike[str]


class StreamOperator(AbstractContextManager["StreamOperator"]):
    """The one that moves a stream on; has it to itself until it is closed, or is taken over."""

    def __init__(self, state: StreamStore) -> None:
        """Use `start` or `open`."""
        self._file = state
        self._stream: Stream | None = None
        self.is_new = False  # whether this operator has started the stream
        self.folder = Path(state.text("output"))

    @classmethod
    def start(
        cls,
        path: AnyPath,
        method: StreamMethod,
        schema: Schema,
        *,
        ledger: AnyPath,
        dataset: str,
        epsilon: EpsilonLike,
        output: AnyPath,
        purpose: str = "",
        all_have_levels: bool = False,
        where: str | None = None,
        derive: str | Sequence[str] = (),
        lookups: Lookup | Sequence[Lookup] = (),
        try_table: Table | Any = None,
        lease_seconds: float = LEASE_SECONDS,
        wait_seconds: float = 0,
        take_over: bool = False,
    ) -> "StreamOperator":
        """Start a stream: debit its whole epsilon, and make its state and its folder.

        If a start is interrupted, repeat it with the same arguments: a grant that it has
        made already is found in the ledger and used, and a stream that was started with these
        arguments is opened as it is; `is_new` tells which.  A dataset with levels pays for a
        stream that has a horizon, if the owner says that `all_have_levels`.  `where`, `derive`
        and `lookups` are those of `open_table`, for all snapshots: they stay as they are now.
        With `try_table`, a first snapshot as `next` takes it, a stream whose columns it lacks is
        refused before it is paid for.  The last three are those of `open`.

        Privacy:
            Reads no rows.  The ledger is debited once for all steps (or for every window),
            before the stream exists.
        """
        claim = Claim(lease_seconds, wait_seconds, take_over)
        exact = read_epsilon(epsilon)
        method.expected_error(schema, None, exact)  # refuses what does not fit
        request = Request(
            method,
            schema,
            ledger=whole_location(ledger),
            dataset=dataset,
            epsilon=exact,
            output=str(Path(output).absolute()),
            purpose=purpose or method.name,
            all_have_levels=all_have_levels,
            steps=StreamSteps.of(where, derive, lookups),
        )
        require_readable(request)
        if try_table is not None:
            _try(try_table, request)
        state, is_made = make_state(whole_location(path), claim, lambda: new_state(request))
        try:
            with may_be_debited("repeat the same command: what was debited is not debited again"):
                is_new = start_stream(state, request, is_new=is_made)
                operator = cls._resume(state, None, None)
        except BaseException:
            state.close()
            raise
        operator.is_new = is_new
        return operator

    @classmethod
    def open(
        cls,
        path: AnyPath,
        *,
        ledger: AnyPath | None = None,
        output: AnyPath | None = None,
        lease_seconds: float = LEASE_SECONDS,
        wait_seconds: float = 0,
        take_over: bool = False,
    ) -> "StreamOperator":
        """Take up a stream where it was left, and deliver what is not in its folder yet.

        Args:
            path: The state: its file, or its address on a server (`"postgresql://..."`).
            ledger: Where the ledger is, if it was moved.
            output: Where the release folder is, if it was moved; or where to begin a new one,
                if it is lost.
            lease_seconds: How long the stream is kept for an operator of which nothing is
                heard, if the state is on a server.
            wait_seconds: How long to wait for another operator who has the stream.
            take_over: Whether to take the stream from whoever has it on a server, because that
                operator is known to be gone.  One that is not gone publishes nothing more.
        """
        state = take_state(whole_location(path), Claim(lease_seconds, wait_seconds, take_over))
        try:
            new_ledger = None if ledger is None else whole_location(ledger)
            return cls._resume(state, new_ledger, None if output is None else Path(output))
        except BaseException:
            state.close()
            raise

    @classmethod
    def _resume(
        cls, state: StreamStore, ledger: str | None, output: Path | None
    ) -> "StreamOperator":
        if state.phase == STARTING:
            raise InvalidParameter(
                f"the start of {state.shown} was interrupted; repeat `dpublish stream start` with "
                "the same options"
            )
        operator = cls(state)
        operator._settle(ledger or state.text("ledger"), output)
        return operator

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the stream; harmless if that was done before."""
        self._file.close()

    @property
    def stream(self) -> Stream:
        """The stream as the state has it; treat it as read-only."""
        if self._stream is None:
            self._stream = self._file.stream()
        return self._stream

    @property
    def is_over(self) -> bool:
        """Whether there is no further step: the horizon is reached, or the stream was stopped."""
        return self._file.phase == STOPPED or self.stream.is_over

    def has_published(self, time: str) -> bool:
        """Return whether there is a step of this label."""
        is_label = label_problem(time, None, allow_new=True) is None
        return is_label and self._file.has_time(clean_label(time))

    def problem_with(self, time: str, *, allow_new_labels: bool = False) -> str | None:
        """Return why a label can have no step now: it names none, comes late or looks unlike."""
        last = self._file.last_step()
        return label_problem(time, None if last is None else last.time, allow_new=allow_new_labels)

    def next(
        self, snapshot: Table | Any, time: str, *, allow_new_labels: bool = False
    ) -> Step | None:
        """Take the next snapshot: a table, or whatever `open_table` takes.

        None means that this time was published already: nothing is read and nothing is spent.
        A label can never be taken back, and all later ones must come after it.  So one that
        differs from the last in more than its numbers is refused unless `allow_new_labels`.

        Privacy:
            That of `Stream.next`: each step's noise is drawn from the operating system in one
            attempt, of which nothing leaves this process before the step is on the disk.  An
            attempt that fails leaves nothing behind, and the next one draws afresh.  Assumes
            that interruptions do not hang on the outcome (docs/proofs/stream_operator.md).
        """
        label = clean_label(time)
        self._deliver()
        if self._file.has_time(label):
            return None
        self._require_next(label, allow_new_labels)
        self.require_held()
        mend_list(self._file, self.folder)  # an operator on a copy may have moved it on
        table = self._open(snapshot)
        require_room(self.stream.bins, self.folder, *self._file.folders)
        stream, self._stream = self.stream, None  # until the step is on the disk
        try:
            step = stream.next(table, rng=secure())
        except MemoryError:  # its text would tell how many rows there are
            raise InputError("not enough memory; take fewer columns or coarser levels") from None
        self._commit(stream, step, label)
        self._stream = stream
        self._deliver(is_confirmed=True)
        return step

    def stop(self) -> None:
        """End the stream for good; what was debited stays debited."""
        self._deliver()
        self._file.put(phase=STOPPED)

    @property
    def is_folder_current(self) -> bool:
        """Whether report, description and manifest are those of the steps in the folder."""
        return is_current(self.folder)

    def write_pages(self, sign: SigningKey | AnyPath | None = None) -> None:
        """Write the report, the description and the manifest of the folder, if they lag behind.

        With `sign`, the owner's private key or its file, the manifest is signed.
        """
        write_pages(self.folder, signing_key(sign), self.require_held)

    @contextmanager
    def reporting(self, sign: SigningKey | AnyPath | None = None) -> Iterator[None]:
        """Write the pages of the folder when the block ends, however it ends.

        Where the block fails, they are written only if steps were published since.
        """
        key = signing_key(sign)
        try:
            yield
        except BaseException:
            with suppress(DPublishError):  # what went wrong first is what has to be said
                if not self.is_folder_current:
                    self.write_pages(key)
            raise
        self.write_pages(key)

    def require_held(self) -> None:
        """Refuse to go on if another operator has taken the stream over."""
        self._file.require_held()

    def _settle(self, ledger: str, output: Path | None) -> None:
        """Make sure that ledger, state and folder belong together, and finish what is open."""
        file, stream = self._file, self.stream
        check_grant(ledger, stream.receipt)
        metadata = {
            "axes": [{"column": name, "level": level} for name, level in stream.bins.columns],
            "horizon": stream.method.horizon,
            "window": stream.method.window,
        }
        head = head_of(stream.receipt, stream.schema, metadata)
        self.folder = settle_folder(file, head, stream.receipt.release_id, output)
        record_stream(ledger, stream.receipt, hashlib.sha256(head).hexdigest())
        file.settled(ledger)
        self._deliver()

    def _require_next(self, label: str, allow_new_labels: bool) -> None:
        if self._file.phase == STOPPED:
            raise InvalidParameter("the stream was stopped for good; start a new one")
        if self.stream.is_over:
            raise BudgetExhausted(
                f"the stream's {self.stream.number} steps are all published; start a new stream"
            )
        problem = self.problem_with(label, allow_new_labels=allow_new_labels)
        if problem is not None:
            raise InvalidParameter(problem)

    def _open(self, snapshot: Table | Any) -> Table:
        schema = self.stream.schema
        steps = StreamSteps.from_dict(self._file.metadata("steps"))
        return open_snapshot(snapshot, schema, self.stream.bins.names, steps)

    def _commit(self, stream: Stream, step: Step, label: str) -> None:
        is_free_standing = stream.receipt.settings.get("static") == FREE_STANDING
        rate = step.epsilon / stream.method.contribution if is_free_standing else None
        content = counts_file(stream.bins.cells(), step.estimate, step.released, rate)
        record = StepRecord(
            number=step.number,
            time=label,
            action=step.action,
            epsilon=step.epsilon,
            noise=float(step.noise),
            change=float(step.change),
            spent=step.spent,
            sha256=hashlib.sha256(content).hexdigest(),
        )
        self._file.commit_step(
            stream.state(),
            number=step.number,
            time=label,
            line=record.to_line(),
            content=content,
        )

    def _deliver(self, *, is_confirmed: bool = False) -> None:
        """Bring the step that is done to the folder, if it is not known to be there.

        A step that was found waiting may have been committed with a warning: it stands on the
        server, but a standby that must have it may not.  A change that is committed after it
        without one confirms it, too.
        """
        waiting = self._file.undelivered()
        if waiting is not None:
            if not is_confirmed:
                self._file.confirm()
            self.require_held()
            deliver(self.folder, waiting, shown_time(self._file))
            self._file.mark_delivered(waiting.number)


def open_snapshot(
    snapshot: Table | Any, schema: Schema, columns: Sequence[str], steps: StreamSteps
) -> Table:
    """Open a snapshot by the columns that a stream counts; reads names and types, and no row."""
    if not hasattr(snapshot, "neighbors"):
        return open_table(snapshot, schema, columns=columns, **steps.options())
    table: Table = snapshot
    if table.schema != schema:
        raise InvalidParameter("the snapshot has another schema than the stream")
    opened: Sequence[str] = getattr(table, "opened", schema.names)
    for name in columns:
        if name not in opened:
            raise InvalidParameter(f"the snapshot was opened without column {name!r}; name it")
    return table


def _try(snapshot: Table | Any, request: Request) -> None:
    """Refuse a stream for which a snapshot lacks a column, or has others, or other steps."""
    columns = request.method.reads(request.schema)
    table = open_snapshot(snapshot, request.schema, columns, request.steps)
    if table is not snapshot:
        table.close()
    elif tuple(getattr(table, "steps", ())) != request.steps.texts:
        raise InvalidParameter(
            "the snapshot was opened with other steps (where, derive, lookups) than the stream is "
            "to have; open it with the same, or hand over its file"
        )

"""Ask query after query whether its count is above a threshold; pay once, for the positives.

The order is the guarantee.  What can be wrong with a query is found before a row is read.  Its
outcome and the state that it led to become durable in one transaction, and only then does
anything of it leave.  What was interrupted before that never happened; what was interrupted after
it is in the state file, and repeating the query returns it (docs/proofs/sparse_vector.md).

A run is a folder: `state.db` holds the secrets and stays with its owner; `public` holds the
receipt and the transcript, which may be published.
"""

import hashlib
import os
import secrets
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpublish.core.folder.opening import require_loadable
from dpublish.core.method import refuse_bounded
from dpublish.data import schema_file
from dpublish.data.query.language import parse_query
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.errors import (
    BudgetExhausted,
    CorruptRelease,
    InputError,
    InvalidParameter,
)
from dpublish.ledger.ledger import Ledger
from dpublish.mechanisms.sparse_vector.calibration import Calibration
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import EpsilonLike, format_epsilon
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.publishing.state_file import RUNNING, STARTING, STOPPED
from dpublish.publishing.streams.grant import check_grant, obtain_budget, record_stream
from dpublish.publishing.svt.fingerprint import fingerprint
from dpublish.publishing.svt.kernel import Matching
from dpublish.publishing.svt.outcome import (
    SENSITIVITY,
    Outcome,
    Terms,
    canonical,
    require_number,
)
from dpublish.publishing.svt.state import RunFile
from dpublish.publishing.table import may_be_debited, read_epsilon
from dpublish.randomness import RandomSource, secure, seeded
from dpublish.storage.address import whole_location
from dpublish.storage.files import file_time, json_bytes, write_file
from dpublish.storage.lock import FileLock

STATE, PUBLIC, RECEIPT, TRANSCRIPT = "state.db", "public", "receipt.json", "transcript.jsonl"
NOUN = "run"
AnyPath = str | os.PathLike[str]
_SPARE = 16 << 20  # bytes; what a query writes is small against it


@dataclass(frozen=True)
class _Request:
    """What is asked for when a run is started."""

    terms: Terms
    schema: Schema
    data: str
    epsilon: Fraction
    ledger: str | None
    dataset: str | None
    purpose: str
    all_have_levels: bool
    seed: int | None
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        """Turn the request into plain values for the state file."""
        return vars(self) | {
            "terms": self.terms.to_dict(),
            "schema": schema_file.to_dict(self.schema),
            "epsilon": format_epsilon(self.epsilon),
        }


class InteractiveRun(AbstractContextManager["InteractiveRun"]):
    """A run of the sparse vector technique; holds its lock until it is closed.

    >>> import tempfile, dpublish, pyarrow, pyarrow.parquet
    >>> folder = tempfile.mkdtemp()
    >>> data = f"{folder}/people.parquet"
    >>> rows = pyarrow.table({"age": [number % 90 for number in range(9_000)]})
    >>> pyarrow.parquet.write_table(rows, data)
    >>> schema = dpublish.Schema((dpublish.column("age", "integer", bounds=[0, 99]),))
    >>> with InteractiveRun.start(
    ...     f"{folder}/run", data, schema, epsilon=1, max_positives=2, seed=5
    ... ) as run:
    ...     [run.ask(f"age >= {age}", threshold=2_000).above for age in (80, 70, 60, 50)]
    [False, False, True, True]
    """

    def __init__(self, folder: Path, lock: FileLock, file: RunFile) -> None:
        """Use `start` or `open`."""
        self.folder = folder
        self._lock = lock
        self._file = file
        self._table: Table | None = None
        self.is_new = False  # whether this call has started the run

    @classmethod
    def start(
        cls,
        folder: AnyPath,
        data: AnyPath,
        schema: Schema,
        *,
        epsilon: EpsilonLike,
        max_positives: int,
        threshold: int | None = None,
        monotonic: bool = True,
        numeric_share: Fraction | None = None,
        ledger: AnyPath | None = None,
        dataset: str | None = None,
        purpose: str = "",
        all_have_levels: bool = False,
        seed: int | None = None,
    ) -> "InteractiveRun":
        """Start a run: debit its whole epsilon, and draw its noisy threshold.

        If a start is interrupted, repeat it with the same arguments: a grant that it has made
        already is found in the ledger and used.  A run that was started with these arguments is
        opened as it is; `is_new` tells which.

        Args:
            folder: The folder to make for the run.
            data: The files of the table: a path, a pattern or a folder.
            schema: What is publicly known about the rows.
            epsilon: What all answers together cost.
            max_positives: How many queries may be answered with "above".
            threshold: What queries are compared with unless they name their own.
            monotonic: Whether only counts are compared, not errors of estimates.
            numeric_share: Part of epsilon that pays for noisy counts of what is above.
            ledger: The ledger that pays: a file, or an address (`postgresql://...`).
            dataset: Which dataset of the ledger pays.
            purpose: What the run is for; kept in the ledger.
            all_have_levels: The owner's word where the dataset has levels.
            seed: Draw from a seed, without a ledger: to try it out.  Hides nothing.

        Privacy:
            Reads no rows, but hashes the files; the hash is kept with the secrets.  The ledger
            is debited once, before the noisy threshold exists.
        """
        exact = read_epsilon(epsilon)
        _require_payer(ledger, dataset, seed)
        terms = Terms(
            max_positives=max_positives,
            threshold=threshold,
            monotonic=monotonic,
            numeric_share=numeric_share,
        )
        terms.check(exact)
        require_loadable(schema)
        source = str(Path(data).absolute())
        _open(source, schema)
        request = _Request(
            terms,
            schema,
            source,
            exact,
            None if ledger is None else whole_location(ledger),
            dataset,
            purpose or "svt",
            all_have_levels,
            seed,
            fingerprint(source),
        )
        home = Path(folder).absolute()
        _make_folder(home)
        lock = _hold(home)
        try:
            with may_be_debited("repeat the same command: what was debited is not debited again"):
                is_new = _start_file(home / STATE, request)
                run = cls._resume(home, lock, None, None)
        except BaseException:
            lock.close()
            raise
        run.is_new = is_new
        return run

    @classmethod
    def open(
        cls, folder: AnyPath, *, ledger: AnyPath | None = None, data: AnyPath | None = None
    ) -> "InteractiveRun":
        """Take up a run where it was left.

        Args:
            folder: The folder of the run.
            ledger: Where the ledger is, if it was moved.
            data: Where the table is, if it was moved; it must be unchanged.
        """
        home = Path(folder).absolute()
        RunFile.kind.identify(home / STATE)  # before a lock is left beside what is not there
        lock = _hold(home)
        try:
            return cls._resume(home, lock, ledger, data)
        except BaseException:
            lock.close()
            raise

    @classmethod
    def _resume(
        cls, folder: Path, lock: FileLock, ledger: AnyPath | None, data: AnyPath | None
    ) -> "InteractiveRun":
        file = RunFile(folder / STATE)
        try:
            if file.phase == STARTING:
                raise InvalidParameter(
                    f"the start of {folder} was interrupted; repeat `dpublish svt start` with "
                    "the same options"
                )
            run = cls(folder, lock, file)
            run._settle(ledger, data)
        except BaseException:
            file.close()
            raise
        return run

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the run; harmless if that was done before."""
        self._file.close()
        self._lock.close()

    @property
    def terms(self) -> Terms:
        """The settings of the run."""
        return self._file.terms

    @property
    def phase(self) -> str:
        """Whether the run goes on or was stopped for good."""
        return self._file.phase

    @property
    def receipt(self) -> Receipt:
        """What the run guarantees."""
        return self._file.receipt()

    @property
    def calibration(self) -> Calibration:
        """How wide the noise is (public)."""
        return self.terms.calibration(self._file.epsilon)

    @property
    def outcomes(self) -> list[Outcome]:
        """All that was told, in order."""
        return self._file.outcomes()

    @property
    def positives_left(self) -> int:
        """How many more queries may be answered with "above"."""
        told = sum(outcome.above for outcome in self.outcomes)
        return self.terms.max_positives - told

    def ask(
        self, query: str, *, threshold: int | None = None, estimate: int | None = None
    ) -> Outcome:
        """Tell whether the count of a query is above a threshold.

        With an `estimate`, tell whether the count differs from it by more than the threshold: so
        an estimate from earlier answers can be kept as long as it is good.  What was asked before
        is answered from the transcript: nothing is read or spent.

        Privacy:
            All answers of a run together cost what its ledger entry debited (`StoredVector`):
            a count moves by at most 1 if a record is added or removed, all counts the same way,
            and so does the distance of a count from a public estimate, in either direction, for
            which the run must not be `monotonic`.  Noise is outside the absolute value.  The
            threshold's noise is in the state file; that of an answer is fresh, and nothing of
            it leaves before it is on the disk.  A positive and a negative do the same work.
            Assumes that interruptions do not hang on the outcome, and that thresholds and
            estimates come from public knowledge and earlier answers alone.
        """
        asked = self._read(query, threshold, estimate)
        told = self._file.find(asked)
        if told is not None:
            return told
        kernel = Matching(self._file.schema, parse_query(asked[0]))
        self._require_open()
        vector = self._file.vector()
        number = self._file.count + 1
        count = self._count(kernel)
        distance = count if estimate is None else abs(count - estimate)
        rng = self._source(number)
        is_above, left = vector.above(distance, asked[1], rng)
        value = None if vector.value_rate is None else vector.value(count, rng)
        outcome = Outcome(
            number=number,
            query=asked[0],
            threshold=asked[1],
            estimate=estimate,
            above=is_above,
            value=value if is_above else None,
            positives_left=left.positives_left,
        )
        self._file.commit(left, outcome)
        self._deliver()
        return outcome

    def stop(self) -> None:
        """End the run for good and forget its secrets; what was debited stays debited."""
        self._file.stop()

    def _read(
        self, query: str, threshold: int | None, estimate: int | None
    ) -> tuple[str, int, int | None]:
        terms = self.terms
        chosen = terms.threshold if threshold is None else threshold
        if chosen is None:
            raise InvalidParameter("name a threshold: the run was started without one")
        require_number("threshold", chosen)
        if estimate is not None:
            require_number("estimate", estimate)
            if terms.monotonic:
                raise InvalidParameter(
                    "this run compares counts only: start one with monotonic=False "
                    "(--no-monotonic) to compare the errors of estimates"
                )
        return canonical(query), chosen, estimate

    def _require_open(self) -> None:
        if self._file.phase == STOPPED:
            raise InvalidParameter("the run was stopped for good; start a new one")
        if not self.positives_left:
            raise BudgetExhausted(
                f"{self.terms.max_positives} queries were above, which is all that was paid for; "
                "start a new run"
            )
        if shutil.disk_usage(self.folder).free < _SPARE:
            raise InputError(
                f"the disk of {self.folder} is nearly full; free some space and ask again (no row "
                "was read)"
            )

    def _count(self, kernel: Matching) -> int:
        """Count exactly, if the table is the one that the run was started with."""
        self._require_unchanged()
        if self._table is None:
            self._table = _open(self._file.text("data"), self._file.schema)
        try:
            count = int(self._table.sum(kernel)[0])
        except MemoryError:  # its text would tell how many rows there are
            raise InputError("not enough memory to read the table") from None
        self._require_unchanged()
        return count

    def _require_unchanged(self) -> None:
        if fingerprint(self._file.text("data")) != self._file.text("fingerprint"):
            raise InvalidParameter(
                "the table has changed since the run was started; put it back, or start a new run"
            )

    def _source(self, number: int) -> RandomSource:
        seed = self._file.seed
        return secure() if seed is None else _derived(seed, number)

    def _settle(self, ledger: AnyPath | None, data: AnyPath | None) -> None:
        """Make sure that ledger, state and transcript belong together, and finish what is open."""
        receipt = self._file.receipt()
        head = json_bytes(receipt.to_dict())
        if self._file.seed is None:
            payer = whole_location(self._file.text("ledger") if ledger is None else ledger)
            is_entered = check_grant(payer, receipt, NOUN)
            self._deliver_receipt(head, is_entered)
            record_stream(payer, receipt, hashlib.sha256(head).hexdigest(), NOUN)
            self._file.put(ledger=payer)
        else:
            self._deliver_receipt(head, is_entered=False)
        if data is not None:
            self._file.put(data=str(Path(data).absolute()))
        self._deliver()

    def _deliver_receipt(self, head: bytes, is_entered: bool) -> None:
        """Write the public files of a run that has told nothing yet, the transcript first.

        The transcript is on the disk before the ledger enters the run.  If it is missing later,
        a state file that knows of no answer may be a copy from the start: it proves nothing.
        """
        transcript, path = (self.folder / PUBLIC / name for name in (TRANSCRIPT, RECEIPT))
        is_first = not is_entered and not self._file.count
        if is_first and not transcript.exists():
            _write(transcript, b"", self._time(0))
        if not path.exists():
            _write(path, head, self._time(0))
        elif path.read_bytes() != head:
            raise CorruptRelease(f"{path} is not the receipt of this run; put the right one back")

    def _deliver(self) -> None:
        """Complete the transcript; refuse one that tells what the state file does not know."""
        path = self.folder / PUBLIC / TRANSCRIPT
        known = b"".join(self._file.lines())
        try:
            found = path.read_bytes()
        except OSError:
            raise CorruptRelease(f"the transcript {path} is gone; put it back and go on") from None
        if found == known:
            return
        if not known.startswith(found):
            raise CorruptRelease(
                f"the transcript {path} tells what the state file does not know: the state file "
                "is an older copy, or the transcript was changed; put the right one back"
            )
        _write(path, known, self._time(self._file.count))

    def _time(self, number: int) -> float:
        """Return the time that a public file shows: the true one would tell how long it took."""
        return file_time(self._file.receipt().created) + number


def _start_file(path: Path, request: _Request) -> bool:
    """Make the state file of a run that is paid for; False if this was done before."""
    is_new = not path.exists()
    if is_new:
        if request.ledger is not None:
            with Ledger(request.ledger) as ledger:  # found wanting now, it leaves nothing behind
                ledger.status(str(request.dataset))
        metadata = {"phase": STARTING, "token": secrets.token_hex(8), **request.to_dict()}
        file = RunFile.create(path, metadata)
    else:
        file = RunFile(path)
    try:
        _require_same(file, request)
        if file.phase == RUNNING:
            return False
        _begin(file, request, is_new)
    finally:
        file.close()
    return True


def _begin(file: RunFile, request: _Request, is_new: bool) -> None:
    """Pay for the run and draw its threshold.

    A start that was killed after the debit is repeated with the same grant.  Nothing was told
    with the threshold that it may have drawn, so a fresh one is as good.
    """
    rng: RandomSource = secure() if request.seed is None else _derived(request.seed, 0)
    budget = _pay(file, request, is_new)
    vector = StoredVector.draw(
        sensitivity=SENSITIVITY,
        max_positives=request.terms.max_positives,
        monotonic=request.terms.monotonic,
        values_share=request.terms.numeric_share,
        budget=budget,
        rng=rng,
    )
    receipt = Receipt.issue(
        method="svt",
        settings=request.terms.to_dict(),
        budget=budget,
        neighbors=AddRemoveRecord(),
        rng=rng,
        assumptions=("thresholds and estimates are chosen without looking at the rows",),
    )
    file.begin(vector, phase=RUNNING, receipt=receipt.to_dict())


def _pay(file: RunFile, request: _Request, is_new: bool) -> Budget:
    if request.ledger is None:
        return Budget.seeded(request.epsilon)
    try:
        return obtain_budget(file, AddRemoveRecord(), NOUN)
    except (BudgetExhausted, InvalidParameter):  # refused, so nothing was granted
        if is_new:
            file.path.unlink()
        raise


def _require_same(file: RunFile, request: _Request) -> None:
    if file.phase == STOPPED:
        raise InvalidParameter(f"{file.path.parent} was stopped for good; name another folder")
    asked = request.to_dict()
    words = {"fingerprint": "table", "terms": "settings"}
    differing = [words.get(name, name) for name in asked if file.metadata(name) != asked[name]]
    if differing:
        raise InvalidParameter(
            f"{file.path.parent} has a run already, and its {' and '.join(differing)} differ; go "
            "on with `dpublish svt ask`, or name another folder"
        )


def _require_payer(ledger: AnyPath | None, dataset: str | None, seed: int | None) -> None:
    if seed is not None and (ledger is not None or dataset is not None):
        raise InvalidParameter(
            "what a ledger pays for cannot be drawn from a seed, which hides nothing: leave one out"
        )
    if seed is None and (ledger is None or dataset is None):
        raise InvalidParameter(
            "name the ledger and its dataset that pay for the run (--ledger, --dataset), or a "
            "--seed to try it out without privacy"
        )


def _open(source: str, schema: Schema) -> Table:
    """Open the table; refuse, from the schema alone, one in which a record is not a row."""
    table = open_table(source, schema)
    refuse_bounded(table)
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter(
            f"an interactive run hides one record, and here {table.neighbors.brief()} is hidden, "
            "which could change a count by more than one: ask a table with one record for each "
            f"{schema.unit_noun}, or publish with --contribution (dpublish methods histogram)"
        )
    return table


def _make_folder(folder: Path) -> None:
    if folder.exists() and not (folder / STATE).exists() and _others_in(folder):
        raise InvalidParameter(f"{folder} exists already; name a folder that does not exist yet")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be created: {error.strerror}") from None


def _others_in(folder: Path) -> bool:
    """Whether a folder holds anything but what an interrupted start leaves."""
    return not folder.is_dir() or any(not path.name.startswith(STATE) for path in folder.iterdir())


def _hold(folder: Path) -> FileLock:
    lock = FileLock(folder / STATE)
    try:
        if not lock.take():
            raise InputError(f"another process is at work on {folder}; ask again when it is done")
    except BaseException:
        lock.close()
        raise
    return lock


def _derived(seed: int, number: int) -> RandomSource:
    """Make the source of a query of a seeded run, the same after every restart."""
    digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
    return seeded(int.from_bytes(digest[:8], "big"))


def _write(path: Path, content: bytes, time: float) -> None:
    try:
        write_file(path, content, time)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror or 'input/output error'}); what was "
            "answered is kept: mend that and repeat the command"
        ) from None

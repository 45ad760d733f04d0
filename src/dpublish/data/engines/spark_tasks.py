"""What runs in the tasks of a Spark cluster: the local engine, on the rows of one partition.

A task reads its partition through a `Source`, so that rows are encoded, chosen and drawn by
the same code as in one process.  What crosses the cluster are blobs: partial answers (pickled)
and rows (Arrow), each with the number that says to which task it goes next.  A partial answer
tells which partitions it stands for, so that none is counted twice or lost.

An error of a task is logged where others may read it, so it says nothing but which of a few
things happened.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dpublish.data.batch import BATCH_ROWS, Summable
from dpublish.data.column import Column
from dpublish.data.draws import choose, draw_blocks
from dpublish.data.engines.bounded import Bound, bound_rows, count_rows, hash_units
from dpublish.data.engines.chosen import Choice, ChosenSource, sample_rows
from dpublish.data.engines.encoded import Reading, StreamedColumns
from dpublish.data.engines.prepared import PreparedSource
from dpublish.data.engines.source import Rescan, Source, read_quietly, scan
from dpublish.data.engines.units import (
    MERGE_ROWS,
    UNIT,
    batch_of_pairs,
    distinct_pairs,
    draw_rows,
    pair_units,
    to_units,
)
from dpublish.data.schema import Schema
from dpublish.data.steps import Plan
from dpublish.errors import UnreadableData
from dpublish.randomness import RandomSource, is_secure, secure, seeded
from dpublish.types import IntArray

BLOBS = "target int, blob binary"
"""Spark's schema of partial answers, and of rows on their way to the task of their unit."""

DRAWN = "part int, nonce binary, block int, blob binary"
"""Spark's schema of rows that were drawn once and are kept."""

MARKER = -1
"""The block of the one row of a kept partition that is there even if nothing was drawn."""

LOST = "dpublish: a partition is not the one that was drawn"
FAILED = "dpublish: the rows of a partition could not be read"
_BLOB_BYTES = 1 << 17  # Spark hands over 10,000 blobs at once, and at most 2 GB


class LostRows(UnreadableData):
    """Rows that were drawn are gone, or there twice."""

    def __init__(self) -> None:
        super().__init__(
            "rows that were drawn or counted on the cluster are no longer whole there (was an "
            "executor lost?), and nothing is drawn twice; start a new release"
        )


class Task(Protocol):
    """What is done with one partition."""

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Turn the record batches of partition number `part` into others."""
        ...


def run_task(pickled: bytes, incoming: Iterator[Any]) -> Iterator[Any]:
    """Run a task on the partition that Spark hands over; hide why it fails, if it does."""
    steps = _steps(pickled, incoming)
    while True:
        item, problem = _next(steps)
        if problem is not None:
            raise RuntimeError(problem)  # outside of any `except`: no context holds the reason
        if item is None:
            return
        yield item


def _steps(pickled: bytes, incoming: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise LostRows
    task: Task = pickle.loads(pickled)
    yield from task.run(context.partitionId(), incoming)


def _next(steps: Iterator[Any]) -> tuple[Any, str | None]:
    try:
        return next(steps, None), None
    except LostRows:
        return None, LOST
    except BaseException:  # noqa: BLE001 - whatever it is, it may quote a row
        return None, FAILED


# --- Rows of a partition ----------------------------------------------------------------------


class Rows(Protocol):
    """How the rows of a partition come in."""

    def read(self, part: int, incoming: Iterator[Any], seen: set[int]) -> Iterator[Any]:
        """Yield record batches of rows; add to `seen` the numbers that they stand for."""
        ...


@dataclass(frozen=True)
class PlainRows:
    """Rows of a Spark table, whose columns come in this order."""

    names: tuple[str, ...]

    def read(self, part: int, incoming: Iterator[Any], seen: set[int]) -> Iterator[Any]:
        """Yield record batches of rows."""
        seen.add(part)
        for batch in incoming:
            yield pa.RecordBatch.from_arrays(batch.columns, names=self.names)


@dataclass(frozen=True)
class DealtRows:
    """Rows that were sent to the task of their unit."""

    def read(self, part: int, incoming: Iterator[Any], seen: set[int]) -> Iterator[Any]:
        """Yield record batches of rows."""
        for target, blob in _pairs(incoming):
            seen.add(target)
            yield from unpack(blob)


@dataclass(frozen=True)
class DrawnRows:
    """Rows that were drawn once and kept; each partition is known by a nonce.

    A partition that was drawn again, or kept twice with different rows, has another nonce
    than the one that was recorded when it was drawn.
    """

    nonces: tuple[bytes, ...]

    def read(self, part: int, incoming: Iterator[Any], seen: set[int]) -> Iterator[Any]:
        """Yield record batches of rows; refuse a partition that is not the one recorded."""
        markers = 0
        for batch in incoming:
            for row in zip(*batch.columns, strict=True):
                drawn, nonce, block = (value.as_py() for value in row[:3])
                if drawn != part or part >= len(self.nonces) or nonce != self.nonces[part]:
                    raise LostRows
                markers += block == MARKER
                if block != MARKER:
                    yield from unpack(row[3].as_buffer())
        if markers != 1:
            raise LostRows
        seen.add(part)


@dataclass(frozen=True)
class Reader:
    """Rows of a partition, the steps that each is taken through, and choices that pick some."""

    rows: Rows
    label: str
    choices: tuple[Choice, ...] = ()
    plan: Plan | None = None

    def open(self, part: int, incoming: Iterator[Any], seen: set[int]) -> Source:
        """Make a source of the partition; it can be scanned once."""
        batches = self.rows.read(part, incoming, seen)
        found: Source = _PartitionSource(_regroup(batches), self.label)
        if self.plan is not None:
            found = PreparedSource(found, self.plan)
        for choice in self.choices:
            found = ChosenSource(found, choice)
        return found


class _PartitionSource:
    rescan: Rescan = "never"
    header = pa.schema([])  # types were checked when the table was opened

    def __init__(self, batches: Iterator[Any], label: str) -> None:
        self._batches = batches
        self.label = label

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return (batch.select(list(columns)) for batch in self._batches)


def _regroup(batches: Iterable[Any]) -> Iterator[Any]:
    """Put small record batches together, up to the size that kernels work on."""
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        if waiting and rows + batch.num_rows > BATCH_ROWS:
            yield _join(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if waiting:
        yield _join(waiting)


def _join(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def pack(rows: Any) -> bytes:
    """Write a table or record batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def unpack(blob: Any) -> Iterator[Any]:
    """Read the record batches that `pack` wrote."""
    with pa.ipc.open_stream(blob) as reader:
        yield from reader


def _cut(rows: Any) -> Iterator[Any]:
    """Cut rows into pieces that make small blobs."""
    size = max(1, rows.num_rows * _BLOB_BYTES // max(rows.nbytes, 1))
    return (rows.slice(start, size) for start in range(0, rows.num_rows, size))


def _pairs(incoming: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    for batch in incoming:
        for target, blob in zip(*batch.columns, strict=True):
            yield target.as_py(), blob.as_buffer()


def _blob(target: int, blob: bytes) -> Any:
    arrays = [pa.array([target], pa.int32()), pa.array([blob], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["target", "blob"])


# --- Sums -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draws:
    """Where tasks draw from: the operating system, or a seed that each partition varies."""

    seed: int | None = None

    @classmethod
    def of(cls, rng: RandomSource) -> "Draws":
        """Take over a source of randomness: what is drawn from a seed stays reproducible."""
        return cls() if is_secure(rng) else cls(int(rng.words(1)[0]))

    def source(self, part: int) -> RandomSource:
        """Make the source of a partition."""
        return secure() if self.seed is None else seeded((self.seed << 32) | part)


@dataclass(frozen=True)
class Adding:
    """A kernel, and the targets of the tasks that merge its partial answers."""

    kernel: Summable[Any]
    targets: tuple[int, ...] = (0,)
    draws: Draws | None = None
    """Where a kernel that draws (it has an `rng`) draws from."""

    def bind(self, part: int) -> Summable[Any]:
        """Return the kernel for a partition."""
        if self.draws is None:
            return self.kernel
        drawing: Any = self.kernel
        bound: Summable[Any] = replace(drawing, rng=self.draws.source(part))
        return bound

    def send(self, part: int, seen: set[int], answer: Any) -> Any:
        """Address the partial answer of a task."""
        blob = pickle.dumps((seen, answer), protocol=pickle.HIGHEST_PROTOCOL)
        return _blob(self.targets[part % len(self.targets)], blob)


@dataclass(frozen=True)
class SumRows:
    """Add up a kernel over the records of a partition."""

    adding: Adding
    schema: Schema
    wanted: tuple[Reading, ...]
    reader: Reader

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield one partial answer."""
        kernel, seen = self.adding.bind(part), set[int]()
        out = kernel.zero()
        source = self.reader.open(part, incoming, seen)
        for batch in StreamedColumns(self.schema, source).batches(self.wanted):
            kernel.add(batch, out)
        yield self.adding.send(part, seen, out)


@dataclass(frozen=True)
class SumPairs:
    """Add up a kernel over the distinct pairs of the units that were sent to a task."""

    adding: Adding
    wanted: tuple[Reading, ...]

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield one partial answer."""
        kernel, seen = self.adding.bind(part), set[int]()
        tables: list[Any] = []
        waiting = 0
        for target, blob in _pairs(incoming):
            seen.add(target)
            table = pa.ipc.open_stream(blob).read_all()
            waiting += table.num_rows if tables else 0
            tables.append(table)
            if waiting > max(MERGE_ROWS, tables[0].num_rows):
                tables, waiting = [distinct_pairs(tables)], 0
        out = kernel.zero()
        for batch in batch_of_pairs(tables, self.wanted).cut():
            kernel.add(batch, out)
        yield self.adding.send(part, seen, out)


@dataclass(frozen=True)
class Merge:
    """Merge the partial answers that were sent to a task."""

    adding: Adding

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield one partial answer."""
        blobs = (blob for _, blob in _pairs(incoming))
        seen, out = merge_answers(self.adding.kernel, blobs)
        yield self.adding.send(part, seen, out)


def merge_answers(kernel: Summable[Any], blobs: Iterable[Any]) -> tuple[set[int], Any]:
    """Merge pickled partial answers; refuse two that stand for the same partition."""
    everything, out = set[int](), kernel.zero()
    for blob in blobs:
        seen, answer = pickle.loads(blob)
        if everything & seen:
            raise LostRows
        everything |= seen
        kernel.merge(out, answer)
    return everything, out


# --- Rows of one unit to one task -------------------------------------------------------------


@dataclass(frozen=True)
class Dealing:
    """Sends all rows of a unit to the same task, by a hash of the unit."""

    targets: tuple[int, ...]
    key: bytes

    def deal(self, rows: Any, units: Any) -> Iterator[Any]:
        """Yield the rows as blobs, each for one task; `units` are valid, one for each row."""
        if not rows.num_rows:
            return
        numbers = hash_units(units, self.key) % np.uint64(len(self.targets))
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], np.arange(len(self.targets) + 1)).tolist()
        ordered = rows.take(pa.array(order))
        for number, target in enumerate(self.targets):
            start, stop = cuts[number : number + 2]
            for piece in _cut(ordered.slice(start, stop - start)):
                yield _blob(target, pack(piece))


@dataclass(frozen=True)
class DealPairs:
    """Send the distinct pairs of units and codes to the tasks of their units."""

    dealing: Dealing
    schema: Schema
    unit: str
    wanted: tuple[Reading, ...]
    columns: tuple[str, ...]
    reader: Reader

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield blobs of pairs; those that repeat one nearby are left out."""
        label = self.reader.label
        raws = scan(self.reader.open(part, incoming, set()), self.columns)
        tables: list[Any] = []
        waiting = 0
        for raw in raws:
            tables.append(pair_units(raw, self.schema, self.unit, self.wanted, label))
            waiting += raw.num_rows
            if waiting > MERGE_ROWS:
                yield from self._send(tables)
                tables, waiting = [], 0
        if tables:
            yield from self._send(tables)

    def _send(self, tables: list[Any]) -> Iterator[Any]:
        pairs = distinct_pairs(tables)
        yield from self.dealing.deal(pairs, pairs.column(UNIT).combine_chunks())


@dataclass(frozen=True)
class DealRows:
    """Send rows to the tasks of their units; rows without a unit go."""

    dealing: Dealing
    unit: str
    columns: tuple[str, ...]
    reader: Reader

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield blobs of rows."""
        for raw in scan(self.reader.open(part, incoming, set()), self.columns):
            units = to_units(raw.column(self.unit), self.reader.label)
            keep = units.is_valid()
            yield from self.dealing.deal(raw.filter(keep), units.filter(keep))


@dataclass(frozen=True)
class Counting:
    """How many units have 1, 2, ... rows, and `most` or more."""

    bound: Bound

    def add_up(self, blobs: Iterable[Any]) -> IntArray:
        """Add up what the tasks counted, each for units of its own."""
        counts = np.zeros(self.bound.most, dtype=np.int64)
        everything = set[int]()
        for blob in blobs:
            seen, answer = pickle.loads(blob)
            if everything & seen:
                raise LostRows
            everything |= seen
            counts += answer
        return counts


@dataclass(frozen=True)
class CountRows:
    """Count the rows of the units that were sent to a task."""

    counting: Counting
    schema: Schema
    reader: Reader

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield one partial answer."""
        seen = set[int]()
        source = self.reader.open(part, incoming, seen)
        answer = count_rows(source, self.schema, self.counting.bound)
        yield _blob(0, pickle.dumps((seen, answer), protocol=pickle.HIGHEST_PROTOCOL))


# --- Rows that are drawn and kept -------------------------------------------------------------


class Rule(Protocol):
    """Which rows of a partition are kept, and in which block."""

    def pick(self, source: Source, schema: Schema, rng: RandomSource) -> Iterator[tuple[int, Any]]:
        """Yield numbers of blocks and the rows to keep there."""
        ...


@dataclass(frozen=True)
class Sampling:
    """Every record (every unit) is kept with the same probability."""

    rate: Fraction

    def pick(self, source: Source, schema: Schema, rng: RandomSource) -> Iterator[tuple[int, Any]]:
        """Yield the rows to keep."""
        drawn = draw_rows(source, schema, lambda count: choose(self.rate, count, rng))
        return ((0, rows.filter(pa.array(chosen))) for rows, chosen in drawn)


@dataclass(frozen=True)
class Splitting:
    """Every record (every unit) goes to one of several blocks."""

    blocks: int

    def pick(self, source: Source, schema: Schema, rng: RandomSource) -> Iterator[tuple[int, Any]]:
        """Yield the rows of each block."""
        drawn = draw_rows(source, schema, lambda count: draw_blocks(self.blocks, count, rng))
        for rows, numbers in drawn:
            for block in np.unique(numbers).tolist():
                yield block, rows.filter(pa.array(numbers == block))


@dataclass(frozen=True)
class SamplingBy:
    """A record is kept with the rate of its leaf."""

    column: Column
    rates: tuple[Fraction, ...]

    def pick(self, source: Source, schema: Schema, rng: RandomSource) -> Iterator[tuple[int, Any]]:
        """Yield the rows to keep."""
        kept = sample_rows(source, self.column, self.rates, rng, schema.source_names)
        return ((0, rows) for rows in kept)


@dataclass(frozen=True)
class Bounding:
    """At most so many rows of each unit are kept; nothing is drawn."""

    bound: Bound

    def pick(self, source: Source, schema: Schema, rng: RandomSource) -> Iterator[tuple[int, Any]]:
        """Yield the rows to keep."""
        return ((0, rows) for rows in bound_rows(source, schema, self.bound))


@dataclass(frozen=True)
class Draw:
    """Choose rows of a partition and write them down with a nonce."""

    rule: Rule
    draws: Draws
    schema: Schema
    reader: Reader

    def run(self, part: int, incoming: Iterator[Any]) -> Iterator[Any]:
        """Yield rows to keep, and at the end the marker that is always there."""
        nonce, seen = secure().words(2).tobytes(), set[int]()
        source = self.reader.open(part, incoming, seen)
        picked = self.rule.pick(source, self.schema, self.draws.source(part))
        for block, rows in read_quietly(picked, self.reader.label):
            for piece in _cut(rows):
                yield _drawn(part, nonce, block, pack(piece))
        yield _drawn(part, nonce, MARKER, pickle.dumps(seen))


def _drawn(part: int, nonce: bytes, block: int, blob: bytes) -> Any:
    arrays = [
        pa.array([part], pa.int32()),
        pa.array([nonce], pa.binary()),
        pa.array([block], pa.int32()),
        pa.array([blob], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["part", "nonce", "block", "blob"])


def make_targets(count: int) -> tuple[int, ...]:
    """Find numbers that Spark sends to different ones of `count` tasks, one for each.

    Spark sends a row to the remainder of a hash of its number (MurmurHash3, with its own
    seed).  If that changes, tasks get unequal loads, and answers stay the same.
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < count:
        found.setdefault(_murmur(number) % count, number)
        number += 1
    return tuple(found[task] for task in range(count))


def _murmur(number: int) -> int:
    """Hash a 32-bit integer as Spark does; as Python's integers are, remainders are positive."""
    mask = 0xFFFFFFFF
    word = _rotate(number * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    state = (_rotate(42 ^ word, 13) * 5 + 0xE6546B64 & mask) ^ 4
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & 0xFFFFFFFF

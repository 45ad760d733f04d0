"""Rows that only this process can read: a CSV file, a table in memory, a query, a stream.

This process reads and encodes them, and deals the encoded columns out to the workers, which sum
up what they have while it goes on reading.  If columns are kept, each process keeps its own.
"""

import select
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple, NoReturn

from dpublish.data.batch import S, Summable, refuse_copy
from dpublish.data.engines.chosen import ChosenSource
from dpublish.data.engines.encoded import (
    CachedColumns,
    Part,
    Reading,
    cut_columns,
    cut_windows,
)
from dpublish.data.engines.messages import pack_kernel
from dpublish.data.engines.shard import Picks, Shard
from dpublish.data.engines.source import Source
from dpublish.data.engines.worker import CloseSum, HoldPiece, OpenSum
from dpublish.data.engines.workers import LOST, Worker, Workers
from dpublish.data.schema import Schema
from dpublish.errors import UnreadableData

WINDOW_ROWS = 1 << 18
"""Rows that are dealt out at a time."""


Windows = Generator[tuple[int, list[Part]]]


class _Load(NamedTuple):
    """Columns that are being read, window by window."""

    readings: Sequence[Reading]
    windows: Windows


class _Dealing:
    """One sum over rows that are dealt out: who takes part, and what was found."""

    def __init__(self, workers: Workers, request: OpenSum) -> None:
        self.workers = workers
        self.asked: list[Worker] = []
        self.loads = {0: 0}
        self._request = request
        for worker in workers.ready:
            self._ask(worker, request)
        self.look()

    def _ask(self, worker: Worker, request: OpenSum) -> None:
        self.workers.send(worker, request)
        self.asked.append(worker)
        self.loads[worker.number] = 0

    def look(self) -> None:
        """Let workers take part that have started by now; they hold nothing yet."""
        for worker in self.workers.look():
            self._ask(worker, self._request._replace(held=False))

    def find_free(self) -> int:
        """Return the number of a worker that has taken all it was given; 0 if there is none."""
        order = sorted(self.asked, key=lambda worker: self.loads[worker.number])
        polled = select.poll()  # `select.select` takes no descriptor above 1023
        for worker in order:
            polled.register(worker.connection, select.POLLOUT)
        free = {descriptor for descriptor, _ in polled.poll(0)}
        return next((x.number for x in order if x.connection.fileno() in free), 0)

    def give(self, owner: int, message: HoldPiece) -> None:
        """Hand a piece over."""
        (worker,) = (worker for worker in self.asked if worker.number == owner)
        self.workers.send(worker, message)
        self.loads[owner] += message.rows

    def merge(self, kernel: Summable[S], out: S, pieces: int) -> S:
        """Collect the answers, which are about so many pieces."""
        if self.workers.merge(self.asked, kernel, out) != pieces:
            raise UnreadableData(LOST)
        return out

    def close(self) -> None:
        """Ask for the answers."""
        for worker in self.asked:
            self.workers.send(worker, CloseSum())


class DealtRows:
    """Rows that are read here once, and kept by all processes, each its own windows."""

    def __init__(self, schema: Schema, whole: CachedColumns, *, threads: int, large: int) -> None:
        self._schema = schema
        self._whole = whole
        self._threads = threads
        self._large = large
        self._workers: Workers | None = None
        self._forget_windows()

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def _forget_windows(self) -> None:
        self._shard = Shard(self._schema, (), cache=True)
        self._loaded: set[Reading] = set()
        self._owners: list[int] = []
        self._sizes: list[int] = []

    def sum(
        self,
        kernel: Summable[S],
        wanted: Sequence[Reading],
        picks: Picks,
        forgotten: tuple[int, ...],
    ) -> S | None:
        """Sum up a kernel; None if only this process can, and by itself."""
        if self._workers is not None and not self._workers.are_ours:
            return None
        needed = tuple(dict.fromkeys((*wanted, *(pick.choice.reading for pick in picks))))
        if self._loaded:
            packed, load = pack_kernel(kernel), self._load_more(needed)
        else:
            packed, load = self._load_first(kernel, needed)
        if packed is None:
            return None
        dealing = _Dealing(self._find_workers(), OpenSum(packed, picks, load is None, forgotten))
        if load is not None:
            with closing(load.windows):
                self._deal(dealing, load)
        dealing.close()
        self._shard.forget(forgotten)
        out = kernel.zero()
        own = self._shard.held
        for window in own:
            self._shard.add(kernel, out, window, picks=picks, wanted=wanted)
        return dealing.merge(kernel, out, len(self._owners) - len(own))

    def _load_first(
        self, kernel: Summable[S], needed: Sequence[Reading]
    ) -> tuple[bytes | None, _Load | None]:
        """Read until there are many rows.  If there never are, one process keeps them all."""
        lacking = self._whole.find_lacking(needed)
        if not lacking or not self._whole.is_empty:
            return None, None
        encoded = self._whole.encode(lacking)
        first, is_large = _read_first(encoded, self._large)
        packed = pack_kernel(kernel) if is_large else None
        if packed is None:
            self._whole.keep(lacking, _chain(first, encoded))
            return None, None
        return packed, _Load(lacking, cut_windows(_chain(first, encoded), WINDOW_ROWS))

    def _load_more(self, needed: Sequence[Reading]) -> _Load | None:
        """Read what was not dealt out yet, also if this process has read it for itself."""
        new = [reading for reading in needed if reading not in self._loaded]
        if not new:
            return None
        lacking = [reading for reading in self._whole.widen(new) if reading not in self._loaded]
        return _Load(lacking, cut_windows(self._whole.encode(lacking), WINDOW_ROWS))

    def _deal(self, dealing: _Dealing, load: _Load) -> None:
        """Deal all windows out: each to its owner, or to whoever has the fewest rows."""
        is_first, number = not self._owners, -1
        for number, (rows, parts) in enumerate(load.windows):
            if is_first:
                dealing.look()
                self._owners.append(min(dealing.loads, key=dealing.loads.__getitem__))
                self._sizes.append(rows)
            elif self._sizes[number : number + 1] != [rows]:
                raise self._changed()
            self._hand_over(dealing, number, dict(zip(load.readings, parts, strict=True)))
        if number + 1 != len(self._sizes):
            raise self._changed()
        self._loaded.update(load.readings)
        if is_first:
            self._even_out(dealing, load.readings)

    def _hand_over(self, dealing: _Dealing, number: int, columns: dict[Reading, Part]) -> None:
        owner, rows = self._owners[number], self._sizes[number]
        if owner:
            dealing.give(owner, HoldPiece(number, rows, columns, keep=True))
        else:
            self._shard.hold(number, rows, columns)
            dealing.loads[0] += rows

    def _even_out(self, dealing: _Dealing, readings: Sequence[Reading]) -> None:
        """Give windows away that came before the workers had started."""
        dealing.workers.wait_until_ready()
        dealing.look()
        for number in reversed(self._shard.held):
            least = min(dealing.loads, key=dealing.loads.__getitem__)
            rows = self._sizes[number]
            if dealing.loads[0] - rows < dealing.loads[least] + rows:
                return
            columns = self._shard.take_back(number, readings)
            self._owners[number] = least
            dealing.loads[0] -= rows
            self._hand_over(dealing, number, columns)

    def _changed(self) -> UnreadableData:
        return UnreadableData(f"{self._whole.label} was changed while it was in use")

    def _find_workers(self) -> Workers:
        if self._workers is None:
            self._workers = Workers(self._threads - 1, self._schema, (), cache=True)
        return self._workers

    def end(self) -> None:
        """End the workers; the next sum starts others, and reads the rows again."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        self._forget_windows()


class StreamedRows:
    """Rows that are read here anew for every sum, and summed up by whoever has time."""

    def __init__(self, schema: Schema, source: Source, *, threads: int, large: int) -> None:
        self._schema = schema
        self._source = source
        self._threads = threads
        self._large = large
        self._workers: Workers | None = None

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def sum(
        self,
        kernel: Summable[S],
        wanted: Sequence[Reading],
        picks: Picks,
        forgotten: tuple[int, ...],
    ) -> S | None:
        """Sum up a kernel; None if only this process can, and by itself."""
        if self._workers is not None and not self._workers.are_ours:
            return None
        source = self._source
        for pick in picks:
            source = ChosenSource(source, pick.choice)
        reader = CachedColumns(self._schema, source)
        read = tuple(wanted) or tuple(reader.find_lacking(()))
        out = kernel.zero()
        with closing(reader.encode(read)) as encoded:
            rows = 0
            for batch in encoded:
                _add(kernel, out, wanted, read, batch)
                rows += len(batch[0].data)
                if rows >= self._large:
                    self._go_on(kernel, out, wanted, _Load(read, cut_windows(encoded, WINDOW_ROWS)))
        return out

    def _go_on(self, kernel: Summable[S], out: S, wanted: Sequence[Reading], load: _Load) -> None:
        """Sum up all that is left of many rows."""
        packed = pack_kernel(kernel)
        if packed is not None:
            self._deal(kernel, out, wanted, packed, load)
            return
        for _, parts in load.windows:
            _add(kernel, out, wanted, load.readings, parts)

    def _deal(
        self, kernel: Summable[S], out: S, wanted: Sequence[Reading], packed: bytes, load: _Load
    ) -> None:
        """Deal windows out, and sum up those here for which no one has time."""
        dealing = _Dealing(self._find_workers(), OpenSum(packed, (), False, ()))
        given = 0
        for number, (rows, parts) in enumerate(load.windows):
            dealing.look()
            owner = dealing.find_free()
            if owner:
                columns = dict(zip(load.readings, parts, strict=True))
                dealing.give(owner, HoldPiece(number, rows, columns, keep=False))
                given += 1
            else:
                _add(kernel, out, wanted, load.readings, parts)
        dealing.close()
        dealing.merge(kernel, out, given)

    def _find_workers(self) -> Workers:
        if self._workers is None:
            self._workers = Workers(self._threads - 1, self._schema, (), cache=False)
        return self._workers

    def end(self) -> None:
        """End the workers; the next sum starts others."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None


def _add(
    kernel: Summable[S],
    out: S,
    wanted: Sequence[Reading],
    read: Sequence[Reading],
    parts: Sequence[Part],
) -> None:
    """Add records to `out`, which may have been read by a column that only counts them."""
    columns = dict(zip(read, parts, strict=True)) if wanted else {}
    for batch in cut_columns(len(parts[0].data), columns):
        kernel.add(batch, out)


def _read_first(encoded: Iterator[list[Part]], large: int) -> tuple[deque[list[Part]], bool]:
    """Read until there are `large` rows; tell if there are."""
    first: deque[list[Part]] = deque()
    rows = 0
    for batch in encoded:
        first.append(batch)
        rows += len(batch[0].data)
        if rows >= large:
            return first, True
    return first, False


def _chain(first: deque[list[Part]], rest: Generator[list[Part]]) -> Generator[list[Part]]:
    """Yield the batches read so far, without holding on to them, and then the others."""
    with closing(rest):
        while first:
            yield first.popleft()
        yield from rest

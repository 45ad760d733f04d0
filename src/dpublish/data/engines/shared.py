"""Columns whose records several processes share out among them, once there are many.

NumPy holds Python's lock while it counts, so threads gain nothing; processes do.  Each has a
shard of the rows (`shard.py`) and sums up kernels over it; the partial answers are merged.
Kernels add up integers, so the answer is the same, bit by bit, whoever summed up what.

Files that can be cut (Parquet, Arrow, several files) are read by all processes
(`split_rows.py`).  Other rows are read and encoded by this one, and the encoded columns are
dealt out (`dealt_rows.py`).  A process takes a tenth of a second to start, so a small table has
none.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import count
from threading import Lock
from typing import NoReturn, Protocol
from weakref import finalize

from dpublish.data.batch import Batch, S, Summable, refuse_copy
from dpublish.data.engines.chosen import Choice, ChosenColumns, ChosenSource
from dpublish.data.engines.dealt_rows import DealtRows, StreamedRows
from dpublish.data.engines.encoded import CachedColumns, Reading, StreamedColumns
from dpublish.data.engines.shard import Pick, Picks
from dpublish.data.engines.source import Source
from dpublish.data.engines.split_rows import SplitRows, cut_source
from dpublish.data.engines.workers import UnknownKernel
from dpublish.data.schema import Schema

LARGE = 1 << 21
"""Rows from which on other processes take part."""


class Rows(Protocol):
    """Rows that several processes work on."""

    def sum(
        self,
        kernel: Summable[S],
        wanted: Sequence[Reading],
        picks: Picks,
        forgotten: tuple[int, ...],
    ) -> S | None:
        """Sum up a kernel; None if only this process can, and by itself."""
        ...

    def end(self) -> None:
        """End the other processes."""
        ...


class SharedRows:
    """Rows of one table and of all that are picked from it: one sum after the other."""

    def __init__(
        self, schema: Schema, source: Source, whole: CachedColumns | None, *, threads: int
    ) -> None:
        self.schema = schema
        self._source = source
        self._whole = whole
        self._threads = threads
        self._rows: Rows | None = None
        self._is_small = False
        self._unknown: set[type] = set()
        self._numbers = count()
        self._forgotten: list[int] = []
        self._lock = Lock()

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def make_pick(self, choice: Choice) -> tuple[Pick, Callable[[], None]]:
        """Number a choice; the second result is to be called when it is needed no more."""
        number, forgotten = next(self._numbers), self._forgotten
        return Pick(number, choice), lambda: forgotten.append(number)

    def sum(self, kernel: Summable[S], wanted: Sequence[Reading], picks: Picks) -> S | None:
        """Sum up a kernel; None if only this process can, and by itself."""
        if type(kernel) in self._unknown:
            return None
        with self._lock:
            rows = self._find_rows()
            if rows is None:
                return None
            forgotten = tuple(self._forgotten)
            try:
                answer = rows.sum(kernel, wanted, picks, forgotten)
            except UnknownKernel:
                self._unknown.add(type(kernel))
                return None
            except BaseException:
                rows.end()  # they may be in the middle of something
                raise
            if answer is not None:  # else they may not have heard of it
                del self._forgotten[: len(forgotten)]
            return answer

    def close(self) -> None:
        """End the other processes."""
        with self._lock:
            if self._rows is not None:
                self._rows.end()

    def _find_rows(self) -> Rows | None:
        """Find out how rows can be shared out, by what the files say of themselves."""
        if self._rows is None and not self._is_small:
            pieces = cut_source(self._source)
            is_cut = len(pieces) > 1
            self._is_small = is_cut and sum(piece.weight for piece in pieces) < LARGE
            options = {"threads": self._threads}
            if self._is_small:
                return None
            if is_cut:
                cache = self._whole is not None
                self._rows = SplitRows(self.schema, pieces, cache=cache, **options)
            elif self._whole is not None:
                self._rows = DealtRows(self.schema, self._whole, large=LARGE, **options)
            else:
                self._rows = StreamedRows(self.schema, self._source, large=LARGE, **options)
        return self._rows


class SharedColumns:
    """Columns of all records, or of those picked, as one process sees them; `sum` uses more."""

    def __init__(
        self,
        rows: SharedRows,
        source: Source,
        alone: CachedColumns | StreamedColumns | ChosenColumns,
        picks: Picks = (),
    ) -> None:
        self._rows = rows
        self._source = source
        self._alone = alone
        self._picks = picks

    @classmethod
    def of(cls, schema: Schema, source: Source, *, cache: bool, threads: int) -> "SharedColumns":
        """Share out all records of a source."""
        if cache:
            whole = CachedColumns(schema, source)
            return cls(SharedRows(schema, source, whole, threads=threads), source, whole)
        rows = SharedRows(schema, source, None, threads=threads)
        return cls(rows, source, StreamedColumns(schema, source))

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Yield the wanted columns in batches, all of them in this process."""
        return self._alone.batches(wanted)

    def sum(self, kernel: Summable[S], wanted: Sequence[Reading]) -> S | None:
        """Sum up a kernel; None if only this process can, and by itself."""
        return self._rows.sum(kernel, wanted, self._picks)

    def close(self) -> None:
        """End the other processes."""
        self._rows.close()

    def pick(self, choice: Choice) -> "SharedColumns":
        """Pick records; what was read and encoded of them is shared."""
        source = ChosenSource(self._source, choice)
        alone: StreamedColumns | ChosenColumns
        if isinstance(self._alone, StreamedColumns):
            alone = StreamedColumns(self._rows.schema, source)
        else:
            alone = ChosenColumns(self._alone, choice)
        pick, forget = self._rows.make_pick(choice)
        picked = SharedColumns(self._rows, source, alone, (*self._picks, pick))
        finalize(picked, forget).atexit = False
        return picked

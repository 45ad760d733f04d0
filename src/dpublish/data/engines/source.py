"""A source of rows: what is public about it, and a way to read some of its columns.

Names and types of columns are public and are looked at when a table is opened, so that a
request that cannot be met fails before anything is paid for.  Rows are read later.  If that
fails, the reason is not passed on: readers quote the offending value in their messages, and
whoever runs out of memory says how many rows there are.
"""

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from dpublish.data.batch import BATCH_ROWS, refuse_copy
from dpublish.data.encoding import plain_array
from dpublish.errors import DPublishError, UnreadableData

T = TypeVar("T")
PIECE_ROWS = 1 << 19
"""About how many rows one process reads at a time, if several share a source."""
NO_MEMORY = "there is not enough memory to read the rows; use cache=False or fewer columns"

QUERY = "the query"  # how the label of a query begins

UNREADABLE = pa.struct([])  # stands for types that Arrow does not have; no column accepts it

# What a second scan gives: the same rows in the same order, at the cost of the columns asked
# for ("cheap") or of the whole file ("costly"); the same rows in any order; or nothing.
Rescan = Literal["cheap", "costly", "unordered", "never"]


class Source(Protocol):
    """Rows that can be read, column by column."""

    @property
    def label(self) -> str:
        """How messages call it; public."""
        ...

    @property
    def header(self) -> Any:
        """Names and types of its columns, as an Arrow schema; names may be repeated."""
        ...

    @property
    def rescan(self) -> Rescan:
        """What reading a second time gives."""
        ...

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        ...


class Piece(Source, Protocol):
    """A part of a source, which holds no row: it may be pickled and read in another process."""

    @property
    def weight(self) -> int:
        """About how many rows it has: private, and only used to share out the work."""
        ...


@runtime_checkable
class Divisible(Protocol):
    """A source that can be cut into pieces, whose rows follow each other in the same order."""

    def cut(self) -> Sequence[Piece]:
        """Cut into pieces."""
        ...


class MemorySource:
    """Rows held in memory as Arrow record batches."""

    rescan: Rescan = "cheap"

    def __init__(self, batches: Sequence[Any], header: Any, label: str) -> None:
        self._batches = batches
        self.header = header
        self.label = label

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return (batch.select(list(columns)) for batch in self._batches)


class HeldSource:
    """Rows of another source, read whole at first use and then held in memory.

    For rows that can be had only once, or that come in another order every time: columns
    read in separate scans would not fit together.
    """

    rescan: Rescan = "cheap"

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        self._source = source
        self._columns = tuple(columns)
        self._held: list[Any] | None = None
        self._lock = threading.Lock()
        self.label = source.label
        self.header = select_header(source.header, columns)

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def close(self) -> None:
        """Let go of the rows, and of where they came from."""
        self._held = None
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        with self._lock:  # of two threads, one reads and the other waits
            if self._held is None:
                self._held = list(self._source.scan(self._columns))
            held = self._held
        return (batch.select(list(columns)) for batch in held)


class ChainedSource:
    """Rows of several sources, one after the other: the files of a folder."""

    def __init__(self, sources: Sequence[Source], label: str) -> None:
        self._sources = sources
        self.label = label
        self.header = sources[0].header
        costly = any(source.rescan == "costly" for source in sources)
        self.rescan: Rescan = "costly" if costly else "cheap"

    @property
    def weight(self) -> int:
        """About how many rows there are, if the sources are pieces."""
        return sum(getattr(source, "weight", 0) for source in self._sources)

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        for source in self._sources:
            yield from source.scan(columns)

    def cut(self) -> Sequence[Piece]:
        """Cut each of the sources, if that is possible; no pieces if it is not."""
        found = [source.cut() if isinstance(source, Divisible) else () for source in self._sources]
        return [piece for pieces in found for piece in pieces] if all(found) else []


def select_header(header: Any, columns: Sequence[str]) -> Any:
    """Pick the names and types of some columns."""
    return pa.schema([header.field(name) for name in columns])


def quietly(action: Callable[[], T], message: str) -> T:
    """Do something that may fail, and hide why it failed.

    The error is raised outside the `except`, so that not even its context holds the reason.
    """
    try:
        return action()
    except (DPublishError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        message = NO_MEMORY
    except BaseException:  # noqa: BLE001 - a reader's panic is no Exception, and may quote a row
        pass
    raise UnreadableData(message)


def within_memory(action: Callable[[], T]) -> T:
    """Do something with rows; if there is too little memory, hide how much it takes."""
    try:
        return action()
    except MemoryError:
        pass
    raise UnreadableData(NO_MEMORY)


def unreadable(label: str) -> str:
    """Return the message for rows that cannot be read, whatever the reason."""
    return f"{label} could not be read to its end; check that all of it can be read"


def read_quietly(items: Iterator[T], label: str) -> Generator[T]:
    """Yield what a reader yields, and hide why it failed if it does."""
    try:
        while (item := quietly(lambda: next(items, None), unreadable(label))) is not None:
            yield item
    finally:
        if isinstance(items, Generator):
            items.close()


def scan(source: Source, columns: Sequence[str]) -> Iterator[Any]:
    """Read some columns of a source in record batches of bounded size and plain types."""
    for batch in source.scan(columns):
        asked = batch.select(list(columns))  # a reader may keep the order of its file
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = asked.slice(start, BATCH_ROWS)
            yield pa.RecordBatch.from_arrays([*map(plain_array, part.columns)], names=columns)


def read_columns(source: Source, columns: Sequence[str]) -> Any:
    """Read some columns of a source in the clear, as an Arrow table; hide why it failed if it does.

    >>> rows = pa.record_batch({"age": [31, 64], "name": ["Ann", "Bob"]})
    >>> read_columns(MemorySource([rows], rows.schema, "the rows"), ["age"]).to_pydict()
    {'age': [31, 64]}
    """
    batches = list(read_quietly(scan(source, columns), source.label))
    header = select_header(source.header, columns)
    return pa.Table.from_batches(batches) if batches else header.empty_table()


def column_problem(header: Any, name: str) -> str | None:
    """Describe what is wrong with a column of a header, if anything.

    No other column is named: the first line of a file that has no header is a row.
    """
    times = header.names.count(name)
    if times == 1:
        return None
    if times:
        return "is there several times; rename all but one"
    if name.lower() in map(str.lower, header.names):
        return "is not there, only one in other letters (a, A); write the name as in the data"
    return "is not there; check its name in the schema and in the data, or derive it (--derive)"


def check_header(source: Source, columns: Sequence[str], known: Collection[str] = ()) -> None:
    """Refuse a source that lacks one of the columns, or has it twice.

    Similar names are offered if one of the `known` columns is there: else the first line of a
    file may be a row.
    """
    for name in columns:
        problem = column_problem(source.header, name)
        if problem is None:
            continue
        if name not in source.header.names and source.label.startswith(QUERY):
            problem = f"is not among its columns; add it to the SELECT, as {name!r}"
        near = get_close_matches(name, sorted(set(source.header.names) - {*columns, name}))
        if near and not set(known).isdisjoint(source.header.names):
            problem += f"; similar columns there: {', '.join(map(repr, near))}"
        raise UnreadableData(f"column {name!r} of {source.label} {problem}")

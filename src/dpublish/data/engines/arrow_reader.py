"""Rows of Parquet and Arrow files, and of whatever hands out an Arrow stream."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn
from weakref import WeakSet

import pyarrow as pa
import pyarrow.parquet as pq

from dpublish.data.batch import BATCH_ROWS, refuse_copy
from dpublish.data.engines.file_state import FileState
from dpublish.data.engines.source import PIECE_ROWS, Piece, Rescan, quietly, unreadable
from dpublish.errors import UnreadableData

PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".arrows", ".feather", ".ipc")
_USED: WeakSet[Any] = WeakSet()  # readers that were read from


@dataclass(frozen=True)
class ParquetPiece:
    """Some row groups of a Parquet file (None: all); where rows are, and no row itself."""

    rescan: ClassVar[Rescan] = "cheap"

    label: str
    header: Any
    state: FileState
    groups: tuple[int, ...] | None = None
    weight: int = 0

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return self.state.guard(self._read(columns))

    def _read(self, columns: Sequence[str]) -> Iterator[Any]:
        kinds = {name: self.header.field(name).type for name in columns}
        # Text is handed over as a list of its distinct values and positions in it, which are
        # encoded at once; most columns are stored like that anyway.
        texts = [name for name, kind in kinds.items() if pa.types.is_string(kind)]
        with pq.ParquetFile(self.label, read_dictionary=texts) as file:
            yield from file.iter_batches(
                BATCH_ROWS, row_groups=self.groups, columns=list(columns), use_threads=False
            )


class ParquetSource:
    """Rows of one Parquet file."""

    rescan: Rescan = "cheap"

    def __init__(self, path: str) -> None:
        self.label = path
        self._state = FileState(path)
        self.header = quietly(self._read_header, f"{path} is not a Parquet file that can be read")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return ParquetPiece(self.label, self.header, self._state).scan(columns)

    def cut(self) -> Sequence[Piece]:
        """Cut the file between row groups, into pieces that other processes can read."""
        self._state.require_same()
        sizes = quietly(self._find_sizes, unreadable(self.label))
        return [
            ParquetPiece(self.label, self.header, self._state, groups, weight)
            for groups, weight in _join_small(sizes)
        ]

    def _find_sizes(self) -> list[int]:
        with pq.ParquetFile(self.label) as file:
            found = file.metadata
            return [found.row_group(number).num_rows for number in range(found.num_row_groups)]

    def _read_header(self) -> Any:
        with pq.ParquetFile(self.label) as file:
            return file.schema_arrow


def _join_small(sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Join small neighbors until each piece is large enough; give their numbers and rows."""
    numbers: list[int] = []
    rows = 0
    for number, size in enumerate(sizes):
        numbers.append(number)
        rows += size
        if rows >= PIECE_ROWS:
            yield tuple(numbers), rows
            numbers, rows = [], 0
    if numbers:
        yield tuple(numbers), rows


@dataclass(frozen=True)
class IpcPiece:
    """Some record batches of an Arrow file (None: all); where rows are, and no row itself."""

    rescan: ClassVar[Rescan] = "cheap"

    label: str
    header: Any
    state: FileState
    is_stream: bool
    numbers: tuple[int, ...] | None = None
    weight: int = 0

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return self.state.guard(self._read(columns))

    def _read(self, columns: Sequence[str]) -> Iterator[Any]:
        indices = [self.header.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=indices)
        with pa.memory_map(self.label) as file:
            if self.is_stream:
                yield from pa.ipc.open_stream(file, options=options)
                return
            reader = pa.ipc.open_file(file, options=options)
            every = range(reader.num_record_batches)
            for number in every if self.numbers is None else self.numbers:
                yield reader.get_batch(number)


class IpcSource:
    """Rows of one Arrow file (Feather), or of a stored Arrow stream."""

    rescan: Rescan = "cheap"

    def __init__(self, path: str) -> None:
        self.label = path
        self._state = FileState(path)
        message = f"{path} is not an Arrow file that can be read"
        self.header, self._is_stream = quietly(self._read_header, message)

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return IpcPiece(self.label, self.header, self._state, self._is_stream).scan(columns)

    def cut(self) -> Sequence[Piece]:
        """Cut the file between record batches, into pieces that other processes can read."""
        self._state.require_same()
        count, weight = quietly(self._find_batches, unreadable(self.label))
        if self._is_stream or not count:
            return [IpcPiece(self.label, self.header, self._state, self._is_stream, None, weight)]
        return [
            IpcPiece(self.label, self.header, self._state, False, numbers, rows)
            for numbers, rows in _join_small([weight // count] * count)
        ]

    def _find_batches(self) -> tuple[int, int]:
        """Count the record batches, and guess the rows by the length of the file."""
        weight = os.path.getsize(self.label) // (8 * max(len(self.header), 1))
        if self._is_stream:
            return 1, weight
        with pa.memory_map(self.label) as file:
            return pa.ipc.open_file(file).num_record_batches, weight

    def _read_header(self) -> tuple[Any, bool]:
        with pa.memory_map(self.label) as file:
            try:
                return pa.ipc.open_file(file).schema, False
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).schema, True


class StreamSource:
    """Rows of an Arrow stream that may be had only once; it is read by the first scan.

    A stream that was read, or that broke off, looks like one without rows.  So it is refused
    from its first use on; a reader of Arrow's also if another table used it.
    """

    rescan: Rescan = "never"

    def __init__(self, stream: Any, label: str) -> None:
        message = f"{label} does not hand out an Arrow stream of rows; give a table of columns"
        self._reader = quietly(lambda: pa.RecordBatchReader.from_stream(stream), message)
        self.header = self._reader.schema
        self.label = label
        self._key = stream if isinstance(stream, pa.RecordBatchReader) else self._reader

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        if self._key in _USED:
            raise UnreadableData(f"{self.label} can be read only once, and was; open a new one")
        _USED.add(self._key)
        for batch in self._reader:
            yield batch.select(list(columns))

"""Rows of CSV and TSV files, read so that a record decides about itself alone.

Readers that guess a file's dialect and types from its first rows let one record change how
all others are read.  Here the header line, which is public, fixes the names and the
delimiter; every field is read as text; and a record that does not fit is handled by rule:

* a record ends at LF or CR LF outside double quotes (RFC 4180), and a CR alone is a space;
* a blank line is skipped, but in a file of one column it is a record with a missing value;
* a record with fewer fields than the header, of more than 2,000,000 bytes, or with bytes that
  are not UTF-8 in a column that is read, is left out; fields beyond the header are ignored;
* a blank field is a missing value.

So no record can raise an error, and none can decide about another.  What remains is a file that
breaks the rules of quoting: a quote that is opened and never closed swallows the lines behind
it.  No program that writes CSV properly makes such a file, and `check_table` tells the owner.

Text is decoded here and nowhere copied to: no row lies in a file of ours, and all files are read
the same way, whatever stands in them.
"""

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import ClassVar, NoReturn

import pyarrow as pa

from dpublish.data.batch import refuse_copy
from dpublish.data.engines.csv_fields import are_odd, read_fields
from dpublish.data.engines.csv_records import read_records
from dpublish.data.engines.file_state import FileState
from dpublish.data.engines.source import Piece, Rescan, quietly, unreadable
from dpublish.errors import UnreadableData

CSV_ENDINGS = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz")
_LONGEST_HEADER = 100_000
_DELIMITERS = ",;\t|"
_DAMAGES = (OSError, EOFError, zlib.error)  # what a file raises that is cut off or not zipped well


class CsvSource:
    """Rows of one CSV file; `wanted` are the columns that will be asked for (None: all).

    Every scan reads all of them: whether a record is left out may depend on each.  A file that is
    not on this machine comes with its own `state`, and is opened by `open_bytes`.
    """

    rescan: Rescan = "costly"  # a second scan parses the whole file again

    def __init__(
        self,
        path: str,
        wanted: Sequence[str] | None = None,
        *,
        state: FileState | None = None,
        open_bytes: Callable[[str], BufferedIOBase] | None = None,
    ) -> None:
        self.label = path
        self._state = state or FileState(path)
        self._open_bytes = open_bytes or _open_bytes
        try:
            with self._open_bytes(path) as file:
                line = _read_line(file)
        except _DAMAGES:
            raise UnreadableData(f"{path} cannot be opened") from None
        self._layout = _Layout.of(_decode_header(line, path), path, wanted)
        self.header = self._layout.header

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns as Arrow record batches."""
        piece = CsvPiece(self.label, self._state, self._layout, open_bytes=self._open_bytes)
        return piece.scan(columns)

    def cut(self) -> Sequence[Piece]:
        """Return the file as one piece: it cannot be cut without guessing where quotes open.

        A file that is not on this machine is read by this process.
        """
        if self._open_bytes is not _open_bytes:
            return []
        self._state.require_same()
        size = quietly(lambda: os.path.getsize(self.label), unreadable(self.label))
        weight = size // (8 * len(self._layout.names))
        return [CsvPiece(self.label, self._state, self._layout, weight)]

    def has_odd_lines(self) -> bool:
        """Check whether some lines break the rules of CSV or do not fit the header.

        For the owner only: the answer depends on rows.
        """
        try:
            with self._open_bytes(self.label) as file:
                _read_line(file)
                return self._layout.has_odd_lines(file)
        except _DAMAGES:
            return True


class CsvPipe:
    """Rows of CSV text that comes in on an open file or a pipe, and can be read only once."""

    rescan: Rescan = "never"

    def __init__(
        self, file: BufferedIOBase, label: str, wanted: Sequence[str] | None = None
    ) -> None:
        self.label = label
        self._file = file
        self._is_used = False
        _require_waiting(file, label)
        try:
            line = _read_line(file)
        except _DAMAGES:
            raise UnreadableData(f"{label} cannot be read") from None
        self._layout = _Layout.of(_decode_header(line, label), label, wanted)
        self.header = self._layout.header

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns as Arrow record batches; a second time there would be no rows left."""
        if self._is_used:
            raise UnreadableData(f"{self.label} can be read only once; open it anew")
        self._is_used = True
        return self._layout.read(self._file, columns)


@dataclass(frozen=True)
class _Layout:
    """What the header line says: the names, the delimiter, and which columns will be read."""

    delimiter: str
    names: tuple[str, ...]
    wanted: tuple[str, ...]

    @classmethod
    def of(cls, line: str, path: str, wanted: Sequence[str] | None) -> "_Layout":
        delimiter = _find_delimiter(path, line, wanted)
        names = _split_header(line, delimiter)
        chosen = dict.fromkeys(names if wanted is None else wanted)
        return cls(delimiter, tuple(names), tuple(name for name in chosen if name in names))

    @property
    def header(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema([(name, pa.string()) for name in self.names])

    def read(self, file: BufferedIOBase, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some of the wanted columns from the lines behind the header."""
        # Columns go by position, since names in the file may be repeated.
        indices = [self.names.index(name) for name in self.wanted]
        for records in read_records(file, self.delimiter):
            arrays = read_fields(records, len(self.names), indices)
            batch = pa.RecordBatch.from_arrays(arrays, names=list(self.wanted))
            yield batch.select(list(columns))

    def has_odd_lines(self, file: BufferedIOBase) -> bool:
        """Check whether lines behind the header break the rules; NOT PRIVATE."""
        pieces = read_records(file, self.delimiter)
        return any(are_odd(records, len(self.names)) for records in pieces)


def _open_bytes(path: str) -> BufferedIOBase:
    """Open a file for reading, unpacking it if it is zipped."""
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


@dataclass(frozen=True)
class CsvPiece:
    """A whole CSV file, for another process to read; where rows are, and no row itself."""

    rescan: ClassVar[Rescan] = "costly"

    label: str
    state: FileState
    layout: _Layout
    weight: int = 0
    open_bytes: Callable[[str], BufferedIOBase] = _open_bytes

    @property
    def header(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.layout.header

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns as Arrow record batches."""
        return self.state.guard(self._read(columns))

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self.open_bytes(self.label) as file:
            _read_line(file)
            yield from self.layout.read(file, columns)


def _require_waiting(file: BufferedIOBase, label: str) -> None:
    """Refuse a pipe that says it is at its end while more is still to come."""
    try:
        waits = os.get_blocking(file.fileno())
    except (OSError, ValueError):  # no file of the system, so nothing comes later
        return
    if not waits:
        raise UnreadableData(f"{label} is set to non-blocking; pipe the rows through `cat`")


def _read_line(file: BufferedIOBase) -> bytes:
    return file.readline(_LONGEST_HEADER)


def _decode_header(raw: bytes, path: str) -> str:
    # First of all, since in such a file the rows are part of this line.
    if b"\r" in raw.removesuffix(b"\r\n"):
        raise UnreadableData(f"{path} has old line ends (CR alone); save it with LF or CR LF")
    if len(raw) == _LONGEST_HEADER:
        raise UnreadableData(f"the first line of {path} is too long; it must name the columns")
    try:
        line = raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UnreadableData(f"the header line of {path} is not UTF-8; save it as UTF-8") from None
    if not line.strip():
        raise UnreadableData(f"{path} has no header line; name the columns in its first line")
    if line.count('"') % 2:
        raise UnreadableData(f"the header of {path} must be one line; a quote is not closed in it")
    return line


def _find_delimiter(path: str, line: str, wanted: Sequence[str] | None) -> str:
    """Take the delimiter under which most of the wanted columns are found in the header."""
    if Path(path.removesuffix(".gz")).suffix in (".tsv", ".tab"):
        return "\t"

    def columns_found(delimiter: str) -> int:
        names = _split_header(line, delimiter)
        return len(names) if wanted is None else len(set(names) & set(wanted))

    return max(_DELIMITERS, key=columns_found)


def _split_header(line: str, delimiter: str) -> list[str]:
    fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    return [name.strip() for name in fields]

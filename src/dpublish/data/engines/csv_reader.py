"""Rows of CSV and TSV files, read so that a record decides about itself alone.

Readers that guess a file's dialect and types from its first rows let one record change how
all others are read.  Here the header line, which is public, fixes the names and the
delimiter; every field is read as text; and a record that does not fit is handled by rule:

* a record ends at LF or CR LF outside double quotes (RFC 4180), and a CR alone is a space;
* a blank line is skipped, but in a file of one column it is a record with a missing value;
* a record with fewer fields than the header, of more than 2 MB, or with bytes that are not
  UTF-8 in a column of the schema, is left out; fields beyond the header are ignored;
* a blank field is a missing value.

So no record can raise an error.  What remains is a file that breaks the rules of quoting: a
quote that is opened and never closed swallows the lines behind it.  No program that writes
CSV properly makes such a file, and `check_table` tells the owner.

One thread parses a file from its start.  Several would have to guess whether the piece of the
file that they are handed starts within quotes, and one wrong guess misreads all of the piece.
"""

import csv
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import duckdb
import pyarrow as pa

from dpublish.data.batch import refuse_copy
from dpublish.data.engines.duckdb_reader import connect, quote_text, stream
from dpublish.data.engines.file_state import FileState
from dpublish.data.engines.line_ends import open_bytes, read_blocks, without_lone_returns
from dpublish.data.engines.source import Rescan
from dpublish.errors import UnreadableData

CSV_ENDINGS = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz")
_LONGEST_HEADER = 100_000
_DELIMITERS = ",;\t|"
_DAMAGES = (OSError, EOFError, zlib.error)  # what a file raises that is cut off or not zipped well


class CsvSource:
    """Rows of one CSV file; `wanted` are the columns that will be asked for (None: all).

    Every scan reads all of them: whether a record is left out may depend on each.
    """

    rescan: Rescan = "costly"  # a second scan parses the whole file again

    def __init__(self, path: str, wanted: Sequence[str] | None = None) -> None:
        self.label = path
        self._state = FileState(path)
        line = _first_line(path)
        self._delimiter = _find_delimiter(path, line, wanted)
        self._names = _split_header(line, self._delimiter)
        names = self._names if wanted is None else wanted
        self._wanted = tuple(name for name in dict.fromkeys(names) if name in self._names)
        self.header = pa.schema([(name, pa.string()) for name in self._names])

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns as Arrow record batches."""
        return self._state.guard(self._read(columns))

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        places = [self._names.index(name) for name in self._wanted]
        connection = connect()
        with without_lone_returns(self.label) as path:
            query = self._query(path, places, "strict_mode = false, ignore_errors = true")
            for batch in stream(connection.sql(query)):
                yield batch.rename_columns(list(self._wanted)).select(list(columns))

    def has_odd_lines(self) -> bool:
        """Say whether some lines break the rules of CSV or do not fit the header.

        For the owner only: the answer depends on rows.
        """
        connection = connect()
        places, rules = range(len(self._names)), "strict_mode = true, store_rejects = true"
        try:
            if sum(block.count(b'"') for block in read_blocks(self.label)) % 2:
                return True  # the last quote is not closed, which the parser does not mind
            with without_lone_returns(self.label) as path:
                for _ in stream(connection.sql(self._query(path, places, rules))):
                    pass
        except (duckdb.Error, pa.ArrowException, *_DAMAGES):
            return True
        return bool(connection.sql("SELECT 1 FROM reject_errors LIMIT 1").fetchall())

    def _query(self, path: str, places: Iterable[int], rules: str) -> str:
        # Columns go by position, since names in the file may be repeated or differ by case only.
        fields = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(self._names)))
        picked = ", ".join(f"c{place}" for place in places)
        compression = "gzip" if path.endswith(".gz") else "none"
        return (
            f"SELECT {picked} FROM read_csv({quote_text(_literal(path))}, "
            f"auto_detect = false, header = true, columns = {{{fields}}}, "
            f"delim = {quote_text(self._delimiter)}, quote = '\"', escape = '\"', "
            f"nullstr = '', new_line = '\\n', null_padding = false, "
            # A folder called c0=7 would else stand in for the column c0.
            f"parallel = false, hive_partitioning = false, "
            f"compression = '{compression}', {rules})"
        )


def _first_line(path: str) -> str:
    try:
        with open_bytes(path) as file:
            raw = file.readline(_LONGEST_HEADER)
    except _DAMAGES:
        raise UnreadableData(f"{path} cannot be opened") from None
    if len(raw) == _LONGEST_HEADER:
        raise UnreadableData(f"the first line of {path} is too long; it must name the columns")
    try:
        line = raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UnreadableData(f"the header line of {path} is not UTF-8; save it as UTF-8") from None
    if not line.strip():
        raise UnreadableData(f"{path} has no header line; name the columns in its first line")
    if "\r" in line:
        raise UnreadableData(f"{path} has old line ends (CR alone); save it with LF or CR LF")
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


def _literal(path: str) -> str:
    """Write a path so that its brackets and stars, or a first `~`, stand for no other file."""
    return "".join(f"[{x}]" if x in "*?[" else x for x in os.path.abspath(path))

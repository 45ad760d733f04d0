"""Public lookup tables: what is known of each ward, product or postal code, whoever is in the data.

A lookup is joined to records by a key, as a constant is: the columns that a record gains depend on
its own key and on the lookup alone.  The lookup must be public.  One that was made from the rows
to protect would carry what it knows of one record into others.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.encoding import is_text, to_texts
from dpublish.data.engines.arrow_reader import (
    ARROW_ENDINGS,
    PARQUET_ENDINGS,
    IpcSource,
    ParquetSource,
)
from dpublish.data.engines.bounded import hash_units
from dpublish.data.engines.csv_reader import CSV_ENDINGS, CsvSource
from dpublish.data.engines.source import Source, column_problem, scan
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.types import IntArray

_ENDINGS = (*CSV_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
_BLOCK = 1 << 20
_SALTS = 16
_NAMED = 10  # columns that a message lists


@dataclass(frozen=True)
class Lookup:
    """A public table to join by a key; nothing is read until a table is opened with it.

    Attributes:
        source: A CSV, Parquet or Arrow file, or a PyArrow table.
        on: The column of the data that holds the key.
        key: The column of the lookup that holds it, if it has another name.
    """

    source: "str | PathLike[str] | pa.Table"
    on: str
    key: str | None = None

    def load(self) -> "LookupTable":
        """Read the lookup; refuse one with a key that is there twice, or not at all."""
        key = self.on if self.key is None else self.key
        if isinstance(self.source, pa.Table):
            table, label = self.source, "the lookup table"
            digest = hashlib.sha256(_stream(table)).hexdigest()
            problem = _key_problem(table.schema, self.on, key)
        else:
            path = fspath(self.source)
            file = _open(path)
            label, problem = Path(path).name, _key_problem(file.header, self.on, key)
            digest = _digest(path)
            table = _read(file)
        if problem is not None:
            raise UnreadableData(f"the key column {key!r} of the lookup {label} {problem}")
        return _make(table, label, self.on, key, digest)


@dataclass(frozen=True)
class LookupTable:
    """A lookup in memory, ready to be joined; it may go to other processes.

    Attributes:
        label: What it is called.
        on: The column of the data that holds the key.
        key: The column of the lookup that held it.
        keys: The canonical texts of the keys.
        columns: All other columns, in the same order.
        digest: SHA-256 of the file.
    """

    label: str
    on: str
    key: str
    keys: Any
    columns: Any
    digest: str

    @property
    def text(self) -> str:
        """What was done, in words that may be published."""
        named = self.on if self.on == self.key else f"{self.on}={self.key}"
        return f"lookup {self.label} on {named} (sha256 {self.digest})"

    def find(self, texts: Any) -> IntArray:
        """Find the row of each key; -1 for a key that is not listed, or missing.

        >>> wards = Lookup(pa.table({"ward": ["A", "B"], "beds": [10, 20]}), on="ward").load()
        >>> wards.find(pa.array(["B", "C", None], pa.large_string()))
        array([ 1, -1, -1])
        """
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary
        rows = self._rows_of(distinct) if len(self.keys) else np.full(len(distinct), -1)
        indices = encoded.indices.cast(pa.int64()).fill_null(len(distinct))
        return np.asarray(np.append(rows, -1)[indices.to_numpy(zero_copy_only=False)])

    def take(self, name: str, rows: IntArray) -> Any:
        """Pick a column at some rows; what was not found is null."""
        return self.columns.column(name).take(pa.array(rows, mask=rows < 0))

    def _rows_of(self, texts: Any) -> IntArray:
        """Find texts by their hashes, and compare them: another text may have the same hash."""
        salt, hashes, order = self._index
        positions = np.searchsorted(hashes, hash_units(texts, salt))
        found = order[np.minimum(positions, len(order) - 1)]
        same = pc.equal(self.keys.take(pa.array(found)), texts).to_numpy(zero_copy_only=False)
        return np.where(same, found, -1)

    @cached_property
    def _index(self) -> tuple[bytes, Any, IntArray]:
        """Sort the keys by a hash under which no two are alike."""
        for number in range(_SALTS):
            salt = bytes([number])
            hashes = hash_units(self.keys, salt)
            order = np.argsort(hashes, kind="stable")
            if (hashes[order][1:] != hashes[order][:-1]).all():
                return salt, hashes[order], order
        raise InvalidParameter(f"the keys of {self.label} cannot be told apart")


def _key_problem(header: Any, on: str, key: str) -> str | None:
    """Describe what is wrong with the key column; a lookup is public, so its columns are named."""
    problem = column_problem(header, key)
    if problem is None or key in header.names:
        return problem
    named = ", ".join(map(repr, header.names[:_NAMED]))
    return f"is not there, only {named}; write --lookup-on {on}=KEY, with the name of the key there"


def _open(path: str) -> Source:
    if not Path(path).is_file():
        raise UnreadableData(f"there is no lookup file {path}")
    if path.endswith(PARQUET_ENDINGS):
        return ParquetSource(path)
    if path.endswith(ARROW_ENDINGS):
        return IpcSource(path)
    if not path.endswith(CSV_ENDINGS):
        raise UnreadableData(f"{path} is no lookup file; known endings: {', '.join(_ENDINGS)}")
    file = CsvSource(path)
    if file.has_odd_lines():
        raise UnreadableData(
            f"{path} has lines that do not fit its header, or whose quotes are not closed; mend it"
        )
    return file


def _read(file: Source) -> Any:
    names = file.header.names
    for name in names:
        if names.count(name) > 1:
            raise UnreadableData(f"the lookup {file.label} has the column {name!r} twice")
    batches = list(scan(file, names))
    if not batches:
        return file.header.empty_table()
    return pa.Table.from_batches(batches)


def _make(table: Any, label: str, on: str, key: str, digest: str) -> LookupTable:
    keys = to_texts(table.column(key), key)
    if keys.null_count:
        row = pc.index(keys.is_null(), pa.scalar(True)).as_py() + 1
        raise InvalidParameter(f"row {row:,} of the lookup {label} has no {key!r}; remove it")
    if pc.count_distinct(keys).as_py() < len(keys):
        _, first = np.unique(keys.dictionary_encode().indices.to_numpy(), return_index=True)
        repeats = np.setdiff1d(np.arange(len(keys)), first)
        raise InvalidParameter(
            f"row {repeats[0] + 1:,} of the lookup {label} repeats the {key!r} of an earlier row; "
            "a lookup has one row for each key"
        )
    others = [name for name in table.column_names if name != key]
    arrays = [_whole(table.column(name)) for name in others]
    columns = pa.RecordBatch.from_arrays(arrays, names=others)
    return LookupTable(label, on, key, keys, columns, digest)


def _whole(column: Any) -> Any:
    """Make one array of a column; a dictionary is written out, for each part has its own."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        column = column.cast(pa.large_string())
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _digest(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def _stream(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())

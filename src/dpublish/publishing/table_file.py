"""Write tables for users: the file's ending says in which format."""

import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from dpublish.core.folder.manifest import beside, require_outside
from dpublish.core.formulas import plain_type
from dpublish.errors import InvalidParameter
from dpublish.storage.files import require_writable, whole_file

ENDINGS = (".parquet", ".csv", ".arrow")


def require_new_file(output: str) -> Path:
    """Refuse an ending that is not known, and a file that exists."""
    path = Path(output)
    if path.suffix not in ENDINGS:
        raise InvalidParameter(f"{output}: name a file ending in .parquet, .csv or .arrow")
    require_writable(path)
    return path


def page_path(release: str, output: str | None, ending: str) -> Path:
    """Return where to write a page about a release: a new file, or the default beside it.

    A file that the user names is never replaced: it may be anything.  The default name is ours.
    """
    path = beside(release, ending) if output is None else Path(output)
    if path.suffix != Path(ending).suffix:
        raise InvalidParameter(f"{output}: name a file ending in {Path(ending).suffix}")
    require_outside(path, release)
    require_writable(path, replaces=output is None)
    return path


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in the format that the file's ending names, whole or not at all."""
    with whole_file(path) as draft:
        _write(table, draft, path.suffix)


def write_batches(
    batches: Iterable[pa.RecordBatch], path: Path, *, show: Callable[[int], None] | None = None
) -> int:
    """Write batches as they come, whole or not at all; return the number of rows.

    The format is the one that the file's ending names.  Columns that are dictionary-encoded
    are stored as their plain values.  While one batch is written the next one is made, so that
    at most three are in memory.  There is at least one batch, and all have the same fields.

    With `show`, it is told the number of rows so far.
    """
    coming = iter(batches)
    first = next(coming)
    schema, coming = first.schema, chain((first,), coming)
    del first  # a batch that is written is forgotten
    rows = 0
    with (
        whole_file(path) as draft,
        _BatchWriter(schema, draft, path.suffix) as writer,
        ThreadPoolExecutor(1) as other,
    ):
        writing = None
        for batch in coming:
            if writing is not None:
                writing.result()
            writing = other.submit(writer.write, batch)
            rows += batch.num_rows
            if show is not None:
                show(rows)
        if writing is not None:
            writing.result()
    return rows


def batches_as_bytes(batches: Iterable[pa.RecordBatch], ending: str) -> Iterator[bytes]:
    r"""Yield the bytes of a file of these batches as they come, for who sends it on.

    The first batch is drawn when the first bytes are wanted.

    >>> batch = pa.record_batch({"sex": ["F", "M"]})
    >>> b"".join(batches_as_bytes([batch], ".csv"))
    b'"sex"\n"F"\n"M"\n'
    """
    coming = iter(batches)
    first = next(coming)
    sink = _Passed()
    with _BatchWriter(first.schema, sink, ending) as writer:
        for batch in chain((first,), coming):
            writer.write(batch)
            yield sink.take()
    yield sink.take()


class _Passed(io.RawIOBase):
    """A file to write to, of which only what was written since the last look is kept."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return that it takes bytes."""
        return True

    def write(self, content: Any) -> int:
        """Keep some bytes."""
        self._parts.append(bytes(content))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        """Return how many bytes were written in all."""
        return self._size

    def close(self) -> None:
        """Stay open for the last look: a writer closes what it has written to."""

    def take(self) -> bytes:
        """Return the bytes since the last look."""
        found, self._parts = b"".join(self._parts), []
        return found


def _write(table: pa.Table, path: Path, ending: str) -> None:
    if ending == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif ending == ".csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, str(path), compression="uncompressed")


class _BatchWriter:
    """A file of one format to which batches are written."""

    def __init__(self, schema: pa.Schema, path: Path | io.RawIOBase, ending: str) -> None:
        self._lock = Lock()  # a second Ctrl-C must not close the file while another thread writes
        plain = pa.schema([field.with_type(plain_type(field.type)) for field in schema])
        self._schema, self._prepare = plain, _decoded
        if ending == ".parquet":
            import pyarrow.parquet as pq

            # Texts that come with their dictionary are written twice as fast.  The file stores
            # plain texts; only its copy of our schema would say otherwise.
            self._writer = pq.ParquetWriter(path, schema, store_schema=schema.equals(plain))
            self._schema, self._prepare = schema, _without_null_entries
        elif ending == ".csv":
            from pyarrow import csv

            self._writer = csv.CSVWriter(path, plain)
        else:
            self._writer = pa.ipc.new_file(str(path) if isinstance(path, Path) else path, plain)

    def __enter__(self) -> "_BatchWriter":
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write one batch."""
        columns = [self._prepare(column) for column in batch.columns]
        with self._lock:
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _without_null_entries(column: pa.Array) -> pa.Array:
    """Encode anew where a dictionary has null among its entries, which Parquet does not write."""
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        return column.dictionary_decode().dictionary_encode().cast(column.type)
    return column

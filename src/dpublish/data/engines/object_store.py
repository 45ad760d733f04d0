"""Rows of files that lie in an object store (`s3://`, `gs://`, `abfss://`, `hdfs://` ...).

A store is opened by Arrow, or by fsspec for schemes that Arrow does not know.  The same rules hold
as for files of this machine: one kind of file, hidden names are skipped, and a file that changes
while it is in use is noticed.  What a store says when it fails is not passed on, for it may
quote how it was logged in to.
"""

import gzip
import io
from collections.abc import Callable, Hashable, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from importlib import import_module
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from dpublish.data.batch import BATCH_ROWS, refuse_copy
from dpublish.data.engines.arrow_reader import ARROW_ENDINGS, PARQUET_ENDINGS
from dpublish.data.engines.csv_reader import CSV_ENDINGS, CsvSource
from dpublish.data.engines.file_state import FileState
from dpublish.data.engines.source import Rescan, Source, quietly
from dpublish.errors import UnreadableData
from dpublish.storage.public_address import refuse_secret

_ENDINGS = (*PARQUET_ENDINGS, *ARROW_ENDINGS, *CSV_ENDINGS)
_KNOWN = f"known endings: {', '.join(_ENDINGS)}"
_ADVICE = "set the variables or the file that the store's own tools read (AWS_PROFILE ...)"


def open_stored(address: str, wanted: Sequence[str] | None = None) -> list[Source]:
    """Open the files that an address, a pattern (`*`, `**`, `[a-c]`) or a folder stands for.

    Settings of the store follow a `?`, so a pattern cannot have one.
    """
    refuse_secret(address, _ADVICE)
    store = Store(*address.partition("?")[::2])
    return [_open_file(store, path, wanted) for path in store.find()]


class Store:
    """An object store, and where in it the rows are."""

    def __init__(self, address: str, settings: str = "") -> None:
        self._address = address
        scheme, _, rest = address.partition("://")
        host, _, key = rest.partition("/")
        self._root = f"{scheme}://{host}/"
        root = self._root + (f"?{settings}" if settings else "")
        message = f"{self._root} cannot be opened; check the address and its settings"
        self.system, inside = quietly(lambda: _open_system(root), message)
        self._inside = inside.rstrip("/")
        self._path = f"{self._inside}/{key}".rstrip("/")

    def __reduce__(self) -> NoReturn:
        refuse_copy("a store")

    def label(self, path: str) -> str:
        """Write the address of a file; without settings."""
        return self._root + path.removeprefix(self._inside).lstrip("/")

    def find(self) -> list[str]:
        """List the paths of all files that are meant."""
        message = (
            f"{self._address} cannot be read; check the address, the network and your rights: "
            f"{_ADVICE}"
        )
        return quietly(self._find, message)

    def look(self, path: str) -> Hashable | None:
        """Return the length of a file, when it was written, and its version."""
        try:
            version = self._find_version(path)
            found = self.system.get_file_info(path)
        except (OSError, pa.ArrowException):
            return None
        return (found.size, found.mtime_ns, version) if found.is_file else None

    def _find_version(self, path: str) -> Hashable:
        """Return what tells two versions of a file apart that were written in the same second."""
        if isinstance(self.system, fs.PyFileSystem):
            known = self.system.handler.fs
            known.invalidate_cache()
            return str(known.ukey(path))
        with self.system.open_input_file(path) as file:
            return (file.metadata() or {}).get("ETag")

    def open_bytes(self, path: str) -> io.BufferedIOBase:
        """Open a file for reading from its start, unpacking it if it is zipped."""
        file = io.BufferedReader(self.system.open_input_stream(path, compression=None), 1 << 20)
        return _Unpacked(file) if path.endswith(".gz") else file

    def _find(self) -> list[str]:
        found = self.system.get_file_info(self._path)
        if found.type == fs.FileType.File:
            return [found.path]
        if found.type == fs.FileType.Directory:
            files = [x for x in self._list(self._path) if _is_shown(x[len(self._path) :])]
            files = [file for file in files if file.endswith(_ENDINGS)]
            problem = f"the folder {self._address} holds no file of rows; {_KNOWN}"
        elif has_magic(self._path):
            files = self._match()
            problem = f"no file fits the pattern {self._address}"
        else:
            files, problem = [], f"there is no file {self._address}"
        if not files:
            raise UnreadableData(problem)
        endings = {ending for file in files for ending in _ENDINGS if file.endswith(ending)}
        if len(endings) > 1:
            kinds = ", ".join(sorted(endings))
            raise UnreadableData(f"{self._address} stands for files of several kinds ({kinds})")
        return sorted(files)

    def _list(self, folder: str) -> list[str]:
        found = self.system.get_file_info(
            fs.FileSelector(folder, allow_not_found=True, recursive=True)
        )
        return [file.path for file in found if file.type == fs.FileType.File]

    def _match(self) -> list[str]:
        pattern = self._path.split("/")
        fixed = next(number for number, part in enumerate(pattern) if has_magic(part))
        folder = "/".join(pattern[:fixed])
        rest = [file[len(folder) :].lstrip("/").split("/") for file in self._list(folder)]
        return ["/".join([folder, *parts]) for parts in rest if _fits(parts, pattern[fixed:])]


class _Unpacked(gzip.GzipFile):
    """A zipped file that closes what it is read from."""

    def __init__(self, packed: io.BufferedReader) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


class _StoredState(FileState):
    """What a store tells about a file; if that is nothing now, changes could not be noticed."""

    def __init__(self, store: Store, path: str) -> None:
        super().__init__(store.label(path), lambda _: store.look(path))
        if self._seen is None:
            raise UnreadableData(
                f"{store.label(path)} does not show its length and when it was written; check the "
                f"network and your rights: {_ADVICE}"
            )


class StoredSource:
    """Rows of one Parquet or Arrow file in a store, read by `read(file, columns)`."""

    rescan: Rescan = "cheap"

    def __init__(self, store: Store, path: str, kind: str, read: Callable[..., Any]) -> None:
        self.label = store.label(path)
        self._store, self._path = store, path
        self._read = read
        self._state = _StoredState(store, path)
        message = f"{self.label} is not {kind} file that can be read"
        self.header = quietly(self._find_header, message)

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return self._state.guard(self._scan(columns))

    def _scan(self, columns: Sequence[str]) -> Iterator[Any]:
        with self._store.system.open_input_file(self._path) as file:
            _, batches = self._read(file, columns)
            yield from batches

    def _find_header(self) -> Any:
        with self._store.system.open_input_file(self._path) as file:
            return self._read(file, None)[0]


def _open_file(store: Store, path: str, wanted: Sequence[str] | None) -> Source:
    label = store.label(path)
    if path.endswith(PARQUET_ENDINGS):
        return StoredSource(store, path, "a Parquet", _read_parquet)
    if path.endswith(ARROW_ENDINGS):
        return StoredSource(store, path, "an Arrow", _read_ipc)
    if path.endswith(CSV_ENDINGS):
        state = _StoredState(store, path)
        return CsvSource(label, wanted, state=state, open_bytes=lambda _: store.open_bytes(path))
    raise UnreadableData(f"{label} is of no known kind; {_KNOWN}")


def _read_parquet(file: Any, columns: Sequence[str] | None) -> tuple[Any, Iterator[Any]]:
    """Return names and types of a Parquet file, and an iterator over its rows."""
    header = pq.read_schema(file)
    if columns is None:
        return header, iter(())
    texts = [name for name in columns if pa.types.is_string(header.field(name).type)]
    rows = pq.ParquetFile(file, read_dictionary=texts, pre_buffer=True)
    return header, rows.iter_batches(BATCH_ROWS, columns=list(columns))


def _read_ipc(file: Any, columns: Sequence[str] | None) -> tuple[Any, Iterator[Any]]:
    """Return names and types of an Arrow file or a stored stream, and an iterator over its rows."""
    try:
        header, is_stream = pa.ipc.open_file(file).schema, False
    except pa.ArrowInvalid:
        file.seek(0)
        header, is_stream = pa.ipc.open_stream(file).schema, True
    if columns is None:
        return header, iter(())
    indices = [header.get_field_index(name) for name in columns]
    options = pa.ipc.IpcReadOptions(included_fields=indices)
    file.seek(0)
    if is_stream:
        return header, iter(pa.ipc.open_stream(file, options=options))
    reader = pa.ipc.open_file(file, options=options)
    return header, (reader.get_batch(number) for number in range(reader.num_record_batches))


def _open_system(root: str) -> tuple[Any, str]:
    """Open a file system by Arrow, or by fsspec; returns it with the path of its root."""
    try:
        system, inside = fs.FileSystem.from_uri(root)
        return system, str(inside)
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            raise
    scheme = root.partition(":")[0]
    try:
        fsspec = import_module("fsspec.core")
    except ImportError:
        raise UnreadableData(
            f"addresses {scheme}://... need fsspec; run: pip install fsspec, and what it needs "
            f"for {scheme}"
        ) from None
    system, inside = fsspec.url_to_fs(root)
    return fs.PyFileSystem(fs.FSSpecHandler(system)), str(inside)


def _is_shown(path: str) -> bool:
    return not any(part.startswith((".", "_")) for part in path.strip("/").split("/"))


def _fits(path: list[str], pattern: list[str]) -> bool:
    """Check whether a path fits a pattern, part by part; `**` stands for any folders."""
    if not path or not pattern:
        return not path and pattern in ([], ["**"])
    is_shown = not path[0].startswith(".") or pattern[0].startswith(".")
    if pattern[0] == "**":
        deeper = not path[0].startswith(".") and _fits(path[1:], pattern)
        return deeper or _fits(path, pattern[1:])
    return is_shown and fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])

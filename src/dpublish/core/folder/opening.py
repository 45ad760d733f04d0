"""Open the files of a release folder, which may come from a stranger.

Everything that is read from inside a release folder is read here.  Only regular files are
opened, never through a link and never by waiting for one; sizes are compared with limits before
anything is read, and what a table decodes to before it is decoded.

A column of a million bins is claimed in a few bytes, and takes hundreds of megabytes when its
schema is read.  So what the schemas in a head claim is added up first.
"""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpublish.core.folder.parquet_pages import measure_parquet
from dpublish.data.interval import MAX_LEAVES
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter

MOST_FILE_BYTES = 1 << 30
MOST_JSON_BYTES = 64 << 20
MOST_FILES = 1_000_000
MOST_DEPTH = 200
"""Most nested brackets of a JSON file."""
MOST_VALUES = 3_000_000
"""Most values (bins, categories) of all columns of all schemas of a release."""
_MOST_JSON_VALUES = 4_000_000
_FREE_BYTES = 256 << 20  # that the tables of any release may take when they are decoded
_MOST_RATIO = 128  # of what they may take beyond, to what they take on the disk
_BLOCK = 1 << 20
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_TYPES = {
    *(pa.int64(), pa.float64(), pa.string(), pa.dictionary(pa.int32(), pa.string())),
    *(pa.date32(), pa.timestamp("s"), pa.timestamp("ms")),  # Parquet has no whole seconds
}


class Fingerprint(NamedTuple):
    """What is known of a file's content: its digest and its size."""

    sha256: str
    size: int

    @classmethod
    def of(cls, content: bytes) -> "Fingerprint":
        """Compute the fingerprint of a content."""
        return cls(hashlib.sha256(content).hexdigest(), len(content))


class Allowance:
    """How many bytes the tables of one release may still take when they are decoded."""

    def __init__(self) -> None:
        self._left = _FREE_BYTES

    def earn(self, stored: int) -> None:
        """Add what a table of `stored` bytes on the disk may take."""
        self._left += _MOST_RATIO * stored

    def take(self, decoded: int) -> None:
        """Refuse a table that would take more than is left."""
        self._left -= decoded
        if self._left < 0:
            raise CorruptRelease(
                "the tables would take far more memory than their files suggest; nothing that "
                "dpublish publishes does: ask whoever sent the release"
            )


def read_file(folder: Path, name: str, limit: int = MOST_FILE_BYTES) -> bytes:
    """Read a regular file of a release folder; `name` is its path inside, with slashes."""
    with _opened(folder, name) as handle:
        size = os.fstat(handle).st_size
        if size > limit:
            raise CorruptRelease(f"{folder / name} is too large: {size:,} bytes, at most {limit:,}")
        with os.fdopen(os.dup(handle), "rb") as file:
            content = file.read(size + 1)
    if len(content) != size:
        raise CorruptRelease(f"{folder / name} is being written; try again")
    return content


def fingerprint(folder: Path, name: str) -> Fingerprint:
    """Compute the fingerprint of a regular file without holding it in memory."""
    digest, size = hashlib.sha256(), 0
    with _opened(folder, name) as handle:
        most = os.fstat(handle).st_size
        while size <= most and (block := os.read(handle, _BLOCK)):
            digest.update(block)
            size += len(block)
    return Fingerprint(digest.hexdigest(), size)


def read_json(folder: Path, name: str, limit: int = MOST_JSON_BYTES) -> Any:
    """Read a JSON file of a release folder that is neither too large nor nested too deeply."""
    return parse_json(read_file(folder, name, limit), folder / name)


def parse_json(content: bytes, name: Path) -> Any:
    """Read what a JSON file holds, unless it is nested too deeply or holds too many values."""
    if not _is_modest(content):
        raise CorruptRelease(f"{name} is nested too deeply or holds too many values")
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise CorruptRelease(f"{name} cannot be read: it is not JSON") from None


def read_parquet(content: bytes, allowance: Allowance) -> pa.Table:
    """Decode a table, if that takes no more memory than its allowance says."""
    allowance.earn(len(content))
    allowance.take(measure_parquet(content).decoded_bytes)
    try:
        schema = pq.read_schema(pa.BufferReader(content))
        if not set(schema.types) <= _TYPES:
            raise CorruptRelease("a table holds columns of types that dpublish does not publish")
        texts = [field.name for field in schema if field.type == pa.string()]
        # Without threads: a release is small, and none are left running when the process ends.
        with pq.ParquetFile(
            pa.BufferReader(content), read_dictionary=texts, pre_buffer=False
        ) as file:
            table = file.read(use_threads=False)
        return _with_texts(table, set(texts), allowance)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        raise CorruptRelease("a table is no Parquet file as dpublish writes it") from None


def parquet_bytes(table: pa.Table) -> bytes:
    """Encode a table so that `read_parquet` takes it back, whatever a library's defaults are."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", version="2.6", data_page_version="1.0")
    return bytes(sink.getvalue())


def list_files(folder: Path) -> dict[str, int]:
    """List the regular files below a release folder with their sizes; refuse anything else."""
    found: dict[str, int] = {}
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        for entry in _entries(folder, inside):
            name = f"{inside}{entry.name}"
            kind = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(kind.st_mode):
                waiting.append(f"{name}/")
            elif stat.S_ISREG(kind.st_mode):
                found[name] = kind.st_size
            else:
                raise _not_regular(folder, name)
            if len(found) + len(waiting) > MOST_FILES:
                raise CorruptRelease(f"{folder} holds too many files, more than {MOST_FILES:,}")
    return dict(sorted(found.items()))


def list_names(folder: Path) -> list[str]:
    """List the names at the top of a release folder, whatever they stand for."""
    return sorted(entry.name for entry in _entries(folder, ""))


def has_file(folder: Path, name: str) -> bool:
    """Return whether a release folder has a regular file of this name."""
    with suppress(CorruptRelease), _opened(folder, name):
        return True
    return False


def require_modest_claims(head: Any) -> None:
    """Refuse a head whose schemas claim more values than any release has; reads plain values."""
    total = 0
    for claim in _claims(head):
        total += claim
        if total > MOST_VALUES:
            raise CorruptRelease(
                f"the columns of the release claim more than {MOST_VALUES:,} values; nothing "
                "that dpublish publishes does: ask whoever sent it"
            )


def require_loadable(schema: Schema, parts: int = 0) -> None:
    """Refuse, before anything is paid for, a schema that could not be read back from a release.

    `parts` says how many parts of the release may repeat the schema.
    """
    values = sum(column.size for column in schema.columns) * (1 + parts)
    if values > MOST_VALUES:
        raise InvalidParameter(
            f"the columns have {values:,} values in all, over all parts of the release, and a "
            f"release is opened only if they have at most {MOST_VALUES:,}; take fewer bins or "
            "leave columns out of the schema"
        )


def _entries(folder: Path, inside: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder / inside) as found:
            return list(found)
    except OSError:
        raise CorruptRelease(f"{folder / inside} cannot be listed") from None


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[int]:
    """Open a regular file below a folder, following no link on the way."""
    *above, last = _parts(folder, name)
    handles = []
    try:
        handles.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
        for part in above:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            handles.append(os.open(part, flags, dir_fd=handles[-1]))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        handles.append(os.open(last, flags, dir_fd=handles[-1]))
        if not stat.S_ISREG(os.fstat(handles[-1]).st_mode):
            raise _not_regular(folder, name)
        yield handles[-1]
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO) or _is_link(folder, name):
            raise _not_regular(folder, name) from None
        if error.errno == errno.ENOENT:
            raise CorruptRelease(f"{folder / name} is missing; ask for the release again") from None
        raise CorruptRelease(
            f"{folder / name} cannot be read ({error.strerror or 'input/output error'})"
        ) from None
    finally:
        for handle in handles:
            os.close(handle)


def _parts(folder: Path, name: str) -> list[str]:
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise CorruptRelease(f"{folder} names a file outside itself")
    return parts


def _is_link(folder: Path, name: str) -> bool:
    """Return whether a part of the path is a link; only to say what is wrong."""
    parts = name.split("/")
    return any((folder / "/".join(parts[: k + 1])).is_symlink() for k in range(len(parts)))


def _not_regular(folder: Path, name: str) -> CorruptRelease:
    return CorruptRelease(
        f"{folder / name} is a link or no regular file; a release holds its own files"
    )


def _is_modest(content: bytes) -> bool:
    """Return whether JSON stays within the limits; looks at signs only."""
    if sum(map(content.count, (b",", b"[", b"{"))) > _MOST_JSON_VALUES:
        return False
    depth = 0
    for match in _BRACKETS.finditer(content):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match[0], 0)
        if depth > MOST_DEPTH:
            return False
    return True


def _with_texts(table: pa.Table, texts: set[str], allowance: Allowance) -> pa.Table:
    """Write out texts that were read as references to a dictionary, if there is room for them."""
    for index, field in enumerate(table.schema):
        if field.name not in texts or not pa.types.is_dictionary(field.type):
            continue
        column = table.column(index)
        for chunk in column.chunks:
            lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
            allowance.take(int(pc.sum(lengths).as_py() or 0))
        plain = column.cast(pa.string())
        table = table.set_column(index, pa.field(field.name, pa.string()), plain)
    return table


def _claims(head: Any) -> Iterator[int]:
    waiting = [head]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield _claim(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _claim(column: dict[str, Any]) -> int:
    """Return how many values a column claims without listing them."""
    bins, bounds = column.get("bins"), column.get("bounds")
    if isinstance(bins, int):
        return max(bins, 0)
    if isinstance(bins, str) and isinstance(bounds, list):
        return _claim_periods(bins, bounds)
    if isinstance(bounds, list) and all(isinstance(end, int) for end in bounds):
        return max(bounds, default=0) - min(bounds, default=0)
    return 0


def _claim_periods(period: str, bounds: list[Any]) -> int:
    """Return how many periods lie between two dates, at most; the years alone tell enough."""
    years = [int(end[:4]) for end in bounds if isinstance(end, str) and end[:4].isdecimal()]
    per_year = {"hour": 8_784, "day": 366, "week": 53, "month": 12, "quarter": 4, "year": 1}
    span = max(years, default=0) - min(years, default=0) + 1
    return min(max(span, 0) * per_year.get(period, 0), MAX_LEAVES)

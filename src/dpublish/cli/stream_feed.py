"""Where `dpublish stream next` gets its snapshots from: files, folders, lists, standard input."""

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from fnmatch import fnmatch
from glob import has_magic
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from dpublish.data.engines.arrow_reader import ARROW_ENDINGS, PARQUET_ENDINGS
from dpublish.data.engines.csv_reader import CSV_ENDINGS
from dpublish.errors import InputError, InvalidParameter, UnreadableData
from dpublish.methods.streams.listing import natural_key

_ENDINGS = (*PARQUET_ENDINGS, *ARROW_ENDINGS, *CSV_ENDINGS)
_UNFINISHED = (".tmp", ".part", ".partial")


def label_of(path: Path) -> str:
    """Name a snapshot after its file.

    >>> label_of(Path("taxis/2024-05-01T10.csv.gz"))
    '2024-05-01T10'
    """
    ending = max((e for e in _ENDINGS if path.name.endswith(e)), key=len, default=path.suffix)
    return path.name.removesuffix(ending)


def require_source(source: str) -> None:
    """Refuse the name of a file that is not there; a pattern may stand for several."""
    if not has_magic(source) and not Path(source).exists():
        raise UnreadableData(f"there is no file {source}")


def files_in(folder: Path, pattern: str | None) -> list[Path]:
    """List the snapshots in a folder in the natural order of their labels.

    What is hidden, or called as programs call what they have not finished, is left out.
    """
    try:
        found = [
            path for path in folder.iterdir() if _is_wanted(path.name, pattern) and path.is_file()
        ]
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read ({error.strerror})") from None
    return sorted(found, key=lambda path: (natural_key(label_of(path)), path.name))


def _is_wanted(name: str, pattern: str | None) -> bool:
    if name.startswith(".") or name.endswith(_UNFINISHED):
        return False
    return name.endswith(_ENDINGS) if pattern is None else fnmatch(name, pattern)


def watched(folder: Path, pattern: str | None, poll: float) -> Iterator[Path | None]:
    """Yield new files of a folder as they come, for ever; None when there is nothing to do.

    A file is taken when it has not changed from one look to the next, or for as long as that;
    those behind it in the order wait for it.
    """
    done: set[Path] = set()
    before: dict[Path, tuple[int, int]] = {}
    while True:
        looks: dict[Path, tuple[int, int]] = {}
        for path in files_in(folder, pattern):
            if path in done:
                continue
            look = looks[path] = _look(path)
            if before.get(path) != look and time.time() - look[1] / 1e9 < poll:
                break
            yield path
            done.add(path)
        before = looks
        yield None
        time.sleep(poll)


def _look(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, time.time_ns()
    return status.st_size, status.st_mtime_ns


def listed(names: str) -> Iterator[Path]:
    """Yield the files that a list names, one a line, as lines come; a dash is standard input."""
    try:
        with (
            nullcontext(sys.stdin) if names == "-" else Path(names).open(encoding="utf-8") as lines
        ):
            for line in lines:
                if line.strip():
                    yield _file(names, Path(line.strip()))
    except (OSError, UnicodeDecodeError):
        raise UnreadableData(f"the list {names} cannot be read") from None


def _file(names: str, path: Path) -> Path:
    if path.is_dir():
        raise InvalidParameter(
            f"the list {names} names the folder {path}; list files, or give the folder itself"
        )
    return path


def standard_input() -> BufferedIOBase:
    """Return standard input, from which rows are read as they come; they are written nowhere."""
    if sys.stdin is None:
        raise UnreadableData("standard input is closed; pipe the CSV lines of a snapshot into it")
    return cast("BufferedIOBase", sys.stdin.buffer)

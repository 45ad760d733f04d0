"""Where `dpublish stream next` gets its snapshots from: files, folders, lists, standard input."""

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.publishing.streams.snapshots import files_in


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

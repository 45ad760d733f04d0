"""Carriage returns that end no line, made harmless before a CSV file is parsed.

A line ends in LF or CR LF.  Common writers (Python's before 3.13, and pandas with it) put a
CR alone into a field without quoting it, and parsers take it for a line end.  One person's
text could then smuggle any number of records into the table.  So such a CR is read as a
space, wherever it stands.
"""

import gzip
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_BLOCK = 1 << 23
_LONE_RETURN = re.compile(rb"\r(?!\n)")


def open_bytes(path: str) -> IO[bytes]:
    """Open a file for reading, unpacking it if it is zipped."""
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


@contextmanager
def without_lone_returns(path: str) -> Iterator[str]:
    """Give a path to the same text without them: the file itself, if it has none.

    Otherwise it is a copy that only this user can read, removed at the end.
    """
    if not any(_LONE_RETURN.search(block) for block in read_blocks(path)):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="dpublish-") as folder:
        copy = Path(folder, "rows.csv")
        with copy.open("wb") as file:
            for block in read_blocks(path):
                file.write(_LONE_RETURN.sub(b" ", block))
        yield str(copy)


def read_blocks(path: str) -> Iterator[bytes]:
    """Read a file in blocks, none of which ends between CR and LF."""
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            while block.endswith(b"\r") and (more := file.read(1)):
                block += more
            yield block

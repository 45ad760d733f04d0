"""What writers of release folders share: JSON, waiting for the disk, and the times of files.

The time of a file is published with it.  The true one would tell when a release ended, how long
it took, and so about how many rows there are.  Files get the time of their receipt instead.
"""

import json
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from dpublish.privacy.receipt import Receipt


def json_bytes(value: Any) -> bytes:
    """Write plain values as the content of a JSON file."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def file_time(receipt: Receipt) -> float:
    """Return the time that files of a release show, in seconds since 1970."""
    with suppress(ValueError, OverflowError):
        return max(datetime.fromisoformat(receipt.created).timestamp(), 0.0)
    return 0.0


def set_times(time: float, *paths: Path) -> None:
    """Give files or folders a time."""
    for path in paths:
        os.utime(path, (time, time), follow_symlinks=False)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

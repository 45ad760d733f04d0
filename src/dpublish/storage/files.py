"""Files that are written whole or not at all, wait for the disk, and show the time they are told.

The time of a file is published with it.  The true one would show when a release ended, how long
it took, and so about how many rows there are.  Files get the time of their receipt instead.
"""

import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from dpublish.errors import InputError, InvalidParameter

PARTIAL = ".partial"
"""How the names of drafts end; a draft is renamed when it is whole."""


def json_bytes(value: Any) -> bytes:
    """Write plain values as the content of a JSON file."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def file_time(created: str) -> float:
    """Return the time that files of a release created then show, in seconds since 1970.

    >>> file_time("1970-01-01T00:01:00+00:00"), file_time("no time")
    (60.0, 0.0)
    """
    with suppress(ValueError, OverflowError):
        return max(datetime.fromisoformat(created).timestamp(), 0.0)
    return 0.0


def set_times(time: float, *paths: Path) -> None:
    """Let files or folders show a time."""
    for path in paths:
        os.utime(path, (time, time), follow_symlinks=False)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def printable(path: Path) -> str:
    r"""Write a path in one line, whatever it is made of.

    >>> printable(Path("two\nlines"))
    'two\\nlines'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))


def require_writable(path: Path, *, replaces: bool = False) -> None:
    """Refuse a name under which no new file can be put; `replaces` allows an old file there."""
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder; create it first")
    if path.exists() and not (replaces and path.is_file()):
        reason = "is no ordinary file" if replaces else "exists already"
        raise InvalidParameter(f"{path} {reason}; name a file that does not exist yet")


@contextmanager
def whole_file(path: Path, *, replaces: bool = False) -> Iterator[Path]:
    """Yield a name beside `path` to write to; the draft is renamed to `path` when it is whole.

    A new file replaces an old one, so that a link there leads nowhere.  Whatever is interrupted
    leaves nothing.
    """
    require_writable(path, replaces=replaces)
    draft = path.with_name(f".{secrets.token_hex(8)}{PARTIAL}")
    try:
        yield draft
        sync(draft)
        require_writable(path, replaces=replaces)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        reason = error.strerror or "input/output error"
        raise InputError(f"cannot write {path} ({reason}); nothing is left there") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path` to write to; it is renamed to `path` when it is whole.

    Whatever is interrupted leaves nothing.
    """
    require_writable(path)
    draft = path.absolute().with_name(f".{secrets.token_hex(8)}{PARTIAL}")
    try:
        draft.mkdir()
        yield draft
        for file in draft.iterdir():
            sync(file)
        sync(draft)
        require_writable(path)  # an empty folder that appeared meanwhile would be replaced
        draft.rename(path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        reason = error.strerror or "input/output error"
        raise InputError(f"cannot write {path} ({reason}); nothing is left there") from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def write_text(path: Path, text: str, *, replaces: bool = False) -> None:
    """Write a text file whole or not at all; halves of characters become "?"."""
    with whole_file(path, replaces=replaces) as draft:
        draft.write_text(text, "utf-8", "replace", newline="")


def write_file(
    path: Path, content: bytes, time: float | None = None, *, shared: bool = False
) -> None:
    """Write a file of a folder that one process writes, whole or not at all; wait for the disk.

    If another process may write it at the same moment (`shared`), each writes a draft of its own.

    With `time`, the file and its folder show that time instead of when they were written.
    """
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
        if time is not None:
            set_times(time, path.parent.parent)
        sync(path.parent.parent)
    name = secrets.token_hex(8) if shared else path.name
    draft = path.with_name(f".{name}{PARTIAL}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            if time is not None:
                set_times(time, draft)
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if time is not None:
        set_times(time, path.parent)
    sync(path.parent)


def others_may_write(path: Path, what: str) -> list[str]:
    """List how other users of the machine could write or replace a file, which is `what`."""
    if os.name != "posix":
        return []
    folders = dict.fromkeys((path.parent, path.resolve().parent))  # two, if it is a link
    found = []
    for each in (path, *folders):
        with suppress(OSError):  # that it is gone is reported elsewhere
            if who := _writers(each.stat()):
                named = what if each == path else f"the folder of {what}"
                found.append(f"{who} may write {named}: chmod go-w {printable(each)}")
    return found


def _writers(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return ""  # there everyone can remove their own files only
    if status.st_mode & stat.S_IWOTH:
        return "everyone"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status):
        return "its group"
    return ""


def _is_own_group(status: os.stat_result) -> bool:
    """Whether the group has no member but the owner, as where each user has one."""
    import grp
    import pwd

    try:
        group, owner = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return False
    return group.gr_name == owner and set(group.gr_mem) <= {owner}

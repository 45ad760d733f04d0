"""Write a file whole or not at all, however the writing ends."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpublish.errors import InputError, InvalidParameter
from dpublish.storage.writing import sync


def require_writable(path: Path, *, replaces: bool = False) -> None:
    """Refuse a name under which no new file can be put; `replaces` allows an old file there."""
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder; create it first")
    if path.exists() and not (replaces and path.is_file()):
        reason = "is no ordinary file" if replaces else "exists already"
        raise InvalidParameter(f"{path} {reason}; name a file that does not exist yet")


@contextmanager
def whole_file(path: Path, *, replaces: bool = False) -> Iterator[Path]:
    """Give a name beside `path` to write to; the file takes its place when it is whole.

    A new file takes the place of an old one, so that a link there leads nowhere.  Whatever is
    interrupted leaves nothing.
    """
    require_writable(path, replaces=replaces)
    draft = path.with_name(f".{secrets.token_hex(8)}.partial")
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


def write_text(path: Path, text: str, *, replaces: bool = False) -> None:
    """Write a text file whole or not at all; halves of characters become question marks."""
    with whole_file(path, replaces=replaces) as draft:
        draft.write_text(text, "utf-8", "replace", newline="")

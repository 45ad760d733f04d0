"""How a ledger's file is reached: which files will do, how they are opened, what goes wrong.

The database keeps a rollback journal (`journal_mode=DELETE`) and waits for the disk and its
folder (`synchronous=EXTRA`).  A write-ahead log would be faster, but the newest entries would
live in a second file that is protected by locks alone; and a process that merely copies its
own ledger drops those locks (POSIX), after which another one may remove the log.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.ledger.chain import FORMAT, Entry
from dpublish.ledger.tables import APPLICATION, lay_out

_MISSING = "does not exist; `dpublish ledger create` makes one"
_ADVICE = {
    sqlite3.SQLITE_BUSY: "is busy: another process kept it locked; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: you need to be allowed to write it and its folder",
    sqlite3.SQLITE_READONLY: "cannot be written: make the file and its folder writable",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full, so this entry was not made",
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk is full or failing; "
        "`dpublish ledger show` tells what stands"
    ),
    sqlite3.SQLITE_NOTADB: "is not a ledger; `dpublish ledger create` makes one",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore a copy and verify it against your receipts",
}


def unavailable(path: Path, advice: str) -> LedgerUnavailable:
    """Make the error for a file that cannot be used, in one line."""
    return LedgerUnavailable(f"the ledger {one_line(path)} {advice}")


def one_line(path: Path) -> str:
    """Write a path so that it can be shown, whatever it is made of."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))


def identify(path: Path, if_missing: str = _MISSING) -> tuple[int, int, int]:
    """Say which file this is, to this process; refuse what cannot be a ledger's file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise unavailable(path, if_missing) from None
    except PermissionError:
        raise unavailable(path, "cannot be reached: you may not enter its folder") from None
    except OSError as error:
        raise unavailable(path, f"cannot be reached: {error.strerror}") from None
    except ValueError:
        raise unavailable(path, "cannot be reached: no file can have this name") from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no ordinary file"
        raise unavailable(path, f"is {kind}; `dpublish ledger create` makes a ledger")
    if status.st_nlink > 1:
        # After a crash the journal lies beside one of the names only.
        raise unavailable(path, "has a second name (a hard link); remove one of the two")
    return status.st_dev, status.st_ino, os.getpid()


def others_may_write(path: Path) -> list[str]:
    """Say how other users of the machine could write or replace the file."""
    if os.name != "posix":
        return []
    folders = dict.fromkeys((path.parent, path.resolve().parent))  # two, if it is a link
    found = []
    for place in (path, *folders):
        with suppress(OSError):  # that it is gone is said elsewhere
            if who := _writers(place.stat()):
                what = "the ledger" if place == path else "the folder of the ledger"
                found.append(f"{who} may write {what}: chmod go-w {one_line(place)}")
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


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's complaints into advice."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite quotes damaged names in its own messages
        raise unavailable(path, _ADVICE[sqlite3.SQLITE_CORRUPT]) from error
    except sqlite3.IntegrityError as error:
        raise LedgerTampered(f"the ledger {path} refuses the entry: {error}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest are details of it
        raise unavailable(path, _ADVICE.get(code, f"cannot be used: {error}")) from error


def create_file(path: Path, first: Entry) -> None:
    """Make a new file that holds its `first` entry."""
    try:
        # Fingerprints and purposes are the owner's alone, hence the mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise unavailable(path, "exists already; a ledger is never replaced") from None
    except OSError as error:
        raise unavailable(path, f"cannot be created: {error.strerror}") from None
    except ValueError:
        raise unavailable(path, "cannot be created: no file can have this name") from None
    try:
        with closing(_connect(path, 0)) as connection:
            lay_out(connection, first)
    except (sqlite3.Error, LedgerUnavailable) as error:
        for leftover in ("", "-journal"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)
        raise unavailable(path, f"cannot be created: {error}") from None


def open_file(path: Path, wait_seconds: float) -> sqlite3.Connection:
    """Open a ledger; a file that is something else stays as it was."""
    with explained(path):
        connection = _connect(path, wait_seconds)
        try:
            _require_ledger(path, connection)
            # An earlier version, or some tool, may have given it a log: take that in.
            connection.execute("PRAGMA journal_mode = DELETE")
            require_one_file(path, connection)
        except BaseException:
            connection.close()
            raise
    return connection


def require_one_file(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a ledger whose newest entries would live in a write-ahead log."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "delete":
        raise unavailable(path, "has a write-ahead log: open it anew where it may be written")


def _require_ledger(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise unavailable(path, "is some other database, or its creation was interrupted")
    if version < 1:
        raise unavailable(path, f"is not a ledger: there is no format {version}")
    if version > FORMAT:
        raise unavailable(path, f"has format {version}, newer than {FORMAT}: upgrade dpublish")
    if version < FORMAT:
        raise unavailable(
            path,
            f"has format {version}, whose grants do not say what they hide: keep it, and make a "
            "new one whose caps are what is left here",
        )


def _connect(path: Path, wait_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",  # reads only, where writing is not allowed
        uri=True,
        timeout=wait_seconds,
        isolation_level=None,  # transactions are begun by hand, with the lock they need
        check_same_thread=False,  # the store's own lock serves
    )
    # Bytes that are not text must still be readable, to be found wanting.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS does not wait for the disk
        connection.execute("SELECT count(*) FROM sqlite_master")  # the first look at the file
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection

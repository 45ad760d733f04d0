"""What was asked to be spent, kept on the disk: each form pays once, whatever the browser does.

A form that spends carries a key.  The key is written here before the ledger is asked, and a key
that is here already starts nothing: a second click, a reload, a request that a browser repeats
after a lost connection, and a form that was sent again after the studio was killed, all lead to
the page of the first.  Two tabs with the same request have the same key.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from dpublish.errors import InputError, InvalidParameter
from dpublish.storage.sqlite import Database, FileKind

BEGUN, DONE, FAILED = "begun", "done", "failed"
"""The states of a request; one that has begun in a process that ended was interrupted."""
ASKED_BEFORE = (
    "just this was published before; tick the box if you want it once more, at its price; "
    "nothing was spent"
)
FILE = "studio.db"
_FIELDS = "key, content, time, dataset, title, epsilon, output, state, message, process"
_SAME = "WHERE content = ? AND state != ?"
_KIND = FileKind(
    noun="the studio's file",
    content="the studio's list of requests",
    maker="dpublish studio",
    application=0x6450_4431,  # "dPD1"
    format=1,
    tables=(
        """CREATE TABLE spends (key TEXT PRIMARY KEY, content TEXT NOT NULL, time TEXT NOT NULL,
        dataset TEXT NOT NULL, title TEXT NOT NULL, epsilon TEXT NOT NULL, output TEXT NOT NULL,
        state TEXT NOT NULL, message TEXT NOT NULL, process TEXT NOT NULL)""",
        "CREATE INDEX of_content ON spends (content)",
    ),
    error=InputError,
)


@dataclass(frozen=True)
class Spend:
    """A request that spends, and what became of it.

    Attributes:
        key: What its form carried.
        content: All that was asked for, as text; the same request has the same content.
        time: When it was sent.
        dataset: Who pays.
        title: What it is, in words.
        epsilon: What it costs.
        output: The name of the release, or of what else it makes.
        state: `begun`, `done` or `failed`.
        message: Why it failed.
        process: In which run of the studio it began.
    """

    key: str
    content: str
    time: str
    dataset: str
    title: str
    epsilon: str
    output: str
    state: str = BEGUN
    message: str = ""
    process: str = ""


class _File(Database):
    kind = _KIND


class Spends:
    """The requests that spend, of one folder of releases.

    >>> import tempfile; spends = Spends(Path(tempfile.mkdtemp()))
    >>> key = spends.key_for("ages of people")
    >>> spend = Spend(key, "ages of people", now(), "people", "histogram", "0.5", "ages")
    >>> spends.key_for("ages of people") == key, spends.begin(spend), spends.begin(spend)
    (True, True, False)
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        if not path.exists():
            _KIND.create(path, lambda connection: None)
        self._file = _File(path)
        self._drafts: dict[str, str] = {}
        self._lock = Lock()
        self.process = secrets.token_hex(8)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def key_for(self, content: str) -> str:
        """Return the key of a form that asks for `content`; the same one until it is sent."""
        with self._lock:
            return self._drafts.setdefault(content, secrets.token_urlsafe(24))

    def is_open(self, content: str, key: str) -> bool:
        """Whether a form with this key, which was not sent before, asks for just this."""
        with self._lock:
            return self._drafts.get(content) == key

    def begin(self, spend: Spend, *, again: bool = False) -> bool:
        """Write a request down before it is carried out; False if that was done before.

        Refuses what was asked for before, by another studio of the folder for instance, unless
        it is wanted `again`; and a name that a release gets which is not published yet.
        """
        row = replace(spend, state=BEGUN, message="", process=self.process)
        with self._lock, self._file.writing():
            if self._rows("WHERE key = ?", spend.key):
                return False
            if not again and self._rows(_SAME, spend.content, FAILED):
                raise InvalidParameter(ASKED_BEFORE)
            mine = "WHERE output = ? AND state = ? AND process = ?"
            if self._rows(mine, spend.output, BEGUN, self.process):
                raise InvalidParameter(
                    f"another release is about to be called {spend.output}; choose another name; "
                    "nothing was spent"
                )
            self._file.change(
                f"INSERT INTO spends ({_FIELDS}) VALUES (?,?,?,?,?,?,?,?,?,?)",
                *(getattr(row, name) for name in _FIELDS.split(", ")),
            )
            self._drafts.pop(spend.content, None)
        return True

    def end(self, key: str, state: str, message: str = "") -> None:
        """Note what became of a request."""
        with self._file.writing():
            self._file.change(
                "UPDATE spends SET state = ?, message = ? WHERE key = ?", state, message, key
            )

    def find(self, key: str) -> Spend | None:
        """Find a request by its key."""
        return next(iter(self._read("WHERE key = ?", key)), None)

    def same(self, content: str) -> list[Spend]:
        """List the requests that asked for just this, but for those that failed."""
        return self._read(f"{_SAME} ORDER BY time", content, FAILED)

    def interrupted(self) -> list[Spend]:
        """List the requests that began in a run of the studio that did not end them."""
        return self._read("WHERE state = ? AND process != ?", BEGUN, self.process)

    def _read(self, where: str, *values: str) -> list[Spend]:
        with self._file.reading():
            return self._rows(where, *values)

    def _rows(self, where: str, *values: str) -> list[Spend]:
        found = self._file.rows(f"SELECT {_FIELDS} FROM spends {where}", *values)
        return [Spend(*row) for row in found]


def now() -> str:
    """Return the time, as requests are stamped with it."""
    return datetime.now(UTC).isoformat(timespec="seconds")

"""PostgreSQL schemas that lose nothing: the counterpart of `storage/sqlite.py` on a server.

A database of one kind is one schema.  Every change is one transaction that takes the schema's
advisory lock before it reads, so that one writer is at work at a time, on whichever machine.
Each statement of a writing transaction sees all that was committed before it (READ COMMITTED);
after the lock that is all there is.  A reading transaction sees one moment (REPEATABLE READ).

What a transaction needs is set within it, so that neither the defaults of a role nor a pool of
connections between here and the server can weaken it: commits wait for the disk, and for the
standbys that the server demands (`synchronous_commit` is `on` or stricter).

A connection that is lost before a transaction has begun is made anew.  One that is lost within
a transaction has changed nothing.  One that is lost while it commits leaves open whether it did:
then the lock is taken once more, which waits until the old transaction is over on the server,
and `_stands` looks for what was written.  So the answer is final: what is not there then will
never be.  What is there may not have reached the standbys yet, so another commit waits for them.
If the server cannot be asked, the error says that it is unknown.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from dpublish.errors import DPublishError, InputError, InvalidParameter
from dpublish.storage.address import Address
from dpublish.storage.database import OpenDatabase

if TYPE_CHECKING:
    import psycopg

_ADVICE = {
    "55P03": "is busy: another process kept it locked; try again",
    "40001": "is busy: another process changed it at the same moment; try again",
    "40P01": "is busy: another process waits for this one; try again",
    "25006": "cannot be written here: the server is a standby, or read-only; name the primary",
    "42501": "cannot be used: your role has not been granted what this needs",
    "53100": "cannot be written: the server's disk is full, so nothing was changed",
    "57014": "is too slow: the server ended the statement (statement_timeout); nothing was changed",
}
_CREATE_SECONDS = 30
_PAUSE = 0.1  # seconds between two attempts to reach the server again
_IDLE_SECONDS = 60  # how long a process that hangs within a transaction may keep the lock
_CATALOG = "SET LOCAL search_path = pg_catalog, pg_temp"
"""Where nothing that others have made can stand in for the server's own functions."""
_SCHEMA = """SELECT pg_catalog.obj_description(n.oid, 'pg_namespace'::pg_catalog.name),
    pg_catalog.has_schema_privilege(n.oid, 'USAGE'::pg_catalog.text)
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname OPERATOR(pg_catalog.=) %s::pg_catalog.name"""
# It writes to the log, so that its commit waits until the standbys have all that is before it.
_MARK_LOG = (
    "SELECT pg_catalog.pg_logical_emit_message("
    "true, 'dpublish'::pg_catalog.text, ''::pg_catalog.text)"
)
_STRICTEST = "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'"
_DURABLE = {"fsync": "on", "full_page_writes": "on", "session_replication_role": "origin"}
"""What a server must have set; without them a crash may lose commits, or triggers do not run."""


@dataclass(frozen=True)
class SchemaKind:
    """A kind of database on a server: how it is recognized, and how messages speak of it.

    Attributes:
        noun: What messages call it: `the ledger`.
        content: What it is, where another schema is not: `a ledger`.
        maker: The command that makes one.
        mark: How the comment on its schema begins.
        format: The version that this version of dpublish writes.
        tables: The statements that make its tables and triggers; `{schema}` is the schema's name.
        error: The error for a database that cannot be used.
        newest: The newest version that this version of dpublish reads; `format` if None.
        uncertain: The error for a change that may stand or be lost; `error` if None.
        tampered: The error for a change that the tables refuse.
        advice: What to say, by SQLSTATE, instead of the usual advice.
        look: How to find out what stands, where the outcome of a change is unknown.
        is_secret: Whether no message may repeat what the server says, which may quote content.
    """

    noun: str
    content: str
    maker: str
    mark: str
    format: int
    tables: tuple[str, ...]
    error: type[DPublishError]
    newest: int | None = None
    uncertain: type[DPublishError] | None = None
    tampered: type[DPublishError] | None = None
    advice: Mapping[str, str] = field(default_factory=dict)
    look: str = "look before you repeat it"
    is_secret: bool = False

    def unusable(self, address: Address, advice: str) -> DPublishError:
        """Build the error for a database that cannot be used, in one line."""
        return self.error(f"{self.noun} {address.shown} {advice}")

    def explain(self, address: Address, error: "psycopg.Error") -> DPublishError:
        """Turn what the server says into advice."""
        code = error.sqlstate or ""
        said = error.diag.message_primary or _one_line(str(error))
        if code.startswith("23") and self.tampered is not None:
            return self.tampered(f"{self.noun} {address.shown} refuses the entry: {said}")
        if is_lost(error):
            return self.unusable(address, f"cannot be reached: {_one_line(str(error))}")
        otherwise = "is damaged" if self.is_secret else f"cannot be used: {said}"
        return self.unusable(address, {**_ADVICE, **self.advice}.get(code, otherwise))

    @contextmanager
    def explained(self, address: Address) -> Iterator[None]:
        """Turn errors of the server and of the way to it into advice."""
        driver = load_driver()
        try:
            yield
        except driver.Error as error:
            raise self.explain(address, error) from (None if self.is_secret else error)

    def create(
        self,
        address: Address,
        fill: Callable[["psycopg.Connection[Any]"], None],
        stands: Callable[["psycopg.Connection[Any]"], bool | None] = lambda _: None,
    ) -> None:
        """Make a new schema whose tables hold what `fill` writes, at once or not at all.

        `stands` looks for it, in a new transaction, if the answer to the commit is lost; it
        returns None if that cannot be told.
        """
        with self.explained(address), self.creating(address, stands) as connection:
            fill(connection)

    @contextmanager
    def creating(
        self,
        address: Address,
        stands: Callable[["psycopg.Connection[Any]"], bool | None] = lambda _: None,
    ) -> Iterator["psycopg.Connection[Any]"]:
        """Make a new schema and its tables; committed when the block ends well."""
        driver = load_driver()
        connection = connect(address, _CREATE_SECONDS)
        warnings: list[str] = []
        try:
            hear_warnings(connection, warnings)
            begun = connection.execute(begin_writing(address, _CREATE_SECONDS))
            _require_durable(begun, self, address)
            _require_utf8(connection, self, address)
            name = f'"{address.schema}"'
            try:
                connection.execute(f"CREATE SCHEMA {name}")
            except driver.errors.DuplicateSchema:
                advice = f"exists already; {self.content} is never replaced"
                raise self.unusable(address, advice) from None
            except driver.errors.InsufficientPrivilege:
                advice = "cannot be created: your role needs CREATE on the database"
                raise self.unusable(address, advice) from None
            mark = f"COMMENT ON SCHEMA {name} IS '{self.mark} {self.format}'"
            connection.execute("; ".join((mark, *self.tables)).replace("{schema}", name))
            yield connection
            try:
                self._commit_created(address, connection, stands, warnings)
            except (KeyboardInterrupt, SystemExit) as stopped:
                advice = f"was being made when it was interrupted: it may stand; {self.look}"
                raise self.doubtful(address, advice) from stopped
        finally:
            connection.close()

    def _commit_created(
        self,
        address: Address,
        connection: "psycopg.Connection[Any]",
        stands: Callable[["psycopg.Connection[Any]"], bool | None],
        warnings: list[str],
    ) -> None:
        with ExitStack() as stack:

            def begin_again() -> "psycopg.Connection[Any]":
                again = _patiently(lambda: connect(address, _CREATE_SECONDS), _CREATE_SECONDS)
                stack.callback(again.close)
                hear_warnings(again, warnings)
                again.execute(begin_writing(address, _CREATE_SECONDS))
                return again

            try:
                self.commit(address, connection, warnings)
            except load_driver().Error as error:
                if not is_lost(error):
                    raise
                self.settle(address, begin_again, stands, warnings)

    def commit(
        self, address: Address, connection: "psycopg.Connection[Any]", warnings: list[str]
    ) -> None:
        """Commit, and refuse what the server took back or a standby did not confirm."""
        warnings.clear()
        done = connection.execute("COMMIT")
        if done.statusmessage != "COMMIT":  # some statement had failed, so all is taken back
            raise self.unusable(address, "was not changed: the transaction was broken off")
        if warnings:  # a standby did not confirm, and waiting was ended
            raise self.doubtful(
                address,
                f"was changed, but the server warns: {_one_line(warnings[0])}. What was "
                f"written stands there and may be lost with that server; {self.look}",
            )

    def settle(
        self,
        address: Address,
        begin_again: Callable[[], "psycopg.Connection[Any]"],
        stands: Callable[["psycopg.Connection[Any]"], bool | None],
        warnings: list[str],
    ) -> None:
        """Find out whether a commit whose answer was lost was carried out."""
        driver = load_driver()
        answer = None
        with suppress(driver.Error, DPublishError):
            connection = begin_again()  # waits until the old transaction is over
            found = stands(connection)
            if found:
                connection.execute(_MARK_LOG)
            answer = found
        if answer is False:
            raise self.unusable(
                address, "was not changed: the connection was lost before that; repeat the command"
            )
        with suppress(driver.Error):
            if answer:
                self.commit(address, connection, warnings)
                return
        raise self.doubtful(
            address,
            "was being changed when the connection was lost, and could not be asked again: "
            f"the change may stand or not, and nothing was done with it; {self.look}",
        )

    def doubtful(self, address: Address, advice: str) -> DPublishError:
        """Build the error for a change that may stand or be lost."""
        return (self.uncertain or self.error)(f"{self.noun} {address.shown} {advice}")

    def require_kind(self, address: Address, connection: "psycopg.Connection[Any]") -> int:
        """Refuse a schema that is something else, or of a format that is not known."""
        row = find_schema(address, connection)
        if row is None:
            raise self.unusable(address, f"does not exist; `{self.maker}` makes one")
        mark, _, version = str(row[0]).rpartition(" ")
        if mark != self.mark or not version.isdecimal():
            raise self.unusable(address, f"is not {self.content}: it is some other schema")
        newest = self.newest or self.format
        if int(version) > newest:
            advice = f"has format {version}, newer than {newest}: upgrade dpublish"
            raise self.unusable(address, advice)
        if int(version) < self.format:
            raise self.unusable(address, f"has format {version}, which this version does not read")
        if not row[1]:
            raise self.unusable(address, (_ADVICE | dict(self.advice))["42501"])
        return int(version)


class PostgresDatabase(OpenDatabase):
    """An open schema of one kind; may be shared by threads, but not carried over a fork.

    Reading outside of `reading` and `writing` is a transaction by itself.
    """

    kind: ClassVar[SchemaKind]

    def __init__(self, address: Address, wait_seconds: float = 30) -> None:
        self.address = address
        self._wait_seconds = wait_seconds
        self._process = os.getpid()
        self._is_closed = False
        self._warnings: list[str] = []
        with self.explained():
            self._connection = self._open()
        super().__init__()

    @property
    def shown(self) -> str:
        """The address, without the options of the connection."""
        return self.address.shown

    def close(self) -> None:
        """End the connection; harmless if that was done before."""
        with self._lock:
            self._is_closed = True
            if self._process == os.getpid():
                self._connection.close()

    def abandon(self) -> None:
        """Let go of the connection in a child that was forked.

        The child shares the parent's socket: it must not end the session there, nor keep it
        alive, with its locks, when the parent is gone.
        """
        with suppress(Exception):  # the connection may be closed, or broken
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, self._connection.fileno())
            os.close(nowhere)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See everything as it is at one moment, whatever is written meanwhile."""
        with self._guarded(), self._transaction(begin_reading(self.address)):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only right to change it, all or nothing; durable when it ends."""
        begin = begin_writing(self.address, self._wait_seconds)
        with self._guarded(), self._transaction(begin, writes=True):
            yield

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the server and of the way to it into advice."""
        with self.kind.explained(self.address):
            yield

    def unusable(self, advice: str) -> DPublishError:
        """Build the error for this database, in one line."""
        return self.kind.unusable(self.address, advice)

    def first(self, statement: str, *values: object) -> Any:
        """Return the first row of an answer; None if there is none."""
        return next(self.rows(statement, *values), None)

    def rows(self, statement: str, *values: object) -> Iterator[Any]:
        """Iterate over the rows of an answer."""
        with self._lock:
            if self._is_in_use:  # within a transaction of this thread
                return iter(self._execute(statement, values).fetchall())
            with self.reading():
                return iter(self._execute(statement, values).fetchall())

    def catalog_rows(self, statement: str, *values: object) -> list[Any]:
        """Read rows of the server's catalog.

        Meanwhile neither a function of this schema stands in for the server's own, nor does a
        default of the role change how names are written.
        """
        with self._lock:
            if not self._is_in_use:
                with self.reading():
                    return self.catalog_rows(statement, *values)
        self._connection.execute(f"{_CATALOG}; SET LOCAL quote_all_identifiers = off")
        found = self._execute(statement, values).fetchall()
        self._connection.execute(_search(self.address))
        return found

    def change(self, statement: str, *values: object) -> int:
        """Change something within a transaction that is open; return how many rows changed."""
        return self._execute(statement, values).rowcount

    def _stands(self) -> bool | None:
        """Look whether the change that was being committed stands; None if that cannot be told.

        It is called in a new writing transaction after the connection was lost.  Subclasses
        look for something that only this change can have written.
        """
        return None

    def _execute(self, statement: str, values: tuple[object, ...]) -> "psycopg.Cursor[Any]":
        text = statement.replace("%", "%%").replace("?", "%s")
        return self._connection.execute(text, values)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock, self.explained():
            if self._is_in_use:  # a clock, say, that looks into the ledger
                raise self.unusable("is in use: it cannot be used while it is changed")
            self._require_own_process()
            if self._is_closed:
                raise self.unusable("was closed; open it again")
            yield

    @contextmanager
    def _transaction(self, begin: str, *, writes: bool = False) -> Iterator[None]:
        try:
            try:
                self._is_in_use = True
                self._begin(begin, writes=writes)
                self._begun()
                yield
                self._commit(writes=writes)
                self._committed()
            finally:
                self._is_in_use = False
        finally:
            self._is_in_use = False  # an interrupt may have come before the line above
            self._roll_back()

    def _begin(self, begin: str, *, writes: bool) -> None:
        """Begin a transaction, on a new connection if the old one turns out to be lost."""
        self._roll_back()  # an interrupt may have come between two lines of ours
        try:
            begun = self._connection.execute(begin)
        except load_driver().Error as error:
            if not self._is_lost(error):
                raise
            self._reconnect()
            begun = self._connection.execute(begin)
        if writes:
            _require_durable(begun, self.kind, self.address)

    def _commit(self, *, writes: bool) -> None:
        self._require_own_process()  # a child would find what its parent has committed
        try:
            heard = self._warnings if writes else []
            self.kind.commit(self.address, self._connection, heard)
        except load_driver().Error as error:
            if not self._is_lost(error):
                raise
            if writes:
                self._settle()

    def _settle(self) -> None:
        """Find out whether a commit whose answer was lost was carried out."""

        def begin_again() -> "psycopg.Connection[Any]":
            self._reconnect()
            self._begin(begin_writing(self.address, self._wait_seconds), writes=True)
            return self._connection

        self.kind.settle(self.address, begin_again, lambda _: self._stands(), self._warnings)

    def _require_own_process(self) -> None:
        if self._process != os.getpid():
            raise self.unusable("was opened before this process was forked; open it again")

    def _open(self) -> "psycopg.Connection[Any]":
        connection = connect(self.address, self._wait_seconds)
        try:
            hear_warnings(connection, self._warnings)
            self.kind.require_kind(self.address, connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _reconnect(self) -> None:
        """Connect anew, patiently: the server may be starting again."""
        connection = _patiently(self._open, self._wait_seconds)
        self._connection.close()
        self._connection = connection

    def _is_lost(self, error: "psycopg.Error") -> bool:
        return bool(self._connection.closed) or is_lost(error)

    def _roll_back(self) -> None:
        connection = self._connection
        if self._process != os.getpid() or connection.closed:
            return
        if connection.info.transaction_status != load_driver().pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except load_driver().Error:
                connection.close()  # the server takes back what was not committed


def load_driver() -> ModuleType:
    """Import psycopg, which is needed for a PostgreSQL server only."""
    try:
        import psycopg
    except ImportError:
        raise InputError(
            'PostgreSQL needs psycopg; run: pip install "dpublish[postgres]"'
        ) from None
    return psycopg


def connect(address: Address, wait_seconds: float) -> "psycopg.Connection[Any]":
    """Connect to the server of an address; statements outside of transactions are their own."""
    load_driver()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        asked = conninfo_to_dict(address.uri)
    except psycopg.ProgrammingError:
        raise InvalidParameter(
            f"{address.shown} is no address of a PostgreSQL database: write "
            "postgresql://HOST/DATABASE"
        ) from None
    seconds = max(2, int(wait_seconds))
    usual = {
        "application_name": "dpublish",
        "connect_timeout": seconds,
        "keepalives_idle": 10,  # a network that is gone is noticed, not waited for
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 1000 * seconds,
    }
    options = {name: value for name, value in usual.items() if name not in asked}
    return psycopg.connect(
        address.uri,
        autocommit=True,  # transactions are begun by hand, with the lock they need
        prepare_threshold=None,  # a pool of connections may be in between
        client_encoding="UTF8",
        **options,  # type: ignore[arg-type]  # their types are those of libpq
    )


def hear_warnings(connection: "psycopg.Connection[Any]", warnings: list[str]) -> None:
    """Note what the server warns of from now on."""

    def hear(notice: "psycopg.errors.Diagnostic") -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(hear)


def find_schema(
    address: Address, connection: "psycopg.Connection[Any]"
) -> tuple[str | None, bool] | None:
    """Read the comment on a schema, and whether it may be used; None if there is none.

    The session's own search path may hold functions of others, which would run with our rights.
    """
    connection.execute(f"BEGIN READ ONLY; {_CATALOG}")
    row: tuple[str | None, bool] | None = connection.execute(_SCHEMA, (address.schema,)).fetchone()
    connection.execute("ROLLBACK")
    return row


def begin_reading(address: Address) -> str:
    """Write what begins a transaction that sees one moment."""
    return f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_search(address)}"


def begin_changing(address: Address, wait_seconds: float) -> str:
    """Write what begins a transaction that changes rows beside the schema's one writer."""
    wait = max(1, int(1000 * wait_seconds))  # 0 would be to wait forever
    idle = 1000 * _IDLE_SECONDS
    return (
        f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_search(address)}; "
        "SET LOCAL client_min_messages = warning; "  # a standby that does not confirm is told so
        f"SET LOCAL lock_timeout = {wait}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {idle}"
    )


def begin_writing(address: Address, wait_seconds: float) -> str:
    """Write what begins a transaction that alone may change the schema."""
    settings = ", ".join(f"current_setting('{name}')" for name in _DURABLE)
    return (
        f"{begin_changing(address, wait_seconds)}; {_CATALOG}; "
        f"SELECT set_config('synchronous_commit', {_STRICTEST} ELSE 'on' END, true); "
        f"SELECT pg_advisory_xact_lock({lock_key(address)}); SELECT {settings}; {_search(address)}"
    )


def lock_key(address: Address) -> int:
    """Compute the number of the schema's advisory lock, within its database."""
    digest = sha256(f"dpublish {address.schema}".encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def is_lost(error: "psycopg.Error") -> bool:
    """Return whether an error says that the connection, or the server, is gone."""
    driver = load_driver()
    code = error.sqlstate or ""
    is_gone = code.startswith("08") or code in ("57P01", "57P02", "57P03", "57P05", "25P03")
    return is_gone or (
        not code and isinstance(error, (driver.OperationalError, driver.InterfaceError))
    )


def _patiently(
    open_connection: Callable[[], "psycopg.Connection[Any]"], wait_seconds: float
) -> "psycopg.Connection[Any]":
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            return open_connection()
        except load_driver().OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _search(address: Address) -> str:
    # Temporary tables last: one that is named like ours must not hide it.
    return f'SET LOCAL search_path = "{address.schema}", pg_temp'


def _require_durable(begun: "psycopg.Cursor[Any]", kind: SchemaKind, address: Address) -> None:
    """Refuse a server whose commits a crash may lose, or where triggers do not run.

    `begun` is the answer to `begin_writing`, whose last SELECT asks for the settings.
    """
    found: tuple[str, ...] = ()
    while True:
        found = (begun.fetchone() or ()) if begun.description else found
        if not begun.nextset():
            break
    for (name, needed), setting in zip(_DURABLE.items(), found, strict=True):
        if setting != needed:
            raise kind.unusable(
                address,
                f"is not changed: its server has {name} = {setting}, by which what is written "
                f"may be lost or forged; set it to {needed}",
            )


def _require_utf8(
    connection: "psycopg.Connection[Any]", kind: SchemaKind, address: Address
) -> None:
    asked = "SELECT pg_catalog.current_setting('server_encoding'::pg_catalog.text)"
    (encoding,) = connection.execute(asked).fetchone() or ("",)
    if encoding != "UTF8":
        raise kind.unusable(
            address, f"cannot be created: the database's encoding is {encoding}; make one in UTF8"
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""Rows out of PostgreSQL: a table, a view, or the rows that a query makes.

All scans of a source run in one transaction that only reads and that sees the database as it was
when the source was opened (REPEATABLE READ, READ ONLY); it stays open as long as the source does.
Rows come as binary COPY, which neither side holds whole: the server sends them as it finds them,
and the driver hands them on in Arrow batches of about 16 MB.

No row is read at opening: names and types come from a prepared statement, and that this user may
read the columns, and how, from EXPLAIN.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NoReturn, TypeVar

import pyarrow as pa

from dpublish.data.batch import refuse_copy
from dpublish.data.engines.duckdb_reader import quote_name, quote_text
from dpublish.data.engines.postgres_plan import refuse_changing_rows, refuse_mixed_rows
from dpublish.data.engines.postgres_types import map_column
from dpublish.data.engines.source import Rescan
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.storage.postgres_address import PostgresAddress, advise

T = TypeVar("T")
_OLDEST = 130_000  # the first version that has trim_scale
_SETTINGS = {
    # Whatever the server's administrator set for others must not end this transaction midway.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "30s",  # locks are taken at opening, and kept
    # What a value looks like must not depend on the server.
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # Rows of a table come in the order in which they are stored (see `_is_in_order`).
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
}
_PAGE_BY_PAGE = {
    "enable_seqscan": "on",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
}
_QUERY = "the query"
_WRONG_SQL, _NO_PERMISSION = ("0A", "22", "42"), "42501"
_TABLES = """
    SELECT c.oid::int8, n.nspname::text, c.relname::text, pg_table_is_visible(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
    ORDER BY 2, 3"""
_STORED = """
    WITH RECURSIVE below AS (
        SELECT {oid}::oid AS oid
        UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.oid
    )
    SELECT bool_and(NOT c.relrowsecurity AND (c.relkind = 'p'
                    OR (c.relkind IN ('r', 'm') AND a.amname = 'heap')))
    FROM below JOIN pg_class c ON c.oid = below.oid LEFT JOIN pg_am a ON a.oid = c.relam"""
_LISTED = 20
_PATIENCE = 1.0  # seconds between two looks at whether waiting makes sense


def open_postgres(
    uri: str, wanted: Sequence[str] | None = None, *, table: str | None, sql: str | None
) -> "PostgresSource":
    """Read a table or view of a PostgreSQL database, or the rows of a query, by its address.

    The name of a table may be left out if there is just one.  `wanted` are the columns that will
    be read (None: all); that this user may read them is checked now.
    """
    address = PostgresAddress.parse(uri)
    if table is not None and sql is not None:
        raise InvalidParameter("give either a table or a query (sql), not both")
    session = Session(address)
    source = _open_table(session, table) if sql is None else _open_query(session, sql)
    source.check(wanted)
    return source


class Session:
    """A connection with one transaction that only reads, and always sees the same rows.

    A connection can do one thing at a time: a statement that is sent while rows of another still
    come would put an end to them, and no one would notice.  So other threads wait.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self.label = address.label
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._user: threading.Thread | None = None
        self._connection = _connect(address)
        self.close = weakref.finalize(self, _close, self._connection, self._process)
        self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self.configure(_SETTINGS)
        version = int(self.rows("SELECT current_setting('server_version_num')")[0][0])
        if version < _OLDEST:
            raise UnreadableData(f"{self.label} is too old; PostgreSQL 13 or newer is needed")
        if version >= 170_000:
            self.configure({"transaction_timeout": "0"})

    def __reduce__(self) -> NoReturn:
        refuse_copy("a connection")

    def run(self, statement: str) -> None:
        """Run a statement that returns no rows."""
        self._ask(lambda cursor: cursor.execute(statement), "the database", use_copy=False)

    def rows(self, query: str, about: str = "the database", *, use_copy: bool = True) -> list[Any]:
        """Run a query about names and types, and return what it finds."""

        def fetch(cursor: Any) -> list[Any]:
            cursor.execute(query)
            return list(cursor.fetchall())

        return self._ask(fetch, about, use_copy=use_copy)

    def configure(self, settings: dict[str, str]) -> None:
        """Change settings of this session."""
        pairs = [f"{quote_text(name)}, {quote_text(to)}" for name, to in settings.items()]
        self.rows(f"SELECT {', '.join(f'set_config({pair}, false)' for pair in pairs)}")

    def describe(self, query: str, about: str) -> Any:
        """Find names and types of what a query returns, by preparing it; it is not run."""
        return self._ask(lambda cursor: cursor.adbc_execute_schema(query), about)

    def stream(self, query: str) -> Generator[Any]:
        """Run a query and hand out its rows as they come."""
        with self._alone(), self._connection.cursor() as cursor:
            cursor.execute(query)
            with closing(cursor.fetch_record_batch()) as reader:
                yield from reader

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads from the connection; what would wait forever is refused."""
        if os.getpid() != self._process:
            raise UnreadableData(
                f"{self.label} was opened by another process, and a connection cannot be shared; "
                "open the table anew in this one"
            )
        while not self._lock.acquire(timeout=0 if self._is_stuck() else _PATIENCE):
            if self._is_stuck():
                raise UnreadableData(
                    f"another pass over {self.label} is not finished; read it to its end or close "
                    "it, or open the table once more"
                )
        self._user = threading.current_thread()
        try:
            yield
        finally:
            self._user = None
            self._lock.release()

    def _is_stuck(self) -> bool:
        """Return whether who uses the connection waits for this thread, or is gone."""
        user = self._user
        return user is not None and (user is threading.current_thread() or not user.is_alive())

    def _ask(self, action: Callable[[Any], T], about: str, *, use_copy: bool = True) -> T:
        """Do what reads no row; if it fails, the reason becomes advice that quotes nothing."""
        from adbc_driver_manager import AdbcStatusCode, Error

        options = {} if use_copy else {"adbc.postgresql.use_copy": "false"}
        try:
            with self._alone(), self._connection.cursor(adbc_stmt_kwargs=options) as cursor:
                return action(cursor)
        except Error as error:
            failure, state = advise(str(error), error.sqlstate), error.sqlstate or ""
            is_interrupted = error.status_code == AdbcStatusCode.CANCELLED
        if is_interrupted:  # by Ctrl-C, which the driver takes for itself
            raise KeyboardInterrupt
        if about == _QUERY and state.startswith(_WRONG_SQL) and state != _NO_PERMISSION:
            raise InvalidParameter(f"the query cannot be run: {failure}")
        raise UnreadableData(f"{about} of {self.label} cannot be read: {failure}")


class PostgresSource:
    """Rows of a table or a query, read anew by every scan, in the transaction of a session.

    The rows of a stored table always come in the same order (`in_order`), see `_is_in_order`.
    """

    def __init__(self, session: Session, rows: str, name: str, *, in_order: bool) -> None:
        self.label = f"{name} of {session.label}"
        self.rescan: Rescan = "cheap" if in_order else "unordered"
        self._session = session
        self._rows = rows
        self._name = name
        found = session.describe(f"SELECT * FROM {rows}", name)
        self._columns = {field.name: map_column(field) for field in found}
        self.header = pa.schema([(field.name, map_column(field).kind) for field in found])

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def close(self) -> None:
        """End the transaction, so that others may change the table again."""
        self._session.close()

    def check(self, wanted: Sequence[str] | None) -> None:
        """Refuse columns that this user may not read, or a query that cannot be planned."""
        names = self.header.names if wanted is None else wanted
        known = [name for name in dict.fromkeys(names) if self.header.names.count(name) == 1]
        self._session.rows(f"EXPLAIN {self._select(known)}", self._name, use_copy=False)

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        kinds = [self._columns[name].kind for name in columns]
        with closing(self._session.stream(self._select(columns))) as batches:
            for batch in batches:
                arrays = [x.cast(kind) for x, kind in zip(batch.columns, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _select(self, columns: Sequence[str]) -> str:
        read = [f"{self._columns[x].read(quote_name(x))} AS {quote_name(x)}" for x in columns]
        return f"SELECT {', '.join(read)} FROM {self._rows}"


def _connect(address: PostgresAddress) -> Any:
    try:
        import adbc_driver_postgresql.dbapi as adbc
    except ImportError:
        raise UnreadableData(
            'PostgreSQL needs a driver; run: pip install "dpublish[postgres]"'
        ) from None
    try:
        return adbc.connect(address.connection_uri)
    except adbc.Error as error:
        failure = advise(str(error), error.sqlstate)
    raise UnreadableData(f"{address.label} cannot be opened: {failure}")


def _close(connection: Any, process: int) -> None:
    """Close a connection; a forked process must not, for it would end the session of another.

    There, a reference that is never given back keeps the driver from closing it by itself.
    """
    if os.getpid() == process:
        connection.close()
    else:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _open_table(session: Session, table: str | None) -> PostgresSource:
    rows = session.rows(_TABLES)
    labels = [name if visible else f"{schema}.{name}" for _, schema, name, visible in rows]
    table = labels[0] if table is None and len(labels) == 1 else table
    full = [f"{schema}.{name}" for _, schema, name, _ in rows]
    fits = [number for number, pair in enumerate(zip(labels, full, strict=True)) if table in pair]
    if len(fits) != 1:
        raise InvalidParameter(f"{session.label}: {_wanted(table, len(fits))}; {_tables(labels)}")
    oid, schema, name, _ = rows[fits[0]]
    in_order = _is_in_order(session, oid)
    rows_of = f"{quote_name(schema)}.{quote_name(name)}"
    source = PostgresSource(session, rows_of, f"table {labels[fits[0]]!r}", in_order=in_order)
    if not in_order:
        refuse_changing_rows(session, f"SELECT * FROM {rows_of}")
    return source


def _is_in_order(session: Session, oid: int) -> bool:
    """Make all scans of a table come in one order if they can; return whether they do.

    A table of PostgreSQL's own kind (heap) is read from its first page to its last if no index
    is used, no worker helps, and the scan does not join another one midway.  Rows stay where
    they are while a transaction can see them: an update writes a new row, cleaning up leaves what
    is visible, and what moves rows (VACUUM FULL, CLUSTER) waits for the lock that this
    transaction holds.  Partitions are read one after the other, in the order of their bounds.
    """
    if not session.rows(_STORED.format(oid=oid))[0][0]:
        return False
    session.configure(_PAGE_BY_PAGE)
    return True


def _wanted(table: str | None, fits: int) -> str:
    if table is None:
        return "name one of its tables"
    return f"{'several tables are called' if fits else 'it has no table'} {table!r}"


def _tables(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _LISTED} more" if len(labels) > _LISTED else ""
    return f"tables: {', '.join(labels[:_LISTED]) or 'none'}{more}"


def _open_query(session: Session, sql: str) -> PostgresSource:
    statement = sql.strip().rstrip(";").rstrip()
    session.describe(statement, _QUERY)  # by itself it must be one statement
    rows = f"(\n{statement}\n) AS rows"
    source = PostgresSource(session, rows, _QUERY, in_order=False)
    refuse_mixed_rows(session, f"SELECT * FROM {rows}")
    refuse_changing_rows(session, f"SELECT * FROM {rows}")
    return source

"""Rows out of DuckDB: a table of a database file, a query, or a relation of the caller's.

DuckDB runs inside this process, on a connection of its own that loads no extension, shows no
progress and writes nothing but to a folder that only this user can read.
"""

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa

from dpublish.data.batch import refuse_copy
from dpublish.data.engines.source import UNREADABLE, Rescan, quietly
from dpublish.errors import InvalidParameter, UnreadableData

_IN_MEMORY = ":memory:"
_READERS = re.compile(r"\b(?:READ_(?:CSV|JSON|NDJSON)(?:_AUTO)?|SNIFF_CSV)\b")
_NO_GUESS = re.compile(r"\bauto_detect\s*(?:=|:=|=>)\s*(?:false|0)\b", re.I)


def connect(path: str = _IN_MEMORY, *, spills: bool = False) -> Any:
    """Open a private connection, for reading only if `path` is a file.

    A query that needs more memory than there is may use the disk if the connection `spills`:
    a folder that only this user can read, removed with the connection.
    """
    folder = tempfile.mkdtemp(prefix="dpublish-") if spills else None
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",  # a table in a query is no variable of ours
        "temp_directory": folder or "",
    }
    try:
        connection = duckdb.connect(path, read_only=path != _IN_MEMORY, config=settings)
    except duckdb.Error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    connection.execute("SET enable_progress_bar = false")
    return connection


def quote_name(name: str) -> str:
    """Write a name so that SQL takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Write a text so that SQL takes it literally."""
    return "'" + text.replace("'", "''") + "'"


def stream(relation: Any) -> Iterator[Any]:
    """Run a relation and hand out its rows as they come; ends the run when left early."""
    with closing(pa.RecordBatchReader.from_stream(relation)) as reader:
        yield from reader


class RelationSource:
    """Rows of a DuckDB relation, which is made anew for every scan.

    A relation may come in another order every time it is run; the plain scan of a table
    does not (`in_order`).
    """

    def __init__(self, make: Callable[[], Any], label: str, *, in_order: bool = False) -> None:
        self.make = make
        self.label = label
        self.rescan: Rescan = "cheap" if in_order else "unordered"
        message = f"{label} cannot be read; check that it runs in DuckDB by itself"
        self.header = quietly(lambda: _find_header(make()), message)

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return stream(self.make().select(", ".join(map(quote_name, columns))))


def _find_header(relation: Any) -> Any:
    """Find names and types; with a limit of 0 no row is read.

    DuckDB does not tell names apart that differ by case only, so these count as repeated.
    """
    first: dict[str, str] = {}
    names = [first.setdefault(name.lower(), name) for name in relation.columns]
    types = pa.RecordBatchReader.from_stream(relation.limit(0)).schema.types
    # Arrow has no type for the largest unsigned numbers, and DuckDB hands out negative ones.
    too_large = [str(kind) == "UHUGEINT" for kind in relation.types]
    types = [UNREADABLE if large else x for x, large in zip(types, too_large, strict=True)]
    return pa.schema(list(zip(names, types, strict=True)))


def open_relation(relation: Any) -> RelationSource:
    """Read the rows of a relation on the caller's connection."""
    source = RelationSource(lambda: relation, "the DuckDB relation")
    # The types were guessed when the relation was made, and it does not tell.
    _refuse_guesses(source, _count_readers(source))
    return source


def open_database(path: str, table: str | None) -> RelationSource:
    """Read a table or view of a DuckDB file; its name may be left out if there is just one."""
    connection = _open_file(path)
    rows = connection.execute(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables "
        "ORDER BY table_schema, table_name"
    ).fetchall()
    labels = [name if schema == "main" else f"{schema}.{name}" for schema, name, _ in rows]
    if table is None and len(labels) == 1:
        table = labels[0]
    if table is None or labels.count(table) != 1:
        known = ", ".join(labels) or "none"
        wanted = "name one of its tables"
        if table is not None:
            is_known = table in labels
            wanted = f"{'several tables are called' if is_known else 'it has no table'} {table!r}"
        raise InvalidParameter(f"{path}: {wanted}; tables: {known}")
    schema, name, kind = rows[labels.index(table)]
    full_name = f"{quote_name(schema)}.{quote_name(name)}"
    source = RelationSource(
        lambda: connection.cursor().sql(f"FROM {full_name}"),
        f"table {table!r} of {path}",
        in_order=kind == "BASE TABLE",
    )
    _refuse_guesses(source, 0 if kind == "BASE TABLE" else _count_readers(source))
    return source


def open_query(sql: str, path: str | None = None) -> RelationSource:
    """Read the rows that a query returns, from a DuckDB file or from files the query names."""
    connection = connect(spills=True) if path is None else _open_file(path)
    _require_select(connection, sql)
    source = RelationSource(lambda: _bind(connection.cursor(), sql), "the query's result")
    _refuse_guesses(source, _count_readers(source) - len(_NO_GUESS.findall(sql)))
    return source


def _count_readers(source: RelationSource) -> int:
    """Count the CSV and JSON files that a relation reads, by its plan; no row is read."""
    message = f"{source.label} cannot be read; check that it runs in DuckDB by itself"
    return len(_READERS.findall(quietly(lambda: str(source.make().explain()), message)))


def _refuse_guesses(source: RelationSource, readers: int) -> None:
    """Refuse readers that guess types from rows: one row may change the values of all others."""
    if readers > 0:
        raise InvalidParameter(
            f"{source.label} reads CSV or JSON, whose types DuckDB guesses from the rows; open "
            "the file by its path, or query read_csv(..., auto_detect = false, columns = {...})"
        )


def _open_file(path: str) -> Any:
    if not Path(path).is_file():
        raise UnreadableData(f"there is no file {path}")
    try:
        return connect(path, spills=True)
    except duckdb.Error:
        pass
    raise UnreadableData(
        f"{path} cannot be opened; it must be a DuckDB file that no other program is writing to"
    )


def _require_select(connection: Any, sql: str) -> None:
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error:
        raise InvalidParameter("the query is not valid SQL; try it in DuckDB first") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InvalidParameter("the query must be a single SELECT")


def _bind(connection: Any, sql: str) -> Any:
    missing = False
    try:
        return connection.sql(sql)
    except duckdb.CatalogException:
        missing = True
    except duckdb.Error:
        pass
    reason = "a table or function in it does not exist" if missing else "it fails"
    raise InvalidParameter(f"the query cannot be run: {reason}; try it in DuckDB first")

"""Rows out of any database that has an ADBC driver: `adbc:DRIVER:ADDRESS`.

DRIVER is the name of a Python package without its `adbc_driver_` (`sqlite`, `snowflake`,
`flightsql`), or a driver that ADBC's own driver manager finds.  With DRIVER `profile`, ADDRESS is
the name of a connection profile, which may take passwords from the environment.

Types must not depend on rows.  ADBC's driver for SQLite guesses them from the first rows, because
SQLite has none; so there every value is read as text, as from CSV.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import pyarrow as pa

from dpublish.data.batch import refuse_copy
from dpublish.data.engines.duckdb_reader import quote_name
from dpublish.data.engines.source import Rescan, quietly
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.storage.public_address import refuse_secret

SCHEME = "adbc:"
_ADVICE = "use a connection profile (adbc:profile:NAME) that takes it from the environment"
_OWN_DOORS = {
    "PostgreSQL": "its address, postgresql://user@host/database",
    "DuckDB": "the path of its file, or by a relation of a connection of your own",
}
# SQLite has its own idea of the type of each value.  Never null, because a driver that guesses
# takes nulls for integers; a blank text is a missing value.  A number whose text is cut short is
# written with all its digits.
_SQLITE_TEXT = (
    "CASE WHEN typeof({0}) = 'real' AND CAST(CAST({0} AS TEXT) AS REAL) <> {0} "
    "THEN printf('%!.17g', {0}) ELSE coalesce(CAST({0} AS TEXT), '') END"
)


def open_adbc(address: str, *, table: str | None, sql: str | None) -> "AdbcSource":
    """Read a table, or the rows of a query, of a database with an ADBC driver.

    A query is the owner's own code: what an unknown database makes of it cannot be checked.
    """
    driver, _, uri = address.removeprefix(SCHEME).partition(":")
    if not driver:
        raise InvalidParameter("write adbc:DRIVER:ADDRESS, as in adbc:sqlite:people.sqlite")
    refuse_secret(uri, _ADVICE)
    if (table is None) == (sql is None):
        raise InvalidParameter("name a table, or give a query (sql); one of the two")
    name = "the query" if table is None else f"table {table!r}"
    rows = f"(\n{_one_statement(sql)}\n) rows" if sql is not None else _quote_path(str(table))
    connection = _connect(driver, uri)
    vendor = _find_vendor(connection, driver)
    if vendor in _OWN_DOORS:
        connection.close()
        raise InvalidParameter(f"open {vendor} by {_OWN_DOORS[vendor]}")
    return AdbcSource(connection, rows, f"{name} of {SCHEME}{driver}", is_text=vendor == "SQLite")


class AdbcSource:
    """Rows of a table or a query, read anew by every scan, on one connection."""

    rescan: Rescan = "unordered"

    def __init__(self, connection: Any, rows: str, label: str, *, is_text: bool) -> None:
        self.label = label
        self._connection = connection
        self._rows = rows
        self._is_text = is_text
        weakref.finalize(self, connection.close)
        message = (
            f"{label} cannot be read; check its name, its columns and your rights, and try it in "
            "the database's own client first"
        )
        self.header = quietly(self._find_header, message)

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        kinds = [self.header.field(name).type for name in columns]
        template = _SQLITE_TEXT if self._is_text else "{0}"
        read = [f"{template.replace('{0}', quote_name(x))} AS {quote_name(x)}" for x in columns]
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(read)} FROM {self._rows}")
            with closing(cursor.fetch_record_batch()) as reader:
                for batch in reader:
                    if batch.num_rows:  # where there are no rows, guessed types are others
                        yield _require_types(batch, kinds, columns)

    def _find_header(self) -> Any:
        """Find names and types by a query that has no rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._rows} WHERE 1 = 0")
            with closing(cursor.fetch_record_batch()) as reader:
                header = reader.schema
        if self._is_text:
            return pa.schema([(name, pa.string()) for name in header.names])
        return header


def _require_types(batch: Any, kinds: Sequence[Any], columns: Sequence[str]) -> Any:
    """Refuse rows of other types than the empty table has: a driver guessed them."""
    if list(batch.schema.types) != list(kinds):
        raise UnreadableData("the driver finds other types with the rows than without them")
    return pa.RecordBatch.from_arrays(batch.columns, names=list(columns))


def _one_statement(sql: str) -> str:
    return sql.strip().rstrip(";").rstrip()


def _quote_path(table: str) -> str:
    """Quote a name, or the parts of one such as `schema.table`."""
    return ".".join(map(quote_name, table.split(".")))


def _connect(driver: str, uri: str) -> Any:
    try:
        import adbc_driver_manager.dbapi as adbc
    except ImportError:
        raise UnreadableData(
            'addresses adbc:... need ADBC; run: pip install "dpublish[postgres]" and the package '
            "of the driver"
        ) from None
    message = (
        f"{SCHEME}{driver} cannot be opened; check the address, and that its driver is installed "
        f"(pip install adbc-driver-{driver})"
    )
    if driver == "profile":
        return quietly(lambda: adbc.connect(profile=uri), message)
    library = _find_library(driver)
    if driver.removeprefix("adbc_driver_") == "sqlite":
        uri = _read_only(uri)
    return quietly(lambda: adbc.connect(driver=library, db_kwargs={"uri": uri}), message)


def _find_library(driver: str) -> str:
    """Find the library of a driver that is a Python package; else the manager looks for it."""
    short = driver.removeprefix("adbc_driver_")
    if not short.isidentifier():
        raise InvalidParameter("the driver of an adbc: address must be a name, such as sqlite")
    try:
        package = import_module(f"adbc_driver_{short}")
        return str(package._driver_path())
    except (ImportError, AttributeError):
        return f"adbc_driver_{short}"


def _read_only(uri: str) -> str:
    """Open an SQLite file for reading only; by itself it would make one that is not there."""
    if uri.startswith("file:"):
        return uri
    if not Path(uri).is_file():
        raise UnreadableData(f"there is no file {uri}")
    return f"file:{quote(uri)}?mode=ro"


def _find_vendor(connection: Any, driver: str) -> str:
    message = f"{SCHEME}{driver} does not say which database it is; its rows cannot be read"
    return str(quietly(connection.adbc_get_info, message).get("vendor_name", ""))

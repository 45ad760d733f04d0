"""Sources that are named by an address instead of a path; each kind has a reader of its own."""

from collections.abc import Sequence
from urllib.parse import unquote

from dpublish.data.engines.adbc_reader import SCHEME as ADBC
from dpublish.data.engines.adbc_reader import open_adbc
from dpublish.data.engines.source import Source
from dpublish.errors import InvalidParameter
from dpublish.storage.postgres_address import is_postgres
from dpublish.storage.public_address import has_scheme

_FILE = "file://"


def is_address(text: str) -> bool:
    """Check whether a text is an address, of a database or of files elsewhere."""
    return (text.startswith(ADBC) or has_scheme(text)) and not text.startswith(_FILE)


def local_path(text: str) -> str:
    """Return the path that `file://...` stands for; any other text is a path already."""
    return unquote(text.removeprefix(_FILE)) if text.startswith(_FILE) else text


def open_address(
    address: str, wanted: Sequence[str] | None = None, *, table: str | None, sql: str | None
) -> list[Source]:
    """Open what an address stands for; several files give several sources."""
    if is_postgres(address):
        from dpublish.data.engines.postgres_reader import open_postgres

        return [open_postgres(address, wanted, table=table, sql=sql)]
    if address.startswith(ADBC):
        return [open_adbc(address, table=table, sql=sql)]
    if table is not None or sql is not None:
        raise InvalidParameter(
            "table and sql go with postgresql://... and adbc:DRIVER:ADDRESS; other databases are "
            "read through their ADBC driver or DuckDB (docs/how-to/databases.md)"
        )
    from dpublish.data.engines.object_store import open_stored

    return open_stored(address, wanted)

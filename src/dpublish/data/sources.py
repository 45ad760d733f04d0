"""The one door to private rows: `open_table`.

Opening looks at names and types only, so that whatever is wrong with a request is said
before anything is paid for.  Rows are read when a mechanism asks for a sum.
"""

import glob
import io
import sys
from collections.abc import Sequence
from os import PathLike, fspath
from os.path import realpath
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpublish.data.engines.addresses import is_address, local_path, open_address
from dpublish.data.engines.arrow_reader import (
    ARROW_ENDINGS,
    PARQUET_ENDINGS,
    IpcSource,
    ParquetSource,
    StreamSource,
)
from dpublish.data.engines.csv_reader import CSV_ENDINGS, CsvPipe, CsvSource
from dpublish.data.engines.duckdb_reader import open_database, open_query, open_relation
from dpublish.data.engines.encoded import check_type
from dpublish.data.engines.frame_reader import PandasSource, PolarsSource
from dpublish.data.engines.local import LocalTable
from dpublish.data.engines.prepared import prepare_source
from dpublish.data.engines.source import (
    ChainedSource,
    HeldSource,
    MemorySource,
    Source,
    check_header,
)
from dpublish.data.engines.units import needed_columns, opened_part, unit_type
from dpublish.data.engines.workers import count_threads
from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema
from dpublish.data.schema_file import to_schema
from dpublish.data.steps import Steps, read_steps
from dpublish.data.table import Table
from dpublish.errors import (
    InvalidParameter,
    InvalidType,
    UnreadableData,
    plain_refusals,
)

DATABASE_ENDINGS = (".duckdb", ".ddb", ".db")
_FILE_ENDINGS = (*PARQUET_ENDINGS, *ARROW_ENDINGS, *CSV_ENDINGS)
_KNOWN = f"known endings: {', '.join((*_FILE_ENDINGS, *DATABASE_ENDINGS))}"


@plain_refusals
def open_table(
    source: Any,
    schema: Schema,
    *,
    table: str | None = None,
    sql: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
    cache: bool = True,
    threads: int | None = None,
) -> Table:
    """Open private rows for the mechanisms; reads names and types of columns, and no row.

    Args:
        source: A path (CSV, TSV, Parquet, Arrow/Feather, a DuckDB file; for all but the last
            also a pattern such as `"part-*.parquet"` or a folder), an address (of PostgreSQL,
            `"postgresql://user@host/db"`; of any database with an ADBC driver,
            `"adbc:sqlite:people.sqlite"`; of files in an object store,
            `"s3://bucket/part-*.parquet"`; none may hold a password), a pandas or Polars table,
            a PyArrow table or reader, a DuckDB relation, a Spark DataFrame (its rows stay on
            the cluster), anything else that hands out an Arrow stream, or an open binary file
            or pipe of CSV lines (`sys.stdin.buffer`), which is read once and kept in memory.
            None if `sql` names its files itself.
            Give CSV by its path: what `pandas.read_csv` or `polars.scan_csv` makes of a value
            ("1.50" or 1.5) depends on all others of its column, unless they are told to read
            text.
        schema: What is publicly known about the rows.  Columns it does not name are not read.
        columns: Which columns of the schema will be read, such as `method.reads(schema)` (None:
            all).  The source must have these, and the unit; it may lack the others.
        table: Which table of a DuckDB file or of a database to read.
        sql: A SELECT whose result is the table (`unnest` makes rows of a column of lists).
            The records to protect are the rows of the result, so it must make each of them
            from one person's record, and no row may make it fail.  It may read CSV and JSON
            only with `auto_detect = false`, for else one row decides how all are read.  It runs
            in DuckDB, or in the database that `source` is the address of; PostgreSQL's plan of it
            must not have a step that mixes rows.
        where: A condition on single records, such as `"country = FR and age >= 18"`: records for
            which it does not hold, or cannot be decided, are left out.
        derive: Columns to compute from others of the same record, such as
            `"bmi = weight / (height / 100) ** 2"`; each may use those before it.  The schema
            declares their bounds or values.
        lookups: Public tables to join by a key.  The order is: lookups, `derive`, `where`.
        cache: Keep encoded columns in memory (1 to 4 bytes a value); without it the source is
            read again for every sum, and memory stays small.
        threads: How many cores may work on a large table (None: all that this process may
            use); each but the first is a process of its own.  Answers do not depend on it.

    >>> import pyarrow as pa
    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> open_table(pa.table({"sex": ["F", "M", "F"], "name": ["Ann", "Bob", "Cid"]}), schema)
    LocalTable(sex)
    """
    schema, threads = to_schema(schema), count_threads(threads)
    steps = read_steps(where, derive, lookups)
    if _is_spark(source):
        return _open_spark_frame(source, schema, columns, table or sql, steps)
    opened = opened_part(schema, columns)
    wanted = needed_columns(opened)
    found = find_source(source, steps.wanted(wanted), table=table, sql=sql)
    found = [prepare_source(part, schema, steps, wanted) for part in found]
    for part in found:
        check_header(part, wanted, known=needed_columns(schema))
        for name in opened.names:
            check_type(schema, name, part)
    rows = found[0] if len(found) == 1 else ChainedSource(found, str(source))
    check_units(schema, found)
    if rows.rescan == "never" or (rows.rescan == "unordered" and cache):
        rows = HeldSource(rows, wanted)
    return LocalTable(
        schema,
        rows,
        cache=cache,
        threads=threads,
        opened=opened.names,
        steps=steps.texts,
        made=steps.made,
    )


def source_columns(source: Any, *, table: str | None = None, sql: str | None = None) -> Any:
    """Find names and types of a source's columns, as an Arrow schema; reads no row.

    For the owner, who drafts a schema from them: the first line of a CSV file without a
    header is a row.
    """
    if _is_spark(source):
        from dpublish.data.engines.spark import read_header  # an extra, loaded when used

        return read_header(source.schema)
    return find_source(source, table=table, sql=sql)[0].header


def proposable_columns(
    source: Any, *, table: str | None = None, sql: str | None = None
) -> list[tuple[str, Any]]:
    """List a source's columns with their Arrow types, which are None in CSV files; reads no row.

    For the owner, as `source_columns`.
    """
    header = source_columns(source, table=table, sql=sql)
    has_types = True
    if isinstance(source, (str, PathLike)) and table is None and sql is None:
        has_types = not _is_csv(fspath(source))
    return [
        (name, kind if has_types else None)
        for name, kind in zip(header.names, header.types, strict=True)
    ]


def _is_csv(path: str) -> bool:
    """Check whether a path, a pattern, a folder or an address stands for CSV files."""
    if is_address(local_path(path)):
        return path.endswith(CSV_ENDINGS)
    return find_files(local_path(path))[0].endswith(CSV_ENDINGS)


def find_source(
    source: Any,
    wanted: Sequence[str] | None = None,
    *,
    table: str | None = None,
    sql: str | None = None,
) -> list[Source]:
    """Find out what a source is; several files give several sources.

    `wanted` are the columns that will be read (None: all).
    """
    path = local_path(fspath(source)) if isinstance(source, (str, PathLike)) else None
    if path is not None and is_address(path):
        return open_address(path, wanted, table=table, sql=sql)
    is_database = path is not None and path.endswith(DATABASE_ENDINGS)
    if sql is not None:
        if table is not None or not (is_database or source is None):
            raise InvalidParameter(
                "sql needs a database (postgresql://..., adbc:..., a .duckdb file), or no source "
                "where the query names its files itself; and it goes without table"
            )
        return [open_query(sql, path)]
    if is_database:
        return [open_database(str(path), table)]
    if table is not None:
        raise InvalidParameter(
            "table needs a database (postgresql://..., adbc:..., a .duckdb file); remove it"
        )
    if path is not None:
        return [_open_file(file, wanted) for file in find_files(path)]
    return [_open_object(source, wanted)]


def find_files(path: str) -> list[str]:
    """List the files that a path, a pattern or a folder stands for.

    No row may come twice: a file that is found under several names counts once, and files of
    several kinds are refused, for one may be made from the other.  What lies below a folder
    under a name that starts with `.` or `_` is what programs leave there for themselves.
    """
    if Path(path).is_dir():
        inside = [file for file in Path(path).rglob("*") if file.is_file()]
        shown = [x for x in inside if not _is_hidden(x.relative_to(path))]
        files = sorted(str(file) for file in shown if file.name.endswith(_FILE_ENDINGS))
        if not files:
            raise UnreadableData(f"the folder {path} holds no file of rows; {_KNOWN}")
    elif Path(path).exists() or not glob.has_magic(path):
        return [path]
    else:
        files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())
        if not files:
            raise UnreadableData(f"no file fits the pattern {path}")
    endings = {ending for file in files for ending in _FILE_ENDINGS if file.endswith(ending)}
    if len(endings) > 1:
        kinds = ", ".join(sorted(endings))
        raise UnreadableData(f"{path} stands for files of several kinds ({kinds}); choose one")
    return list({realpath(file): file for file in reversed(files)}.values())[::-1]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _open_file(path: str, wanted: Sequence[str] | None) -> Source:
    if not Path(path).exists():
        raise UnreadableData(f"there is no file {path}")
    if path.endswith(PARQUET_ENDINGS):
        return ParquetSource(path)
    if path.endswith(ARROW_ENDINGS):
        return IpcSource(path)
    if path.endswith(CSV_ENDINGS):
        return CsvSource(path, wanted)
    raise UnreadableData(f"{path} is of no known kind; {_KNOWN}")


def _families(source: Any) -> set[str]:
    """Name the packages that an object's classes come from."""
    return {base.__module__.partition(".")[0] for base in type(source).__mro__}


def _is_spark(source: Any) -> bool:
    return "pyspark" in _families(source) and hasattr(source, "mapInArrow")


def _open_spark_frame(
    source: Any,
    schema: Schema,
    columns: Sequence[str] | None,
    other: str | None,
    steps: Steps,
) -> Table:
    from dpublish.data.engines.spark_session import open_frame  # an extra, loaded when used

    if other is not None:
        raise InvalidParameter("a Spark DataFrame is the table; remove table and sql")
    return open_frame(source, schema, columns=columns, steps=steps)


def _open_object(source: Any, wanted: Sequence[str] | None) -> Source:
    families = _families(source)
    if isinstance(source, pa.Table):
        return MemorySource(source.to_batches(), source.schema, "the Arrow table")
    if "pandas" in families and hasattr(source, "columns"):
        return PandasSource(source)
    if "polars" in families and hasattr(source, "collect_schema"):
        return PolarsSource(source, wanted)
    if families & {"duckdb", "_duckdb"} and hasattr(source, "limit"):
        return open_relation(source)
    if isinstance(source, io.BufferedIOBase):
        is_standard = source is getattr(sys.stdin, "buffer", None)
        return CsvPipe(source, "standard input" if is_standard else "the open file", wanted)
    if hasattr(source, "__arrow_c_stream__"):
        return StreamSource(source, f"the {type(source).__name__}")
    raise InvalidType(
        f"rows cannot be read from an object of type {type(source).__name__}; give a path, a "
        "pandas or Polars table (pandas.DataFrame(rows) makes one of lists and dicts), a DuckDB "
        "relation, a binary file of CSV lines, or an object with __arrow_c_stream__"
    )


def check_units(schema: Schema, sources: Sequence[Source]) -> None:
    """Refuse units that cannot be compared, within one source or between several."""
    if schema.unit is None:
        return
    kinds = {unit_type(x.header.field(schema.unit).type, x.label) for x in sources}
    if len(kinds) > 1:
        raise UnreadableData(
            f"the unit column {schema.unit!r} is text in some files and a number in others"
        )
    widest = {pa.types.is_uint64(_values(x.header.field(schema.unit).type)) for x in sources}
    if len(widest) > 1:  # the largest of these would be taken for negative ones of the others
        raise UnreadableData(
            f"the unit column {schema.unit!r} has the type uint64 in some files and another in "
            "others; cast it to one type"
        )


def _values(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind

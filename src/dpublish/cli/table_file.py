"""Write tables for users: the file's ending says in which format."""

import re
from pathlib import Path

import pyarrow as pa

from dpublish.core.folder.manifest import beside, require_outside
from dpublish.errors import InvalidParameter
from dpublish.storage.files import require_writable, whole_file

ENDINGS = (".parquet", ".csv", ".arrow")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # wide ones count, too
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def require_new_file(output: str) -> Path:
    """Refuse an ending that is not known, and a file that exists."""
    path = Path(output)
    if path.suffix not in ENDINGS:
        raise InvalidParameter(f"{output}: name a file ending in .parquet, .csv or .arrow")
    require_writable(path)
    return path


def page_path(release: str, output: str | None, ending: str) -> Path:
    """Return where to write a page about a release: a new file, or the default beside it.

    A file that the user names is never replaced: it may be anything.  The default name is ours.
    """
    path = beside(release, ending) if output is None else Path(output)
    if path.suffix != Path(ending).suffix:
        raise InvalidParameter(f"{output}: name a file ending in {Path(ending).suffix}")
    require_outside(path, release)
    require_writable(path, replaces=output is None)
    return path


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in the format that the file's ending names, whole or not at all."""
    with whole_file(path) as draft:
        _write(table, draft, path.suffix)


def without_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before names and texts that a spreadsheet would run as formulas.

    Numbers stay as they are, also texts that are numbers, such as `-5`.

    >>> table = pa.table({"note": ["=1+1", "-5", "plain"], "n": [-1, 2, 3]})
    >>> without_formulas(table).to_pydict()
    {'note': ["'=1+1", '-5', 'plain'], 'n': [-1, 2, 3]}
    """
    names = [_harmless(name) for name in table.column_names]
    return pa.table([_harmless_column(column) for column in table.columns], names=names)


def _harmless_column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    return pa.array([None if v is None else _harmless(v) for v in column.to_pylist()], kind)


def _harmless(text: str) -> str:
    if not text.startswith(_FORMULA) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def _write(table: pa.Table, path: Path, ending: str) -> None:
    if ending == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif ending == ".csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, str(path), compression="uncompressed")

"""Write tables for users: the file's ending says in which format."""

from pathlib import Path

import pyarrow as pa

from dpublish.errors import InputError, InvalidParameter

ENDINGS = (".parquet", ".csv", ".arrow")


def require_new_file(output: str) -> Path:
    """Refuse an ending that is not known, and a file that exists."""
    path = Path(output)
    if path.suffix not in ENDINGS:
        raise InvalidParameter(f"{output}: name a file ending in .parquet, .csv or .arrow")
    if path.exists():
        raise InvalidParameter(f"{output} exists already; name a file that does not exist yet")
    return path


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in the format that the file's ending names."""
    try:
        _write(table, path)
    except OSError as error:
        raise InputError(f"cannot write {path} ({error.strerror or 'unknown reason'})") from None


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif path.suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, str(path), compression="uncompressed")

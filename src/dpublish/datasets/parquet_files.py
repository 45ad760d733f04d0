"""Read the Parquet files of real datasets from the user's data folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpublish.errors import UnreadableData


def missing_file(file: str | None, folder: Path | None) -> str | None:
    """Return the name of a file that is needed and not in the folder, if so."""
    if file is None or (folder is not None and (folder / file).is_file()):
        return None
    return file


def read_file(name: str, file: str | None, folder: Path | None, columns: Iterable[str]) -> pa.Table:
    """Read columns of the file of the dataset `name`."""
    if folder is None or file is None:
        raise UnreadableData(f"{name} needs a data folder that holds {file}")
    return read_parquet(folder / file, columns)


def read_parquet(path: Path, columns: Iterable[str], filters: Any = None) -> pa.Table:
    """Read columns of a Parquet file; a file that cannot be read is named in the error."""
    try:
        return pq.read_table(path, columns=list(columns), filters=filters)
    except (OSError, pa.ArrowException):
        raise UnreadableData(f"{path} cannot be read as a Parquet file") from None


def read_columns(
    path: Path, names: Sequence[str], filters: Any = None
) -> dict[str, NDArray[np.float64]]:
    """Read columns of numbers from a Parquet file."""
    rows = read_parquet(path, names, filters)
    return {name: rows[name].to_numpy() for name in names}

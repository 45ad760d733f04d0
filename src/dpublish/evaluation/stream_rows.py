"""True rows of the steps of a stream: by label, from a folder of snapshots, or by a column.

Read in the clear, for the owner who measures.
"""

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpublish.errors import InvalidParameter

Read = Callable[[Any], pa.Table]
"""Reads the rows of a file, or of anything Arrow-compatible."""


def rows_by_step(against: Any, read: Read, step: str | None) -> dict[str, pa.Table] | None:
    """Find the true rows of each step; None if all rows are those of the last step.

    `against` is a mapping from labels to rows, a folder of snapshots whose file names are the
    labels, as `dpublish stream next` takes them, or one table with the label of each row in the
    column `step`.
    """
    if isinstance(against, Mapping):
        if not against:
            raise InvalidParameter("there are no rows: map the label of a step to its rows")
        return {str(label): read(rows) for label, rows in against.items()}
    if isinstance(against, (str, PathLike)) and Path(fspath(against)).is_dir():
        if step is not None:
            raise InvalidParameter(
                "the names of the files in a folder are the steps; a step column goes with a table"
            )
        return {file.stem: read(file) for file in _snapshots(Path(fspath(against)))}
    return None if step is None else _cut(read(against), step)


def _snapshots(folder: Path) -> list[Path]:
    found = [one for one in sorted(folder.iterdir()) if one.is_file() and one.name[0] not in "._"]
    if not found:
        raise InvalidParameter(f"{folder}: the folder holds no snapshots")
    return found


def _cut(rows: pa.Table, step: str) -> dict[str, pa.Table]:
    if rows.column_names.count(step) != 1:
        raise InvalidParameter(f"the rows must have the step column {step!r}, once")
    labels = pc.cast(rows[step], pa.string())
    return {
        str(label): rows.filter(pc.equal(labels, label))
        for label in pc.unique(labels).drop_null().to_pylist()
    }

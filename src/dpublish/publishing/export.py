"""Write the tables of a release for other tools: CSV, JSON, Parquet, or an Excel workbook.

The release is checked as `load` checks it, and stays as it is.  What is exported says nothing
that the release does not say, so it is free.  An export is written whole or not at all.
"""

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from dpublish.core.folder.data_package import (
    PARQUET,
    describe_table,
    package_head,
    resource_name,
)
from dpublish.core.folder.folder import load, require_new_folder
from dpublish.core.folder.manifest import beside, require_outside
from dpublish.core.formulas import plain_type, without_formulas
from dpublish.core.released import Release
from dpublish.errors import InvalidParameter, InvalidType, plain_refusals, require_known
from dpublish.storage.files import json_bytes, require_writable, whole_file, whole_folder

Format = Literal["csv", "xlsx", "parquet", "json"]
FORMATS: tuple[str, ...] = get_args(Format)
_BATCH = 1 << 16
_RESOURCES: dict[str, dict[str, Any]] = {
    "csv": {
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "profile": "tabular-data-resource",
    },
    "parquet": PARQUET,
    "json": {"format": "json", "mediatype": "application/json", "type": "file"},
}


@dataclass(frozen=True)
class Exported:
    """What was written: where, in which format, and the number of rows of each table."""

    path: Path
    format: str
    rows: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Turn it into plain values."""
        return {"output": str(self.path), "format": self.format, "tables": dict(self.rows)}


@plain_refusals
def export(
    release: Release | str | os.PathLike[str],
    *,
    to: Format,
    output: str | os.PathLike[str] | None = None,
    tables: str | Sequence[str] | None = None,
    for_spreadsheets: bool = False,
) -> Exported:
    """Write the tables of a release as CSV, JSON or Parquet files, or as an Excel workbook; free.

    A folder of files has a `datapackage.json`, which describes every field, and a `receipt.json`.
    A workbook has a sheet for each table and one with the guarantee, the receipt and the
    meaning of every field.  Of a stream, all steps are one table.

    Args:
        release: A release, or the folder of one, which must be whole and unchanged.
        to: "csv", "json", "parquet" or "xlsx" (which needs the extra `excel`).
        output: A new folder, or a new .xlsx file.  If it is absent, it is put beside the folder
            of the release: `people-csv`, `people-tables.xlsx`.
        tables: Names of the tables to write; all, unless some are named.
        for_spreadsheets: Put ' before texts in CSV files that a spreadsheet would run as formulas.
            Texts in a workbook are never formulas.

    >>> import tempfile
    >>> from dpublish import Budget, Histogram, Schema, column, open_table, seeded
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> table = open_table(pa.table({"sex": ["F", "M", "F"]}), schema)
    >>> method = Histogram(columns=("sex",))
    >>> release = method.release(table, budget=Budget.seeded(1), rng=seeded(7))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = export(release, to="csv", output=f"{folder}/people")
    ...     print(sorted(path.name for path in done.path.iterdir()))
    ['counts.csv', 'datapackage.json', 'receipt.json']
    """
    require_known("format", to, FORMATS)
    path = _output_path(release, to, output)
    value = release if isinstance(release, Release) else load(Path(release))
    chosen = _choose(value.tables_to_read(), tables)
    if to == "xlsx":
        from dpublish.publishing.workbook import write_workbook

        with whole_file(path) as draft:
            write_workbook(value, chosen, draft)
    else:
        with whole_folder(path) as draft:
            _write_folder(value, chosen, to, draft, for_spreadsheets=for_spreadsheets)
    return Exported(path, to, {name: table.num_rows for name, table in chosen.items()})


def _output_path(
    release: Release | str | os.PathLike[str], to: str, output: str | os.PathLike[str] | None
) -> Path:
    """Return where to write, and refuse what cannot be written, before anything is read."""
    if not isinstance(release, Release | str | os.PathLike):
        raise InvalidType(
            f"release must be a release or the path of its folder, not {type(release).__name__}"
        )
    if output is None:
        folder = release.folder if isinstance(release, Release) else Path(release)
        if folder is None:
            raise InvalidParameter("output is missing; name a folder, or an .xlsx file, to create")
        path = beside(os.path.abspath(folder), "tables.xlsx" if to == "xlsx" else to)
    else:
        path = Path(output)
    if (path.suffix.lower() == ".xlsx") != (to == "xlsx"):
        wanted = "a file ending in .xlsx" if to == "xlsx" else "a folder"
        raise InvalidParameter(f"{path}: {to} is written to {wanted}; name one")
    if not isinstance(release, Release):
        require_outside(path, Path(release))
    (require_writable if to == "xlsx" else require_new_folder)(path)
    return path


def _choose(
    found: Mapping[str, pa.Table], names: str | Sequence[str] | None
) -> dict[str, pa.Table]:
    if not found:
        raise InvalidParameter("this release has no table yet")
    wanted = [names] if isinstance(names, str) else list(names or found)
    for name in wanted:
        require_known("table", name, tuple(found))
    return {name: found[name] for name in found if name in wanted}


def _write_folder(
    release: Release,
    tables: Mapping[str, pa.Table],
    to: str,
    folder: Path,
    *,
    for_spreadsheets: bool,
) -> None:
    resources = []
    for name, table in tables.items():
        decoded = _plain_table(table)
        described = describe_table(release.schema, name, decoded)
        if to == "csv" and for_spreadsheets:
            decoded = without_formulas(decoded)  # which may change the names of fields
            for field, written in zip(described["fields"], decoded.column_names, strict=True):
                field["name"] = written
        if to == "csv":
            described.pop("missingValues", None)  # a null is an empty field, as by default
        file = f"{name}.{to}"
        _WRITERS[to](decoded, folder / file, described)
        resources.append(
            {"name": resource_name(name), "path": file, **_RESOURCES[to], "schema": described}
        )
    package = package_head(release) | {"resources": resources}
    (folder / "datapackage.json").write_bytes(json_bytes(package))
    (folder / "receipt.json").write_bytes(json_bytes(release.receipt.to_dict()))


def _plain_table(table: pa.Table) -> pa.Table:
    """Decode dictionaries; names and descriptions of fields stay."""
    fields = [field.with_type(plain_type(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def _write_csv(table: pa.Table, path: Path, _: Mapping[str, Any]) -> None:
    """Write a file by RFC 4180, in UTF-8."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(table.column_names)
        for batch in table.to_batches(_BATCH):
            columns = [column.to_pylist() for column in batch.columns]
            writer.writerows(map(_csv_row, zip(*columns, strict=True)))


def _csv_row(values: Sequence[Any]) -> list[Any]:
    return [value.isoformat() if isinstance(value, date) else value for value in values]


def _write_json(table: pa.Table, path: Path, described: Mapping[str, Any]) -> None:
    """Write the meaning of the fields, and a record on each line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        fields = json.dumps(described["fields"], ensure_ascii=False, indent=1)
        file.write(f'{{"fields": {fields},\n"records": [')
        start = "\n"
        for batch in table.to_batches(_BATCH):
            for record in batch.to_pylist():
                plain = {name: _json_value(value) for name, value in record.items()}
                file.write(start + json.dumps(plain, ensure_ascii=False, allow_nan=False))
                start = ",\n"
        file.write("\n]}\n")


def _json_value(value: Any) -> Any:
    if isinstance(value, date | datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not isfinite(value) else value


def _write_parquet(table: pa.Table, path: Path, _: Mapping[str, Any]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


_WRITERS: dict[str, Callable[[pa.Table, Path, Mapping[str, Any]], None]] = {
    "csv": _write_csv,
    "json": _write_json,
    "parquet": _write_parquet,
}

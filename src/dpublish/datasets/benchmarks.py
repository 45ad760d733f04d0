"""Benchmarks: public tables with a class to predict, each with its schema.

The tables are not part of this package.  They are looked for in a data folder, named on the
command line or by the environment variable DPUBLISH_DATA.  One benchmark is simulated on the
spot, so that comparisons run anywhere.
"""

import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpublish.data.schema import Schema
from dpublish.data.schema_file import from_dict
from dpublish.datasets.loans import SCHEMA as LOANS_SCHEMA
from dpublish.datasets.loans import loans
from dpublish.datasets.parquet_files import missing_file, read_file
from dpublish.errors import UnreadableData

VARIABLE = "DPUBLISH_DATA"
_MARITAL_GROUPS = {
    "Never-married": "Never-married",
    "Married-civ-spouse": "Partner-present",
    "Married-AF-spouse": "Partner-present",
    "Married-spouse-absent": "Partner-absent",
    "Separated": "Partner-absent",
    "Divorced": "Partner-absent",
    "Widowed": "Partner-absent",
}


def _group_marital_status(rows: pa.Table) -> pa.Table:
    """Group the seven values of marital status into the three that are the class."""
    grouped = [_MARITAL_GROUPS.get(value) for value in rows["marital_status"].to_pylist()]
    index = rows.column_names.index("marital_status")
    return rows.set_column(index, "marital_status", pa.array(grouped, pa.string()))


@dataclass(frozen=True)
class Benchmark:
    """A public table, what it predicts, and where it is in a data folder.

    Attributes:
        name: What the command line calls it.
        predicts: What is predicted, in words.
        source: Where the rows come from, in words.
        target: The class column.
        records: How many rows it has; public, like all of it.
        file: Its Parquet file, or None if the rows are simulated.
        make: Simulates so many rows from a seed, or None.
        schema_file: Its schema among this package's files.
        fold_column: The column that holds the fold of a row, or None.
        derive: What is done to the rows before use.
    """

    name: str
    predicts: str
    source: str
    target: str
    records: int
    file: str | None = None
    make: Callable[[int, int], pa.Table] | None = None
    schema_file: str | None = None
    fold_column: str | None = None
    derive: Callable[[pa.Table], pa.Table] | None = None

    def missing_file(self, folder: Path | None) -> str | None:
        """Name a file that is needed and not in the folder; None if all are there."""
        if self.file is None:
            return None
        needed = (self.file, *sorted(_taxonomy_files(self._plain_schema())))
        return next((name for name in needed if missing_file(name, folder)), None)

    def schema(self, folder: Path | None) -> Schema:
        """Read the schema; a taxonomy that comes with the data is read from the folder."""
        plain = self._plain_schema()
        trees = {name: _read_trees(folder, name) for name in _taxonomy_files(plain)}
        for name, keys in plain["columns"].items():
            if isinstance(keys.get("taxonomy"), str):
                keys["taxonomy"] = trees[keys["taxonomy"]][name.replace("_", "-")]
        return from_dict(plain)

    def rows(self, folder: Path | None) -> pa.Table:
        """Read the rows, or simulate them."""
        if self.make is not None:
            return self.make(self.records, 2024)
        wanted = list(self._plain_schema()["columns"])
        if self.fold_column is not None:
            wanted.append(self.fold_column)
        rows = read_file(self.name, self.file, folder, wanted)
        return rows if self.derive is None else self.derive(rows)

    def _plain_schema(self) -> dict[str, Any]:
        if self.schema_file is None:
            return tomllib.loads(LOANS_SCHEMA)
        path = files("dpublish.datasets").joinpath("schemas", self.schema_file)
        return tomllib.loads(path.read_text("utf-8"))


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark(
            name="simulated",
            predicts="Will a simulated person repay a loan?",
            source="Loans that this package simulates; no person in it exists",
            target="repaid",
            records=20_000,
            make=loans,
        ),
        Benchmark(
            name="adult",
            predicts="Does a person earn more than 50,000 dollars a year?",
            source="UCI Adult, from the United States census bureau's survey of 1994",
            target="income",
            records=45_222,
            file="adult_ten_folds.parquet",
            schema_file="adult.toml",
            fold_column="fold",
        ),
        Benchmark(
            name="adult-marital",
            predicts="Is a person single, living with a spouse, or living without one?",
            source="UCI Adult, with marital status in three groups as the class",
            target="marital_status",
            records=45_222,
            file="adult_ten_folds.parquet",
            schema_file="adult_marital.toml",
            derive=_group_marital_status,
        ),
        Benchmark(
            name="bank",
            predicts="Will a customer who is called by a bank open a term deposit?",
            source="UCI Bank Marketing, calls of a Portuguese bank",
            target="y",
            records=45_211,
            file="bank_full.parquet",
            schema_file="bank.toml",
        ),
        Benchmark(
            name="census",
            predicts="Does a person have an income of more than 50,000 dollars a year?",
            source="UCI Census-Income (KDD), test part, from the surveys of 1994 and 1995",
            target="income",
            records=99_762,
            file="census_income_kdd_test.parquet",
            schema_file="census_income.toml",
        ),
    )
}


def find_data_folder(given: str | Path | None = None) -> Path | None:
    """Find the folder of public tables: the given one, or the one that DPUBLISH_DATA names."""
    named = given or os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise UnreadableData(f"there is no data folder {folder}")
    return folder


def _taxonomy_files(plain: dict[str, Any]) -> set[str]:
    named = (keys.get("taxonomy") for keys in plain["columns"].values())
    return {name for name in named if isinstance(name, str)}


def _read_trees(folder: Path | None, name: str) -> dict[str, Any]:
    if folder is None:
        raise UnreadableData(f"the schema needs a data folder that holds {name}")
    try:
        trees = json.loads((folder / name).read_text("utf-8"))
    except (OSError, ValueError):
        raise UnreadableData(f"{folder / name} cannot be read as JSON") from None
    if not isinstance(trees, dict):
        raise UnreadableData(f"{folder / name} must hold one object, with a tree per column")
    return trees

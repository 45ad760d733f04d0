"""Benchmarks: public tables with a class to predict, each with its schema.

The tables are not part of this package.  They are looked for in a data folder, named on the
command line or by the environment variable DPUBLISH_DATA.  Some benchmarks are simulated on the
spot, so that comparisons run anywhere.
"""

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.schema import Schema
from dpublish.data.schema_file import from_dict
from dpublish.datasets.labeled_points import labeled_points, labeled_points_schema
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


_EMPLOYMENT_GROUPS = {
    "Children or Armed Forces": "Not asked",
    "Full-time schedules": "Employed",
    "PT for econ reasons usually FT": "Employed",
    "PT for econ reasons usually PT": "Employed",
    "PT for non-econ reasons usually FT": "Employed",
    "Unemployed full-time": "Unemployed",
    "Unemployed part- time": "Unemployed",
    "Not in labor force": "Not in labor force",
}
_INCOME = 25_000


def _with_income_class(rows: pa.Table) -> pa.Table:
    """Keep people whose income is recorded, and tell whether it is above 25,000 dollars."""
    asked = rows.filter(pc.is_valid(rows["PINCP"]))
    above = pc.if_else(pc.greater(asked["PINCP"], _INCOME), ">25K", "<=25K")
    return asked.drop_columns(["PINCP"]).append_column("income", above)


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
        schema_text: Its schema, if it is in none of these files.
        fold_column: The column that holds the fold of a row, or None.
        groups: The class of each value of the class column, if several values are one class.
        without: Columns of the schema's file that are not used.
        derive: Makes the class of `derive_from`, a column that is not used otherwise.
        derive_from: That column, or None.
    """

    name: str
    predicts: str
    source: str
    target: str
    records: int
    file: str | None = None
    make: Callable[[int, int], pa.Table] | None = None
    schema_file: str | None = None
    schema_text: str = ""
    fold_column: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    derive: Callable[[pa.Table], pa.Table] | None = None
    derive_from: str | None = None

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
        if self.derive_from is not None:
            wanted[wanted.index(self.target)] = self.derive_from
        rows = read_file(self.name, self.file, folder, wanted)
        if self.groups:
            rows = _grouped(rows, self.target, self.groups)
        return rows if self.derive is None else self.derive(rows)

    def _plain_schema(self) -> dict[str, Any]:
        """Read the schema with the class as its last column."""
        plain = tomllib.loads(self._schema_text())
        columns = {
            name: keys for name, keys in plain["columns"].items() if name not in self.without
        }
        target = columns.pop(self.target)
        if self.groups and "values" not in target:
            target = {"kind": "category", "values": list(dict.fromkeys(self.groups.values()))}
        return {**plain, "columns": {**columns, self.target: target}}

    def _schema_text(self) -> str:
        if self.schema_file is None:
            return self.schema_text
        path = files("dpublish.datasets").joinpath("schemas", self.schema_file)
        return path.read_text("utf-8")


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenBenchmark(Benchmark):
    """A table that is given with its schema, and is in no data folder.

    Attributes:
        given_schema: The schema.
        given_rows: The rows.
    """

    given_schema: Schema
    given_rows: pa.Table

    def schema(self, folder: Path | None) -> Schema:
        """Return the schema."""
        return self.given_schema

    def rows(self, folder: Path | None) -> pa.Table:
        """Return the rows."""
        return self.given_rows


def _grouped(rows: pa.Table, name: str, groups: Mapping[str, str]) -> pa.Table:
    """Replace the values of a column by the groups that they are in."""
    found = [groups.get(value) for value in rows[name].to_pylist()]
    return rows.set_column(rows.column_names.index(name), name, pa.array(found, pa.string()))


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
            schema_text=LOANS_SCHEMA,
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
            groups=_MARITAL_GROUPS,
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

"""The benchmarks that are compared on unless others are named."""

_FURTHER = (
    Benchmark(
        name="adult-all",
        predicts="Does a person earn more than 50,000 dollars a year?",
        source="UCI Adult with all of its rows; answers that are missing are a category",
        target="income",
        records=48_842,
        file="adult.parquet",
        schema_file="adult_all.toml",
    ),
    Benchmark(
        name="acs",
        predicts="Does a person have an income of more than 25,000 dollars a year?",
        source="American Community Survey of 2019 in 20 areas (NIST's excerpt), people whose "
        "income is recorded; income, its rank and its ratio to the poverty line are left out",
        target="income",
        records=23_006,
        file="nist_acs_national2019.parquet",
        schema_file="acs.toml",
        derive=_with_income_class,
        derive_from="PINCP",
    ),
    Benchmark(
        name="privbayes-acs",
        predicts="Is a household's column a04 a 1 (most likely: does it pay a mortgage)?",
        source="American Community Survey with 23 binary columns, a benchmark of PrivBayes; its "
        "columns have no names, and a04 is 1 only where a03 is, as a mortgage needs an owner",
        target="a04",
        records=47_461,
        file="privbayes_acs.parquet",
        schema_file="privbayes_acs.toml",
    ),
    Benchmark(
        name="bank-poutcome",
        predicts="How did the last campaign end for a customer: a success, a failure, other, "
        "unknown?",
        source="UCI Bank Marketing, with the outcome of the previous campaign as the class",
        target="poutcome",
        records=45_211,
        file="bank_full.parquet",
        schema_file="bank.toml",
    ),
    Benchmark(
        name="census-school",
        predicts="Was a person enrolled in a high school, in a college, or not asked?",
        source="UCI Census-Income (KDD), test part, with enrollment last week as the class",
        target="enroll_in_edu_inst_last_wk",
        records=99_762,
        file="census_income_kdd_test.parquet",
        schema_file="census_income.toml",
    ),
    Benchmark(
        name="census-employment",
        predicts="Is a person employed, unemployed, not in the labor force, or not asked?",
        source="UCI Census-Income (KDD), test part, with employment in four groups as the class; "
        "the reason for unemployment is left out",
        target="full_or_part_time_employment_stat",
        records=99_762,
        file="census_income_kdd_test.parquet",
        schema_file="census_income.toml",
        groups=_EMPLOYMENT_GROUPS,
        without=("reason_for_unemployment",),
    ),
    Benchmark(
        name="simulated-binary",
        predicts="Which of two classes is a simulated point of?",
        source="Simulated points with 20 numeric columns, 5 of which decide and 3 follow them",
        target="label",
        records=50_000,
        make=partial(labeled_points, classes=2),
        schema_text=labeled_points_schema(2),
    ),
    Benchmark(
        name="simulated-multiclass",
        predicts="Which of five classes is a simulated point of?",
        source="Simulated points with 20 numeric columns, 5 of which decide and 3 follow them",
        target="label",
        records=50_000,
        make=partial(labeled_points, classes=5),
        schema_text=labeled_points_schema(5),
    ),
)
ALL_BENCHMARKS = BENCHMARKS | {benchmark.name: benchmark for benchmark in _FURTHER}
"""All benchmarks that can be named."""


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

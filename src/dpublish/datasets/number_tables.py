"""Tables for range counts: some public, others simulated."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.schema import Schema
from dpublish.data.schema_file import from_dict
from dpublish.datasets.gaussian_copula import (
    VALUES,
    Marginal,
    gaussian_copula,
    gaussian_copula_schema,
)
from dpublish.datasets.parquet_files import missing_file, read_file

MADE_UP_COLUMNS = 8


@dataclass(frozen=True)
class NumberTable:
    """A table of columns with an order: numbers, and perhaps a few with two values.

    Attributes:
        name: What the command line calls it.
        title: What it holds, in words.
        records: How many rows it has; public, like all of it.
        file: Its Parquet file, or None if it is simulated.
        schema_file: Its schema among this package's files, or None if it is simulated.
        marginal: The shape of the marginals, if it is simulated.
        read: The columns of the file that `derive` needs; those of the schema if none is named.
        derive: What is done to the rows before use.
    """

    name: str
    title: str
    records: int
    file: str | None = None
    schema_file: str | None = None
    marginal: Marginal = "gaussian"
    read: tuple[str, ...] = ()
    derive: Callable[[pa.Table], pa.Table] | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether rows and columns can be as many as one likes."""
        return self.file is None

    @property
    def schema(self) -> Schema:
        """The columns and their bounds."""
        if self.schema_file is None:
            return gaussian_copula_schema(MADE_UP_COLUMNS)
        path = files("dpublish.datasets").joinpath("schemas", self.schema_file)
        return from_dict(tomllib.loads(path.read_text("utf-8")))

    def missing_file(self, folder: Path | None) -> str | None:
        """Name the file that the folder lacks, if any."""
        return missing_file(self.file, folder)

    def rows(self, folder: Path | None) -> pa.Table:
        """Read the rows, or simulate them."""
        if self.is_simulated:
            return self.simulate(self.records, MADE_UP_COLUMNS)
        wanted = self.read or self.schema.names
        rows = read_file(self.name, self.file, folder, wanted)
        return rows if self.derive is None else self.derive(rows).select(self.schema.names)

    def simulate(self, records: int, columns: int) -> pa.Table:
        """Simulate rows with the table's marginals."""
        return gaussian_copula(records, columns, marginal=self.marginal)


def _complete_people(rows: pa.Table) -> pa.Table:
    """Leave out incomplete records, and group marital status into married or not."""
    married = pc.if_else(pc.is_in(rows["MSP"], pa.array(["1", "2"])), "yes", "no")
    known = pc.if_else(pc.is_valid(rows["MSP"]), married, None)
    return rows.append_column("MARRIED", known).drop_null()


def _simulated(name: str, marginal: Marginal, shape: str) -> NumberTable:
    return NumberTable(
        name=name,
        title=f"simulated rows of {MADE_UP_COLUMNS} columns with {VALUES:,} values each, "
        f"{shape} marginals and Gaussian dependence",
        records=50_000,
        marginal=marginal,
    )


NUMBER_TABLES = {
    table.name: table
    for table in (
        _simulated("simulated", "gaussian", "bell-shaped"),
        _simulated("simulated-uniform", "uniform", "even"),
        _simulated("simulated-zipf", "zipf", "steeply falling (Zipf's distribution)"),
        NumberTable(
            name="adult-numbers",
            title="people of UCI Adult: age, years of education, hours of work and capital gains",
            records=48_842,
            file="adult.parquet",
            schema_file="adult_numbers.toml",
        ),
        NumberTable(
            name="us-census",
            title="people of UCI Census-Income (1994 and 1995): age, occupation, wage per hour "
            "and sex",
            records=99_762,
            file="census_income_kdd_test.parquet",
            schema_file="us_census.toml",
        ),
        NumberTable(
            name="acs-people",
            title="people of the American Community Survey of 2019 who answered all of age, sex, "
            "difficulty walking, marital status, children, education, poverty and income",
            records=21_214,
            file="nist_acs_national2019.parquet",
            schema_file="acs_people.toml",
            read=("AGEP", "SEX", "DPHY", "MSP", "NOC", "EDU", "POVPIP", "PINCP"),
            derive=_complete_people,
        ),
    )
}

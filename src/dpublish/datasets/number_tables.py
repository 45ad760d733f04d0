"""Tables of numbers for range counts: one public, others simulated."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import pyarrow as pa

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
    """A table of numbers.

    Attributes:
        name: What the command line calls it.
        title: What it holds, in words.
        records: How many rows it has; public, like all of it.
        make: Simulates so many rows, or None.
        file: Its Parquet file, or None if it is simulated.
        schema_file: Its schema among this package's files, or None if it is simulated.
    """

    name: str
    title: str
    records: int
    make: Callable[[int], pa.Table] | None = None
    file: str | None = None
    schema_file: str | None = None

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
        if self.make is not None:
            return self.make(self.records)
        return read_file(self.name, self.file, folder, self.schema.names)


def _simulated(name: str, marginal: Marginal, shape: str) -> NumberTable:
    return NumberTable(
        name=name,
        title=f"simulated rows of {MADE_UP_COLUMNS} columns with {VALUES:,} values each, "
        f"{shape} marginals and Gaussian dependence",
        records=50_000,
        make=partial(gaussian_copula, columns=MADE_UP_COLUMNS, marginal=marginal),
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
    )
}

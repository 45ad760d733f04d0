"""Where a command reads private rows from: files, databases, object stores, Apache Spark."""

import glob
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpublish.cli.group import complete_files
from dpublish.cli.step_options import NO_STEPS, RecordSteps, step_options
from dpublish.errors import InvalidParameter

if TYPE_CHECKING:
    from dpublish.data.schema import Schema
    from dpublish.data.table import Table

F = TypeVar("F", bound=Callable[..., Any])
LOCAL, SPARK = "local", "spark"
_DATABASES = ("postgres://", "postgresql://", "adbc:")
_OTHER_FILES = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz", ".arrow", ".feather", ".duckdb")

table_option = click.option(
    "--table", "table_name", help="Which table of a database, or of Spark's catalog."
)
sql_option = click.option(
    "--sql",
    help="A SELECT whose rows are the records to protect: each must be made from one record.",
)


@dataclass(frozen=True)
class Rows:
    """The rows that a command was told to read; nothing is opened yet."""

    data: str | None
    table_name: str | None
    sql: str | None
    engine: str
    threads: int | None
    spark_master: str | None
    spark_settings: tuple[str, ...]
    steps: RecordSteps = NO_STEPS

    def open(self, schema: "Schema") -> "Table":
        """Open the table: names and types of columns are looked at, and no row is read."""
        if self.data == "-":
            raise InvalidParameter(
                "standard input is for `dpublish stream next` only; name a file: --data people.csv"
            )
        return self._open_spark(schema) if self.engine == SPARK else self._open_local(schema)

    def _refuse_local_options(self) -> None:
        """Refuse what Spark does not take, before it is started, which takes seconds."""
        if self.sql is not None:
            raise InvalidParameter(
                "--sql is for the local engine; make a view of the query in Spark and name it with "
                "--table"
            )
        if self.threads is not None:
            raise InvalidParameter(
                "--threads is for the local engine; Spark's cores are those of --spark-master "
                "local[4]"
            )
        if self.data is None:
            return
        if self.data.startswith(_DATABASES):
            raise InvalidParameter("a database is read without Spark; leave out --engine spark")
        if self.data.endswith(_OTHER_FILES):
            raise InvalidParameter(
                "--engine spark reads Parquet, and --data names something else; leave out "
                "--engine spark, or convert the file"
            )
        if "://" not in self.data and not glob.glob(self.data):
            raise InvalidParameter(f"there is no file or folder {self.data}")

    def _open_local(self, schema: "Schema") -> "Table":
        from dpublish.data.sources import open_table

        if self.spark_master is not None or self.spark_settings:
            raise InvalidParameter("--spark-master and --spark-set go with --engine spark")
        if self.data is None and self.sql is None:
            raise InvalidParameter("name the rows: --data people.csv, or a query with --sql")
        return open_table(
            self.data,
            schema,
            table=self.table_name,
            sql=self.sql,
            threads=self.threads,
            **self.steps.options(),
        )

    def _open_spark(self, schema: "Schema") -> "Table":
        from dpublish.data.engines.spark_session import open_spark

        self._refuse_local_options()
        if (self.data is None) == (self.table_name is None):
            raise InvalidParameter(
                "Spark reads Parquet files (--data 's3a://bucket/part-*.parquet') or a table of "
                "its catalog (--table visits); name one of them"
            )
        return open_spark(
            self.data,
            schema,
            table=self.table_name,
            master=self.spark_master or "local[*]",
            settings=_pairs(self.spark_settings),
            **self.steps.options(),
        )


def source_options(function: F) -> F:
    """Add the options that say which rows to read; the command gets them as `rows`."""

    @wraps(function)
    def with_rows(
        *args: Any,
        data: str | None,
        table_name: str | None,
        sql: str | None,
        engine: str,
        threads: int | None,
        spark_master: str | None,
        spark_settings: tuple[str, ...],
        steps: RecordSteps,
        **others: Any,
    ) -> Any:
        rows = Rows(data, table_name, sql, engine, threads, spark_master, spark_settings, steps)
        return function(*args, rows=rows, **others)

    options = (
        click.option(
            "--data",
            help="CSV, Parquet, Arrow or .duckdb file, a glob, postgresql://HOST/DATABASE, "
            "adbc:DRIVER:ADDRESS, or an object store (s3://BUCKET/part-*.parquet).",
            shell_complete=complete_files,
        ),
        table_option,
        sql_option,
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            help="Cores to use on two million rows or more; all of them if absent. The result is "
            "the same.",
        ),
        click.option(
            "--engine",
            type=click.Choice([LOCAL, SPARK]),
            default=LOCAL,
            show_default=True,
            help="Where sums run.",
        ),
        click.option(
            "--spark-master", help="local[4] or spark://HOST:PORT; all local cores if absent."
        ),
        click.option(
            "--spark-set",
            "spark_settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="A setting of Spark, such as spark.executor.memory=4g.",
        ),
    )
    decorated: Any = step_options(with_rows)
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (name, has_value, _) in zip(texts, pairs, strict=True):
        if not has_value or not name.startswith("spark."):
            raise InvalidParameter(f"--spark-set {text!r} must look like spark.name=value")
    return {name: value for name, _, value in pairs}

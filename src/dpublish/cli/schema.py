"""`dpublish schema`: describe a table from public knowledge."""

from pathlib import Path

import click

from dpublish.cli.group import Group, complete_files
from dpublish.cli.output import json_option, say, say_json
from dpublish.cli.schema_bounds import bounds
from dpublish.cli.source_options import sql_option, table_option
from dpublish.data.check import check_table
from dpublish.data.draft import draft_schema
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import source_columns
from dpublish.errors import InvalidSchema
from dpublish.storage.files import require_writable, write_text

NOT_PRIVATE = "NOT PRIVATE: what follows was learned from rows; it is for the owner only"


@click.group(cls=Group)
def schema() -> None:
    """Describe a table from public knowledge: kinds, bounds, categories, taxonomies."""


schema.add_command(bounds)


@schema.command()
@click.argument("data", shell_complete=complete_files)
@click.option(
    "-o",
    "--output",
    required=True,
    help="The schema file to create.",
    shell_complete=complete_files,
)
@table_option
@sql_option
def draft(data: str, output: str, table_name: str | None, sql: str | None) -> None:
    """Write a schema with names and types of columns.

    Bounds and categories are for you to fill in, from public knowledge.
    """
    path = Path(output)
    require_writable(path)
    text = draft_schema(source_columns(data, table=table_name, sql=sql))
    write_text(path, text)
    say(f"wrote {output}; fill in bounds and values from public knowledge, then:")
    say(f"  dpublish schema check {output} {data}{_option('--table', table_name)}")


@schema.command()
@click.argument("schema_path", shell_complete=complete_files)
@click.argument("data", required=False, shell_complete=complete_files)
@table_option
@sql_option
@json_option
def check(
    schema_path: str,
    data: str | None,
    table_name: str | None,
    sql: str | None,
    as_json: bool,
) -> None:
    """Check a schema and, with DATA, that the table fits it.

    With DATA this reads rows, so the output is NOT PRIVATE: for the owner only.  No value of a
    row is printed.
    """
    loaded = _load(schema_path, as_json=as_json)
    findings = check_table(loaded, data, table=table_name, sql=sql) if data else []
    if as_json:
        say_json(
            {
                **({"stamp": NOT_PRIVATE} if data else {}),
                "columns": list(loaded.names),
                "findings": [
                    {"column": f.column, "problem": f.problem, "serious": f.is_serious}
                    for f in findings
                ],
            }
        )
    else:
        say(f"{schema_path} is complete: {len(loaded.names):,} columns")
        if data:
            say(NOT_PRIVATE)
        for finding in findings:
            say(f"  {finding.column}: {finding.problem}")
        if data and not findings:
            say("  the table fits the schema")
    if any(finding.is_serious for finding in findings):
        raise InvalidSchema(f"{data} does not fit {schema_path}; mend the table or the schema")


def _option(name: str, value: str | None) -> str:
    return "" if value is None else f" {name} {value}"


def _load(path: str, *, as_json: bool) -> Schema:
    """Read a schema; several faults are listed line by line."""
    try:
        return load_schema(path)
    except InvalidSchema as error:
        first, *rest = str(error).splitlines()
        faults = [line.strip() for line in rest]
        if as_json:
            say_json({"columns": [], "findings": [], "errors": faults or [first]})
        for line in () if as_json else faults:
            say(f"  {line}")
        raise InvalidSchema(first) from None


@schema.command()
@click.argument("schema_path", shell_complete=complete_files)
@click.argument("column", required=False)
def show(schema_path: str, column: str | None) -> None:
    """Show each column's domain, and taxonomies as trees."""
    loaded = load_schema(schema_path)
    for name in [column] if column else loaded.names:
        item = loaded[name]
        say(f"{name}: {item.kind}, {item.size:,} values, levels 0 to {item.height}")
        for line in item.taxonomy.lines():
            say(line)

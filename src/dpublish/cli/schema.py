"""`dpublish schema`: describe a table from public knowledge."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dpublish.cli.group import Group, complete_files
from dpublish.cli.output import json_option, say, say_json
from dpublish.cli.schema_bounds import bounds
from dpublish.cli.source_options import sql_option, table_option
from dpublish.cli.step_options import RecordSteps, step_options
from dpublish.data.check import Finding, TableCheck, inspect_table
from dpublish.data.draft import draft_schema
from dpublish.data.fact_counts import FactCount, stated_facts
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import proposable_columns
from dpublish.data.statements import KnownTotal
from dpublish.data.table_counts import ColumnCounts
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

    What public facts say of a name is filled in: ages lie between 0 and 120, months are twelve.
    All other bounds and categories are for you to fill in, from public knowledge; to be asked for
    them one by one, use `dpublish init`.
    """
    path = Path(output)
    require_writable(path)
    text = draft_schema(proposable_columns(data, table=table_name, sql=sql))
    write_text(path, text)
    say(f"wrote {output}; fill in bounds and values from public knowledge, then:")
    say(f"  dpublish schema check {output} {data}{_option('--table', table_name)}")


@schema.command()
@click.argument("schema_path", shell_complete=complete_files)
@click.argument("data", required=False, shell_complete=complete_files)
@table_option
@sql_option
@step_options
@json_option
def check(
    schema_path: str,
    data: str | None,
    table_name: str | None,
    sql: str | None,
    steps: RecordSteps,
    as_json: bool,
) -> None:
    """Check a schema and, with DATA, that the table fits it.

    With DATA this reads rows, so the output is NOT PRIVATE: for the owner only.  It tells how
    many values are missing, clipped or not listed and what to write instead, how many rows
    people have, and how many contradict what the schema states; no value of a row is printed.
    """
    loaded = _load(schema_path, as_json=as_json)
    found = None
    if data:
        found = inspect_table(loaded, data, table=table_name, sql=sql, **steps.options())
    findings = () if found is None else found.findings
    if as_json:
        says = {"columns": list(loaded.names), **_told_statements(loaded)}
        say_json({**_told(found), **says, **_told_findings(findings)})
    else:
        say(f"{schema_path} is complete: {len(loaded.names):,} columns")
        for fact in stated_facts(loaded):
            say(f"  {fact.describe()}")
        _say_check(found)
    if any(finding.is_serious for finding in findings):
        raise InvalidSchema(f"{data} does not fit {schema_path}; mend the table or the schema")


def _told(found: TableCheck | None) -> dict[str, Any]:
    """Return what was counted, for JSON."""
    if found is None:
        return {}
    return {
        "stamp": NOT_PRIVATE,
        "rows": found.rows,
        "left_out": found.left_out,
        "counts": {each.column: _counted(each) for each in found.columns},
        **({} if found.units is None else {"units": asdict(found.units)}),
        **({"stated": [*map(_told_fact, found.facts)]} if found.facts else {}),
    }


def _told_fact(count: FactCount) -> dict[str, Any]:
    key = "counted" if isinstance(count.fact, KnownTotal) else "contradicted"
    return {"statement": count.fact.describe(), key: count.rows}


def _told_statements(loaded: Schema) -> dict[str, Any]:
    facts = stated_facts(loaded)
    return {"statements": [fact.describe() for fact in facts]} if facts else {}


def _counted(counts: ColumnCounts) -> dict[str, int]:
    return {name: number for name, number in asdict(counts).items() if name != "column"}


def _told_findings(findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "findings": [
            {"column": f.column, "problem": f.problem, "serious": f.is_serious, "advice": f.advice}
            for f in findings
        ]
    }


def _say_check(found: TableCheck | None) -> None:
    if found is None:
        return
    say(NOT_PRIVATE)
    for finding in found.findings:
        say(f"  {finding.column}: {finding.problem}")
        if finding.advice:
            say(f"    {finding.advice}")
    if not found.findings:
        say("  the table fits the schema")


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

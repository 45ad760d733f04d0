"""`dpublish export`: write the tables of a release for other tools; free."""

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import json_option, say, say_json
from dpublish.publishing.export import FORMATS
from dpublish.publishing.export import export as export_release


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.option("--to", required=True, type=click.Choice(FORMATS), help="The format.")
@click.option(
    "-o",
    "--output",
    help="A folder to create, or an .xlsx file; beside the release if absent.",
    shell_complete=complete_files,
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Write this table; repeat for more; all tables if absent.",
)
@click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="Put ' before texts in CSV files that a spreadsheet would run as formulas.",
)
@json_option
def export(
    release: str,
    to: str,
    output: str | None,
    tables: tuple[str, ...],
    for_spreadsheets: bool,
    as_json: bool,
) -> None:
    """Write the tables of a release as CSV, JSON, Parquet or Excel files; free.

    The release is checked first, and stays as it is. Every column is described: in
    datapackage.json, or on the first sheet of the workbook.

    \b
    dpublish export people/ --to csv
    dpublish export people/ --to xlsx -o people.xlsx
    """  # noqa: D301 - click keeps lines after it
    done = export_release(
        release,
        to=to,  # type: ignore[arg-type]  # click has checked it
        output=output,
        tables=tables or None,
        for_spreadsheets=for_spreadsheets,
    )
    if as_json:
        say_json(done.to_dict())
        return
    listed = ", ".join(f"{name} ({rows:,} rows)" for name, rows in done.rows.items())
    say(f"wrote {listed} to {done.path}")

"""`dpublish statistics`: show or export what a release of statistics says; free."""

import csv
import io

import click
import pyarrow as pa

from dpublish.cli.group import complete_files
from dpublish.cli.output import emit, json_option, say, say_json, say_table
from dpublish.core.coverage import not_in_intervals, what_is_counted
from dpublish.core.folder.folder import load
from dpublish.core.folder.manifest import require_outside
from dpublish.core.formulas import without_formulas
from dpublish.errors import InvalidParameter
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.publishing.statistics_tables import (
    statistics_of,
    statistics_rows,
    statistics_table,
)
from dpublish.publishing.table_file import require_new_file, write_table


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.option("--measure", help="Show one measure only, such as mean(age).")
@click.option("--no-totals", is_flag=True, help="Leave out totals over groups.")
@click.option(
    "-o",
    "--output",
    help="A .parquet, .csv or .arrow file to create instead.",
    shell_complete=complete_files,
)
@click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="Put ' before texts that a spreadsheet would run as formulas.",
)
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def statistics(
    release: str,
    measure: str | None,
    no_totals: bool,
    output: str | None,
    for_spreadsheets: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show the statistics of a release by group, with confidence intervals; free.

    \b
    dpublish statistics visits/
    dpublish statistics visits/ --measure "mean(age)" --csv
    dpublish statistics visits/ -o visits.csv --for-spreadsheets
    """  # noqa: D301 - click keeps lines after it
    if as_json + as_csv + (output is not None) > 1:
        raise InvalidParameter("choose one of --json, --csv and --output")
    path = None if output is None else require_new_file(output)
    if path is not None:
        require_outside(path, release)
    loaded = load(release)
    parts = statistics_of(loaded)
    table = statistics_table(loaded, measure, totals=not no_totals)
    table = without_formulas(table) if for_spreadsheets else table
    if path is not None:
        write_table(table, path)
        say(f"wrote {table.num_rows:,} statistics to {output}")
    elif as_json:
        say_json(table.to_pylist())
    elif as_csv:
        _say_csv(table)
    else:
        for name, part in parts:
            _say(part, name, measure, totals=not no_totals)
        say(f"counted: {what_is_counted(loaded)}")


def _say_csv(table: pa.Table) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, table.column_names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.to_pylist())
    emit(text.getvalue())


def _say(release: StatisticsRelease, part: str, measure: str | None, *, totals: bool) -> None:
    if part:
        say(f"{part}, by itself:")
    say_table(*statistics_rows(release, measure, totals=totals))
    percent = f"{100 * float(release.confidence):g} %"
    say(
        f"{percent} confidence intervals, for the statistic of these records after clipping to "
        "the bounds"
    )
    if note := not_in_intervals(release.receipt):
        say(f"  note: {note}")

"""`dpublish statistics`: show or export what a release of statistics says; free."""

import csv
import io

import click
import pyarrow as pa

from dpublish.cli.group import complete_files
from dpublish.cli.output import emit, json_option, say, say_json, say_table
from dpublish.cli.table_file import require_new_file, write_table
from dpublish.core.coverage import not_in_intervals, what_is_counted
from dpublish.core.folder.folder import load
from dpublish.core.folder.manifest import require_outside
from dpublish.core.formulas import without_formulas
from dpublish.core.released import Release
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.statistics.measures import read_measure
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.methods.statistics.report import written


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
    parts = _parts(loaded)
    table = _join([(name, _pick(part, measure, totals=not no_totals)) for name, part in parts])
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


def _parts(release: Release) -> list[tuple[str, StatisticsRelease]]:
    """List the statistics of a release: one, or those of each part of the people, by name."""
    if isinstance(release, StatisticsRelease):
        return [("", release)]
    parts = release.parts if isinstance(release, PersonalizedRelease) else ()
    found = [
        (f"part {number} ({part.level_names})", part.release)
        for number, part in enumerate(parts, 1)
        if isinstance(part.release, StatisticsRelease)
    ]
    if not found:
        raise InvalidParameter(
            f"a release of kind {release.kind!r} has no statistics; try count, rows or report"
        )
    return found


def _join(tables: list[tuple[str, pa.Table]]) -> pa.Table:
    """Set the tables of parts one below the other, with a column that names the part."""
    first, alone = tables[0]
    if not first:  # all people together, not parts of them
        return alone
    named = (
        table.add_column(0, "part", pa.array([name] * table.num_rows, pa.string()))
        for name, table in tables
    )
    return pa.concat_tables(named)


def _pick(release: StatisticsRelease, measure: str | None, *, totals: bool) -> pa.Table:
    table = release.table(totals=totals)
    if measure is None:
        return table
    wanted = _find(release, measure)
    kept = [text == wanted for text in table.column("measure").to_pylist()]
    return table.filter(pa.array(kept, pa.bool_()))


def _find(release: StatisticsRelease, measure: str) -> str:
    wanted = str(read_measure(measure))
    require_known("measure", wanted, release.measures)
    return wanted


def _say_csv(table: pa.Table) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, table.column_names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.to_pylist())
    emit(text.getvalue())


def _say(release: StatisticsRelease, part: str, measure: str | None, *, totals: bool) -> None:
    if part:
        say(f"{part}, by itself:")
    wanted = None if measure is None else _find(release, measure)
    listed = [*release.statistics(), *(release.totals() if totals else ())]
    rows = [
        [*one.group, one.measure, *written(release, one), one.note]
        for one in listed
        if wanted in (None, one.measure)
    ]
    headers = [*(x.column for x in release.axes), "measure", "value", "from", "to", "of", "note"]
    say_table(headers, rows)
    percent = f"{100 * float(release.confidence):g} %"
    say(
        f"{percent} confidence intervals, for the statistic of these records after clipping to "
        "the bounds"
    )
    if note := not_in_intervals(release.receipt):
        say(f"  note: {note}")

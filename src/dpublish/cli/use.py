"""`dpublish rows`, `count` and `predict`: use a release; all of it is free."""

from collections.abc import Iterator
from typing import Any

import click

from dpublish.accuracy.intervals import require_confidence
from dpublish.cli.group import complete_files
from dpublish.cli.output import json_option, say, show_progress
from dpublish.core.folder.folder import load
from dpublish.core.folder.manifest import require_outside
from dpublish.core.formulas import without_formulas
from dpublish.core.released import BATCH_ROWS, Release, in_batches
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.released import LabeledHistogramRelease
from dpublish.publishing.table_file import (
    require_new_file,
    write_batches,
    write_table,
)

_MOST_BATCHES = 8192  # each is a row group of a Parquet file, which costs memory until its end

_table_file = click.option(
    "-o",
    "--output",
    required=True,
    help="A .parquet, .csv or .arrow file to create.",
    shell_complete=complete_files,
)


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.option("-n", "--number", type=int, help="How many rows; as many as were counted if absent.")
@_table_file
@click.option(
    "--where",
    default="",
    metavar="QUERY",
    help="Draw rows that satisfy this query, from releases that can.",
)
@click.option("--seed", type=int, help="Draw the same rows again; harmless here.")
@click.option(
    "--fill", is_flag=True, help="Add predictors that were left out, drawn from their domain."
)
@click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="Put ' before texts that a spreadsheet would run as formulas.",
)
def rows(
    release: str,
    number: int | None,
    output: str,
    where: str,
    seed: int | None,
    fill: bool,
    for_spreadsheets: bool,
) -> None:
    """Draw synthetic rows from a release; free.

    \b
    dpublish rows people/ -n 1000000 -o people.parquet
    dpublish rows people/ -n 5000 --where "sex = Female and age >= 65" -o women.csv
    """  # noqa: D301 - click keeps lines after it
    path = require_new_file(output)
    require_outside(path, release)
    drawn = _draw(load(release), number, seed, where, fill)
    with show_progress() as progress:

        def show(done: int) -> None:
            if progress is not None:
                progress(done, number or 0, f"{done:,} rows")

        written = write_batches(
            map(without_formulas, drawn) if for_spreadsheets else drawn, path, show=show
        )
    say(f"wrote {written:,} synthetic rows to {output}")


def _draw(
    release: Release, number: int | None, seed: int | None, where: str, fill: bool
) -> Iterator[Any]:
    """Draw rows in batches, larger ones where there would be too many."""
    size = max(BATCH_ROWS, -(-(number or 0) // _MOST_BATCHES))
    if not fill:
        return release.row_batches(number, seed=seed, where=where, batch_size=size)
    if not isinstance(release, LabeledHistogramRelease):
        raise InvalidParameter("--fill is for releases that left predictors out")
    if where.strip():
        raise InvalidParameter("choose --fill or --where; draw rows with --fill and filter them")
    return in_batches(release.rows(number, seed=seed, fill=True), size)


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.argument("query", required=False)
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option(
    "--workload",
    help="A file with one query a line; - for standard input.",
    shell_complete=complete_files,
)
@click.option(
    "--schema",
    "schema_path",
    help="Count the rows of a public file by this schema.",
    shell_complete=complete_files,
)
@click.option("--time", help="Which step of a stream; the last one if absent.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print the answers to a workload as CSV.")
def count(
    release: str,
    query: str | None,
    confidence: float,
    workload: str | None,
    schema_path: str | None,
    time: str | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Count the records of a release that satisfy QUERY, with a confidence interval; free.

    With --schema, RELEASE is a file of rows that are public, such as synthetic ones.

    \b
    dpublish count ages/ "age in 30..40 and sex = Female"
    dpublish count ages/ --workload queries.txt --csv
    dpublish count taxis/ "zone = north" --time 2024-05-01T10
    dpublish count synthetic.parquet "age >= 65" --schema people.toml
    """  # noqa: D301 - click keeps lines after it
    from dpublish.cli import answers

    require_confidence(confidence)
    if workload is None:
        if as_csv:
            raise InvalidParameter("--csv is for the answers to a --workload")
        ask = answers.asker(release, schema_path, confidence, time)
        answers.say_answer(query or "", ask(query or ""), as_json)
        return
    if query is not None:
        raise InvalidParameter("give one query or a --workload of many, not both")
    if as_json and as_csv:
        raise InvalidParameter("choose --json or --csv")
    queries = answers.read_workload(workload)
    ask = answers.asker(release, schema_path, confidence, time)
    found = answers.answer_all(ask, queries)
    answers.say_answers(queries, found, as_json=as_json, as_csv=as_csv)


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.argument("rows", shell_complete=complete_files)
@_table_file
def predict(release: str, rows: str, output: str) -> None:
    """Predict the class of each of ROWS with a release; free.

    The output holds the rows and one more column, `predicted_` and the name of the class.

    \b
    dpublish predict incomes/ applicants.csv -o predicted.csv
    """  # noqa: D301 - click keeps lines after it
    from dpublish.evaluation.predicted import predict_file

    path = require_new_file(output)
    require_outside(path, release)
    predicted = predict_file(load(release), rows)
    write_table(predicted, path)
    name = predicted.column_names[-1]
    say(f"wrote {predicted.num_rows:,} rows with the column {name} to {output}")

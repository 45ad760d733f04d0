"""`dpublish rows`, `count` and `report`: use a release; all of it is free."""

import secrets
from pathlib import Path

import click

from dpublish.cli.output import json_option, say, say_json
from dpublish.cli.table_file import require_new_file, write_table
from dpublish.errors import InputError, InvalidParameter
from dpublish.release.folder import load
from dpublish.release.labelled_histogram import LabelledHistogram


@click.command()
@click.argument("release")
@click.option("-n", "--number", type=int, help="How many rows; as many as were counted if absent.")
@click.option("-o", "--output", required=True, help="A .parquet, .csv or .arrow file to create.")
@click.option("--seed", type=int, help="Draw the same rows again; harmless here.")
@click.option(
    "--fill", is_flag=True, help="Add predictors that were left out, drawn from their domain."
)
def rows(release: str, number: int | None, output: str, seed: int | None, fill: bool) -> None:
    """Draw synthetic rows from a release; free."""
    path = require_new_file(output)
    loaded = load(release)
    if not fill:
        table = loaded.rows(number, seed=seed)
    elif isinstance(loaded, LabelledHistogram):
        table = loaded.rows(number, seed=seed, fill=True)
    else:
        raise InvalidParameter("--fill is for releases that left predictors out")
    write_table(table, path)
    say(f"wrote {table.num_rows:,} synthetic rows to {output}")


@click.command()
@click.argument("release")
@click.argument("query", default="")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@json_option
def count(release: str, query: str, confidence: float, as_json: bool) -> None:
    """Ask a release how many records satisfy QUERY, with an error bar; free.

    \b
    dpublish count ages/ "age in 30..40 and sex = Female"
    """  # noqa: D301 - click keeps lines after it
    answer = load(release).count(query, confidence=confidence)
    if as_json:
        say_json(
            {
                "query": query,
                "value": answer.value,
                "low": answer.low,
                "high": answer.high,
                "confidence": answer.confidence,
                "assumption": answer.assumption,
            }
        )
        return
    say(str(answer))
    if answer.assumption:
        say(f"  note: {answer.assumption}")


@click.command()
@click.argument("release")
@click.option("-o", "--output", help="Where to write it; report.html inside the release if absent.")
def report(release: str, output: str | None) -> None:
    """Write or rewrite a release's page; free."""
    from dpublish.report.page import render_report

    page = render_report(load(release))
    path = Path(output) if output else Path(release) / "report.html"
    try:
        # A new file takes the old one's place: a link there would lead elsewhere.
        draft = path.with_name(f".{secrets.token_hex(8)}.html")
        draft.write_text(page, "utf-8", "replace")
        draft.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path} ({error.strerror or 'unknown reason'})") from None
    say(f"wrote {path}")

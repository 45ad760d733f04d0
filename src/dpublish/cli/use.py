"""`dpublish rows`, `count` and `report`: use a release; all of it is free."""

import secrets
from pathlib import Path

import click
import pyarrow as pa

from dpublish.cli.output import json_option, say, say_json
from dpublish.errors import InputError, InvalidParameter
from dpublish.release.folder import load


@click.command()
@click.argument("release")
@click.option("-n", "--number", type=int, help="How many rows; as many as were counted if absent.")
@click.option("-o", "--output", required=True, help="A .parquet, .csv or .arrow file to create.")
@click.option("--seed", type=int, help="Draw the same rows again; harmless here.")
def rows(release: str, number: int | None, output: str, seed: int | None) -> None:
    """Draw synthetic rows from a release; free."""
    path = Path(output)
    if path.suffix not in (".parquet", ".csv", ".arrow"):
        raise InvalidParameter(f"{output}: name a file ending in .parquet, .csv or .arrow")
    if path.exists():
        raise InvalidParameter(f"{output} exists already; name a file that does not exist yet")
    table = load(release).rows(number, seed=seed)
    try:
        _write(table, path)
    except OSError as error:
        raise InputError(f"cannot write {output} ({error.strerror or 'unknown reason'})") from None
    say(f"wrote {table.num_rows:,} synthetic rows to {output}")


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif path.suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, str(path), compression="uncompressed")


@click.command()
@click.argument("release")
@click.argument("query", default="")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@json_option
def count(release: str, query: str, confidence: float, as_json: bool) -> None:
    r"""Ask a release how many records satisfy QUERY, with an error bar; free.

    \b
    dpublish count ages/ "age in 30..40 and sex = Female"
    """
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

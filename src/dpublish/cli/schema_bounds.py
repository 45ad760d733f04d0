"""`dpublish schema bounds`: measure bounds that no one knows, and enter them in the schema."""

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import account_options, json_option, say, say_json, standing
from dpublish.cli.source_options import Rows, source_options
from dpublish.core.coverage import what_is_counted
from dpublish.core.method import ExpectedError
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.bounds.released import BoundsRelease
from dpublish.privacy.epsilon import format_epsilon, format_rounded
from dpublish.publishing import predict, read_epsilon
from dpublish.publishing.bounds import NumberKind, request_bounds


@click.command()
@click.argument("path", metavar="DATA", required=False, shell_complete=complete_files)
@source_options
@click.option(
    "--schema",
    "schema_path",
    required=True,
    help="The schema file, in which the bounds are entered.",
    shell_complete=complete_files,
)
@click.option("--column", required=True, help="Column that has no bounds yet.")
@click.option(
    "--kind",
    type=click.Choice(["numeric", "integer", "date", "datetime"]),
    help="Of a column that the schema does not name; numeric if absent.",
)
@click.option("--epsilon", required=True, help='What to spend, exactly: 0.05, or "1/20".')
@click.option(
    "--coverage",
    default="0.99",
    show_default=True,
    help="Part of the values that should lie within the bounds.",
)
@click.option("--lower", help="The lower bound, if it is publicly known: 0, or 2020-01-01.")
@click.option("--upper", help="The upper bound, if it is publicly known.")
@click.option("--nonnegative", is_flag=True, help="It is publicly known that no value is below 0.")
@click.option(
    "--contribution", help="Most records of each person that are kept, if the schema names a unit."
)
@click.option("--rows", "n_records", type=int, help="Roughly how many records, if that is public.")
@account_options
@click.option(
    "-o",
    "--output",
    help="The release folder to create, with the receipt; beside the schema if absent.",
    shell_complete=complete_files,
)
@json_option
def bounds(
    path: str | None,
    rows: Rows,
    schema_path: str,
    column: str,
    kind: NumberKind | None,
    epsilon: str,
    coverage: str,
    lower: str | None,
    upper: str | None,
    nonnegative: bool,
    contribution: str | None,
    n_records: int | None,
    ledger_path: str,
    dataset: str,
    purpose: str,
    all_have_levels: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Measure bounds that no one knows, and enter them in the schema.

    Chooses round numbers that most values lie between.  Spends epsilon from the ledger; the
    receipt is in the release folder, beside the schema unless -o names another one.

    \b
    dpublish schema bounds visits.parquet --schema visits.toml --column cost --lower 0 \\
        --epsilon 0.05 --ledger books.db --dataset visits
    """  # noqa: D301 - click keeps lines after it
    rows = _named_once(rows, path)
    request = request_bounds(
        schema_path,
        column,
        kind=kind,
        coverage=coverage,
        lower=lower,
        upper=upper,
        nonnegative=nonnegative,
        contribution=contribution,
    )
    exact = read_epsilon(epsilon)
    expected = predict(request.method, request.schema, n_records, exact)
    folder = Path(output) if output else request.folder
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(ledger_path))
        table = stack.enter_context(closing(rows.open(request.schema)))
        published = request.run(
            table,
            folder,
            ledger=ledger,
            dataset=dataset,
            epsilon=exact,
            purpose=purpose,
            all_have_levels=all_have_levels,
        )
        with standing(f"{folder} is published and {schema_path} is written; do not repeat this"):
            left = ledger.status(dataset).left
            if as_json:
                say_json(_told_bounds(published, str(folder), expected, format_epsilon(left)))
                return
            say(f"entered bounds = {[*published.bounds]} of {column} in {schema_path}")
            for name, text in published.summary().items():
                say(f"  {name}: {text}")
            if n_records:
                say(f"  expected: {expected.summary}")
            say(f"  in it: {what_is_counted(published)}")
            say(f"  hidden: {published.receipt.neighbors.brief()}")
            say(f"  receipt: {folder / 'release.json'}")
            spent = format_rounded(exact)
            say(f"  spent: epsilon {spent}; left for {dataset}: {format_rounded(left)}")


def _named_once(rows: Rows, path: str | None) -> Rows:
    """Take the rows from the argument or from --data."""
    if path is not None and rows.data is not None:
        raise InvalidParameter("the rows are named twice; leave out --data")
    return rows if path is None else replace(rows, data=path)


def _told_bounds(
    published: BoundsRelease, folder: str, expected: ExpectedError, left: str
) -> dict[str, Any]:
    return {
        "path": folder,
        "column": published.column,
        "bounds": [*published.bounds],
        "receipt": published.receipt.to_dict(),
        "expected_error": dict(expected.figures),
        "left": left,
    }

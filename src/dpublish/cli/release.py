"""`dpublish release`: publish from a table, paid for from the ledger."""

from contextlib import ExitStack

import click

from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    method_options,
    progress_bar,
    say,
    say_json,
    settings_from,
)
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import open_table
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.ledger import Ledger
from dpublish.publishing import publish
from dpublish.recipes import make_recipe


@click.command(context_settings=dict(FREE_SETTINGS))
@method_options
@click.option("--data", required=True, help="CSV, Parquet, Arrow or .duckdb file, or a glob.")
@click.option("--table", "table_name", help="Which table of a .duckdb file.")
@click.option("--epsilon", required=True, help='What to spend, exactly: 0.5, or "1/3".')
@click.option("--ledger", "ledger_path", required=True, help="The ledger file.")
@click.option("--dataset", required=True, help="Whose allowance pays, by its name in the ledger.")
@click.option("--purpose", default="", help="What it is for; kept in the ledger.")
@click.option("-o", "--output", required=True, help="The release folder to create.")
@json_option
@click.pass_context
def release(
    ctx: click.Context,
    method: str,
    schema_path: str,
    pairs: tuple[str, ...],
    data: str,
    table_name: str | None,
    epsilon: str,
    ledger_path: str,
    dataset: str,
    purpose: str,
    output: str,
    as_json: bool,
) -> None:
    """Publish from a table, paid for from the ledger.

    The method's own settings are options too: `dpublish methods NAME` lists them.

    \b
    dpublish release --method histogram --columns age,sex --data people.csv \\
        --schema people.toml --epsilon 0.5 --ledger books.db --dataset people -o ages/
    """  # noqa: D301 - click keeps lines after it
    recipe = make_recipe(method, settings_from(ctx.args, pairs))
    exact = parse_epsilon(epsilon)
    schema = load_schema(schema_path)
    table = open_table(data, schema, table=table_name)
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(ledger_path))
        progress = stack.enter_context(progress_bar())
        published = publish(
            recipe,
            table,
            output,
            ledger=ledger,
            dataset=dataset,
            epsilon=exact,
            purpose=purpose,
            progress=progress,
        )
        left = ledger.status(dataset).left
    if as_json:
        say_json(
            {
                "path": output,
                "kind": published.kind,
                "receipt": published.receipt.to_plain(),
                "expected_error": published.expected_error(),
                "left": format_epsilon(left),
            }
        )
        return
    say(f"published {output}  (open {output.rstrip('/')}/report.html)")
    for name, text in published.summary().items():
        say(f"  {name}: {text}")
    say(f"  spent: epsilon {format_epsilon(exact)}; left for {dataset}: {format_epsilon(left)}")

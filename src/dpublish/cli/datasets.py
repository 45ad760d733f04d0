"""`dpublish datasets`: simulated tables to try everything on."""

from pathlib import Path

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import say, say_table

CAP = "10"


@click.command()
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write the table: .csv or .parquet, or a folder for a stream.  "
    "NAME.csv by default; the schema lies beside it.",
    shell_complete=complete_files,
)
@click.option("--records", type=int, help="How many people, patients, baskets or drivers.")
@click.option("--seed", default=2024, show_default=True, help="The same seed, the same rows.")
@click.option(
    "--ledger",
    metavar="FILE",
    help=f"Also keep a ledger for the table, with a cap of {CAP}; created if it is not there.",
    shell_complete=complete_files,
)
@click.option("--fresh", is_flag=True, help="Replace files that are there.")
def datasets(
    name: str | None,
    output: str | None,
    records: int | None,
    seed: int,
    ledger: str | None,
    fresh: bool,
) -> None:
    """Write a simulated table and its schema, to try dpublish on; without NAME, list them.

    No person in these tables exists.

    \b
    dpublish datasets census --ledger books.db
    dpublish datasets hospital -o visits.parquet --records 1000
    """  # noqa: D301 - click keeps lines after it
    if name is None:
        _list()
        return
    from dpublish.datasets.files import STREAMS, write_dataset

    path = Path(output or ("hours" if name in STREAMS else f"{name}.csv"))
    written = write_dataset(name, path, records=records, seed=seed, overwrite=fresh)
    folder = "/" if name in STREAMS else ""
    say(f"wrote {written.records:,} rows to {written.data}{folder}, the schema to {written.schema}")
    if ledger is not None:
        _keep_account(Path(ledger), name)


def _list() -> None:
    from dpublish.datasets.files import SAMPLES

    rows = [[name, f"{each.records:,}", each.about] for name, each in SAMPLES.items()]
    say_table(["dataset", "size", "what it holds"], rows)


def _keep_account(path: Path, name: str) -> None:
    """Add the table to a ledger, unless it is there."""
    from dpublish.datasets.files import LEVELS
    from dpublish.ledger.ledger import Ledger

    with Ledger(path) if path.exists() else Ledger.create(path) as ledger:
        if name in ledger.datasets():
            say(f"{path} has an account of {name} already")
            return
        if name == "town":
            ledger.add(name, levels=LEVELS)
            say(f"{path} keeps account of {name}, by levels {', '.join(LEVELS)}")
        else:
            ledger.add(name, cap=CAP)
            say(f"{path} keeps account of {name}: epsilon {CAP} in all")

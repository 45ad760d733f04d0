"""`dpublish predict`: classify rows with a release; free."""

import click

from dpublish.cli.output import say
from dpublish.cli.table_file import require_new_file, write_table
from dpublish.core.folder.folder import load
from dpublish.core.folder.manifest import require_outside
from dpublish.errors import InvalidParameter
from dpublish.evaluation.evaluations import target_of
from dpublish.evaluation.true_rows import read_rows


@click.command()
@click.argument("release")
@click.argument("rows")
@click.option("-o", "--output", required=True, help="A .parquet, .csv or .arrow file to create.")
def predict(release: str, rows: str, output: str) -> None:
    """Predict the class of each of ROWS with a release; free.

    The output holds the rows and one more column, `predicted_` and the name of the class.

    \b
    dpublish predict incomes/ applicants.csv -o predicted.csv
    """  # noqa: D301 - click keeps lines after it
    path = require_new_file(output)
    require_outside(path, release)
    loaded = load(release)
    given = read_rows(rows)
    name = f"predicted_{target_of(loaded) or 'class'}"
    if name in given.column_names:
        raise InvalidParameter(f"{rows} has a column {name!r} already; rename it")
    write_table(given.append_column(name, loaded.predict(given)), path)
    say(f"wrote {given.num_rows:,} rows with the column {name} to {output}")

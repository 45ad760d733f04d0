"""`dpublish wavecluster`: clusters of any shape in a release, or in public rows; no noise."""

from typing import Any

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.core.folder.folder import load
from dpublish.core.folder.manifest import require_outside
from dpublish.core.settings import build
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.wavecluster.plain import PlainWaveCluster, WaveClusters
from dpublish.publishing.table_file import require_new_file, write_table

_MOST_SHOWN = 20


@click.command("wavecluster")
@click.argument("source", shell_complete=complete_files)
@click.option(
    "--schema",
    "schema_path",
    help="SOURCE is a file of public rows with this schema.",
    shell_complete=complete_files,
)
@click.option("--columns", help="Columns of numbers: x,y; all of them if absent.")
@click.option("--cells", help="Cells along each column, 40, or for each of them: 64,32")
@click.option(
    "--percentile", help="Part of the filled cells that is too sparse (p); 0.1 if absent."
)
@click.option("--wavelet", help="haar, db2, bior2.2 and so on; haar if absent.")
@click.option("--levels", help="How often the wavelet halves each axis; once if absent.")
@click.option("--adjacency", help="full (corners connect, the default) or face.")
@click.option("--min-cells", help="Drop clusters of fewer coefficients than this.")
@click.option("--from-rows", is_flag=True, help="Draw rows from the release, even if it counts.")
@click.option("--seed", type=int, help="Draw the same rows again; harmless here.")
@click.option("-o", "--output", help="A .parquet, .csv or .arrow file of labeled cells to create.")
@json_option
def wavecluster(
    source: str,
    schema_path: str | None,
    from_rows: bool,
    seed: int | None,
    output: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Run plain WaveCluster on a release of any method; free, for it reads what is published.

    With --schema, SOURCE is a file of rows.  Nothing hides them: they must be public.

    \b
    dpublish wavecluster checkins/ --columns lon,lat --cells 128,64 -o cells.csv
    dpublish wavecluster points.csv --schema points.toml --percentile 0.3
    """  # noqa: D301 - click keeps lines after it
    path = None if output is None else require_new_file(output)
    given = {name: value for name, value in settings.items() if value is not None}
    plain = build(PlainWaveCluster, "wavecluster", given)
    if schema_path is not None:
        if from_rows:
            raise InvalidParameter("--from-rows is for releases; a file has rows anyway")
        found = plain.of_rows(source, Schema.read(schema_path))
    else:
        if path is not None:
            require_outside(path, source)
        found = plain.of_release(load(source), from_rows=from_rows, seed=seed)
    if path is not None:
        write_table(found.tables()["cells"], path)
    _show(found, as_json, is_public=schema_path is not None, output=output)


def _show(found: WaveClusters, as_json: bool, *, is_public: bool, output: str | None) -> None:
    clusters = found.tables()["clusters"].to_pylist()
    if as_json:
        say_json({"clusters": clusters, "significant": found.significant, "is_public": is_public})
        return
    rows = [
        [str(one["cluster"]), f"{one['coefficients']:,}", f"{one['noisy_count']:,.0f}"]
        for one in sorted(clusters, key=lambda one: -one["noisy_count"])[:_MOST_SHOWN]
    ]
    sizes = " x ".join(map(str, found.grid.sizes))
    title = (
        f"{found.clusters:,} clusters, made of {found.significant:,} of {found.labels.size:,} "
        f"coefficients of {sizes} cells"
    )
    say_table(["cluster", "coefficients", "records"], rows, title=title)
    if len(clusters) > len(rows):
        say(f"and {len(clusters) - len(rows):,} smaller clusters")
    say("without noise: for public rows only" if is_public else "as private as the release")
    if output is not None:
        say(f"wrote the cells to {output}")

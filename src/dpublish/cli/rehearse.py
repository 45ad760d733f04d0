"""`dpublish rehearse`: the accuracy of a goal before anything is spent; no private row is read."""

from typing import Any

import click

from dpublish.cli.group import MethodCommand, complete_files, complete_methods
from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    say,
    say_json,
    say_table,
    schema_option,
    settings_from,
    show_progress,
)
from dpublish.core.method import Method
from dpublish.data.schema_file import load_schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.planning.goals import Goal
from dpublish.planning.rehearsal import Rehearsal, picture_path
from dpublish.planning.rehearse import REPEATS, named_method, rehearse

_OF_RELEASES = {"data", "ledger", "dataset", "where", "derive", "lookup", "lookup_on", "output"}


@click.command(name="rehearse", cls=MethodCommand, context_settings=dict(FREE_SETTINGS))
@click.option(
    "--method", help="A method; its settings follow as options.", shell_complete=complete_methods
)
@click.option(
    "--goal",
    help="What for, instead of a method: classify:income, rows, counts:age,sex, clusters, top ...",
)
@schema_option()
@click.option(
    "--stand-in",
    required=True,
    help="Public rows to rehearse on: the folder of an earlier release, a public table (never the "
    "private one), a file of shares (.toml, .json), or the word simulated.",
    shell_complete=complete_files,
)
@click.option("--epsilon", help="Which to try: 0.05,0.1,0.5,1; from 0.05 to 2 if absent.")
@click.option("--rows", "n_records", type=int, help="How many rows, if not those of the stand-in.")
@click.option("--wanted", help='Find the epsilon for this: "wrong <= 0.18".')
@click.option("--plot", help="A .svg or .png file to create.", shell_complete=complete_files)
@click.option(
    "--repeats", type=int, default=REPEATS, show_default=True, help="Releases at each epsilon."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides all that is drawn.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting.")
@json_option
@click.pass_context
def rehearse_command(
    ctx: click.Context,
    method: str | None,
    goal: str | None,
    schema_path: str,
    stand_in: str,
    epsilon: str | None,
    n_records: int | None,
    wanted: str | None,
    plot: str | None,
    repeats: int,
    seed: int,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure what a release would give, before anything is spent.  Reads no private row.

    The whole method runs with seeded noise on public rows that stand in for the private ones.
    Predictions are measured by the share of wrong ones and AUC, clusters by distance, rows by
    the total variation distance of pairs of columns, counts by relative error.

    \b
    dpublish rehearse --method privpfc --target income --schema adult.toml \\
        --stand-in earlier_release/ --wanted "wrong <= 0.18" --plot curve.svg
    dpublish rehearse --goal clusters --schema adult.toml --stand-in public.parquet
    dpublish rehearse --method histogram --columns age,sex --schema adult.toml \\
        --stand-in shares.toml --rows 20000
    """  # noqa: D301 - click keeps lines after it
    settings = settings_from(ctx.args, pairs)
    for name in sorted(_OF_RELEASES & settings.keys()):
        option = name.replace("_", "-")
        raise InvalidParameter(
            f"a rehearsal reads no private row and spends nothing; leave --{option} out"
        )
    chosen = _choose(method, goal, settings)
    require_count(rows=1 if n_records is None else n_records)
    schema = load_schema(schema_path)
    path = None if plot is None else picture_path(plot)
    with show_progress() as progress:
        found = rehearse(
            chosen,
            schema,
            stand_in=stand_in,
            epsilons=epsilon,
            n_records=n_records,
            repeats=repeats,
            seed=seed,
            wanted=wanted,
            goal=goal,
            progress=progress,
        )
    if path is not None:
        found.plot(path)
    if as_json:
        say_json(found.to_dict())
        return
    _say(found)
    if path is not None:
        say(f"plot: {path}")


def _choose(method: str | None, goal: str | None, settings: dict[str, str]) -> Method[Any] | Goal:
    """Take the method that is named, or leave it to the goal."""
    if method is not None:
        return named_method([method], settings)
    if goal is None:
        raise InvalidParameter(
            "name a method (--method privpfc) or a goal (--goal classify:income)"
        )
    if settings:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in settings)
        raise InvalidParameter(f"{names} is a setting of a method; name it with --method")
    return Goal.parse(goal)


def _say(found: Rehearsal) -> None:
    say(found.title())
    say_table(found.headers(), found.table(), title=found.stamp)
    for line in found.legend():
        say(f"  {line}")
    for line in found.answer():
        say(line)
    for note in found.notes:
        say(f"  note: {note}")

"""`dpublish plan`: cost and expected error before spending; no data is read."""

from fractions import Fraction
from typing import Any

import click

from dpublish.accuracy.rounding import format_number
from dpublish.cli.compare import compare_methods
from dpublish.cli.group import MethodCommand
from dpublish.cli.level_use import plain_levels, say_level_use
from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    planning_options,
    say,
    say_json,
    settings_from,
)
from dpublish.core.catalog import STREAMS
from dpublish.core.method import Predicts, figure_name
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.epsilon import format_epsilon, format_rounded
from dpublish.publishing import predict, read_epsilon
from dpublish.publishing.plan import epsilon_for


@click.command(cls=MethodCommand, context_settings=dict(FREE_SETTINGS))
@planning_options
@click.option("--epsilon", help="What you would spend: 0.5, or several: 0.1,0.5,1")
@click.option(
    "--wanted-error", type=float, help="Find the smallest epsilon whose error is at most this."
)
@click.option("--rows", "n_records", type=int, help="Roughly how many records, if that is public.")
@click.option(
    "--compare",
    is_flag=True,
    help="Set all personalized methods side by side, for --levels and --sizes; needs no schema.",
)
@json_option
@click.pass_context
def plan(
    ctx: click.Context,
    method: str,
    schema_path: str | None,
    pairs: tuple[str, ...],
    epsilon: str | None,
    wanted_error: float | None,
    n_records: int | None,
    compare: bool,
    as_json: bool,
) -> None:
    """Predict cost and error before anything is spent.  No data is read.

    \b
    dpublish plan --method histogram --columns age,sex --schema people.toml --epsilon 0.1,0.5
    dpublish plan --method histogram --columns age,sex --schema people.toml --wanted-error 20
    dpublish plan --method dsat --columns zone --horizon 500 --schema taxis.toml --epsilon 1
    dpublish plan --method partitioning --inner "histogram columns=age" \\
        --levels 0.01,0.1,1 --sizes 500,3500,6000 --compare
    """  # noqa: D301 - click keeps lines after it
    settings = settings_from(ctx.args, pairs)
    if compare:
        compare_methods(method, settings, epsilon, as_json=as_json)
        return
    make = make_stream_method if method in STREAMS else make_method
    chosen: Predicts = make(method, settings)
    if schema_path is None:
        raise InvalidParameter("name the schema file: --schema people.toml")
    schema = load_schema(schema_path)
    require_count(rows=0 if n_records is None else n_records, at_least=0)
    choices = _choices(chosen, schema, n_records, epsilon, wanted_error)
    plans = [(choice, predict(chosen, schema, n_records, choice)) for choice in choices]
    if as_json:
        say_json(
            [
                {
                    "epsilon": format_epsilon(e),
                    "summary": p.summary,
                    "expected_error": dict(p.figures),
                    **_plain_use(chosen, e),
                }
                for e, p in plans
            ]
        )
        return
    for choice, expected in plans:
        say(f"epsilon {format_rounded(choice)}: {expected.summary}")
        for name, value in expected.figures.items():
            say(f"  {figure_name(name)}: {format_number(value)}")
        if isinstance(chosen, PersonalSettings):
            paid = chosen.spending(choice)
            say_level_use(paid, {level: level - amount for level, amount in paid.items()})


def _choices(
    method: Predicts,
    schema: Schema,
    n_records: int | None,
    epsilon: str | None,
    wanted_error: float | None,
) -> list[Fraction]:
    """List the epsilons to plan for: as given, as wanted, or the largest level."""
    if epsilon is None and wanted_error is None and isinstance(method, PersonalSettings):
        return [method.levels[-1]]
    if (epsilon is None) == (wanted_error is None):
        raise InvalidParameter("give either --epsilon or --wanted-error")
    if epsilon is not None:
        has_levels = isinstance(method, PersonalSettings)
        return [read_epsilon(text, has_levels=has_levels) for text in epsilon.split(",")]
    return [epsilon_for(method, schema, n_records, float(wanted_error or 0))]


def _plain_use(method: Predicts, epsilon: Fraction) -> dict[str, Any]:
    if not isinstance(method, PersonalSettings):
        return {}
    return {"levels": plain_levels(method.spending(epsilon))}

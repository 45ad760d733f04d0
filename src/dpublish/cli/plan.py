"""`dpublish plan`: cost and expected error before spending; no data is read."""

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from itertools import pairwise
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
from dpublish.core.method import ExpectedError, Predicts, figure_name
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.epsilon import format_epsilon, format_rounded
from dpublish.publishing import predict, read_epsilon
from dpublish.publishing.plan import (
    THEORY,
    Trade,
    epsilon_for,
    find_trades,
    hides_units,
    kept_part,
    lacking,
    rehearse_command,
)

_OF_RELEASES = {"data", "ledger", "dataset", "where", "derive", "lookup", "lookup_on", "output"}


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
@click.option(
    "--rows-per-person",
    type=float,
    help="How many records a person has on average, if that is public: 4.5. Says which part of "
    "them is kept.",
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
    rows_per_person: float | None,
    as_json: bool,
) -> None:
    """Predict cost and error before anything is spent.  No data is read.

    \b
    dpublish plan --method histogram --columns age,sex --schema people.toml --epsilon 0.1,0.5
    dpublish plan --method histogram --columns age,sex --schema people.toml --wanted-error 20
    dpublish plan --method histogram --columns ward --schema visits.toml --contribution 4 \\
        --rows-per-person 4.5 --epsilon 1
    dpublish plan --method dsat --columns zone --horizon 500 --schema taxis.toml --epsilon 1
    dpublish plan --method partitioning --inner "histogram columns=age" \\
        --levels 0.01,0.1,1 --sizes 500,3500,6000 --compare
    """  # noqa: D301 - click keeps lines after it
    settings = settings_from(ctx.args, pairs)
    for name in _OF_RELEASES & settings.keys():
        option = name.replace("_", "-")
        raise InvalidParameter(f"a plan reads no data and spends nothing; leave --{option} out")
    if compare:
        compare_methods(method, settings, epsilon, as_json=as_json)
        return
    make = make_stream_method if method in STREAMS else make_method
    chosen: Predicts = make(method, settings)
    if schema_path is None:
        raise InvalidParameter("name the schema file: --schema people.toml")
    schema = load_schema(schema_path)
    require_count(rows=0 if n_records is None else n_records, at_least=0)
    choices = _choices(chosen, schema, n_records, epsilon, wanted_error, schema_path)
    if rows_per_person is not None:
        kept_part(1, rows_per_person)  # refuses a number that is none
    if _lacks_bound(chosen, schema) and not as_json:
        _say_bounds(chosen, schema, choices, n_records, rows_per_person)
        return
    plans = [(choice, predict(chosen, schema, n_records, choice)) for choice in choices]
    trades = partial(
        find_trades, chosen, schema, n_records=n_records, rows_per_unit=rows_per_person
    )
    if as_json:
        say_json(
            [
                {
                    "epsilon": format_epsilon(e),
                    "summary": p.summary,
                    "hidden": chosen.neighbors(schema).brief(),
                    "expected_error": dict(p.figures),
                    **_plain_theory(chosen, schema, p, schema_path),
                    **_plain_use(chosen, e),
                    **_plain_trades(trades(e)),
                }
                for e, p in plans
            ]
        )
        return
    for choice, expected in plans:
        _say_plan(chosen, schema, choice, expected, solved=wanted_error is not None)
        _say_trades(trades(choice), schema, rows_per_person)
    _say_theory(chosen, schema, schema_path)


def _say_plan(
    method: Predicts,
    schema: Schema,
    epsilon: Fraction,
    expected: ExpectedError,
    *,
    solved: bool = False,
) -> None:
    """Print what a release of `epsilon` is expected to be like."""
    say(f"epsilon {format_rounded(epsilon)}: {expected.summary}")
    if solved:
        say(f"  the wanted error bounds: {figure_name(expected.target)}")
    for name, value in expected.figures.items():
        say(f"  {figure_name(name)}: {format_number(value)}")
    say(f"  hidden: {method.neighbors(schema).brief()}")
    if isinstance(method, PersonalSettings):
        paid = method.spending(epsilon)
        say_level_use(paid, {level: level - amount for level, amount in paid.items()})


def _say_theory(method: Predicts, schema: Schema, schema_path: str) -> None:
    """Print that figures are theory, and what measures what theory does not predict."""
    say(THEORY)
    if (what := lacking(method)) is not None:
        say(f"no theory tells {what}; measure it on public rows before you spend:")
        say(f"  {rehearse_command(method, schema, schema_path)}")


def _plain_theory(
    method: Predicts, schema: Schema, expected: ExpectedError, schema_path: str
) -> dict[str, Any]:
    what = lacking(method)
    found: dict[str, Any] = {
        "basis": "theory",
        "wanted_error_bounds": expected.target if expected.is_of_goal else None,
    }
    if what is not None:
        command = rehearse_command(method, schema, schema_path)
        found |= {"not_predicted": what, "rehearse": command}
    return found


def _choices(
    method: Predicts,
    schema: Schema,
    n_records: int | None,
    epsilon: str | None,
    wanted_error: float | None,
    schema_path: str,
) -> list[Fraction]:
    """List the epsilons to plan for: as given, as wanted, or the largest level."""
    if epsilon is None and wanted_error is None and isinstance(method, PersonalSettings):
        return [method.levels[-1]]
    if (epsilon is None) == (wanted_error is None):
        raise InvalidParameter("give either --epsilon or --wanted-error")
    if epsilon is not None:
        has_levels = isinstance(method, PersonalSettings)
        return [read_epsilon(text, has_levels=has_levels) for text in epsilon.split(",")]
    wanted = float(wanted_error or 0)
    return [epsilon_for(method, schema, n_records, wanted, schema_path=schema_path)]


def _lacks_bound(method: Predicts, schema: Schema) -> bool:
    """Check whether only a bound on the rows of a unit is missing for a plan."""
    is_bounded = getattr(method, "contribution", None) is not None
    return schema.unit is not None and not is_bounded and not hides_units(method)


def _say_bounds(
    method: Predicts,
    schema: Schema,
    choices: Sequence[Fraction],
    n_records: int | None,
    rows_per_unit: float | None,
) -> None:
    """Print what bounds there are to choose from, before one is named."""
    for choice in choices:
        trades = find_trades(
            method, schema, choice, n_records=n_records, rows_per_unit=rows_per_unit
        )
        say(
            f"epsilon {format_rounded(choice)}: one {schema.unit_who} may have several records; "
            "choose how many of them count, m, and write --contribution m"
        )
        say(f"  hidden: {method.neighbors(schema).brief()}")
        _say_trades(trades, schema, rows_per_unit)


def _say_trades(trades: Sequence[Trade], schema: Schema, rows_per_unit: float | None) -> None:
    """Print what each bound means, as a small table."""
    if not trades:
        return
    figures = {each.figure for each in trades if each.figure is not None}
    named = figure_name(next(iter(figures))) if figures else "error"
    kept = "" if rows_per_unit is None else "  records kept"
    say(f"  what --contribution m trades, for at most m records of each {schema.unit_noun}:")
    width = max(24, len(named))
    say(f"    {'m':>3}  {named:>{width}}{kept}")
    for each in trades:
        error = "not possible" if each.error is None else format_number(each.error)
        part = "" if each.kept is None else f"  {100 * each.kept:>10.0f} %"
        say(f"    {each.contribution:>3}  {error:>{width}}{part}")
    if not is_rising([each.error for each in trades if each.error is not None]):
        say(
            "    (not rising throughout: with less epsilon for a record, fewer or coarser tables "
            "are counted, each with more of the budget; what is left out does not show here)"
        )
    if rows_per_unit is not None:
        say(
            f"    (records per {schema.unit_noun} taken as geometric, with the mean that you named)"
        )


def is_rising(errors: Sequence[float]) -> bool:
    """Check whether no number is below the one before."""
    return all(before <= after for before, after in pairwise(errors))


def _plain_trades(trades: Sequence[Trade]) -> dict[str, Any]:
    return {"contributions": [asdict(each) for each in trades]} if trades else {}


def _plain_use(method: Predicts, epsilon: Fraction) -> dict[str, Any]:
    if not isinstance(method, PersonalSettings):
        return {}
    return {"levels": plain_levels(method.spending(epsilon))}

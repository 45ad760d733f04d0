"""`dpublish plan`: cost and expected error before spending; no data is read."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import inf

import click

from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    method_options,
    say,
    say_json,
    settings_from,
)
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.publishing import foretell
from dpublish.recipes import make_recipe
from dpublish.release.recipe import Recipe, figure_name


@click.command(context_settings=dict(FREE_SETTINGS))
@method_options
@click.option("--epsilon", help="What you would spend: 0.5, or several: 0.1,0.5,1")
@click.option(
    "--wanted-error", type=float, help="Find the epsilon that brings the error down to this."
)
@click.option("--rows", "n_hint", type=int, help="Roughly how many records, if that is public.")
@json_option
@click.pass_context
def plan(
    ctx: click.Context,
    method: str,
    schema_path: str,
    pairs: tuple[str, ...],
    epsilon: str | None,
    wanted_error: float | None,
    n_hint: int | None,
    as_json: bool,
) -> None:
    """Tell cost and expected error before spending.  No data is read.

    \b
    dpublish plan --method histogram --columns age,sex --schema people.toml --epsilon 0.1,0.5
    dpublish plan --method histogram --columns age,sex --schema people.toml --wanted-error 20
    """  # noqa: D301 - click keeps lines after it
    recipe = make_recipe(method, settings_from(ctx.args, pairs))
    schema = load_schema(schema_path)
    require_count(rows=0 if n_hint is None else n_hint, at_least=0)
    if (epsilon is None) == (wanted_error is None):
        raise InvalidParameter("give either --epsilon or --wanted-error")
    if epsilon is not None:
        choices = [parse_epsilon(text) for text in epsilon.split(",")]
    else:
        choices = [epsilon_for(recipe, schema, n_hint, float(wanted_error or 0))]
    plans = [(choice, foretell(recipe, schema, n_hint, choice)) for choice in choices]
    if as_json:
        say_json(
            [
                {
                    "epsilon": format_epsilon(e),
                    "summary": p.summary,
                    "expected_error": dict(p.figures),
                }
                for e, p in plans
            ]
        )
        return
    for choice, expected in plans:
        say(f"epsilon {format_epsilon(choice)}: {expected.summary}")
        for name, value in expected.figures.items():
            say(f"  {figure_name(name)}: {value:,.4g}")


def epsilon_for(recipe: Recipe, schema: Schema, n_hint: int | None, wanted: float) -> Fraction:
    """Find the smallest epsilon whose expected error is at most `wanted`.

    It is rounded up to three digits, and not sought below one millionth.
    """
    if not wanted > 0:
        raise InvalidParameter(f"wanted error ({wanted}) must be greater than 0")

    def error_at(exponent: float) -> float:
        expected = recipe.expected_error(schema, n_hint, _rounded(10**exponent))
        return expected.figures[expected.target]

    def error_or_infinite(exponent: float) -> float:
        try:
            return error_at(exponent)
        except InvalidParameter:  # too small an epsilon for this method: settings were checked
            return inf

    low, high = -6.0, 4.0
    if error_at(high) > wanted:
        raise InvalidParameter(f"no epsilon up to 10^{high:.0f} brings the error down to {wanted}")
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if error_or_infinite(middle) <= wanted else (middle, high)
    return _rounded(10**high)


def _rounded(value: float) -> Fraction:
    return Fraction(Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(value)))

"""`dpublish plan --compare`: all personalised methods side by side, before anything is spent."""

from collections.abc import Mapping
from fractions import Fraction

from dpublish.cli.level_use import level_use, plain_levels, say_level_use
from dpublish.cli.output import say, say_json, say_table
from dpublish.errors import InvalidParameter
from dpublish.personalised.expected_counts import LEAST_SIZE, Crowd, ExpectedCount
from dpublish.personalised.group_method import GroupMethod
from dpublish.personalised.method import PersonalSettings
from dpublish.privacy.epsilon import format_epsilon
from dpublish.publishing import read_epsilon
from dpublish.recipes import make_recipe, recipe_class

_ANY_COLUMN = "preference"
_ASSUMED = "levels say nothing about records"


def compare_methods(
    method: str, settings: Mapping[str, str], epsilon: str | None, *, as_json: bool
) -> None:
    """Foretell the error of a count of half of all people by every method."""
    recipe = _make(method, settings)
    if not recipe.sizes:
        raise InvalidParameter(
            "--compare needs --sizes: how many people there are at each level, such as "
            "500,3500,6000"
        )
    spent = recipe.levels[-1] if epsilon is None else read_epsilon(epsilon, has_levels=True)
    crowd = Crowd.of(recipe.levels, recipe.sizes, spent)
    least = recipe.least_size if isinstance(recipe, GroupMethod) else LEAST_SIZE
    rows = crowd.compare(least)
    paid = recipe.spending(spent)
    if as_json:
        say_json(_plain(crowd, rows, paid))
        return
    people = crowd.people
    say(
        f"{people:,} people at {len(crowd.levels)} levels; a count of half of them, each method "
        f"spending up to epsilon {format_epsilon(spent)}:"
    )
    say_table(
        ["method", "groups", "count is off by", "of all people", "level use", "assumes"],
        [_row(each, crowd) for each in rows],
    )
    say("level use: how many tenths of each level, the lowest first, are used; * is all of it.")
    say()
    say(f"what {recipe.name}, as set here, costs each level:")
    say_level_use(paid, {level: level - amount for level, amount in paid.items()})


def _make(method: str, settings: Mapping[str, str]) -> PersonalSettings:
    """Build the method; which column holds the levels does not matter here."""
    if issubclass(recipe_class(method), PersonalSettings):
        recipe = make_recipe(method, {"preference": _ANY_COLUMN} | dict(settings))
        if isinstance(recipe, PersonalSettings):
            return recipe
    raise InvalidParameter("--compare is for personalised methods, such as partitioning")


def _row(each: ExpectedCount, crowd: Crowd) -> list[str]:
    return [
        each.method,
        str(each.groups),
        f"{each.error:,.1f}",
        f"{100 * each.error / crowd.people:.3g} %",
        level_use(dict(zip(crowd.levels, each.paid, strict=True))),
        _ASSUMED if each.is_scaled else "",
    ]


def _plain(
    crowd: Crowd, rows: list[ExpectedCount], paid: Mapping[Fraction, Fraction]
) -> dict[str, object]:
    return {
        "people": crowd.people,
        "methods": [
            {
                "method": each.method,
                "groups": each.groups,
                "count_error": each.error,
                "share_error": each.error / crowd.people,
                "assumes_exchangeable": each.is_scaled,
                "levels": plain_levels(dict(zip(crowd.levels, each.paid, strict=True))),
            }
            for each in rows
        ],
        "levels": plain_levels(paid),
    }

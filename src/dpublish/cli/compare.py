"""`dpublish plan --compare`: all personalized methods side by side, before anything is spent."""

from collections.abc import Mapping
from fractions import Fraction

from dpublish.accuracy.rounding import format_number
from dpublish.cli.level_use import level_use, plain_levels, say_level_use
from dpublish.cli.output import say, say_json, say_table
from dpublish.core.registry import make_method, method_class
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.expected_counts import LEAST_SIZE, ExpectedCount, Population
from dpublish.methods.personalized.groups.method import GroupMethod
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.epsilon import format_epsilon
from dpublish.publishing import read_epsilon

_ANY_COLUMN = "preference"
_ASSUMED = "levels say nothing about records"


def compare_methods(
    method: str, settings: Mapping[str, str], epsilon: str | None, *, as_json: bool
) -> None:
    """Predict the error of a count of half of all people by every method."""
    chosen = _make(method, settings)
    if not chosen.sizes:
        raise InvalidParameter(
            "--compare needs --sizes: how many people there are at each level, such as "
            "500,3500,6000"
        )
    if chosen.contribution is not None:
        raise InvalidParameter(
            "leave --contribution out to compare methods: with m records of every person all "
            "errors are about m times as large, and the best method stays the best"
        )
    spent = chosen.levels[-1] if epsilon is None else read_epsilon(epsilon, has_levels=True)
    population = Population.of(chosen.levels, chosen.sizes, spent)
    least = chosen.least_size if isinstance(chosen, GroupMethod) else LEAST_SIZE
    rows = population.compare(least)
    paid = chosen.spending(spent)
    if as_json:
        say_json(_plain(population, rows, paid))
        return
    say(
        f"{population.people:,} people at {len(population.levels)} levels; a count of half of "
        f"them, each method spending up to epsilon {format_epsilon(spent)}:"
    )
    say_table(
        ["method", "groups", "count is off by", "of all people", "level use", "assumes"],
        [_row(each, population) for each in rows],
    )
    say("level use: how many tenths of each level, the lowest first, are used; * is all of it.")
    say()
    say(f"what {chosen.name}, as set here, costs each level:")
    say_level_use(paid, {level: level - amount for level, amount in paid.items()})


def _make(method: str, settings: Mapping[str, str]) -> PersonalSettings:
    """Build the method; which column holds the levels does not matter here."""
    if issubclass(method_class(method), PersonalSettings):
        chosen = make_method(method, {"preference": _ANY_COLUMN} | dict(settings))
        if isinstance(chosen, PersonalSettings):
            return chosen
    raise InvalidParameter("--compare is for personalized methods, such as partitioning")


def _row(each: ExpectedCount, population: Population) -> list[str]:
    return [
        each.method,
        str(each.groups),
        f"{each.error:,.1f}",
        f"{format_number(100 * each.error / population.people, 3)} %",
        level_use(dict(zip(population.levels, each.paid, strict=True))),
        _ASSUMED if each.is_scaled else "",
    ]


def _plain(
    population: Population, rows: list[ExpectedCount], paid: Mapping[Fraction, Fraction]
) -> dict[str, object]:
    return {
        "people": population.people,
        "methods": [
            {
                "method": each.method,
                "groups": each.groups,
                "count_error": each.error,
                "share_error": each.error / population.people,
                "assumes_exchangeable": each.is_scaled,
                "levels": plain_levels(dict(zip(population.levels, each.paid, strict=True))),
            }
            for each in rows
        ],
        "levels": plain_levels(paid),
    }

"""Replay every method and every stream on neighboring and on unrelated tables."""

from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.recipes import RECIPES, make_recipe
from dpublish.recipes.streams import STREAMS
from recipe_examples import CASES, ROWS, SCHEMA, arrow_table
from replay import Tape, privacy_loss, watch

EPSILON = Fraction(3, 2)
ROUNDING = 1e-9


def _people(count, seed):
    rng = np.random.default_rng(seed)  # noqa: TID251 - public rows for a test
    ages = rng.integers(0, 100, count)
    sexes = np.where(rng.random(count) < 0.3 + ages / 250, "Female", "Male")
    heights = rng.normal(165 + 12 * (sexes == "Male"), 9)
    towns = np.array(["Ost", "West", "Nord", "Sued"])[np.minimum(ages // 30, 3)]
    return pa.table({"age": ages, "sex": sexes, "height": heights, "town": towns})


def _strangers(count):
    """Rows of another kind altogether, many of them out of bounds, missing or unknown."""
    rng = np.random.default_rng(77)  # noqa: TID251 - public rows for a test
    ages = rng.integers(-50, 1000, count).astype(object)
    ages[::7] = None
    heights = rng.standard_cauchy(count) * 50 + 100
    heights[::11] = np.nan
    heights[::13] = np.inf
    towns = np.where(rng.random(count) < 0.5, "", "nowhere").astype(object)
    towns[::5] = "Sued"
    towns[::17] = None
    sexes = np.where(rng.random(count) < 0.9, "Male", "?")
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "sex": pa.array(sexes, pa.string()),
            "height": pa.array(heights, pa.float64()),
            "town": pa.array(towns, pa.string()),
        }
    )


def _and_last(table, *rows):
    last = arrow_table([dict(row, note="") for row in rows]).select(table.column_names)
    return pa.concat_tables([table, last.cast(table.schema)])


BASE = _people(300, 5)
LAST = {
    "usual": {"age": 64, "sex": "Male", "height": 181.0, "town": "Nord"},
    "rare": {"age": 0, "sex": "Female", "height": 220.0, "town": "Atlantis"},
}
UNRELATED = {"none": arrow_table([]), "strangers": _strangers(20_000)}


def runner(recipe):
    """Make the function that publishes from a table, for `watch`."""
    schema = recipe.prepare(SCHEMA) if hasattr(recipe, "prepare") else SCHEMA

    def run(rows, rng, progress):
        purse = recipe.purse(EPSILON) if hasattr(recipe, "purse") else Budget(EPSILON)
        release = recipe.release(open_table(rows, schema), budget=purse, rng=rng, progress=progress)
        return release, release.facts(), release.tables(), release.summary()

    return run


def _identify(case):
    name, settings = case
    return f"{name}-{[one for other, one in CASES if other == name].index(settings) + 1}"


def test_every_method_is_here():
    assert len({name for name, _ in CASES}) == len(RECIPES) == 44
    assert len(STREAMS) == 7


@pytest.mark.parametrize(("name", "settings"), CASES, ids=map(_identify, CASES))
def test_replay(name, settings):
    run = runner(make_recipe(name, settings))
    played = Tape()
    seen = watch(partial(run, BASE), played)
    assert any(call.private is not None for call in played.calls)
    for rows in UNRELATED.values():
        assert watch(partial(run, rows), Tape(played)) == seen


@pytest.mark.parametrize(("name", "settings"), CASES, ids=map(_identify, CASES))
def test_replay_on_neighbors(name, settings):
    recipe = make_recipe(name, settings)
    for last in LAST.values():
        loss = privacy_loss(runner(recipe), _and_last(BASE, last), BASE)
        assert loss <= float(EPSILON) + ROUNDING

"""Replay every method and every stream on neighboring and on unrelated tables."""

from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from dpublish.classification import synopsis_model
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.recipes import RECIPES, make_recipe
from dpublish.recipes.streams import STREAMS
from recipe_examples import CASES as EXAMPLES
from recipe_examples import SCHEMA, arrow_table
from replay import ROUNDING, Tape, exchange_loss, removal_loss, watch

EPSILON = Fraction(3, 2)


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


BASE, CROWD = _people(300, 5), _people(20_000, 6)
LAST = (
    {"age": 64, "sex": "Male", "height": 181.0, "town": "Nord"},
    {"age": 0, "sex": "Female", "height": 220.0, "town": "Atlantis"},
)
OTHERWISE = {"age": 99, "height": 100.0, "town": "Sued"}
"""Other values of the last record, for methods that hide values alone."""
NOBODY, STRANGERS = arrow_table([]), _strangers(20_000)
UNRELATED = ((CROWD, (NOBODY,)), (BASE, (NOBODY, STRANGERS)))
"""Tables to record on, and those to replay on."""
MORE = [
    ("privgene", {"target": "sex", "population": 30}),
    ("output-perturbation", {"target": "sex", "regularisation": Fraction(1, 100)}),
    ("pgkm", {"clusters": 2, "columns": ("height",), "population": 20}),
]
"""Settings for which the number of records decides how a method goes on."""
CASES = [*EXAMPLES, *MORE]


def runner(recipe):
    """Make the function that publishes from a table, for `watch`."""
    schema = recipe.prepare(SCHEMA) if hasattr(recipe, "prepare") else SCHEMA

    def run(rows, rng, progress):
        purse = recipe.purse(EPSILON) if hasattr(recipe, "purse") else Budget(EPSILON)
        release = recipe.release(open_table(rows, schema), budget=purse, rng=rng, progress=progress)
        return release, release.facts(), release.tables(), release.summary()

    return run


def promised(recipe, record):
    """Say what a record may lose: epsilon, or what its own level pays."""
    if not hasattr(recipe, "spending"):
        return float(EPSILON)
    level = Fraction(3) if record["sex"] == "Male" else Fraction(3, 2)
    return float(recipe.spending(EPSILON)[level])


def _identify(case):
    name, settings = case
    return f"{name}-{[one for other, one in CASES if other == name].index(settings) + 1}"


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """`model` fits to so many rows of its own synopsis, which takes most of the time."""
    monkeypatch.setattr(synopsis_model, "ROWS", 200)


def test_every_method_is_here():
    assert len({name for name, _ in CASES}) == len(RECIPES) == 44
    assert len(STREAMS) == 7


@pytest.mark.parametrize(("name", "settings"), CASES, ids=map(_identify, CASES))
def test_replay(name, settings):
    recipe = make_recipe(name, settings)
    run = runner(recipe)
    if getattr(recipe, "hides", "presence") == "values":
        _replay_values(recipe, run)
    else:
        _replay_presence(recipe, run)


def _replay_presence(recipe, run):
    for first, others in UNRELATED:
        played = Tape()
        seen = watch(partial(run, first), played)
        assert any(call.private is not None for call in played.calls)
        for rows in others:
            assert watch(partial(run, rows), Tape(played)) == seen
    for last in LAST:
        loss = removal_loss(run, _and_last(BASE, last), played, seen)
        assert loss <= promised(recipe, last) + ROUNDING


def _replay_values(recipe, run):
    """Who is there, and at which level, is public here: tables differ in all other columns."""
    played = Tape()
    seen = watch(partial(run, BASE), played)
    others = _strangers(BASE.num_rows).set_column(1, "sex", BASE["sex"])
    assert watch(partial(run, others), Tape(played)) == seen
    for last in LAST:
        here, there = (_and_last(BASE, last | change) for change in ({}, OTHERWISE))
        assert exchange_loss(run, here, there) <= promised(recipe, last) + ROUNDING

"""Sampling at the rate of each record's leaf: exact, independent, the same everywhere."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.nasty_tables import DISGUISES, SCHEMA, SHAPE, arrow, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.draws import choose_by, require_rates
from dpublish.data.engines.local import LocalTable
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

WORD = 2**64
HALF, NEVER, ALWAYS = Fraction(1, 2), Fraction(0), Fraction(1)
RATES = [Fraction(1, 8), Fraction(5, 8), ALWAYS, NEVER]
PAIR = Schema(
    (
        column("level", "integer", bounds=[0, 3], missing="drop"),
        column("a", "integer", bounds=[0, 5], missing="drop"),
    )
)


class Words:
    """A source that hands out given words."""

    def __init__(self, *words):
        self._words = list(words)

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)


def pairs(levels, numbers, cache=True):
    data = pa.table({"level": pa.array(levels, pa.int64()), "a": pa.array(numbers, pa.int64())})
    return open_table(data, PAIR, cache=cache)


def cells(table, *names):
    return table.sum(Counts(table.schema, (tuple((name, None) for name in names),)))


@given(step=st.integers(0, WORD) | st.sampled_from([0, 1, WORD - 1, WORD]), data=st.data())
def test_just_so_many_words_say_yes_as_the_rate_has_steps(step, data):
    near = st.sampled_from([0, max(step - 1, 0), min(step, WORD - 1), WORD - 1])
    words = data.draw(st.lists(near | st.integers(0, WORD - 1), min_size=1, max_size=5))
    codes = np.ones(len(words), dtype=np.uint8)
    said = choose_by([HALF, Fraction(step, WORD)], codes, Words(*words))
    assert said.tolist() == [word < step for word in words]


def test_records_are_kept_independently_at_their_own_rates(rng):
    """Levels and numbers of three records; the fourth never stays and the fifth always does."""
    table = pairs([0, 1, 1, 3, 2], [0, 1, 2, 3, 4])
    kept = [tuple(cells(table.sample_by("level", RATES, rng), "a")) for _ in range(4000)]

    def distribution(first, second):
        sides = [{0: 1 - rate, 1: rate} for rate in (first, second, second)]
        return {
            (x, y, z, 0, 1, 0): sides[0][x] * sides[1][y] * sides[2][z]
            for x in (0, 1)
            for y in (0, 1)
            for z in (0, 1)
        }

    assert frequency_p_value(kept, distribution(1 / 8, 5 / 8)) > 1e-3
    assert frequency_p_value(kept, distribution(5 / 8, 1 / 8)) < 1e-20  # the rate of another level
    assert frequency_p_value(kept, distribution(1 / 8 * 0.7, 5 / 8)) < 1e-8
    assert frequency_p_value(kept, distribution(1 / 8 * 1.3, 5 / 8)) < 1e-8
    assert frequency_p_value(kept, distribution(1 / 2, 1 / 2)) < 1e-20  # one rate for all


def test_many_records_are_kept_as_often_as_they_should_be(rng):
    table = pairs(np.repeat([0, 1, 2, 3], 40_000), np.zeros(160_000, dtype=np.int64))
    kept = cells(table.sample_by("level", RATES, rng, ["level"]), "level").tolist()
    assert kept[2:] == [40_000, 0]
    for count, rate in zip(kept[:2], (1 / 8, 5 / 8), strict=True):
        seen = [True] * count + [False] * (40_000 - count)
        assert frequency_p_value(seen, {True: rate, False: 1 - rate}) > 1e-3
        for factor in (0.7, 1.3):
            twin = {True: rate * factor, False: 1 - rate * factor}
            assert frequency_p_value(seen, twin) < 1e-20


def test_a_twin_that_draws_once_per_level_is_caught(rng):
    """With one word for a whole level, its records stay or go together."""
    kept = []
    for _ in range(2000):
        words = rng.words(4)
        kept.append(choose_by(RATES, np.array([1, 1]), Words(words[1], words[1])).tolist())
    distribution = {(x, y): (5 if x else 3) * (5 if y else 3) / 64 for x in (0, 1) for y in (0, 1)}
    assert frequency_p_value(map(tuple, kept), distribution) < 1e-20
    honest = [tuple(choose_by(RATES, np.array([1, 1]), rng).tolist()) for _ in range(2000)]
    assert frequency_p_value(honest, distribution) > 1e-3


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("disguise", sorted(DISGUISES))
def test_the_same_seed_keeps_the_same_records_of_every_source(disguise, cache, tmp_path):
    rows = make_rows(400)
    rates = [HALF, ALWAYS, Fraction(1, 4), NEVER, HALF]
    source, options = DISGUISES[disguise](rows, tmp_path)
    others = [name for name in SCHEMA.names if name != "letter"]
    everywhere = [
        cells(table.sample_by("letter", rates, seeded(7)), *others)
        for table in (
            open_table(arrow(rows), SCHEMA),
            open_table(source, SCHEMA, cache=cache, **options),
        )
    ]
    assert everywhere[0].sum() > 0
    assert np.array_equal(*everywhere)


def test_a_rate_of_one_is_the_group_and_a_rate_of_zero_leaves_it_out(rng):
    table = open_table(arrow(make_rows(500)), SCHEMA)
    some = [leaf in (0, 4) for leaf in range(SHAPE[3])]
    kept = table.sample_by("letter", [Fraction(int(x)) for x in some], rng)
    group = table.only("letter", [0, 4])
    assert kept.schema == group.schema
    assert np.array_equal(cells(kept, "hours", "sign"), cells(group, "hours", "sign"))


def test_a_sample_of_a_group_holds_the_columns_asked_for_and_stays_the_same(rng):
    table = pairs([0, 1, 2, None] * 50, [1, 2, None, 3] * 50)
    part = table.only("level", [0, 1, 2], keep=True).sample_by("level", [HALF] * 4, rng, ["level"])
    assert part.schema.names == ("level",)
    first = cells(part, "level").tolist()
    assert cells(part, "level").tolist() == first
    assert first[3] == 0
    assert 0 < first[0] < 50
    assert cells(table.sample_by("level", [ALWAYS] * 4, rng), "a").tolist() == [0, 50, 50, 0, 0, 0]


def test_a_sample_of_no_records_is_empty(rng):
    empty = pairs([], []).sample_by("level", RATES, rng)
    assert cells(empty, "a").tolist() == [0] * 6


@pytest.mark.parametrize(
    "rate", [0.5, 1, Fraction(-1, 2), Fraction(3, 2), Fraction(1, 3), Fraction(1, 2**65), "1/2"]
)
def test_rates_must_be_exact_and_decided_by_one_word(rate):
    with pytest.raises(InvalidParameter, match="must be a Fraction from 0 to 1"):
        require_rates([HALF, rate], 2)


def test_refusals_come_before_a_row_is_read(rng):
    class Unread:
        rescan, label, header = "cheap", "the table", pa.schema([("level", pa.int64())])

        def scan(self, columns):
            raise AssertionError("a row was read")

    table = LocalTable(PAIR, Unread())
    with pytest.raises(InvalidParameter, match="a rate for each of the 4 leaves"):
        table.sample_by("level", [HALF] * 3, rng)
    with pytest.raises(InvalidParameter, match="did you mean 'level'"):
        table.sample_by("levels", RATES, rng)
    by_unit = LocalTable(Schema(PAIR.columns, unit="person"), Unread())
    with pytest.raises(InvalidParameter, match="rows belong to units"):
        by_unit.sample_by("level", RATES, rng)


def test_how_much_memory_is_lacking_is_not_told(rng, monkeypatch):
    def run_out(*_):
        raise MemoryError("unable to allocate an array of shape (4711,)")

    table = pairs([1], [1])
    monkeypatch.setattr("dpublish.data.engines.chosen.choose_by", run_out)
    with pytest.raises(UnreadableData, match="not enough memory") as refused:
        table.sample_by("level", RATES, rng)
    assert refused.value.__context__ is None

"""Tables: what a kernel sees, and how records are sampled and split."""

import copy
import pickle
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from data.nasty_tables import DISGUISES, SCHEMA, arrow, cell_of, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.testing import frequency_p_value

TOTAL = Counts(SCHEMA, ((),))


@dataclass(frozen=True)
class Moments:
    """A kernel that reads numbers: how many, their sum, and the sum of squares, as integers."""

    codes: tuple[str, ...] = ("sign",)
    values: tuple[str, ...] = ("hours", "slope")

    def zero(self):
        return np.zeros((2, 3), dtype=np.int64)

    def add(self, batch, out):
        for number, name in enumerate(self.values):
            fixed = np.rint(batch.values(name) * 1024).astype(np.int64)
            out[number] += [len(batch), fixed.sum(), (fixed**2 * batch.codes("sign")).sum()]

    def merge(self, out, other):
        out += other


def moments_by_hand(rows):
    out = np.zeros((2, 3), dtype=np.int64)
    for row in rows:
        numbers = [row["hours"], row["slope"]]
        if row["sign"] is None or any(x is None or x != x for x in numbers):
            continue
        clipped = [min(max(numbers[0], 1.0), 99.0), min(max(numbers[1], -1.0), 1.0)]
        for number, value in enumerate(clipped):
            fixed = round(value * 1024)
            out[number] += [1, fixed, fixed**2 * (row["sign"] == "p")]
    return out


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("disguise", ["csv", "parquet folder", "pandas objects", "duckdb relation"])
def test_numbers_are_clipped_alike_by_every_source(disguise, cache, tmp_path):
    rows = make_rows(400)
    source, options = DISGUISES[disguise](rows, tmp_path)
    table = open_table(source, SCHEMA, cache=cache, **options)
    table.sum(TOTAL)
    assert np.array_equal(table.sum(Moments()), moments_by_hand(rows))


def test_a_record_is_left_out_by_the_columns_that_are_read_and_no_others():
    rows = make_rows(500)
    table = open_table(arrow(rows), SCHEMA)
    assert table.sum(TOTAL)[0] == len(rows)
    signs = Counter(row["sign"] for row in rows if row["sign"] is not None)
    assert table.sum(Counts(SCHEMA, ((("sign", None),),))).tolist() == [signs["n"], signs["p"]]
    whole = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
    assert table.sum(whole).sum() == sum(cell_of(row) is not None for row in rows)


def test_a_batch_cannot_change_what_the_table_keeps():
    class Vandal(Counts):
        def add(self, batch, out):
            batch.codes("letter")[:] = 0

    table = open_table(arrow(make_rows(5)), SCHEMA)
    with pytest.raises(ValueError, match="read-only"):
        table.sum(Vandal(SCHEMA, ((("letter", None),),)))


def test_columns_that_are_unknown_or_without_numbers_are_refused():
    table = open_table(arrow(make_rows(3)), SCHEMA)
    with pytest.raises(InvalidParameter, match="did you mean 'hours'"):
        table.sum(Moments(values=("hour",)))
    with pytest.raises(InvalidParameter, match="numeric or integer is needed"):
        table.sum(Moments(values=("letter",)))


@pytest.mark.parametrize("unit", [None, "count"])
def test_a_table_shows_names_and_nothing_else(unit):
    schema = Schema(SCHEMA.columns, unit=unit)
    few, many = (open_table(arrow(make_rows(n)), schema) for n in (3, 4129))
    many.sum(Counts(schema, ((("letter", None),),)))
    assert repr(few) == repr(many) == "LocalTable(hours, slope, count, letter, sign)"
    assert str(many) == repr(many)
    for action in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="holds private rows"):
            action(many)
    shown = " ".join(map(repr, vars(many).values()))
    assert "secret" not in shown
    assert "4129" not in shown


def test_the_schema_says_who_is_protected():
    assert open_table(arrow(make_rows(3)), SCHEMA).neighbors == AddRemoveRecord()
    by_letter = Schema(SCHEMA.columns, unit="letter")
    assert open_table(arrow([]), by_letter).neighbors == AddRemoveUnit("letter")


@pytest.mark.parametrize("disguise", ["csv", "parquet folder", "duckdb relation", "arrow reader"])
@pytest.mark.parametrize("cache", [True, False])
def test_a_sample_of_everything_is_everything(disguise, cache, tmp_path, rng):
    rows = make_rows(200)
    source, options = DISGUISES[disguise](rows, tmp_path)
    table = open_table(source, SCHEMA, cache=cache, **options)
    whole = table.sample(Fraction(1), rng)
    assert np.array_equal(whole.sum(Moments()), moments_by_hand(rows))
    assert whole.neighbors == table.neighbors


def test_records_are_sampled_independently_and_exactly(rng):
    one = Schema((column("a", "integer", bounds=[0, 1]),))
    kernel = Counts(one, ((("a", None),),))
    table = open_table(pa.table({"a": [0, 1]}), one)
    taken = [tuple(table.sample(Fraction(1, 3), rng).sum(kernel).tolist()) for _ in range(3000)]
    distribution = {(0, 0): 4 / 9, (1, 0): 2 / 9, (0, 1): 2 / 9, (1, 1): 1 / 9}
    assert frequency_p_value(taken, distribution) > 1e-3
    together = {(0, 0): 2 / 3, (1, 1): 1 / 3, (0, 1): 1e-9, (1, 0): 1e-9}
    assert frequency_p_value(taken, together) < 1e-20


def test_a_sample_stays_the_same_and_holds_only_the_columns_asked_for(rng):
    table = open_table(arrow(make_rows(300)), SCHEMA)
    part = table.sample(Fraction(1, 2), rng, ["sign", "hours"])
    assert part.schema.names == ("sign", "hours")
    kernel = Counts(part.schema, ((("sign", None), ("hours", None)),))
    assert np.array_equal(part.sum(kernel), part.sum(kernel))
    with pytest.raises(InvalidParameter, match="there is no column 'letter'"):
        part.sum(Counts(SCHEMA, ((("letter", None),),)))
    with pytest.raises(InvalidParameter, match="did you mean 'sign'"):
        table.sample(Fraction(1, 2), rng, ["sing"])
    with pytest.raises(InvalidParameter, match="must be a Fraction"):
        table.sample(0.5, rng)


@pytest.mark.parametrize("cache", [True, False])
def test_blocks_share_the_records_out(cache, rng):
    rows = make_rows(1000)
    parts = open_table(arrow(rows), SCHEMA, cache=cache).split(7, rng)
    sizes = [int(part.sum(TOTAL)[0]) for part in parts]
    assert sum(sizes) == 1000
    assert np.array_equal(sum(part.sum(Moments()) for part in parts), moments_by_hand(rows))
    distribution = dict.fromkeys(range(7), 1 / 7)
    seen = [block for block, size in enumerate(sizes) for _ in range(size)]
    assert frequency_p_value(seen, distribution) > 1e-3


NASTY = {"hours": 1e300, "slope": float("nan"), "count": -(10**15), "letter": "4711", "sign": "??"}


@pytest.mark.parametrize("disguise", ["csv", "arrow", "pandas objects", "polars", "duckdb file"])
def test_neighboring_tables_raise_the_same_errors_word_for_word(disguise, tmp_path, rng):
    def errors(rows, folder):
        folder.mkdir()
        source, options = DISGUISES[disguise](rows, folder)
        table = open_table(source, SCHEMA, **options)
        return [refusal(action) for action in actions(table)]

    def actions(table):
        yield lambda: table.sum(Moments())
        yield lambda: table.sum(Moments(values=("letter",)))
        yield lambda: table.sum(Moments(values=("nothing",)))
        yield lambda: table.sample(Fraction(2), rng)
        yield lambda: table.split(0, rng)
        yield lambda: pickle.dumps(table)

    def refusal(action):
        try:
            action()
        except (InvalidParameter, TypeError) as error:
            return str(error)
        return None

    rows = make_rows(20)
    here = errors(rows, tmp_path / "here")
    there = errors([*rows, NASTY | {"ignored": "secret"}], tmp_path / "there")
    assert here == there
    assert [error is None for error in here] == [True, False, False, False, False, False]

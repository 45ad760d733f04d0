"""Rows that belong to units: a unit counts once in a cell, and is sampled whole."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import UnreadableData
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.randomness import seeded

GOODS = Schema(
    (
        column("item", "category", taxonomy={"fruit": ["apple", "pear"], "veg": ["leek", "kale"]}),
        column("price", "integer", bounds=[0, 9], missing="category"),
    ),
    unit="basket",
)
ITEMS = Counts(GOODS, ((("item", None),),))
GROUPS = Counts(GOODS, ((("item", 1),),))


def baskets(rows, kind=None):
    units, items, prices = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "basket": pa.array(units, kind or pa.int64()),
            "item": pa.array(items, pa.string()),
            "price": pa.array(prices, pa.string()),
        }
    )


LEAVES = ["apple", "pear", "leek", "kale"]
ITEM = st.sampled_from([*LEAVES, " apple", "pear ", "stone", "", None])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, None]), ITEM, st.sampled_from(["3", "3.0", " 3", "99", "x", None])
    ),
    max_size=12,
)


def distinct_items(rows):
    pairs = {(unit, (item or "").strip()) for unit, item, _ in rows if unit is not None}
    return {(unit, LEAVES.index(item)) for unit, item in pairs if item in LEAVES}


@settings(deadline=None)
@given(rows=ROWS, cache=st.booleans())
def test_a_unit_counts_once_in_a_cell_however_its_rows_are_spelt(rows, cache):
    table = open_table(baskets(rows), GOODS, cache=cache)
    pairs = distinct_items(rows)
    leaves = Counter(item for _, item in pairs)
    groups = Counter(group for _, group in {(unit, item // 2) for unit, item in pairs})
    for _ in range(2):
        assert table.sum(ITEMS).tolist() == [leaves[item] for item in range(4)]
        assert table.sum(GROUPS).tolist() == [groups[group] for group in range(2)]
    units = {unit for unit, _, _ in rows} - {None}
    assert table.sum(Counts(GOODS, ((),))).tolist() == [len(units)]


@settings(deadline=None)
@given(rows=ROWS, unit=st.lists(ITEM, max_size=8), price=st.sampled_from(["3", "3.0", None]))
def test_adding_a_unit_moves_every_count_by_at_most_one_and_none_down(rows, unit, price):
    more = [*rows, *((9, item, price) for item in unit)]
    joint = Counts(GOODS, ((("item", 1), ("price", None)),))
    for kernel in (ITEMS, GROUPS, joint):
        here = open_table(baskets(rows), GOODS).sum(kernel)
        there = open_table(baskets(more), GOODS).sum(kernel)
        assert set((there - here).tolist()) <= {0, 1}


def test_rows_counted_as_they_are_would_move_a_count_by_more():
    plain = Schema(GOODS.columns)
    rows = [(1, "apple", "3"), (1, "apple ", "3"), (1, "pear", "3")]
    kernel = Counts(plain, ((("item", 1),),))
    assert open_table(baskets(rows), plain).sum(kernel).tolist() == [3, 0]
    assert open_table(baskets(rows), GOODS).sum(GROUPS).tolist() == [1, 0]


def test_many_units_are_merged_as_they_come(monkeypatch):
    monkeypatch.setattr("dpublish.data.engines.units.MERGE_ROWS", 10)
    monkeypatch.setattr("dpublish.data.engines.source.BATCH_ROWS", 4)
    rows = [(unit % 50, LEAVES[unit % 3], "3") for unit in range(600)]
    for cache in (True, False):
        table = open_table(baskets(rows), GOODS, cache=cache)
        expected = Counter(item for _, item in distinct_items(rows))
        assert table.sum(ITEMS).tolist() == [expected[item] for item in range(4)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [1, 1, 2]),
        (pa.uint64(), [2**64 - 1, 2**64 - 1, 0]),
        (pa.string(), [" a", "a", "b"]),
        (pa.string_view(), ["a", "a", "b"]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "a", "b"]),
    ],
)
def test_units_may_be_numbers_or_text(kind, values):
    rows = [(value, "apple", "3") for value in values]
    assert open_table(baskets(rows, kind), GOODS).sum(ITEMS).tolist() == [2, 0, 0, 0]


SPELLINGS = ["1", " 1", "1.0", "1.", "1.000 ", "\u00a01"]


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_spellings_of_a_unit_are_one_unit_as_those_of_a_value_are(kind):
    rows = [(spelling, "apple", "3") for spelling in SPELLINGS]
    assert open_table(baskets(rows, kind), GOODS).sum(ITEMS).tolist() == [1, 0, 0, 0]
    others = ["01", "+1", "1.5", "a", "A", "1.0x", "1\n.0"]  # case and leading zeros count
    rows += [(other, "apple", "3") for other in others]
    assert open_table(baskets(rows, kind), GOODS).sum(ITEMS)[0] == 1 + len(others)
    mixed = pd.DataFrame({"basket": pd.Series([1, 1.0, "1"], dtype=object)})
    mixed = mixed.assign(item="apple", price="3")
    assert open_table(mixed, GOODS).sum(ITEMS).tolist() == [1, 0, 0, 0]


def test_units_that_are_not_utf_8_change_no_other_unit():
    raw = pa.array([b" a", b"a\xff", b"a", b"b\xfe ", b"a\xff", b"1.0", b"1", None, b" "])
    units = pa.Array.from_buffers(pa.binary(), len(raw), raw.buffers()).view(pa.string())
    table = pa.table({"basket": units, "item": ["apple"] * 9, "price": ["3"] * 9})
    assert open_table(table, GOODS).sum(ITEMS).tolist() == [4, 0, 0, 0]


def test_units_that_are_not_utf_8_stay_apart():
    raw = pa.array([b"M\xfcller", b"M\xf6ller", b"M\xfcller"])
    units = pa.Array.from_buffers(pa.binary(), len(raw), raw.buffers()).view(pa.string())
    table = pa.table({"basket": units, "item": ["apple"] * 3, "price": ["3"] * 3})
    assert open_table(table, GOODS).sum(ITEMS).tolist() == [2, 0, 0, 0]
    halves = pd.Series(["M\udcfcller", "M\udcf6ller", "M?ller"], dtype=object)
    frame = pd.DataFrame({"basket": halves}).assign(item="apple", price="3")
    assert open_table(frame, GOODS).sum(ITEMS).tolist() == [3, 0, 0, 0]


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.list_(pa.int8())])
def test_units_of_other_types_are_refused_when_the_table_is_opened(kind):
    with pytest.raises(UnreadableData, match="cast it to integers or text"):
        open_table(baskets([], kind), GOODS)


def test_units_that_are_text_in_one_file_and_numbers_in_another_are_refused(tmp_path):
    for name, unit in (("a.parquet", 1), ("b.parquet", "1")):
        frame = pd.DataFrame({"basket": [unit], "item": ["pear"], "price": [1]})
        frame.to_parquet(tmp_path / name)
    with pytest.raises(UnreadableData, match="text in some files and a number in others"):
        open_table(tmp_path, GOODS)


def test_units_that_would_be_taken_for_others_in_another_file_are_refused(tmp_path):
    for name, unit, kind in (("a", 2**64 - 1, "uint64"), ("b", -1, "int64")):
        frame = pd.DataFrame({"basket": pd.Series([unit], dtype=kind), "item": "pear", "price": 1})
        frame.to_parquet(tmp_path / f"{name}.parquet")
        assert open_table(tmp_path / f"{name}.parquet", GOODS).sum(ITEMS).sum() == 1
    with pytest.raises(UnreadableData, match="uint64 in some files and another in others"):
        open_table(tmp_path, GOODS)


def test_units_are_sampled_whole():
    rows = [(unit, item, "3") for unit in range(2000) for item in ("apple", "leek")]
    part = open_table(baskets([*rows, (None, "apple", "3")]), GOODS).sample(
        Fraction(1, 4), seeded(3)
    )
    apples, _, leeks, _ = part.sum(ITEMS).tolist()
    assert apples == leeks
    assert 400 < apples < 600
    assert part.neighbors == AddRemoveUnit("basket")


def test_blocks_keep_units_together_and_may_be_empty(rng):
    rows = [(unit, item, "3") for unit in range(40) for item in ("apple", "leek")]
    parts = open_table(baskets(rows), GOODS).split(100, rng, ["item"])
    kernel = Counts(parts[0].schema, ((("item", None),),))
    counts = np.array([part.sum(kernel) for part in parts])
    assert np.array_equal(counts[:, 0], counts[:, 2])
    assert counts.sum(axis=0).tolist() == [40, 0, 40, 0]
    assert (counts.sum(axis=1) == 0).any()
    empty = open_table(baskets([]), GOODS)
    assert [part.sum(ITEMS).sum() for part in empty.split(2, rng)] == [0, 0]
    assert empty.sample(Fraction(1, 2), rng).sum(ITEMS).sum() == 0

"""Groups of records: each record's own value says where it belongs."""

import pickle
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.nasty_tables import DISGUISES, SCHEMA, SHAPE, arrow, count_by_hand, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.engines.local import LocalTable
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.privacy.neighbors import AddRemoveRecord

LETTER = SCHEMA.names.index("letter")
PAIR = Schema((column("level", "integer", bounds=[0, 4]), column("a", "integer", bounds=[0, 2])))


def cells(table, *names):
    return table.sum(Counts(table.schema, (tuple((name, None) for name in names),)))


def pairs(rows, cache=True):
    data = {"level": [level for level, _ in rows], "a": [a for _, a in rows]}
    kinds = {"level": pa.int64(), "a": pa.int64()}
    arrays = {name: pa.array(data[name], kind) for name, kind in kinds.items()}
    return open_table(pa.table(arrays), PAIR, cache=cache)


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("disguise", sorted(DISGUISES))
def test_every_source_picks_the_records_that_a_plain_loop_picks(disguise, cache, tmp_path):
    rows = make_rows(400)
    source, options = DISGUISES[disguise](rows, tmp_path)
    table = open_table(source, SCHEMA, cache=cache, **options)
    expected = count_by_hand(rows)
    for leaves in ([0, 3], [4], [], range(5)):
        part = table.only("letter", leaves)
        others = tuple(name for name in SCHEMA.names if name != "letter")
        assert part.schema.names == others
        assert part.neighbors == AddRemoveRecord()
        by_hand = expected.take(list(leaves), axis=LETTER).sum(axis=LETTER)
        assert np.array_equal(cells(part, *others).reshape(by_hand.shape), by_hand)


@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 4, None]), st.integers(0, 2))),
    new=st.tuples(st.integers(0, 4), st.integers(0, 2)),
    owners=st.lists(st.integers(0, 2), min_size=5, max_size=5),
    cache=st.booleans(),
)
def test_groups_share_the_records_out_and_one_more_record_changes_one_group(
    rows, new, owners, cache
):
    groups = [[leaf for leaf in range(5) if owners[leaf] == group] for group in range(3)]

    def count(present):
        table = pairs(present, cache)
        return np.array([cells(table.only("level", leaves), "a") for leaves in groups])

    before, after = count(rows), count([*rows, new])
    complete = Counter(a for level, a in rows if level is not None)
    assert before.sum(axis=0).tolist() == [complete[a] for a in range(3)]
    change = np.zeros((3, 3), dtype=np.int64)
    change[owners[new[0]], new[1]] = 1
    assert np.array_equal(after - before, change)


def test_groups_made_from_the_records_present_are_caught():
    """The twin as printed: three equal groups of whoever is there, in order of the level."""

    def count(levels):
        blocks = np.array_split(np.sort(levels), 3)
        return np.array([np.bincount(block, minlength=5) for block in blocks])

    change = count([1, 1, 2, 2, 3, 3, 4]) - count([1, 1, 2, 2, 3, 3])
    assert np.count_nonzero(change.any(axis=1)) > 1


@pytest.mark.parametrize("cache", [True, False])
def test_a_group_of_a_group_is_the_overlap(cache):
    rows = list(product(range(5), range(3))) * 3
    part = pairs(rows, cache).only("level", [1, 2, 3], keep=True)
    assert part.schema == PAIR
    assert cells(part, "level").tolist() == [0, 9, 9, 9, 0]
    assert cells(part.only("level", [0, 1, 2]), "a").tolist() == [6, 6, 6]
    assert cells(part.only("a", [2]), "level").tolist() == [0, 3, 3, 3, 0]


@pytest.mark.parametrize("cache", [True, False])
def test_all_verbs_see_the_same_group(cache, rng):
    rows = [(row % 5, row % 3) for row in range(1000)]
    part = pairs(rows, cache).only("level", [1, 4])
    expected = cells(part, "a").tolist()
    assert cells(part.sample(Fraction(1), rng), "a").tolist() == expected
    blocks = part.split(3, rng)
    assert sum(cells(block, "a") for block in blocks).tolist() == expected
    assert part.sum(Counts(part.schema, ((),))).tolist() == [400]


def test_a_record_left_out_by_the_column_or_by_another_is_gone(rng):
    schema = Schema(
        (
            column("level", "integer", bounds=[0, 1], missing="drop"),
            column("a", "integer", bounds=[0, 1], missing="drop"),
            column("b", "integer", bounds=[0, 1], missing="category"),
        )
    )
    data = {"level": [1, 1, None, 0, 1], "a": [0, None, 1, 1, 1], "b": [None, 0, 1, 1, 1]}
    for cache in (True, False):
        part = open_table(pd.DataFrame(data), schema, cache=cache).only("level", [1])
        assert cells(part, "a").tolist() == [1, 1]
        assert cells(part, "b").tolist() == [1, 1, 1]
        assert cells(part, "a", "b").tolist() == [0, 0, 1, 0, 1, 0]


class Counted:
    """A table in memory that counts how often each of its columns is read."""

    rescan = "cheap"
    label = "the table"

    def __init__(self, data):
        self._data = data
        self.header = data.schema
        self.read = Counter()

    def scan(self, columns):
        self.read.update(columns)
        return iter(self._data.select(list(columns)).to_batches())


def test_a_value_is_read_and_encoded_once_for_all_groups():
    source = Counted(arrow(make_rows(300)))
    table = LocalTable(SCHEMA, source)
    parts = [table.only("letter", [leaf]) for leaf in range(SHAPE[LETTER])]
    assert not source.read  # to pick is to say which, no row is touched
    for part in parts:
        for _ in range(3):
            cells(part, "hours", "count")
    assert source.read == {"letter": 1, "hours": 1, "count": 1}


def test_no_one_can_write_to_a_group_copy_it_or_see_its_rows():
    part = pairs([(1, 1), (2, 0)]).only("level", [1])

    class Vandal(Counts):
        def add(self, batch, out):
            batch.codes("a")[:] = 2

    with pytest.raises(ValueError, match="read-only"):
        part.sum(Vandal(part.schema, ((("a", None),),)))
    with pytest.raises(TypeError, match="holds private rows"):
        pickle.dumps(part)
    for inside in (part._source, part._columns):
        with pytest.raises(TypeError, match="holds private rows"):
            pickle.dumps(inside)
    assert repr(part) == "LocalTable(a)"


@pytest.mark.parametrize("leaves", [[5], [-1], [0, 99]])
def test_leaves_that_the_column_does_not_have_are_refused(leaves):
    with pytest.raises(InvalidParameter, match="has the leaves 0 to 4, not"):
        pairs([]).only("level", leaves)


def test_unknown_columns_and_rows_of_units_are_refused():
    with pytest.raises(InvalidParameter, match="did you mean 'level'"):
        pairs([]).only("levels", [0])
    by_unit = Schema(PAIR.columns, unit="person")
    table = open_table(pa.table({"level": [1], "a": [1], "person": [7]}), by_unit)
    with pytest.raises(InvalidParameter, match="rows belong to units"):
        table.only("level", [1])
    with pytest.raises(InvalidParameter, match="there is no column 'level'"):
        pairs([]).only("level", [1]).sum(Counts(PAIR, ((("level", None),),)))


@pytest.mark.parametrize(("location", "cache"), [("_pick", True), ("Choice.mark", False)])
def test_how_much_memory_is_lacking_is_not_told(location, cache, monkeypatch):
    def run_out(*_):
        raise pa.ArrowMemoryError("unable to allocate an array of shape (4711,)")

    table = pairs([(1, 1)] * 3, cache)
    monkeypatch.setattr(f"dpublish.data.engines.chosen.{location}", run_out)
    with pytest.raises(UnreadableData, match="not enough memory") as refused:
        cells(table.only("level", [1]), "a")
    assert refused.value.__context__ is None


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("disguise", sorted(DISGUISES))
def test_columns_go_by_their_names_whatever_their_order_in_the_source(disguise, cache, tmp_path):
    rows = make_rows(200)
    source, options = DISGUISES[disguise](rows, tmp_path)
    turned = Schema(SCHEMA.columns[::-1])
    table = open_table(source, turned, cache=cache, **options)
    found = cells(table, *turned.names).reshape(SHAPE[::-1])
    assert np.array_equal(found.T, count_by_hand(rows))


@pytest.mark.parametrize("cache", [True, False])
def test_a_unit_that_comes_first_in_an_arrow_file_is_still_the_unit(cache, tmp_path, rng):
    data = pa.table({"person": [4, 4, 4], "level": [1, 2, 3], "a": [0, 0, 0]})
    path = str(tmp_path / "people.feather")
    pyarrow.feather.write_feather(data, path)
    table = open_table(path, Schema(PAIR.columns, unit="person"), cache=cache)
    assert cells(table, "a").tolist() == [1, 0, 0]
    assert cells(table.sample(Fraction(1), rng), "a").tolist() == [1, 0, 0]

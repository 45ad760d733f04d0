"""Sparse counts: occupied cells only, the same numbers as dense counts."""

import pickle
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.aggregates import sparse_counts
from dpublish.aggregates.counts import Counts
from dpublish.aggregates.sparse_counts import SparseCounts, Tally
from dpublish.data.schema import Schema, column
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("x", "integer", bounds=[0, 15], branching=2),
        column("y", "category", values=["p", "q", "r"]),
        *(column(f"w{i}", "integer", bounds=[0, 2**16 - 1]) for i in range(5)),
    )
)
COLUMNS = (("x", 2), ("y", None))
WIDE = tuple((f"w{i}", None) for i in range(3))


def batches(size, pieces, seed=1):
    rng = plain_generator(seed)
    codes = {
        name: rng.integers(0, SCHEMA[name].size, size).astype(
            np.uint8 if SCHEMA[name].size < 256 else np.uint16
        )
        for name in SCHEMA.names
    }
    for rows in np.array_split(np.arange(size), pieces):
        yield Batch(len(rows), {name: column[rows] for name, column in codes.items()})


def total(kernel, parts):
    answer = kernel.zero()
    for part in parts:
        kernel.add(part, answer)
    return answer


@pytest.mark.parametrize("size", [0, 1, 500])
def test_occupied_cells_are_those_of_the_dense_counts(size):
    sparse, dense = SparseCounts(SCHEMA, COLUMNS), Counts(SCHEMA, (COLUMNS,))
    keys, counts = total(sparse, batches(size, 3)).compact()
    expected = total(dense, batches(size, 1))
    assert np.array_equal(keys, np.flatnonzero(expected))
    assert np.array_equal(counts, expected[keys])
    assert sparse.domain_size == expected.size
    assert np.array_equal(np.array(sparse.decode(keys)), np.unravel_index(keys, sparse.shape))


@pytest.mark.parametrize("pending", [1, 50, 10**6])
@pytest.mark.parametrize("pieces", [1, 7])
def test_the_answer_does_not_depend_on_batches_or_buffers(pending, pieces, monkeypatch):
    kernel = SparseCounts(SCHEMA, WIDE)
    expected = total(kernel, batches(400, 1)).compact()
    monkeypatch.setattr(sparse_counts, "_PENDING_KEYS", pending)
    found = total(kernel, batches(400, pieces)).compact()
    assert np.array_equal(found.keys, expected.keys)
    assert np.array_equal(found.counts, expected.counts)
    assert kernel.domain_size == 2**48


def test_partial_answers_of_copies_are_merged():
    kernel = pickle.loads(pickle.dumps(SparseCounts(SCHEMA, COLUMNS)))
    answer = kernel.zero()
    for part in batches(300, 4):
        kernel.merge(answer, pickle.loads(pickle.dumps(total(kernel, [part]))))
    expected = total(kernel, batches(300, 1)).compact()
    assert all(map(np.array_equal, answer.compact(), expected))


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 2**62 - 1) | st.integers(0, 3), max_size=9), max_size=5))
def test_keys_of_any_size_are_counted_exactly(parts):
    tally = Tally()
    for part in parts:
        tally.add(np.array(part, dtype=np.int64))
    everything = sorted(key for part in parts for key in part)
    keys, counts = tally.compact()
    assert np.repeat(keys, counts).tolist() == everything
    assert keys.tolist() == sorted(set(everything))
    assert repr(tally) == "Tally()"


def test_the_largest_domain_allowed_has_the_largest_keys():
    fits = Schema((*SCHEMA.columns, column("z", "integer", bounds=[0, 2**14 - 2])))
    columns = (*WIDE, ("z", None))
    kernel = SparseCounts(fits, columns)
    assert kernel.domain_size == 2**62 - 2**48
    top = {name: np.array([fits[name].size - 1], dtype=np.uint16) for name, _ in columns}
    answer = total(kernel, [Batch(1, top)]).compact()
    assert answer.keys.tolist() == [2**62 - 2**48 - 1]
    assert [codes.tolist() for codes in kernel.decode(answer.keys)] == [
        [fits[name].size - 1] for name, _ in columns
    ]
    with pytest.raises(InvalidParameter, match=r"2\*\*62 cells or more"):
        SparseCounts(fits, (*columns, ("y", None)))


def test_one_record_or_unit_moves_a_count_by_one():
    kernel = SparseCounts(SCHEMA, COLUMNS)
    assert (kernel.sensitivity(AddRemoveRecord()), kernel.sensitivity(ReplaceRecord())) == (1, 2)
    assert kernel.range_sensitivity(AddRemoveRecord()) == 1
    assert kernel.range_sensitivity(ReplaceRecord()) == 2
    assert kernel.range_sensitivity(AddRemoveUnit("who")) == 1
    assert kernel.levels == {"x": 2, "y": 1}
    with pytest.raises(InvalidParameter, match="may have any number of rows"):
        kernel.sensitivity(AddRemoveUnit("who"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), "at least one column"),
        ((("x", None), ("x", 1)), "listed twice"),
        ((("z", None),), "there is no column 'z'"),
    ],
)
def test_wrong_columns_are_refused(columns, message):
    with pytest.raises(InvalidParameter, match=message):
        SparseCounts(SCHEMA, columns)


def test_many_small_batches_take_time_in_proportion():
    tally = Tally()
    start = perf_counter()
    for key in range(20_000):
        tally.add(np.array([key % 100]))
    assert perf_counter() - start < 4  # half a second; over ten if every batch looks at all before
    assert tally.compact().counts.tolist() == [200] * 100

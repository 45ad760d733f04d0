"""Dense counts: cells, levels, splits into batches, and how much one record moves."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.aggregates.counts import MAX_CELLS, Counts
from dpublish.data.schema import Schema, column
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    ReplaceRecord,
    UserInWindow,
)
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 7], branching=2),
        column("job", "category", taxonomy={"paid": ["a", "b", "c"], "unpaid": ["d"], "none": []}),
        column("wide", "integer", bounds=[0, 69_999], bins=70_000),
    )
)
SIZES = {"age": 8, "job": SCHEMA["job"].size, "wide": 70_000}
SETS = (
    (("age", None), ("job", None)),
    (),
    (("job", 1),),
    (("age", 2), ("job", 0)),
    (("wide", None),),
    (("job", None), ("age", 1)),
    (("age", 0),),
)


def random_codes(size, seed=1):
    rng = plain_generator(seed)
    kinds = {"age": np.uint8, "job": np.uint8, "wide": np.uint32}
    return {name: rng.integers(0, SIZES[name], size).astype(kinds[name]) for name in SIZES}


def batch_of(codes, rows=slice(None)):
    part = {name: column[rows] for name, column in codes.items()}
    return Batch(len(part["age"]), part)


def count(kernel, codes, cuts=()):
    answer = kernel.zero()
    size = len(codes["age"])
    edges = [0, *sorted(min(cut, size) for cut in cuts), size]
    for start, stop in pairwise(edges):
        kernel.add(batch_of(codes, slice(start, stop)), answer)
    return answer


def count_by_hand(one, codes):
    axes = [SCHEMA[name].axis(level) for name, level in one]
    counts = np.zeros([axis.size for axis in axes], dtype=np.int64)
    for row in range(len(codes["age"])):
        cell = tuple(int(axis.leaf_to_cell[codes[axis.column][row]]) for axis in axes)
        counts[cell] += 1
    return counts


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_every_set_is_counted_as_one_would_by_hand(size):
    codes = random_codes(size)
    kernel = Counts(SCHEMA, SETS)
    answers = kernel.split(count(kernel, codes))
    assert len(answers) == len(SETS)
    for one, answer in zip(SETS, answers, strict=True):
        assert answer.dtype == np.int64
        assert np.array_equal(answer, count_by_hand(one, codes))


@settings(deadline=None, max_examples=30)
@given(cuts=st.lists(st.integers(0, 500), max_size=8), order=st.permutations(range(40)))
def test_the_answer_does_not_depend_on_how_records_are_cut_and_ordered(cuts, order):
    codes = random_codes(500)
    kernel = Counts(SCHEMA, SETS)
    whole = count(kernel, codes)
    assert np.array_equal(count(kernel, codes, cuts), whole)
    shuffled = np.r_[np.array(order), np.arange(40, 500)]
    moved = {name: column[shuffled] for name, column in codes.items()}
    assert np.array_equal(count(kernel, moved), whole)


def test_partial_answers_of_copies_are_merged():
    codes = random_codes(300)
    kernel = Counts(SCHEMA, SETS)
    copied = pickle.loads(pickle.dumps(kernel))
    answer = kernel.zero()
    for start in range(0, 300, 100):
        part = copied.zero()
        copied.add(batch_of(codes, slice(start, start + 100)), part)
        kernel.merge(answer, part)
    assert np.array_equal(answer, count(kernel, codes))


def test_it_reads_each_column_once():
    kernel = Counts(SCHEMA, SETS)
    assert kernel.codes == ("age", "job", "wide")
    assert kernel.values == ()


SMALL = Schema(
    (
        column("x", "integer", bounds=[0, 3], branching=2),
        column("y", "category", values=["p", "q"]),
    )
)
RECORDS = list(product(range(4), range(2)))


@pytest.mark.parametrize(
    "sets",
    [
        ((("x", None),),),
        ((("x", 1), ("y", None)), (("y", None),), (("x", 1),)),
        ((("x", None),), (("x", 1),)),
    ],
)
def test_the_sensitivities_are_the_most_that_any_record_changes(sets):
    kernel = Counts(SMALL, sets)
    answers = {}
    for record in RECORDS:
        answers[record] = kernel.zero()
        codes = dict(zip("xy", np.array([record], dtype=np.uint8).T, strict=True))
        kernel.add(Batch(1, codes), answers[record])
    added = list(answers.values())
    replaced = [here - there for here, there in product(added, added)]
    for changes, neighbors in ((added, AddRemoveRecord()), (replaced, ReplaceRecord())):
        assert kernel.sensitivity(neighbors) == max(np.abs(c).sum() for c in changes)
        assert kernel.range_sensitivity(neighbors) == max(np.ptp(c) for c in changes)
    assert min(change.min() for change in added) == 0  # counts only rise


def test_units_have_a_range_but_no_sum_of_changes():
    one, two = Counts(SMALL, ((("x", 1),),)), Counts(SMALL, ((("x", 1),), (("y", None),)))
    unit = AddRemoveUnit("basket")
    assert one.range_sensitivity(unit) == 1
    assert one.levels == {"x": 1}
    for refuse in (one.sensitivity, two.sensitivity, two.range_sensitivity):
        with pytest.raises(InvalidParameter, match=r"a unit \('basket'\) may have any number"):
            refuse(unit)
    for refuse in (one.sensitivity, one.range_sensitivity):
        with pytest.raises(InvalidParameter, match="no sensitivity under user-in-window"):
            refuse(UserInWindow("user", 3))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ((), "at least one set"),
        (((("aeg", None),),), "did you mean 'age'"),
        (((("age", 9),),), r"level \(9\) must be at most"),
        (((("age", None), ("age", 1)),), "column 'age' is listed twice"),
        (((("wide", None),),) * 1918, "are too many to count one by one"),
    ],
)
def test_wrong_sets_are_refused(sets, message):
    with pytest.raises(InvalidParameter, match=message):
        Counts(SCHEMA, sets)


def test_as_many_cells_as_allowed_are_allowed():
    schema = Schema(tuple(column(name, "integer", bounds=[0, 511]) for name in "uvw"))
    most = tuple((name, None) for name in "uvw")
    assert Counts(schema, (most,)).size == MAX_CELLS
    with pytest.raises(InvalidParameter, match="134,217,729 cells"):
        Counts(schema, (most, ()))

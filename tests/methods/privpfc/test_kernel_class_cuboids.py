"""Counts by class: each cell as by hand, whatever the batches, on the same records."""

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.table import Batch
from dpublish.methods.privpfc.kernel_class_cuboids import ClassCuboids
from dpublish.randomness import plain_generator

CUBOIDS = ((("age", 2), ("job", 1)), (), (("job", 2),), (("age", 1),))


def make_kernel(classes):
    schema = Schema(
        (
            column("age", "integer", bounds=[0, 7], branching=2, missing="drop"),
            column("job", "category", taxonomy={"paid": ["a", "b"], "unpaid": ["c"]}),
            column("class", "category", values=[f"c{i}" for i in range(classes)]),
        )
    )
    return ClassCuboids(schema, "class", ("age", "job"), CUBOIDS)


def random_codes(classes, count=300):
    rng = plain_generator(classes)
    sizes = {"age": 8, "job": 3, "class": classes}
    return {name: rng.integers(0, size, count).astype(np.uint8) for name, size in sizes.items()}


def add_in_batches(kernel, codes, cuts):
    answer = kernel.zero()
    size = len(codes["age"])
    for start, stop in pairwise([0, *sorted(min(cut, size) for cut in cuts), size]):
        part = {name: one[start:stop] for name, one in codes.items()}
        kernel.add(Batch(stop - start, part), answer)
    return answer


def count_by_hand(kernel, codes, cuboid):
    axes = [kernel.schema[name].axis(level) for name, level in cuboid]
    shape = (kernel.schema["class"].size, *(axis.size for axis in axes))
    counts = np.zeros(shape, dtype=np.int64)
    for row in range(len(codes["age"])):
        cell = tuple(int(axis.leaf_to_cell[codes[axis.column][row]]) for axis in axes)
        counts[(codes["class"][row], *cell)] += 1
    return counts


@pytest.mark.parametrize("classes", [2, 3, 5])
@given(cuts=st.lists(st.integers(0, 300), max_size=5))
def test_cells_are_counted_as_one_would_by_hand(classes, cuts):
    kernel = pickle.loads(pickle.dumps(make_kernel(classes)))
    codes = random_codes(classes)
    answer = add_in_batches(kernel, codes, cuts)
    merged = kernel.zero()
    kernel.merge(merged, answer)
    for cuboid, counts in zip(CUBOIDS, kernel.split(merged), strict=True):
        by_hand = count_by_hand(kernel, codes, cuboid)
        expected = by_hand[:1] - by_hand[1:] if classes == 2 else by_hand
        assert np.array_equal(counts, expected)
    assert kernel.count_records(merged) == 300


def test_a_record_that_misses_any_predictor_is_in_no_cuboid():
    kernel = make_kernel(2)
    rows = pa.table({"age": [None, 3], "job": ["a", "a"], "class": ["c0", "c0"]})
    answer = open_table(rows, kernel.schema).sum(kernel)
    assert kernel.count_records(answer) == 1
    assert [int(counts.sum()) for counts in kernel.split(answer)] == [1] * len(CUBOIDS)

"""Counts of every two columns: right, the same however rows are cut, and of sensitivity 1."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.batch import Batch
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.kernels import PairCounts
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord

SCHEMA = Schema(tuple(column(name, "numeric", bounds=[0, 8]) for name in "xyz"))
BOX = Box.of(SCHEMA)


def batch(points):
    return Batch(len(points), values={name: points[:, i] for i, name in enumerate("xyz")})


def count(points, bins=4):
    kernel = PairCounts(BOX, bins)
    answer = kernel.zero()
    kernel.add(batch(np.asarray(points, dtype=np.float64)), answer)
    return answer


def test_counts_equal_a_plain_loop():
    points = np.random.Generator(np.random.Philox(key=3)).uniform(0, 8, (500, 3)).round(1)
    expected = np.zeros((3, 4, 4), dtype=np.int64)
    for point in points:
        bins = [min(int(v // 2), 3) for v in point]
        for number, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            expected[number, bins[i], bins[j]] += 1
    assert np.array_equal(count(points), expected)


def test_edges_and_bounds_have_one_cell_each():
    assert count([[0, 8, 2]])[0, 0, 3] == 1
    assert count([[2, 1.99, 8]])[0, 1, 0] == 1
    assert count([[4, 4, 4]], bins=1).tolist() == [[[1]]] * 3


def test_batches_may_be_cut_anywhere():
    points = np.random.Generator(np.random.Philox(key=4)).uniform(0, 8, (101, 3))
    kernel = PairCounts(BOX, 8)
    parts = kernel.zero()
    for part in batch(points).cut(7):
        kernel.add(part, parts)
    assert np.array_equal(parts, count(points, bins=8))


def test_a_record_changes_one_cell_of_each_pair():
    some = [[1, 2, 3], [7, 7, 7]]
    for more in ([0, 0, 0], [8, 8, 8], [3.3, 2, 7.9]):
        change = count([*some, more]) - count(some)
        assert [np.abs(one).sum() for one in change] == [1, 1, 1]
    assert PairCounts(BOX, 4).sensitivity(AddRemoveRecord()) == 1
    with pytest.raises(InvalidParameter):
        PairCounts(BOX, 4).sensitivity(ReplaceRecord())


def test_a_record_with_a_missing_value_is_left_out():
    table = open_table(pa.table({"x": [1.0, None], "y": [1.0, 2.0], "z": [1.0, 2.0]}), SCHEMA)
    assert table.sum(PairCounts(BOX, 2)).sum() == 3


def test_too_many_columns_are_refused_from_public_facts():
    wide = Schema(tuple(column(f"c{i}", "numeric", bounds=[0, 1]) for i in range(200)))
    with pytest.raises(InvalidParameter, match="too many columns"):
        PairCounts(Box.of(wide), 32)

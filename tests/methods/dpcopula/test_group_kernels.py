"""Counts and products inside groups: the same as a loop over records, and no record moves more."""

from itertools import combinations, product

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.kernels import (
    EachGroupProducts,
    Grouping,
    GroupMarginals,
    GroupScoreProducts,
)
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("sex", "category", values=["a", "b"]),
        column("town", "category", values=["x", "y", "z"]),
        column("age", "integer", bounds=[0, 3]),
        column("pay", "integer", bounds=[0, 2]),
        column("days", "integer", bounds=[0, 1]),
    )
)
GROUPS = np.array([0, 2, 2, 2, 1, 2])
GROUPING = Grouping(SCHEMA, ("sex", "town"), GROUPS)
NUMBERS = ("age", "pay", "days")
ALL = list(product(range(2), range(3), range(4), range(3), range(2)))


def batch(records):
    columns = np.array(records, dtype=np.uint8).reshape(-1, 5).T
    return Batch(len(records), codes=dict(zip(SCHEMA.names, columns, strict=True)))


def answer(kernel, records):
    found = kernel.zero()
    kernel.add(batch(records), found)
    return found


def scores(seed=3):
    draw = plain_generator(seed)
    return tuple(draw.integers(-9, 10, (3, SCHEMA[name].size)) for name in NUMBERS)


def test_marginals_of_groups_are_those_of_a_loop_over_records():
    records = ALL + ALL[5:40]
    by_column = GroupMarginals(GROUPING, NUMBERS).split(
        answer(GroupMarginals(GROUPING, NUMBERS), records)
    )
    for index, found in enumerate(by_column):
        expected = np.zeros_like(found)
        for record in records:
            expected[GROUPS[3 * record[0] + record[1]], record[2 + index]] += 1
        assert np.array_equal(found, expected)


def test_products_are_those_of_a_loop_over_records():
    tables = scores()
    records = ALL + ALL[11:50]
    expected = np.zeros((3, 3), dtype=np.int64)
    for record in records:
        group = GROUPS[3 * record[0] + record[1]]
        own = [table[group, code] for table, code in zip(tables, record[2:], strict=True)]
        expected += np.outer(own, own)
    kernel = GroupScoreProducts(GROUPING, NUMBERS, tables)
    assert np.array_equal(answer(kernel, records), expected)


@pytest.mark.parametrize(
    "kernel", [GroupMarginals(GROUPING, NUMBERS), GroupScoreProducts(GROUPING, NUMBERS, scores())]
)
def test_batches_may_be_cut_anywhere(kernel):
    whole, parts = answer(kernel, ALL), answer(kernel, ALL[:17])
    kernel.merge(parts, answer(kernel, ALL[17:]))
    assert np.array_equal(whole, parts)
    assert not kernel.zero().any()


def test_one_record_moves_marginals_by_one_per_column_and_never_more():
    kernel = GroupMarginals(GROUPING, NUMBERS)
    moved = {int(np.abs(answer(kernel, [record])).sum()) for record in ALL}
    assert moved == {kernel.sensitivity(AddRemoveRecord())} == {3}


@pytest.mark.parametrize("seed", range(8))
def test_the_sensitivity_of_products_is_attained_and_never_exceeded(seed):
    kernel = GroupScoreProducts(GROUPING, NUMBERS, scores(seed))
    above = np.triu_indices(3, 1)
    moved = max(int(np.abs(answer(kernel, [record])[above]).sum()) for record in ALL)
    assert moved == kernel.sensitivity(AddRemoveRecord())


@pytest.mark.parametrize("seed", range(8))
def test_a_record_moves_the_products_of_its_own_group_alone(seed):
    kernel = EachGroupProducts(GROUPING, NUMBERS, scores(seed))
    above = np.triu_indices(3, 1)
    moved = np.zeros(GROUPING.groups, dtype=np.int64)
    for record in ALL:
        by_group = np.array([np.abs(one[above]).sum() for one in answer(kernel, [record])])
        assert np.count_nonzero(by_group) <= 1
        moved = np.maximum(moved, by_group)
    assert moved.tolist() == [kernel.change_in(group) for group in range(GROUPING.groups)]
    records = ALL[:: seed + 1]
    whole = GroupScoreProducts(GROUPING, NUMBERS, scores(seed))
    assert np.array_equal(answer(kernel, records).sum(axis=0), answer(whole, records))


def test_the_bound_of_one_group_alone_is_passed_by_another():
    # The broken twin takes the scores of the first group for those of all.
    tables = tuple(np.abs(table) for table in scores())
    for table in tables:
        table[0] = 1
    kernel = GroupScoreProducts(GROUPING, NUMBERS, tables)
    twin = sum(int(a[0].max()) * int(b[0].max()) for a, b in combinations(tables, 2))
    above = np.triu_indices(3, 1)
    moved = max(int(answer(kernel, [record])[above].sum()) for record in ALL)
    assert twin < moved == kernel.sensitivity(AddRemoveRecord())


def test_other_neighbors_and_misfits_are_refused():
    for kernel in (
        GroupMarginals(GROUPING, NUMBERS),
        GroupScoreProducts(GROUPING, NUMBERS, scores()),
    ):
        with pytest.raises(InvalidParameter):
            kernel.sensitivity(ReplaceRecord())
    with pytest.raises(InvalidParameter, match="6 cells"):
        Grouping(SCHEMA, ("sex", "town"), GROUPS[:5])
    with pytest.raises(InvalidParameter, match="at least one column"):
        GroupMarginals(GROUPING, ())
    with pytest.raises(InvalidParameter, match="'days' needs an integer score"):
        GroupScoreProducts(GROUPING, NUMBERS, (*scores()[:2], scores()[2][:2]))
    with pytest.raises(InvalidParameter, match="for each column"):
        GroupScoreProducts(GROUPING, NUMBERS, scores()[:2])
    with pytest.raises(InvalidParameter, match="at most"):
        GroupScoreProducts(GROUPING, ("age",), (np.full((3, 4), 1 << 30),))

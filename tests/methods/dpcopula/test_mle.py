"""Random blocks: one pass, one block for each record, one correlation matrix for each block."""

from itertools import product

import numpy as np
import pytest

from dpublish.data.batch import Batch
from dpublish.data.draws import draw_blocks
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.mle import (
    CORRELATION_EXPONENT,
    LARGEST_BLOCK,
    BlockMoments,
    correlation_sensitivity,
    most_blocks,
    sum_of_correlations,
)
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

UNIT = 2.0**-CORRELATION_EXPONENT
LEAVES = 9


def kernel_for(columns, blocks, rng):
    names = tuple(f"c{i}" for i in range(columns))
    schema = Schema(tuple(column(x, "integer", bounds=[0, LEAVES - 1]) for x in names))
    scores = (np.arange(LEAVES) * 100 - 400,) * columns
    return BlockMoments(schema, names, scores, blocks, rng)


def moments(codes, blocks, rng, cuts=(None,)):
    codes = np.asarray(codes)
    kernel = kernel_for(codes.shape[1], blocks, rng)
    answer = kernel.zero()
    for part in np.split(codes, [c for c in cuts if c]):
        kernel.add(Batch(len(part), dict(zip(kernel.columns, part.T, strict=True))), answer)
    return answer


def correlated(records, columns, key):
    rng = np.random.Generator(np.random.Philox(key=key))
    shared = rng.integers(0, LEAVES, (records, 1))
    return (shared + rng.integers(0, LEAVES, (records, columns))) // 2


def plain_sum(codes, blocks, rng, fewest):
    numbers = draw_blocks(blocks, len(codes), rng)
    first, second = np.triu_indices(codes.shape[1], 1)
    total = np.zeros(first.size)
    for block in range(blocks):
        part = codes[numbers == block]
        if len(part) >= fewest and (part.std(axis=0) > 0).all():
            total += np.rint(np.corrcoef(part.T)[first, second] * UNIT)
    return total


def test_correlations_of_blocks_equal_those_of_each_block_alone():
    codes = correlated(500, 3, key=1)
    found = sum_of_correlations(moments(codes, 30, seeded(4)), 3, 4)
    assert np.abs(found - plain_sum(codes, 30, seeded(4), 4)).max() <= 30  # float rounding


def test_the_same_seed_deals_alike_however_rows_are_cut():
    codes = correlated(300, 2, key=2)
    whole = moments(codes, 7, seeded(1))
    assert np.array_equal(whole, moments(codes, 7, seeded(1), cuts=(13, 130)))
    assert not np.array_equal(whole, moments(codes, 7, seeded(2)))


def test_every_record_draws_its_block_evenly_and_independently(rng):
    # Scores are powers of ten, so that a block's sum tells who is in it.
    names = ("a", "b")
    schema = Schema(tuple(column(x, "integer", bounds=[0, 2]) for x in names))
    kernel = BlockMoments(schema, names, (np.array([1, 10, 100]),) * 2, 3, rng)
    three = Batch(3, dict.fromkeys(names, np.arange(3)))
    seen = []
    for _ in range(4000):
        answer = kernel.zero()
        kernel.add(three, answer)
        seen.append(tuple(answer[1].tolist()))
    expected = {}
    for blocks in product(range(3), repeat=3):
        sums = [0, 0, 0]
        for record, block in enumerate(blocks):
            sums[block] += 10**record
        expected[tuple(sums)] = 1 / 27
    assert frequency_p_value(seen, expected) > 1e-4
    lazy = [(111, 0, 0) if index % 5 else x for index, x in enumerate(seen)]
    assert frequency_p_value(lazy, expected) < 1e-20


def test_one_record_changes_one_block():
    codes = correlated(400, 3, key=3)
    for record in product((0, 4, 8), repeat=3):
        more = np.vstack([codes, record])  # the last record draws last: the others draw alike
        change = moments(more, 20, seeded(6)) - moments(codes, 20, seeded(6))
        assert np.count_nonzero(change.any(axis=0)) == 1


def test_contiguous_blocks_are_caught_since_one_record_shifts_them_all():
    codes = correlated(400, 3, key=4)
    more = np.vstack([[[8, 0, 4]], codes])

    def contiguous(rows):
        kernel = kernel_for(3, 1, seeded(0))
        names = kernel.columns
        parts = [rows[start : start + 20] for start in range(0, 400, 20)]
        answers = []
        for part in parts:
            answer = kernel.zero()
            kernel.add(Batch(len(part), dict(zip(names, part.T, strict=True))), answer)
            answers.append(answer)
        return np.hstack(answers)

    changed = np.count_nonzero((contiguous(more) - contiguous(codes)).any(axis=0))
    assert changed > 15


def test_ranks_of_the_whole_table_are_caught_since_one_record_moves_them_all():
    codes = correlated(400, 1, key=5)[:, 0]

    def ranks(values, among):
        return np.searchsorted(np.sort(among), values) / len(among)

    moved = ranks(codes, codes) != ranks(codes, np.append(codes, 0))
    assert moved[codes > 0].all()


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 8])
def test_correlation_matrices_are_at_most_half_of_the_squared_columns_apart(columns):
    first, second = np.triu_indices(columns, 1)
    signs = np.where(np.arange(columns) < columns // 2, 1, -1)
    far = np.abs(1 - np.outer(signs, signs)[first, second]).sum()
    assert far == 2 * (columns**2 // 4) <= columns**2 / 2
    rng = np.random.Generator(np.random.Philox(key=9))
    for _ in range(200):
        one, other = (np.corrcoef(rng.standard_normal((columns, 3))) for _ in range(2))
        assert np.abs(one - other)[first, second].sum() <= columns**2 / 2 + 1e-9


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_the_sum_moves_by_no_more_than_its_sensitivity_and_nearly_attains_it(columns):
    line = np.repeat(np.arange(LEAVES)[:, None], columns, axis=1)
    crossed = np.where(np.arange(columns) < columns // 2, line, LEAVES - 1 - line)
    one, other = (
        sum_of_correlations(moments(x, 1, seeded(0)), columns, 2) for x in (line, crossed)
    )
    moved = int(np.abs(one - other).sum())
    assert moved <= correlation_sensitivity(columns)
    if columns % 2 == 0:
        assert moved > 0.999 * correlation_sensitivity(columns)
        assert moved > columns * (columns - 1) / 4 * UNIT  # half of the printed bound: too little


def test_blocks_that_tell_nothing_count_as_uncorrelated():
    assert not sum_of_correlations(moments(np.zeros((50, 2), dtype=int), 3, seeded(1)), 2, 3).any()
    assert not sum_of_correlations(moments(np.zeros((0, 2), dtype=int), 3, seeded(1)), 2, 3).any()
    assert not sum_of_correlations(moments(correlated(2, 2, key=1), 1, seeded(1)), 2, 3).any()
    large = moments(correlated(1000, 2, key=1), 1, seeded(1))
    assert sum_of_correlations(large, 2, 3).any()
    assert not sum_of_correlations(large * (LARGEST_BLOCK // 1000 + 1), 2, 3).any()


def test_the_largest_block_does_not_overflow():
    one = np.tile([[0, 0], [8, 8]], (LARGEST_BLOCK // 2, 1))
    names = ("a", "b")
    schema = Schema(tuple(column(x, "integer", bounds=[0, 8]) for x in names))
    scores = (np.linspace(-8192, 8192, 9).astype(np.int64),) * 2
    kernel = BlockMoments(schema, names, scores, 1, seeded(1))
    answer = kernel.zero()
    kernel.add(Batch(len(one), dict(zip(names, one.T, strict=True))), answer)
    assert sum_of_correlations(answer, 2, 3).tolist() == [int(UNIT)]


def test_too_many_blocks_are_refused():
    with pytest.raises(InvalidParameter, match="too many"):
        kernel_for(3, most_blocks(3) + 1, seeded(1))


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_record_changes_the_moments_of_its_block_by_the_sensitivity_at_most(columns):
    kernel = kernel_for(columns, 4, seeded(2))
    bound = kernel.sensitivity(AddRemoveRecord())
    records = list(product(range(LEAVES), repeat=columns))
    changes = [int(np.abs(moments([record], 4, seeded(2))).sum()) for record in records]
    assert max(changes) == bound
    with pytest.raises(InvalidParameter):
        kernel.sensitivity(ReplaceRecord())

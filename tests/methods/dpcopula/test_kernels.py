"""Products of scores: exact, the same however rows are cut, and of the sensitivity they say."""

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.batch import Batch
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.kernels import LARGEST_SCORE, ScoreProducts
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit

NAMES = ("x", "y", "z")
SCHEMA = Schema(tuple(column(name, "integer", bounds=[0, 3]) for name in NAMES))
SCORES = tuple(np.array(x) for x in ([-5, -1, 2, 4], [-3, 0, 0, 3], [7, 1, -1, -6]))
KERNEL = ScoreProducts(SCHEMA, NAMES, SCORES)


def batch(codes):
    codes = np.asarray(codes)
    return Batch(len(codes), codes={name: codes[:, i] for i, name in enumerate(NAMES)})


def total(codes, kernel=KERNEL):
    answer = kernel.zero()
    kernel.add(batch(codes), answer)
    return answer


def test_sums_equal_a_plain_loop_however_rows_are_cut():
    codes = np.random.Generator(np.random.Philox(key=3)).integers(0, 4, (30_000, 3))
    expected = np.zeros((3, 3), dtype=np.int64)
    scored = np.column_stack([table[codes[:, i]] for i, table in enumerate(SCORES)])
    for i, j in product(range(3), repeat=2):
        expected[i, j] = sum((scored[:, i] * scored[:, j]).tolist())
    assert np.array_equal(total(codes), expected)
    parts = KERNEL.zero()
    for part in batch(codes).cut(977):
        KERNEL.merge(parts, total(np.column_stack([part.codes(name) for name in NAMES])))
    assert np.array_equal(parts, expected)


def test_the_largest_scores_are_added_up_without_rounding():
    scores = tuple(np.array([0, 1, LARGEST_SCORE - 1, LARGEST_SCORE]) for _ in NAMES)
    answer = total(np.full((20_000, 3), 2), ScoreProducts(SCHEMA, NAMES, scores))
    assert answer[0, 1] == 20_000 * (LARGEST_SCORE - 1) ** 2


def test_sensitivity_is_the_most_that_any_record_adds():
    pairs = list(combinations(range(3), 2))
    norms = [
        sum(abs(int(total([record])[i, j])) for i, j in pairs)
        for record in product(range(4), repeat=3)
    ]
    assert KERNEL.sensitivity(AddRemoveRecord()) == max(norms) == 5 * 3 + 5 * 7 + 3 * 7
    broken = sum(abs(int(a[0] * b[0])) for a, b in combinations(SCORES[::-1], 2)) - 1
    assert broken < max(norms)
    with pytest.raises(InvalidParameter, match="unit"):
        KERNEL.sensitivity(AddRemoveUnit("x"))


def test_a_record_without_a_value_is_left_out_also_for_columns_without_scores():
    rows = {"x": [0, 0, None], "y": [0, 0, 0], "z": [0, None, 0]}
    schema = Schema(tuple(column(x, "integer", bounds=[0, 3], missing="drop") for x in NAMES))
    table = open_table(pa.table(rows), schema)
    some = ScoreProducts(schema, NAMES[:2], SCORES[:2])
    assert table.sum(some)[0, 1] == 30
    assert table.sum(ScoreProducts(schema, NAMES[:2], SCORES[:2], NAMES))[0, 1] == 15


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (SCORES[:2], "for each column"),
        ((*SCORES[:2], np.array([1, 2, 3])), "each of its values"),
        ((*SCORES[:2], np.zeros(4)), "integer score"),
        ((*SCORES[:2], np.full(4, -LARGEST_SCORE - 1)), "at most"),
    ],
)
def test_unfit_scores_are_refused(scores, message):
    with pytest.raises(InvalidParameter, match=message):
        ScoreProducts(SCHEMA, NAMES, scores)

"""Agreement of pairs of records: exact, and of the joint sensitivity that is proved."""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy.stats import kendalltau

from dpublish.data.batch import Batch
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.kendall import (
    count_agreement,
    exchange_sensitivity,
    sample_records,
    tau_sensitivity,
    tau_values,
)
from dpublish.methods.dpcopula.kernels import PairTables
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord


def kernel_for(columns, values, classes=None):
    names = tuple(f"c{i}" for i in range(columns))
    schema = Schema(tuple(column(x, "integer", bounds=[0, values - 1]) for x in names))
    return PairTables(schema, names, classes or (np.arange(values),) * columns)


def tables_of(codes, kernel):
    codes = np.asarray(codes).reshape(-1, len(kernel.columns))
    answer = kernel.zero()
    kernel.add(Batch(len(codes), dict(zip(kernel.columns, codes.T, strict=True))), answer)
    return answer


def plain_agreement(one, other):
    pairs = combinations(range(len(one)), 2)
    return sum(int(np.sign(one[i] - one[j]) * np.sign(other[i] - other[j])) for i, j in pairs)


def taus(codes, fewest, values):
    return tau_values(tables_of(codes, kernel_for(np.shape(codes)[1], values)), fewest)


def distance(here, there):
    return sum(abs(a - b) for a, b in zip(here, there, strict=True))


def test_agreement_equals_a_comparison_of_all_pairs():
    rng = np.random.Generator(np.random.Philox(key=5))
    for levels in (1, 2, 3, 9):
        codes = rng.integers(0, levels, (60, 3))
        codes[:, 2] = (codes[:, 0] + codes[:, 2]) // 2
        found = [count_agreement(x) for x in tables_of(codes, kernel_for(3, 10))]
        pairs = combinations(codes.T.astype(int), 2)
        assert found == [plain_agreement(one, other) for one, other in pairs]


def test_agreement_fits_the_tau_of_scipy_with_ties():
    rng = np.random.Generator(np.random.Philox(key=6))
    one = rng.geometric(0.2, 20_000).clip(1, 40) - 1
    other = (one + rng.integers(0, 30, 20_000)) // 2
    codes = np.column_stack([one, other])
    agreement = count_agreement(tables_of(codes, kernel_for(2, 40))[0])
    pairs = comb(20_000, 2)
    ties = [sum(comb(int(c), 2) for c in np.bincount(x)) for x in (one, other)]
    scale = np.sqrt(float((pairs - ties[0]) * (pairs - ties[1])))
    assert agreement / scale == pytest.approx(kendalltau(one, other).statistic, rel=1e-12)


def test_batches_may_be_cut_anywhere_and_merged():
    codes = np.random.Generator(np.random.Philox(key=7)).integers(0, 5, (101, 4))
    kernel = kernel_for(4, 5)
    parts = kernel.zero()
    for start in range(0, 101, 13):
        kernel.merge(parts, tables_of(codes[start : start + 13], kernel))
    assert np.array_equal(parts, tables_of(codes, kernel))


def test_values_outside_the_order_agree_with_nothing_but_count_as_records():
    classes = (np.array([0, 1, -1]), np.array([0, 1, 1]))
    tables = tables_of([[0, 0], [1, 1], [2, 2], [2, 0]], kernel_for(2, 3, classes))
    assert tables[0].sum() == 4
    assert tau_values(tables, 2) == [Fraction(1, 6)]


def test_few_records_are_divided_by_the_pairs_of_the_fewest():
    assert taus([[0, 0], [1, 1]], 5, 2) == [Fraction(1, 10)]
    assert taus(np.zeros((0, 2), dtype=int), 2, 2) == [0]
    assert taus([[1, 0]], 2, 2) == [0]


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("records", [3, 4, 5, 6])
def test_joint_sensitivity_is_attained_and_half_of_it_is_not_enough(columns, records):
    # Old records lie on a line; the new one is beyond all of them in half of the columns.
    half = np.arange(columns) < columns // 2
    old = np.repeat(np.arange(1, records + 1)[:, None], columns, axis=1)
    new = np.where(half, 0, records + 1)
    change = distance(
        taus(old, columns, records + 2), taus(np.vstack([old, new]), columns, records + 2)
    )
    if records >= columns:
        assert change == Fraction(4 * (columns**2 // 4), records + 1)
        assert change == tau_sensitivity(columns, records)
        broken = Fraction(4 * comb(columns, 2), records + 1) / 2
        assert broken < change
    assert change <= tau_sensitivity(columns, columns)


@pytest.mark.parametrize(
    ("columns", "values", "records"), [(2, 3, 2), (2, 2, 3), (2, 3, 3), (3, 2, 2), (3, 2, 3)]
)
def test_no_small_table_moves_farther_whatever_the_fewest_records(columns, values, records):
    cells = list(product(range(values), repeat=columns))
    kernel = kernel_for(columns, values)
    single = {cell: tables_of([cell], kernel) for cell in cells}
    for table in product(cells, repeat=records):
        if list(table) != sorted(table):
            continue  # the order of records does not matter
        counts = sum(single[cell] for cell in table)
        for fewest in (columns, records + 1, records + 4):
            here = tau_values(counts, fewest)
            bound = tau_sensitivity(columns, fewest)
            for new in cells:
                assert distance(here, tau_values(counts + single[new], fewest)) <= bound


def test_random_tables_of_many_columns_stay_within_the_bound():
    rng = np.random.Generator(np.random.Philox(key=8))
    for columns in (4, 5):
        for records in (1, 3, 5, 8):
            for fewest in (columns, 6, 9):
                old = rng.integers(0, 3, (records, columns))
                new = rng.integers(0, 3, columns)
                moved = distance(taus(old, fewest, 3), taus(np.vstack([old, new]), fewest, 3))
                assert moved <= tau_sensitivity(columns, fewest)


@pytest.mark.parametrize(
    ("columns", "values", "records"), [(2, 3, 2), (2, 3, 3), (3, 2, 3), (3, 3, 2), (4, 2, 2)]
)
def test_exchanging_a_record_moves_no_small_table_farther(columns, values, records):
    cells = list(product(range(values), repeat=columns))
    kernel = kernel_for(columns, values)
    single = {cell: tables_of([cell], kernel) for cell in cells}
    farthest = Fraction(0)
    for others in product(cells, repeat=records - 1):
        counts = sum(single[cell] for cell in others)
        found = [tau_values(counts + single[cell], records) for cell in cells]
        farthest = max(farthest, *(distance(found[0], other) for other in found))
    assert farthest <= exchange_sensitivity(columns, records)


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("records", [2, 3, 7])
def test_the_sensitivity_of_an_exchange_is_attained_and_that_of_an_addition_is_not_enough(
    columns, records
):
    # All others are equal; the record moves from above them to below in half of the columns.
    others = np.ones((records - 1, columns), dtype=np.int64)
    here = np.full(columns, 2)
    there = np.where(np.arange(columns) < columns // 2, 0, 2)
    found = [taus(np.vstack([others, last]), records, 3) for last in (here, there)]
    assert distance(*found) == exchange_sensitivity(columns, records)
    if records >= columns:
        assert distance(*found) > tau_sensitivity(columns, records)


def test_too_few_records_for_the_proof_are_refused():
    with pytest.raises(InvalidParameter, match="fewest"):
        tau_sensitivity(5, 4)


def test_unfit_classes_and_too_many_columns_are_refused():
    with pytest.raises(InvalidParameter, match="two columns"):
        kernel_for(1, 3)
    with pytest.raises(InvalidParameter, match="each of its values"):
        kernel_for(2, 3, (np.arange(3), np.arange(2)))
    with pytest.raises(InvalidParameter, match="too many columns"):
        kernel_for(60, 128)


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_a_record_changes_one_cell_of_every_pair(columns):
    kernel = kernel_for(columns, 3)
    moved = tables_of([[2] * columns], kernel)
    assert np.abs(moved).sum() == kernel.sensitivity(AddRemoveRecord()) == comb(columns, 2)
    with pytest.raises(InvalidParameter):
        kernel.sensitivity(ReplaceRecord())


def test_a_sample_has_as_many_records_as_the_rule_says_and_never_too_much_work():
    assert sample_records("auto", 3, Fraction(1), most_work=30) == 10
    assert sample_records("paper", 2, Fraction(1, 9)) == 899  # 50 * 2 * 1 / (1 / 9) - 1
    assert sample_records("paper", 8, Fraction(2, 3)) == 4199
    assert sample_records(500, 8, Fraction(1)) == 500
    assert sample_records(500, 3, Fraction(1), most_work=30) == 10
    assert sample_records(2, 8, Fraction(1)) == 8  # the proof needs as many records as columns

"""The uniform grid: the distribution of the proof; its fineness follows from noisy numbers."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.spatial.box_domain import side_lengths
from dpublish.methods.spatial.ug import UG
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value
from method_examples import ROWS, SCHEMA, arrow_table
from methods.spatial.box_distribution import largest_loss, log_counts, log_noise, log_size

SIZES = (3, 4)
SMALL = Schema(
    tuple(
        column(name, "integer", bounds=[0, size - 1])
        for name, size in zip("xy", SIZES, strict=True)
    )
)


def small_table(codes):
    return open_table(pa.table({"x": codes[:, 0], "y": codes[:, 1]}), SMALL)


def some_codes(records, seed=1):
    return plain_generator(seed).integers(0, SIZES, (records, 2))


def publish(codes, epsilon, seed):
    return UG().release(small_table(codes), budget=Budget.seeded(epsilon), rng=seeded(seed))


def test_no_neighbor_changes_the_probability_of_a_release_by_more_than_epsilon():
    codes, epsilon = some_codes(6), 20
    releases = [publish(codes, epsilon, seed) for seed in range(20)]
    assert any(release.parents.size == 12 for release in releases)

    def distribution(release, table):
        return log_size(release, table) + log_counts(release, table)

    assert 0.9 * epsilon < largest_loss(releases, codes, SIZES, distribution) <= epsilon + 1e-9


def test_a_size_that_costs_nothing_would_be_noticed():
    codes, epsilon = some_codes(6), 20
    releases = [publish(codes, epsilon, seed) for seed in range(20)]

    def distribution(release, table):  # all of epsilon for the counts, and a fiftieth on top
        return log_size(release, table) + log_counts(release, table, (epsilon,))

    assert largest_loss(releases, codes, SIZES, distribution) > epsilon + 0.1


def test_releases_have_the_distribution_of_the_proof():
    schema = Schema((column("x", "integer", bounds=[0, 1]),))
    table = open_table(pa.table({"x": [0, 0, 1]}), schema)
    rng, epsilon = seeded(3), Fraction(25)
    seen = []
    for _ in range(1200):
        release = UG().release(table, budget=Budget.seeded(epsilon), rng=rng)
        seen.append((min(max(release.size.value, 0), 6), release.parents.size))
    probabilities = Counter()
    for size in range(-40, 41):
        cells = 2 if size * 24.5 / 10 > 1 else 1  # (N e / 10)^(2/3) rounded up, at most 2
        key = (min(max(size, 0), 6), cells)
        probabilities[key] += float(noise_pmf(epsilon / 50, np.array([size - 3]))[0])
    assert frequency_p_value(seen, probabilities) > 1e-4
    noise = [
        count
        for release in [publish(some_codes(0), "0.7", s) for s in range(300)]
        for count in release.counts.tolist()
    ]
    values = np.arange(-60, 61)
    rate = 0.7 * 0.98
    distribution = dict(zip(values.tolist(), noise_pmf(rate, values), strict=True))
    assert frequency_p_value(noise, distribution) > 1e-4
    assert log_noise(rate, 2) == pytest.approx(np.log(distribution[2]))
    assert logsumexp([log_noise(rate, value) for value in values]) == pytest.approx(0, abs=1e-9)


def test_the_grid_follows_from_the_noisy_number_of_records():
    schema = Schema(tuple(column(name, "integer", bounds=[0, 999]) for name in "xy"))
    rng = plain_generator(4)
    rows = pa.table({name: rng.integers(0, 1000, 40_000) for name in "xy"})
    release = UG().release(open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(4))
    side = int(np.ceil(np.sqrt(release.size.value * 0.98 / 10)))
    assert release.parents.size == side**2
    assert np.ptp(release.highs - release.lows) <= 1
    truth = ((rows["x"].to_numpy() < 500) & (rows["y"].to_numpy() < 250)).sum()
    answer = release.count("x < 500 and y < 250")
    assert answer.low < truth < answer.high
    assert answer.high - answer.low < 0.2 * truth


def test_domains_of_any_size_are_cut_into_boxes_that_fit():
    names = [f"c{index}" for index in range(24)]
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1], bins=10) for name in names))
    rng = plain_generator(5)
    rows = pa.table({name: rng.random(3000) for name in names})
    release = UG().release(open_table(rows, schema), budget=Budget.seeded(2), rng=seeded(5))
    assert 1 << 10 < release.parents.size <= 1 << 18
    assert abs(release.total - 3000) < 100
    assert release.rows(10, seed=1).num_rows == 10


@pytest.mark.parametrize(
    ("wanted", "extents", "sides"),
    [
        (1.0, (5, 5), (1, 1)),
        (101.0, (50, 50), (11, 11)),
        (101.0, (4, 90), (4, 26)),
        (100.0, (100_000,), (100,)),
        (7.0, (9, 9, 9), (3, 2, 1)),
        (1e5, (3, 3, 3), (3, 3, 3)),
        (200.0, (2, 9, 40, 1), (2, 9, 11, 1)),
    ],
)
def test_columns_are_cut_alike_as_far_as_they_have_codes(wanted, extents, sides):
    assert side_lengths(np.array([wanted]), np.array([extents])).tolist() == [list(sides)]


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS[:1] * 6, ROWS])
def test_small_tables_are_no_error(rows):
    for seed in range(5):
        release = UG().release(
            open_table(arrow_table(rows), SCHEMA), budget=Budget.seeded("1.5"), rng=seeded(seed)
        )
        assert release.schema.names == ("age", "height")
        assert release.summary()
        release.rows(seed=1)


def test_the_budget_is_emptied_and_unfit_budgets_are_refused():
    budget = Budget.seeded("0.7")
    table = open_table(arrow_table(), SCHEMA)
    release = UG(columns=("height",)).release(table, budget=budget, rng=seeded(1))
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == release.receipt.epsilon == Fraction(7, 10)
    assert release.rates == (Fraction(7, 10) * Fraction(49, 50),)
    with pytest.raises(BudgetAlreadyUsed):
        UG().release(table, budget=budget, rng=seeded(1))
    for refuse in (
        lambda: UG().release(table, budget=Budget.seeded("1e-30"), rng=seeded(1)),
        lambda: UG().expected_error(SCHEMA, None, Fraction("1e-30")),
        lambda: UG(columns=("shoe",)).expected_error(SCHEMA, None, Fraction(1)),
        lambda: UG(columns=3),
    ):
        with pytest.raises(InvalidParameter):
            refuse()


def test_the_error_is_predicted():
    loose = UG().expected_error(SCHEMA, None, Fraction(1, 10))
    tight = UG().expected_error(SCHEMA, 1000, Fraction(1))
    assert tight.figures["one_box_95"] < loose.figures["one_box_95"]
    assert tight.figures["boxes"] == 70  # 98 wanted, 10 x 7 there are
    assert tight.summary


def test_more_columns_than_an_array_has_axes_can_be_cut_and_queried():
    names = [f"c{i}" for i in range(70)]
    schema = Schema(tuple(column(name, "integer", bounds=[0, 9]) for name in names))
    rows = pa.table({name: plain_generator(1).integers(0, 10, 500) for name in names})
    release = UG().release(open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1))
    lows, highs = np.array([[0, 0], [3, 3]]), np.array([[10, 10], [5, 10]])
    assert release.count_boxes(("c0", "c1"), lows, highs).shape == (2,)


@pytest.mark.parametrize("name", ["p-hp", "privelet", "filter-priority"])
def test_more_columns_than_an_array_has_axes_are_refused_before_anything_is_paid(name):
    sizes = [9, 9, *[0] * 70]
    schema = Schema(
        tuple(column(f"c{i}", "integer", bounds=[0, top]) for i, top in enumerate(sizes))
    )
    with pytest.raises(InvalidParameter, match="too many to be counted together"):
        make_method(name, {}).expected_error(schema, None, Fraction(1))

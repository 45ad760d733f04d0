"""AG: each level is paid for, and cells are cut by noisy counts alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.spatial import ag
from dpublish.methods.spatial.ag import AG, _second_sides
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from method_examples import ROWS, SCHEMA, arrow_table
from methods.spatial.box_distribution import largest_loss, log_counts, log_size

SIZES = (40,)
SMALL = Schema((column("x", "integer", bounds=[0, 39]),))
EPSILON = 30


@pytest.fixture(scope="module")
def codes():
    dense = np.zeros((12, 1), dtype=np.int64)  # so that the first cell is cut again
    return np.concatenate([dense, plain_generator(1).integers(0, SIZES, (5, 1))])


@pytest.fixture(scope="module")
def releases(codes):
    table = open_table(pa.table({"x": codes[:, 0]}), SMALL)
    return [
        AG().release(table, budget=Budget.seeded(EPSILON), rng=seeded(seed)) for seed in range(12)
    ]


def test_no_neighbor_changes_the_probability_of_a_release_by_more_than_epsilon(codes, releases):
    assert any((release.levels == 1).sum() > (release.levels == 0).sum() for release in releases)

    def distribution(release, table):
        return log_size(release, table) + log_counts(release, table)

    assert 0.9 * EPSILON < largest_loss(releases, codes, SIZES, distribution) <= EPSILON + 1e-9


def test_levels_that_share_one_payment_would_be_noticed(codes, releases):
    both = (Fraction(EPSILON) * 49 / 50,) * 2  # nested cells are not disjoint

    def distribution(release, table):
        return log_size(release, table) + log_counts(release, table, both)

    assert largest_loss(releases, codes, SIZES, distribution) > 1.5 * EPSILON


def test_the_second_grid_follows_from_the_noisy_counts_of_the_first(releases):
    """Given what was published before, the cut is the same whatever the table."""
    for release in releases:
        first = release.levels == 0
        extents = (release.highs - release.lows)[first]
        parts = _second_sides(release.counts[first], release.rates[1], extents)
        parents = release.parents[~first]
        assert np.bincount(parents).tolist() == np.prod(parts, axis=1).tolist()


@pytest.mark.parametrize(("noisy", "side"), [(-30, 10), (50_000, 25), (10**6, 111)])
def test_the_first_grid_follows_from_the_noisy_number_of_records(noisy, side, monkeypatch):
    """The table is empty, whatever the noise is."""

    def release_size(run, domain, *, budget):
        return NoisySize(noisy, budget.spend())

    monkeypatch.setattr(ag, "release_size", release_size)
    schema = Schema(tuple(column(name, "integer", bounds=[0, 9999]) for name in "xy"))
    empty = open_table(pa.table({name: pa.array([], pa.int64()) for name in "xy"}), schema)
    release = AG().release(empty, budget=Budget.seeded(2), rng=seeded(2))
    assert np.count_nonzero(release.levels == 0) == side**2


def test_two_columns_are_cut_as_the_specification_says():
    schema = Schema(tuple(column(name, "integer", bounds=[0, 9999]) for name in "xy"))
    rng = plain_generator(2)
    rows = pa.table({name: rng.binomial(9999, 0.3, 50_000) for name in "xy"})
    release = AG().release(open_table(rows, schema), budget=Budget.seeded(2), rng=seeded(2))
    rest = 2 * 0.98
    side = max(10, int(np.ceil(np.sqrt(release.size.value * rest / 10) / 4)))
    first = release.levels == 0
    assert first.sum() == side**2
    wanted = np.ceil(np.sqrt(np.maximum(release.counts[first], 0) * rest / 2 / 5))
    assert np.bincount(release.parents[~first]).tolist() == (np.clip(wanted, 1, 64) ** 2).tolist()
    assert release.rates == (Fraction(49, 50), Fraction(49, 50))


def test_estimates_are_those_of_the_closed_form(releases):
    """Weigh a cell and its parts by variance; share the difference out evenly."""
    for release in releases[:3]:
        flat = replace(release, size=None)
        ends = flat.ends
        for cell in np.flatnonzero(flat.levels == 0):
            parts = np.flatnonzero(flat.parents[ends] == cell)
            noisy = flat.counts[ends[parts]].astype(float)
            weight = parts.size / (1 + parts.size)
            surplus = weight * (flat.counts[cell] - noisy.sum()) / parts.size
            assert flat.estimates[parts] == pytest.approx(noisy + surplus)


def test_many_records_never_make_too_many_boxes():
    counts, extents = np.full(50_000, 10**9), np.full((50_000, 3), 1000)
    parts = _second_sides(counts, Fraction(1), extents)
    assert 50_000 <= np.prod(parts, axis=1).sum() <= (1 << 18) - 50_000


@pytest.mark.parametrize("columns", [("age",), ("age", "height", "sex")])
@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS[:1] * 6, ROWS])
def test_small_tables_and_other_numbers_of_columns_are_no_error(rows, columns):
    for seed in range(3):
        budget = Budget.seeded("1.5")
        table = open_table(arrow_table(rows), SCHEMA)
        method = AG(columns=columns)
        release = method.release(table, budget=budget, rng=seeded(seed))
        assert all(share.is_used for share in budget.account())
        assert budget.cost() == release.receipt.epsilon == Fraction(3, 2)
        release.rows(seed=1)
        with pytest.raises(BudgetAlreadyUsed):
            method.release(table, budget=budget, rng=seeded(seed))


def test_the_error_is_predicted_and_unfit_settings_are_refused():
    loose = AG().expected_error(SCHEMA, None, Fraction(1, 10))
    tight = AG().expected_error(SCHEMA, 1000, Fraction(1))
    assert tight.figures["one_box_95"] < loose.figures["one_box_95"]
    assert tight.figures["first_boxes"] == 70
    with pytest.raises(InvalidParameter):
        AG().expected_error(SCHEMA, None, Fraction("1e-30"))
    with pytest.raises(InvalidParameter):
        AG(columns=("age", "age")).expected_error(SCHEMA, None, Fraction(1))

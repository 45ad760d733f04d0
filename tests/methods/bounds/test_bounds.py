"""The method `bounds`: which points, which bounds, and twins that replay must notice."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import tail_bounds
from dpublish.methods.bounds import bounds as bounds_module
from dpublish.methods.bounds.bounds import Bounds
from dpublish.methods.bounds.grid import WIDEST, grid_points
from dpublish.methods.bounds.kernels import PointCounts
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from test_replay import _replay, runner

WIDE = [-WIDEST, WIDEST]


def costs(n=20_000):
    return np.exp(plain_generator(1).normal(7, 1.2, n))


def measure(values, *, kind="numeric", bounds=WIDE, epsilon="0.5", seed=1, **settings):
    wide = column("cost", kind, bounds=bounds, bins=1, missing="drop")
    table = open_table(pa.table({"cost": values}), Schema((wide,)))
    method = Bounds(column="cost", **settings)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


# --- the points -----------------------------------------------------------------------------------


def test_points_are_round_numbers_of_every_magnitude_on_both_sides():
    points = grid_points(column("cost", "numeric", bounds=WIDE, bins=1))
    assert points.size == 2 * (24 * 6 + 1) + 1
    assert {0.0, 1e-9, 0.015, 7e14, 1e15} <= set(points.tolist())
    assert np.array_equal(points, -points[::-1])
    assert (np.diff(points) > 0).all()


def test_points_of_integers_are_integers_within_the_declared_bounds():
    points = grid_points(column("n", "integer", bounds=[-12, 12], bins=1))
    assert points.tolist() == [-12, -10, -7, -5, -3, -2, -1, 0, 1, 2, 3, 5, 7, 10, 12]


def test_values_at_a_point_and_between_two_are_counted_apart():
    kernel = PointCounts("cost", (0.0, 1.0, 5.0))
    schema = Schema((column("cost", "numeric", bounds=[0, 5], bins=1, missing="drop"),))
    rows = [0, 0.5, 1, 1, 4.9, 5, 99, -3, None, float("nan"), float("inf")]
    table = open_table(pa.table({"cost": pa.array(rows, pa.float64())}), schema)
    assert table.sum(kernel).tolist() == [2, 1, 2, 1, 3]


# --- the bounds -----------------------------------------------------------------------------------


def test_most_values_lie_within_and_bounds_are_not_far_off():
    values = costs()
    for seed in range(5):
        low, high = measure(values, seed=seed).bounds
        outside = np.mean((values < low) | (values > high))
        assert outside < 0.03
        assert high <= 2 * values.max()
        assert low >= 0


def test_zero_is_a_bound_of_values_many_of_which_are_zero():
    values = np.where(np.arange(20_000) % 3 == 0, 0.0, costs())
    assert measure(values).lower == 0


def test_a_column_of_one_value_gets_bounds_around_it():
    assert measure(np.full(10_000, 100.0)).bounds == (100, 150)
    low, high = measure(np.full(10_000, 42), kind="integer").bounds
    assert (low, high) == (30, 50)


def test_negative_values_get_a_negative_lower_bound():
    low, high = measure(-costs(), seed=3).bounds
    assert low < -1000
    assert high <= 0


@pytest.mark.parametrize(("sides", "kept"), [("upper", 0), ("lower", 1)])
def test_the_side_that_is_not_measured_stays_as_declared(sides, kept):
    release = measure(costs(), bounds=[0, 10**9], sides=sides)
    assert release.bounds[kept] == (0, 10**9)[kept]
    assert release.bounds[1 - kept] != (0, 10**9)[1 - kept]
    assert len(release.summary()) == 3


def test_the_summary_says_what_clipping_means():
    release = measure(costs(), bounds=[0, WIDEST], sides="upper", coverage="0.98")
    high = f"{release.upper:,.12g}"
    assert release.summary()["above"] == (
        f"about 2 % of the values (or {release.least}, if that is more) lie over {high}; "
        f"they count as {high}"
    )


def test_a_table_of_no_rows_gets_bounds_too():
    low, high = measure(np.array([], dtype=float)).bounds
    assert low < high


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"coverage": "1"}, "coverage"),
        ({"coverage": "0.4"}, "coverage"),
        ({"coverage": "0.99999999"}, "coverage"),
        ({"coverage": "much"}, "coverage"),
        ({"sides": "left"}, "sides"),
        ({"column": ""}, "column"),
    ],
)
def test_bad_settings_are_refused(settings, fault):
    with pytest.raises(InvalidParameter, match=fault):
        make_method("bounds", {"column": "cost", **settings})


def test_categories_have_no_bounds():
    schema = Schema((column("sex", "category", values=["F", "M"]),))
    with pytest.raises(InvalidParameter, match="only numbers"):
        Bounds(column="sex").expected_error(schema, None, Fraction(1))


def test_the_error_in_rank_is_stated_for_a_number_of_records():
    schema = Schema((column("cost", "numeric", bounds=[0, WIDEST], bins=1),))
    method = Bounds(column="cost", sides="upper")
    found = method.expected_error(schema, 30_000, Fraction(1, 20))
    assert found.figures["values_aimed_at_beyond"] == 300
    assert found.figures["values_beyond_95"] == 300 + 2 * 219
    assert "too few" in method.expected_error(schema, 400, Fraction(1, 20)).summary


# --- twins that give rows away --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PointsFromTheData(Bounds):
    """Chooses among points that it found in the rows."""

    name = "points-from-the-data"

    def _release(self, run):
        """Publish.

        Privacy:
            None: the points give rows away.
        """
        counts = run.sum(PointCounts("age", tuple(range(100))))
        seen = np.flatnonzero(counts) // 2
        points = np.unique([0, *seen.tolist(), 99]).astype(float)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bounds_module, "grid_points", lambda column: points)
            return super()._release(run)


@dataclass(frozen=True, kw_only=True)
class ClippedToTheValuesSeen(Bounds):
    """Moves the bounds to the least and greatest value that it saw."""

    name = "clipped-to-the-values-seen"

    def _release(self, run):
        """Publish.

        Privacy:
            None: it publishes the greatest value.
        """
        counts = run.sum(PointCounts("age", tuple(range(100))))
        greatest = np.flatnonzero(counts).max(initial=0) / 2
        release = super()._release(run)
        return replace(release, upper=min(release.upper, max(greatest, release.lower)))


@pytest.mark.parametrize("twin", [PointsFromTheData, ClippedToTheValuesSeen])
def test_what_is_taken_from_the_rows_is_noticed(twin):
    method = twin(column="age")
    with pytest.raises(AssertionError):
        _replay(method, runner(method))


def test_two_bounds_at_the_price_of_one_are_noticed(monkeypatch):
    method = Bounds(column="age", coverage="0.5")
    _replay(method, runner(method))
    monkeypatch.setitem(tail_bounds._RANGE, "both", 1)
    with pytest.raises(AssertionError):
        _replay(method, runner(method))

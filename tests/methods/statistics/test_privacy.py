"""What a release of statistics tells of one record: exactly its budget, and no more."""

from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.statistics import kernels, plan, statistics
from dpublish.methods.statistics.kernels import FINENESS, Bounds, GroupMoments, GroupSums
from dpublish.methods.statistics.measures import read_measure
from dpublish.methods.statistics.statistics import Statistics
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from replay import ROUNDING, Tape, removal_loss, watch

EPSILON = Fraction(1)
SCHEMA = Schema(
    (
        column("ward", "category", values=["A", "B"], missing="drop"),
        column("age", "integer", bounds=[10, 90]),
        column("cost", "numeric", bounds=[-5, 1000], missing="drop"),
    )
)
BASE = {
    "ward": ["A"] * 30 + ["B"] * 20,
    "age": [*range(20, 70)],
    "cost": [float(x * x) / 4 for x in range(50)],
}
RECORDS = [
    {"ward": "A", "age": 10, "cost": 1000.0},
    {"ward": "B", "age": 90, "cost": -5.0},
    {"ward": "B", "age": 50, "cost": 497.5},
    {"ward": "A", "age": 44, "cost": None},
]
ALL = "count, sum(cost), mean(age), variance(age), median(cost), quantile(cost, 0.9)"


def _rows(*more):
    columns = {name: [*values, *(one[name] for one in more)] for name, values in BASE.items()}
    return pa.table(
        {
            "ward": pa.array(columns["ward"]),
            "age": pa.array(columns["age"], pa.int64()),
            "cost": pa.array(columns["cost"], pa.float64()),
        }
    )


def _loss(record, measures=ALL):
    method = Statistics(measures=measures, by=("ward",))

    def run(rows, rng, progress):
        table = open_table(rows, SCHEMA)
        release = method.release(table, budget=Budget.seeded(EPSILON), rng=rng, progress=progress)
        return release, release.metadata(), release.tables()

    played = Tape()
    seen = watch(partial(run, _rows()), played)
    return removal_loss(run, _rows(record), played, seen)


@pytest.mark.parametrize("record", RECORDS)
def test_no_record_loses_more_than_epsilon(record):
    assert _loss(record) <= float(EPSILON) + ROUNDING


def test_moments_and_counts_lose_all_that_they_pay_for():
    """A record changes moments by their whole sensitivity, so the noise is not too large."""
    for record in RECORDS[:3]:
        assert _loss(record, "mean(age), count") == pytest.approx(float(EPSILON))


def _is_noticed(measures):
    """Whether some record is seen to lose more than was paid for it."""
    for record in RECORDS[:3]:
        try:
            loss = _loss(record, measures)
        except AssertionError:  # a single call of a mechanism cost more than its share
            return True
        if loss > float(EPSILON) + ROUNDING:
            return True
    return False


def test_what_is_not_broken_is_not_noticed():
    assert not _is_noticed(ALL)


@pytest.mark.parametrize(
    ("kind", "measures"), [(GroupMoments, "mean(age)"), (GroupSums, "sum(cost)")]
)
def test_half_the_sensitivity_is_noticed(monkeypatch, kind, measures):
    whole = kind.record_change.fget
    monkeypatch.setattr(kind, "sensitivity", lambda self, _: whole(self) // 2)
    assert _is_noticed(measures)


def test_a_record_that_is_counted_twice_is_noticed(monkeypatch):
    def add_twice(self, groups, values, out):
        out[0] += 2 * np.bincount(groups, minlength=out.shape[1])

    monkeypatch.setattr(kernels.GroupCounts, "add", add_twice)
    assert _is_noticed("count")


def test_an_uncentered_sum_with_the_sensitivity_of_a_centered_one_is_noticed(monkeypatch):
    centered = property(lambda self: int(FINENESS * self.bounds.width / 2 / self.bounds.largest))
    monkeypatch.setattr(GroupSums, "record_change", centered)
    assert _is_noticed("sum(cost)")


@pytest.mark.parametrize(("order", "measures"), [(1, "mean(age)"), (2, "variance(age)")])
def test_a_count_that_is_not_paid_for_is_noticed(monkeypatch, order, measures):
    """The broken twin publishes the count in place of a moment, beside all other moments."""
    exact = GroupMoments.powers

    def powers(self, values):
        return (np.full(values.size, float(self.scale)), *exact(self, values)[1:])

    monkeypatch.setattr(GroupMoments, "powers", powers)
    assert _is_noticed(measures)


def test_cells_that_come_from_the_data_are_noticed(monkeypatch):
    """The broken twin cuts cells between the least and the greatest value that it sees."""

    def locate(self, values):
        span = max(float(np.ptp(values)), 1e-9)
        return np.clip((values - values.min()) / span * self.cells, 0, self.cells - 1).astype(int)

    monkeypatch.setattr(kernels.GroupCells, "locate", locate)
    assert _is_noticed("median(cost)")


def test_a_quarter_of_the_range_of_scores_is_noticed(monkeypatch):
    exact = statistics.choice_range
    monkeypatch.setattr(statistics, "choice_range", lambda measure: exact(measure) // 4)
    assert _is_noticed("quantile(cost, 0.9)")


# --- Sensitivities, over the whole domain ------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "bounds",
    [Bounds(0, 7, True), Bounds(-3, 9000, True), Bounds(0.1, 0.7, False), Bounds(-1e6, 3, False)],
)
def test_what_a_record_adds_to_moments_is_never_negative_and_adds_up_to_the_scale(bounds, order):
    part = GroupMoments("x", bounds, order)
    values = np.linspace(bounds.low, bounds.high, 10_001)
    values = np.floor(values) if bounds.whole else values
    ends = bounds.low, np.nextafter(bounds.low, bounds.high), np.nextafter(bounds.high, -np.inf)
    if not bounds.whole:
        values = np.concatenate([values, ends, [bounds.high]])
    powers = np.array(part.powers(values))
    assert np.all(powers == np.rint(powers))
    assert powers.min() >= 0
    assert np.all(powers.sum(axis=0) == part.scale)
    assert part.sensitivity(AddRemoveRecord()) == part.scale


@pytest.mark.parametrize("bounds", [Bounds(-3, 7, True), Bounds(-0.25, 0.1, False)])
def test_no_value_adds_more_to_a_sum_than_its_sensitivity(bounds):
    part, largest = GroupSums("x", bounds), 0
    for value in (bounds.low, bounds.high, 0.0, float(np.floor(bounds.high / 3))):
        out = np.zeros((1, 1), dtype=np.int64)
        part.add(np.zeros(1, dtype=np.int32), np.array([max(value, bounds.low)]), out)
        largest = max(largest, abs(int(out[0, 0])))
    assert largest == part.sensitivity(AddRemoveRecord())


@pytest.mark.parametrize("text", ["median(x)", "quantile(x, 0.9)", "quantile(x, 0.25)"])
def test_one_record_changes_the_odds_of_every_cell_by_its_budget_at_most(text):
    """Exact probabilities of all outcomes, on all small tables and for all records."""
    measure, epsilon = read_measure(text), 1.0
    rate = epsilon / plan.choice_range(measure)
    worst = 0.0
    for counts in np.ndindex(3, 3, 3):
        for cell in range(3):
            here = np.array(counts)[:, None]
            there = here.copy()
            there[cell] += 1
            for aim in (-2, 0, 3):
                odds = [
                    choice_distribution(next(statistics._scores(one, measure, aim)), rate)
                    for one in (here, there)
                ]
                worst = max(worst, np.abs(np.log(odds[0] / odds[1])).max())
    assert worst <= epsilon + 1e-9
    assert worst > 0.4 * epsilon  # the range is not far too large, either

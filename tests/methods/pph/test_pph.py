"""Projected histograms: the score and its range, its distribution and loss, plan, account."""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil, log

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.aggregates.sparse_counts import OccupiedCells
from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.published_cells import add_noise_to_cells
from dpublish.methods.pph import pph as projection
from dpublish.methods.pph.plan import Plan, cell_limit, fit_axis, useful_axes
from dpublish.methods.pph.pph import PPH, SCORE_RANGE, STEPS, find_threshold, score_projection
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

SEX = column("sex", "category", values=["F", "M"])
TOWN = column("town", "category", values=["Ost", "West"])
RISK = column("risk", "category", values=["low", "high"])
SCHEMA = Schema((SEX, TOWN, RISK))
CELLS = list(product(range(2), range(2), range(2)))


def table(counts):
    """Records by (sex, town, risk), so many of each cell."""
    codes = [cell for cell, count in zip(CELLS, counts, strict=True) for _ in range(count)]
    columns = {
        name: pa.array([known.labels[code[index]] for code in codes], pa.string())
        for index, (name, known) in enumerate(zip(SCHEMA.names, SCHEMA.columns, strict=True))
    }
    return open_table(pa.table(columns), SCHEMA)


def undiscerned(counts):
    """Pairs of different classes in the same cell; counts by cell and class."""
    counts = np.asarray(counts)
    return int((counts.sum(axis=-1) ** 2).sum() - (counts**2).sum()) // 2


def as_cells(counts):
    flat = np.asarray(counts, dtype=np.int64).ravel()
    keys = np.flatnonzero(flat)
    return OccupiedCells(keys, flat[keys])


def test_the_score_counts_pairs_that_are_not_discerned():
    records = [(0, "a"), (0, "b"), (0, "b"), (2, "c"), (2, "a"), (2, "b"), (1, "a"), (1, "a")]
    pairs = sum(
        first[0] == second[0] and first[1] != second[1]
        for index, first in enumerate(records)
        for second in records[:index]
    )
    counts = np.zeros((3, 3), dtype=np.int64)
    for cell, label in records:
        counts[cell, "abc".index(label)] += 1
    assert pairs == undiscerned(counts) == 5
    assert score_projection(as_cells(counts), 3) == -5 * STEPS // 8
    assert score_projection(as_cells(np.zeros((3, 3))), 3) == 0


@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**40 + 12345, 2**61])
def test_the_score_is_exact_for_counts_of_any_size(size):
    counts = [[size, 3], [size - 5, size // 3]]
    whole = sum(a * b for a, b in counts)
    records = sum(map(sum, counts))
    found = score_projection(OccupiedCells(np.arange(4), np.array(counts).ravel()), 2)
    assert found == -whole * STEPS // records


def tables_and_additions(classes, most):
    """All small tables, cut in two ways into two cells each, with every record added."""
    kinds = list(product(range(2), range(2), range(classes)))
    for size in range(most + 1):
        for chosen in combinations_with_replacement(range(len(kinds)), size):
            cube = np.zeros((2, 2, classes), dtype=np.int64)
            for kind in chosen:
                cube[kinds[kind]] += 1
            for added in kinds:
                more = cube.copy()
                more[added] += 1
                yield cube, more


def exact_score(counts):
    total = int(np.sum(counts))
    return -Fraction(undiscerned(counts), total) if total else Fraction(0)


@pytest.mark.parametrize(("classes", "most"), [(2, 4), (3, 3)])
def test_scores_move_within_their_range_of_each_other(classes, most):
    lowest, highest, widest, rounded = 0, 0, 0, 0
    for before, after in tables_and_additions(classes, most):
        changes, steps = [], []
        for axis in (0, 1):
            here, there = before.sum(axis=axis), after.sum(axis=axis)
            changes.append(exact_score(there) - exact_score(here))
            steps.append(
                score_projection(as_cells(there), classes)
                - score_projection(as_cells(here), classes)
            )
        lowest, highest = min(lowest, *changes), max(highest, *changes)
        widest = max(widest, abs(changes[0] - changes[1]))
        rounded = max(rounded, abs(steps[0] - steps[1]))
    assert lowest > -1
    assert highest < Fraction(1, 2)
    assert widest == Fraction(most, most + 1)  # the bound of the proof, n / (n + 1), is reached
    assert rounded <= SCORE_RANGE
    assert rounded > 0.74 * SCORE_RANGE


def random_tables(classes=3, cells=4):
    rng = plain_generator(4)
    for _ in range(400):
        cube = rng.integers(0, rng.integers(2, 30), (cells, cells, classes))
        cube *= rng.random(cube.shape) < rng.random()
        more = cube.copy()
        more[tuple(rng.integers(0, cube.shape))] += 1
        yield cube, more


def test_the_range_holds_for_larger_tables_too():
    for before, after in random_tables():
        changes = [
            exact_score(after.sum(axis=axis)) - exact_score(before.sum(axis=axis))
            for axis in (0, 1)
        ]
        assert abs(changes[0] - changes[1]) < 1
        assert all(-1 < change < Fraction(1, 2) for change in changes)


def choice(cube, rate, score):
    """Exact probabilities to choose sex or town first."""
    scores = [score(np.sum(cube, axis=1)), score(np.sum(cube, axis=0))]
    return dict(enumerate(choice_distribution(scores, rate)))


def steps_score(counts):
    return score_projection(as_cells(counts), 2)


def neighbors():
    # All records have a low risk.  One with a high risk that shares its town with them, but not
    # its sex, moves one score by nearly 1 and the other not at all.
    many = np.zeros((2, 2, 2), dtype=np.int64)
    many[0, 0, 0] = 40
    mixed = many.copy()
    mixed[1, 1, :] = (3, 9)
    for cube in (many, mixed, np.zeros((2, 2, 2), dtype=np.int64)):
        for cell in CELLS:
            more = cube.copy()
            more[cell] += 1
            yield cube, more


def worst(rate, score):
    return max(
        privacy_loss(choice(before, rate, score), choice(after, rate, score))
        for before, after in neighbors()
    )


def test_a_choice_costs_its_share_and_not_much_less():
    share = 0.4
    loss = worst(share / SCORE_RANGE, steps_score)
    assert 0.9 * share < loss <= share + 1e-9


def test_half_the_range_or_pairs_that_are_not_divided_would_be_caught():
    share = 0.4
    assert worst(2 * share / SCORE_RANGE, steps_score) > share + 1e-6
    assert worst(share / 1.5, lambda counts: -undiscerned(counts)) > 10 * share


def test_columns_are_chosen_with_the_probabilities_of_the_proof():
    counts = [6, 1, 1, 2, 1, 1, 0, 6]
    private = table(counts)
    drawn = Counter()
    for seed in range(500):
        release = PPH(
            target="risk", attributes=1, size_share=Fraction(4, 5), selection_share=Fraction(1, 10)
        ).release(private, budget=Budget.seeded(6), rng=seeded(seed))
        (axis,) = release.predictors
        drawn[SCHEMA.names.index(axis.column)] += 1
    samples = list(drawn.elements())
    cube = np.array(counts).reshape(2, 2, 2)
    assert frequency_p_value(samples, choice(cube, 0.6 / SCORE_RANGE, steps_score)) > 1e-3
    assert frequency_p_value(samples, choice(cube, 1.8 / SCORE_RANGE, steps_score)) < 1e-3


def release(rows, schema=SCHEMA, epsilon=2, seed=1, budget=None, **settings):
    method = PPH(**{"target": "risk", **settings})
    return method.release(
        open_table(rows, schema), budget=budget or Budget.seeded(epsilon), rng=seeded(seed)
    )


AGE = column("age", "integer", bounds=[0, 99])
JOB = column("job", "category", taxonomy={"Paid": ["a", "b"], "Unpaid": ["c", "d"]})
WIDE = Schema((AGE, JOB, SEX, TOWN, RISK))


def wide_rows(size=3000):
    rng = plain_generator(5)
    ages, jobs = rng.integers(0, 100, size), rng.integers(0, 4, size)
    return pa.table(
        {
            "age": ages,
            "job": [JOB.labels[k] for k in jobs],
            "sex": [SEX.labels[k] for k in rng.integers(0, 2, size)],
            "town": [TOWN.labels[k] for k in rng.integers(0, 2, size)],
            "risk": [RISK.labels[k] for k in ((ages < 50) & (jobs >= 2)).astype(int)],
        }
    )


def test_a_clear_rule_is_learned():
    published = release(wide_rows(), WIDE, attributes=2)
    assert [axis.column for axis in published.predictors] == ["age", "job"]
    predicted = published.predict(wide_rows(500)).to_pylist()
    right = np.mean(np.array(predicted) == np.array(wide_rows(500)["risk"].to_pylist()))
    assert right > 0.97
    assert published.schema.names == ("age", "job", "sex", "town", "risk")


def test_counts_are_right_when_noise_is_negligible():
    rows = wide_rows()
    published = release(rows, WIDE, epsilon=4000, attributes=4)
    assert published.records.value == published.counts.sum() == 3000
    assert published.threshold == 1
    assert [axis.column for axis in published.predictors] == ["age", "job", "sex", "town"]


def test_the_budget_pays_for_size_rounds_and_counts():
    budget = Budget.seeded("0.8")
    published = release(wide_rows(), WIDE, budget=budget, attributes=2)
    shares = dict(published.receipt.shares)
    assert shares == {
        "release/size": Fraction("0.024"),
        "release/rest/selection/round-1": Fraction("0.148"),
        "release/rest/selection/round-2": Fraction("0.148"),
        "release/rest/counts": Fraction("0.48"),
    }
    assert published.records.rate == Fraction("0.024")
    assert published.noise_rate == Fraction("0.48")
    assert budget.cost() == budget.epsilon
    assert all(leaf.is_used for leaf in budget.account())


def test_what_need_not_be_chosen_is_paid_out_to_the_counts():
    published = release(wide_rows(), WIDE, attributes=9)
    assert len(published.predictors) == 4
    assert dict(published.receipt.shares)["release/rest/counts"] == Fraction(2) * Fraction(97, 100)
    assert published.noise_rate == Fraction(2) * Fraction(97, 100)


def test_a_noisy_size_below_zero_leaves_the_classes_only():
    sizes = []
    for seed in range(40):
        published = release(wide_rows(0), WIDE, epsilon=1, seed=seed)
        sizes.append(published.records.value)
        if published.records.value < 3:
            assert published.predictors == ()
            assert published.noise_rate == Fraction(97, 100)
        assert published.predict(wide_rows(3)).to_pylist()[0] in RISK.labels
    assert min(sizes) < 0 < max(sizes)


def test_the_size_has_the_noise_that_is_published():
    drawn = []
    for seed in range(300):
        published = release(wide_rows(0), WIDE, epsilon=1, seed=seed, size_share=Fraction(1, 2))
        assert published.records.rate == Fraction(1, 2)
        drawn.append(published.records.value)
    decay = np.exp(-0.5)
    ratio = np.var(drawn) * (1 - decay) ** 2 / (2 * decay)
    assert 0.7 < ratio < 1.4
    assert not 0.7 < ratio * 4 < 1.4  # half the rate would be noticed


@pytest.mark.parametrize("threshold", [1, 3])
def test_empty_cells_rise_above_the_threshold_as_noise_of_the_rate_does(threshold, rng):
    nothing = np.array([], dtype=np.int64)
    cells, counts = add_noise_to_cells(
        Run(table([0] * 8), rng=rng),
        OccupiedCells(nothing, nothing),
        20_000,
        threshold,
        budget=Budget.seeded("0.5"),
    )
    decay = np.exp(-0.5)
    expected = 20_000 * decay**threshold / (1 + decay)
    assert abs(cells.size - expected) < 5 * expected**0.5
    excess = (counts - threshold).mean() * (1 - decay) / decay
    assert 0.9 < excess < 1.1
    assert not 0.9 < excess * 2 < 1.1


@pytest.mark.parametrize(("records", "limit"), [(-5, 1), (2, 1), (3, 2.862), (40_000, 12288.0)])
def test_cells_are_limited_by_the_noisy_number_of_records(records, limit):
    assert cell_limit(records) == pytest.approx(limit, rel=1e-3)


def test_the_plan_takes_as_many_predictors_as_fill_their_cells():
    task = Task.of(WIDE, target="risk")
    for records in (-3, 5, 20, 100, 500, 3000, 10**5, 10**7):
        plan = Plan.of(task, "auto", records)
        sizes = sorted((axis.size for axis in plan.axes), reverse=True)
        assert np.prod(sizes[: plan.chosen]) <= max(cell_limit(records), 1)
        more = useful_axes(task, plan.chosen + 1, records)
        larger = sorted((axis.size for axis in more), reverse=True)[: plan.chosen + 1]
        if plan.chosen and len(larger) == plan.chosen + 1:
            assert np.prod(larger) > cell_limit(records)
    assert Plan.of(task, "auto", 10**7).chosen == 4
    assert Plan.of(task, "auto", 10**7).rounds == 0
    assert Plan.of(task, 2, 3000).rounds == 2
    assert Plan.of(task, 2, -3) == Plan((), 0)


def test_numbers_are_cut_finer_the_more_records_there_are():
    task = Task.of(WIDE, target="risk")
    sizes = [useful_axes(task, 2, records)[0].size for records in (30, 300, 3000, 30_000)]
    assert sizes == [4, 11, 32, 96]
    assert [int(cell_limit(n) ** 0.5) for n in (30, 300, 3000, 30_000)] == sizes


@pytest.mark.parametrize("most", [-1, 0, 1, 2, 3, 7, 100])
def test_an_axis_never_has_more_cells_than_it_may(most):
    gaps = column("age", "integer", bounds=[0, 9], missing="category")
    deep = column("age", "integer", bounds=[0, 99], branching=3)
    for known in (gaps, deep, AGE, JOB, SEX):
        axis = fit_axis(known, most)
        assert axis.size <= max(most, 1)
        assert axis.leaf_starts[-1] == known.size
    assert fit_axis(gaps, 100).size == 11
    assert fit_axis(gaps, 3).labels == ("0..4", "5..9", "(missing)")
    assert fit_axis(deep, 7).size == 4
    assert fit_axis(JOB, 3).labels == ("Paid", "Unpaid")


def test_counts_below_the_logarithm_of_the_size_are_dropped():
    published = release(wide_rows(), WIDE, attributes=2)
    rate = published.noise_rate
    assert published.threshold == ceil(log(published.records.value) / float(rate))
    assert published.counts.min() >= published.threshold
    # A domain so large that most of what is published would be noise raises the threshold.
    assert find_threshold(1000, 10**15, Fraction(1)) > ceil(log(1000))


def test_memory_is_bounded_by_several_passes(monkeypatch):
    once = release(wide_rows(), WIDE, attributes=2)
    passes = []

    class Counting(projection.CutCounts):
        def __post_init__(self):
            super().__post_init__()
            passes.append(len(self.sets))

    monkeypatch.setattr(projection, "CutCounts", Counting)
    monkeypatch.setattr(projection, "MOST_TALLIED", 60)
    assert release(wide_rows(), WIDE, attributes=2).counts.tolist() == once.counts.tolist()
    assert sum(passes) == 4 + 3 + 1  # candidates of both rounds, and the grid itself
    assert len(passes) > 3


@pytest.mark.parametrize(
    "settings",
    [
        {"attributes": 0},
        {"attributes": "many"},
        {"size_share": Fraction(0)},
        {"selection_share": Fraction(98, 100)},
        {"selection_share": "half"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(InvalidParameter):
        PPH(target="risk", **settings)


def test_more_cells_than_can_be_numbered_are_refused_before_anything_is_paid():
    names = [column(f"c{k}", "integer", bounds=[0, 999]) for k in range(9)]
    schema = Schema((*names, RISK))
    with pytest.raises(InvalidParameter, match="take fewer attributes"):
        PPH(target="risk", attributes=7).expected_error(schema, None, Fraction(1))
    PPH(target="risk", attributes=6).expected_error(schema, None, Fraction(1))
    PPH(target="risk").expected_error(schema, None, Fraction(1))


def test_the_forecast_says_more_when_it_knows_the_number_of_records():
    method = PPH(target="risk")
    blind = method.expected_error(WIDE, None, Fraction(1)).figures
    told = method.expected_error(WIDE, 3000, Fraction(1)).figures
    assert blind["one_cell_95"] == told["one_cell_95"] == 5
    assert set(told) - set(blind) == {"attributes", "cells_at_most", "threshold"}
    published = release(wide_rows(), WIDE, epsilon=1)
    assert published.size <= told["cells_at_most"]
    assert len(published.predictors) == told["attributes"]


def test_progress_tells_rounds_only():
    seen = []
    PPH(target="risk", attributes=2).release(
        open_table(wide_rows(), WIDE),
        budget=Budget.seeded(2),
        rng=seeded(1),
        progress=lambda *step: seen.append(step),
    )
    assert seen == [(1, 3, "columns"), (2, 3, "columns"), (3, 3, "counts")]

"""GkM: one record changes one block, whatever happens there; its noise is that of the proof."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kstest, laplace

from dpublish.core.run import Run
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.kmeans.gkm import (
    RANGE_CELLS,
    GkM,
    block_centers,
    count_blocks,
    find_ranges,
    mean_of_blocks,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

BOX_RANGE = np.array([[-UNIT, UNIT], [-UNIT, UNIT]])
START = np.array([[-0.5, 0.0], [0.5, 0.0]])


def schema_of(dimensions=2):
    return Schema(
        tuple(column(f"x{j}", "numeric", bounds=[-1, 1]) for j in range(1, dimensions + 1))
    )


def table_of(points):
    points = np.asarray(points, dtype=np.float64)
    schema = schema_of(points.shape[1])
    rows = {name: pa.array(points[:, j]) for j, name in enumerate(schema.names)}
    return open_table(pa.table(rows), schema)


def a_run(table=None, rng=None):
    return Run(table_of(np.zeros((0, 2))) if table is None else table, rng=rng or seeded(1))


def uniform_points(count, dimensions=2, seed=0):
    return plain_generator(seed).uniform(-1, 1, (count, dimensions))


def all_blocks(points, blocks, seed):
    box = Box.of(schema_of())
    parts = table_of(points).split(blocks, seeded(seed), box.names)
    return [block_centers(a_run(part), box, START, 10) for part in parts]


def changed_blocks(here, there):
    return sum(not np.array_equal(a, b) for a, b in zip(here, there, strict=True))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 60])
def test_one_more_record_changes_one_block_at_most(size):
    changes = []
    for seed in range(15):
        points = uniform_points(size + 1, seed=seed)
        # The source hands the first records the same draws, with or without the last one.
        here, there = all_blocks(points[:-1], 4, seed), all_blocks(points, 4, seed)
        changes.append(changed_blocks(here, there))
        moved = np.abs(np.sum(here, axis=0) - np.sum(there, axis=0))
        assert (moved.sum(axis=0) <= len(START) * 2 * UNIT).all()
    assert max(changes) <= 1
    assert size == 0 or max(changes) == 1


def test_blocks_of_equal_size_are_caught():
    """Twin: a shuffle cut into equal parts moves records between blocks when one comes."""

    def equal_parts(points):
        order = plain_generator(1).permutation(len(points))
        box = Box.of(schema_of())
        parts = np.array_split(points[order], 4)
        return [block_centers(a_run(table_of(part)), box, START, 10) for part in parts]

    points = uniform_points(41)
    assert changed_blocks(equal_parts(points[:-1]), equal_parts(points)) > 1


def test_a_record_in_two_blocks_would_move_the_sum_by_more_than_the_noise_covers():
    low, high = (np.full((2, 2), sign * UNIT) for sign in (-1, 1))
    here, once, twice = [low] * 4, [high, *[low] * 3], [high, high, low, low]
    covered = 2 * 2 * UNIT  # k times the width of the range
    assert np.abs(np.sum(once, axis=0) - np.sum(here, axis=0))[:, 0].sum() == covered
    assert np.abs(np.sum(twice, axis=0) - np.sum(here, axis=0))[:, 0].sum() > covered


CLUSTERS, BLOCKS, LAVISH = 12_000, 4, 4 * 10**6


def noise_of_mean(ranges):
    """The noise of the coordinates of many centers, with so much budget that none is clipped."""
    centers = [np.zeros((CLUSTERS, 2), dtype=np.int64)] * BLOCKS
    return mean_of_blocks(a_run(), centers, ranges, budget=Budget.seeded(LAVISH))


def test_the_noise_is_laplace_with_the_scale_of_the_proof_and_no_other():
    ranges = np.array([[-UNIT, UNIT], [-UNIT // 4, UNIT // 4]])
    noise = noise_of_mean(ranges)
    for sample, width in zip(noise.T, (2.0, 0.5), strict=True):
        scale = width * CLUSTERS * 2 / (BLOCKS * LAVISH)  # w k d / (blocks * epsilon)
        assert kstest(sample, laplace(scale=scale).cdf).pvalue > 1e-6
        for off in (0.7, 1.3):
            assert kstest(sample, laplace(scale=off * scale).cdf).pvalue < 1e-20


def test_the_mean_is_that_of_the_clipped_blocks():
    ranges = np.array([[0, UNIT], [-UNIT, UNIT]])
    centers = [np.array([[-UNIT, UNIT // 2]]), np.array([[UNIT // 2, 0]])]
    mean = mean_of_blocks(a_run(), centers, ranges, budget=Budget.seeded(10_000))
    assert mean == pytest.approx(np.array([[0.25, 0.25]]), abs=0.01)


def test_noise_beyond_the_range_is_moved_to_its_end(rng):
    centers = [np.zeros((50, 2), dtype=np.int64)] * 2
    mean = mean_of_blocks(a_run(rng=rng), centers, BOX_RANGE, budget=Budget.seeded("0.01"))
    assert set(np.abs(mean).ravel().tolist()) == {1.0}


def test_a_block_is_clustered_from_the_public_start():
    box = Box.of(schema_of())
    points = [[-0.9, 0.1], [-0.7, 0.3], [0.6, 0.0], [0.8, 0.4]]
    found = block_centers(a_run(table_of(points)), box, START, 10) / UNIT
    assert found == pytest.approx(np.array([[-0.8, 0.2], [0.7, 0.2]]), abs=1e-5)
    few = block_centers(a_run(table_of(points[:1])), box, START, 10) / UNIT
    assert few.tolist() == START.tolist()
    lonely = block_centers(a_run(table_of([[-0.9, 0.1]] * 3)), box, START, 10) / UNIT
    assert lonely == pytest.approx(np.array([[-0.9, 0.1], [0.5, 0.0]]), abs=1e-5)


def test_ranges_hold_the_middle_of_the_records():
    points = plain_generator(3).uniform(-0.5, 0.25, (4000, 2))
    box = Box.of(schema_of())
    budget = Budget.seeded(40)
    ranges = find_ranges(a_run(table_of(points)), box, budget=budget) / UNIT
    expected = np.quantile(points, [0.05, 0.95], axis=0).T
    assert ranges == pytest.approx(expected, abs=3 * 2 / RANGE_CELLS)
    assert [share.epsilon for share in budget.account()] == [10] * 4
    assert all(share.is_used for share in budget.account())


def test_ranges_of_nothing_are_still_ranges():
    box = Box.of(schema_of())
    widest = 0
    for seed in range(30):
        nothing = table_of(np.empty((0, 2)))
        run = a_run(nothing, seeded(seed))
        ranges = find_ranges(run, box, budget=Budget.seeded(1))
        assert (ranges[:, 0] < ranges[:, 1]).all()
        assert np.abs(ranges).max() <= UNIT
        widest += (ranges == [-UNIT, UNIT]).all(axis=1).sum()
    assert widest > 10  # ends that crossed give way to the public bounds


@pytest.mark.parametrize("output_range", ["tight", "loose"])
@pytest.mark.parametrize("blocks", [None, 5])
def test_what_is_spent_is_what_was_granted(output_range, blocks):
    budget = Budget.seeded("0.8")
    method = GkM(n_clusters=3, blocks=blocks, output_range=output_range)
    release = method.release(table_of(uniform_points(50)), budget=budget, rng=seeded(1))
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    shares = dict(release.receipt.shares)
    sizes = [share for name, share in shares.items() if name.endswith("size")]
    assert sizes == ([] if blocks else [Fraction("0.024")])
    ranges = sum(share for name, share in shares.items() if "/ranges/" in name)
    rest = Fraction("0.8") - sum(sizes)
    assert ranges == (rest / 2 if output_range == "loose" else 0)


def test_with_much_budget_the_centers_are_those_of_the_heaps():
    rng = plain_generator(4)
    heaps = np.array([[-0.6, -0.5], [0.5, 0.6]])
    points = np.clip(heaps[rng.integers(2, size=3000)] + rng.normal(0, 0.05, (3000, 2)), -1, 1)
    for output_range in ("tight", "loose"):
        method = GkM(n_clusters=2, blocks=30, output_range=output_range)
        release = method.release(table_of(points), budget=Budget.seeded(200), rng=seeded(2))
        apart = np.linalg.norm(heaps[:, None] - release.centers, axis=2).min(axis=1)
        assert apart.max() < 0.1


@pytest.mark.parametrize(
    "points",
    [
        np.empty((0, 2)),
        [[0.3, 0.3]],
        [[1.0, -1.0]] * 8,
        uniform_points(6, 1),
        uniform_points(30, 10),
    ],
    ids=["none", "one", "equal", "d = 1", "d = 10"],
)
@pytest.mark.parametrize("output_range", ["tight", "loose"])
def test_it_works_on_odd_tables_with_more_clusters_than_records(points, output_range):
    for seed in range(3):  # the noisy size is often negative
        method = GkM(n_clusters=9, output_range=output_range)
        release = method.release(table_of(points), budget=Budget.seeded("0.01"), rng=seeded(seed))
        assert release.centers.shape == (9, np.shape(points)[1])
        assert np.abs(release.centers).max() <= 1


def test_columns_are_chosen_and_centers_come_in_their_units():
    schema = Schema(
        (
            column("job", "category", values=["a", "b"]),
            column("age", "integer", bounds=[0, 99]),
            column("pay", "numeric", bounds=[1000, 9000]),
        )
    )
    rows = pa.table({"job": ["a"] * 40, "age": [50] * 40, "pay": [3000.0] * 40})
    method = GkM(n_clusters=1, blocks=4)
    release = method.release(open_table(rows, schema), budget=Budget.seeded(5000), rng=seeded(1))
    assert release.schema.names == ("age", "pay")
    assert release.centers == pytest.approx(np.array([[50, 3000]]), rel=0.01)
    one = GkM(n_clusters=1, blocks=4, columns=("pay",))
    release = one.release(open_table(rows, schema), budget=Budget.seeded(5000), rng=seeded(1))
    assert release.schema.names == ("pay",)


def test_the_predicted_noise_is_the_real_one():
    method = GkM(n_clusters=1000, blocks=BLOCKS)
    predicted = method.expected_error(schema_of(), None, Fraction(LAVISH, 12)).figures
    noise = noise_of_mean(BOX_RANGE)  # of twelve times as many centers, for twelve times as much
    assert predicted["coordinate_deviation"] == pytest.approx(noise.std() / 2, rel=0.06)
    fewest = GkM(n_clusters=2).expected_error(schema_of(), None, Fraction(1)).figures
    many = GkM(n_clusters=2).expected_error(schema_of(), 100_000, Fraction(1)).figures
    assert (fewest["blocks"], many["blocks"]) == (2, 100)
    ratio = fewest["coordinate_deviation"] / many["coordinate_deviation"]
    assert ratio == pytest.approx(50)


@pytest.mark.parametrize(
    ("records", "blocks"), [(-9, 2), (0, 2), (5000, 30), (48_842, 75), (10**18, 20_000)]
)
def test_blocks_follow_the_noisy_size_within_limits(records, blocks):
    assert count_blocks(records) == blocks


@pytest.mark.parametrize(
    "bad",
    [
        {"n_clusters": 0},
        {"n_clusters": 1001},
        {"n_clusters": True},
        {"max_iter": 0},
        {"blocks": 1},
        {"blocks": 20_001},
        {"output_range": "wide"},
    ],
)
def test_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        GkM(**({"n_clusters": 2} | bad))


def test_a_budget_too_small_and_other_neighbors_are_refused_before_anything_is_spent():
    table = table_of(uniform_points(5))
    for output_range in ("tight", "loose"):
        method = GkM(n_clusters=2, output_range=output_range)
        budget = Budget.seeded("1e-9")
        with pytest.raises(InvalidParameter, match="2\\*\\*-40"):
            method.release(table, budget=budget, rng=seeded(1))
        with pytest.raises(InvalidParameter, match="2\\*\\*-40"):
            method.expected_error(table.schema, None, Fraction("1e-9"))
        assert not budget.is_used
    used = Budget.seeded(1)
    used.spend()
    with pytest.raises(BudgetAlreadyUsed):
        GkM(n_clusters=2).release(table, budget=used, rng=seeded(1))


def test_progress_counts_blocks():
    calls = []
    GkM(n_clusters=2, blocks=3).release(
        table_of(uniform_points(9)),
        budget=Budget.seeded(1),
        rng=seeded(1),
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(1, 3, "blocks"), (2, 3, "blocks"), (3, 3, "blocks")]

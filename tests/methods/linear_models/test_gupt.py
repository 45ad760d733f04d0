"""GUPT: one record changes one block, whatever happens there; the noise covers just that."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kstest, laplace

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core import run as run_module
from dpublish.core.method import Run
from dpublish.data.features import FEATURE_UNIT
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import noise
from dpublish.methods.linear_models.gupt import (
    GUPT,
    STEPS,
    answer_in_steps,
    average_deviation,
    block_average,
    count_blocks,
    fit_block,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.randomness import plain_generator, seeded
from transcript import Transcript, privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 8]),
        column("town", "category", values=["x", "y", "z"], missing="drop"),
        column("sex", "category", values=["F", "M"]),
        column("pay", "integer", bounds=[0, 40]),
    )
)
EPSILON = Fraction(2)
CATALOG = pytest.mark.parametrize(
    "method",
    [
        GUPT(target="sex"),
        GUPT(target="town", predictors=("age",), blocks=3),
        GUPT(target="pay", model="linear", predictors=("age", "town"), bound=Fraction(1, 2)),
    ],
    ids=["two", "many", "linear"],
)


def table_of(records):
    ages, towns, sexes, pays = (
        np.array(records, dtype=np.int64).reshape(-1, 4).T.tolist() if len(records) else [[]] * 4
    )
    rows = pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "town": pa.array([None if code == 3 else "xyz"[code] for code in towns], pa.string()),
            "sex": pa.array(["FM"[code] for code in sexes], pa.string()),
            "pay": pa.array(pays, pa.int64()),
        }
    )
    return open_table(rows, SCHEMA)


def draw(count, seed=0):
    source = plain_generator(seed)
    ages, towns = source.integers(9, size=count), source.integers(3, size=count)
    sexes = (ages + source.integers(-2, 3, count) > 4).astype(int)
    pays = np.clip(4 * ages + 3 * towns + source.integers(-2, 3, count), 0, 40)
    return np.stack([ages, towns, sexes, pays], axis=1).tolist()


def count(block):
    counts = CompleteCounts(SCHEMA, ((("sex", 0),),), SCHEMA.names)
    return float(block.sum(counts).sum())


def average(table, estimate, *, blocks=4, epsilon=EPSILON, low=(0.0,), high=(8.0,), seed=1):
    return block_average(
        Run(table, rng=seeded(seed)),
        estimate,
        low=np.array(low),
        high=np.array(high),
        blocks=blocks,
        columns=SCHEMA.names,
        budget=Budget.seeded(epsilon),
    )


def answers(records, seed, blocks=4):
    low, high = np.zeros(1), np.full(1, 8.0)
    parts = table_of(records).split(blocks, seeded(seed), SCHEMA.names)
    return [int(answer_in_steps(part, count, low, high)[0]) for part in parts]


@pytest.mark.parametrize("size", [0, 1, 7, 30])
def test_one_more_record_changes_one_block(size):
    for seed in range(10):
        records = draw(size + 1, seed)
        # The source hands the first records the same draws, with or without the last one.
        here, there = answers(records[:-1], seed), answers(records, seed)
        assert sum(a != b for a, b in zip(here, there, strict=True)) <= 1


def test_blocks_of_neighboring_records_are_caught():
    """Twin: cut in order into equal parts, one more record moves the ends of most blocks."""

    def parts_of(records):
        return [fit_block(table_of(list(part)), task) for part in np.array_split(records, 4)]

    task = GUPT(target="sex").model_task(SCHEMA)
    records = draw(41)
    pairs = zip(parts_of(records[:-1]), parts_of(records), strict=True)
    assert sum(not np.array_equal(here, there) for here, there in pairs) > 1


def losses_of(estimate, monkeypatch, *, blocks=2, coordinates=2):
    found = []
    for seed in range(60):
        records = draw(3, seed)
        pair = table_of(records[:-1]), table_of(records)

        def run(table, seed=seed):
            ends = {"low": (-1.0,) * coordinates, "high": (1.0,) * coordinates}
            return average(table, estimate, blocks=blocks, seed=seed, **ends)

        found.append(privacy_loss(run, *pair, (run_module,), monkeypatch))
    return max(found)


def jump(block):
    """As bad as can be: from one corner of the box to the other by one record."""
    return np.full(2, 1.0 if count(block) % 2 else -1.0)


def test_the_worst_function_costs_the_budget_and_no_more(monkeypatch):
    found = losses_of(jump, monkeypatch)
    assert found <= float(EPSILON) * (1 + 1e-9)
    assert found == pytest.approx(float(EPSILON), rel=0.01)


def test_noise_for_one_coordinate_only_is_caught(monkeypatch):
    """Twin: a formula of the thesis lacks the number of coordinates."""
    played = Transcript.add_geometric

    def for_one(self, counts, *, sensitivity, budget, rng):
        each = sensitivity // counts.size
        return played(self, counts, sensitivity=each, budget=budget, rng=rng)

    monkeypatch.setattr(Transcript, "add_geometric", for_one)
    assert losses_of(jump, monkeypatch) > 1.9 * float(EPSILON)


def test_the_noise_is_laplace_with_the_scale_of_the_proof_and_no_other():
    coordinates, blocks, lavish = 12_000, 4, 4 * 10**5
    found = average(
        table_of([]),
        lambda block: np.zeros(coordinates),
        blocks=blocks,
        epsilon=lavish,
        low=(-1.0,) * coordinates,
        high=(1.0,) * coordinates,
    )
    scale = 2.0 * coordinates / (blocks * lavish)  # w q / (blocks * epsilon)
    assert kstest(found, laplace(scale=scale).cdf).pvalue > 1e-6
    for off in (0.7, 1.3):
        assert kstest(found, laplace(scale=off * scale).cdf).pvalue < 1e-20
    stated = 2 * average_deviation(coordinates, blocks, Fraction(lavish))
    assert np.std(found) == pytest.approx(stated, rel=0.05)


def test_what_goes_wrong_in_a_block_is_not_seen_outside():
    def fail(block):
        raise ValueError("three records")

    for estimate in (fail, lambda block: np.nan, lambda block: [1.0, 2.0], lambda block: "?"):
        found = average(table_of(draw(9)), estimate, epsilon=10**6, low=(-2.0,), high=(6.0,))
        assert found == pytest.approx([2.0], abs=1e-3)
    beyond = average(table_of(draw(9)), lambda block: np.inf, epsilon=10**6)
    assert beyond == pytest.approx([4.0], abs=1e-3)


@pytest.mark.parametrize(("found", "steps"), [(-1e9, 0), (-2.1, 0), (4.1, 1), (1e300, 1)])
def test_what_a_block_finds_outside_the_box_counts_as_its_end(found, steps):
    """Else one block could move the sum by more than the box is wide."""
    low, high = np.array([-2.0, 0.0]), np.array([4.0, 1.0])
    counted = answer_in_steps(table_of([]), lambda _: [found, 0.5], low, high)
    assert counted.tolist() == [steps * STEPS, STEPS // 2]


def test_the_mean_is_that_of_the_clipped_blocks():
    found = average(table_of(draw(400)), count, epsilon=10**6, high=(1000.0,))
    assert found == pytest.approx([100.0], abs=0.01)
    assert average(table_of(draw(400)), count, epsilon=10**6) == pytest.approx([8.0], abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"blocks": 1}, "at least 2"),
        ({"blocks": 20_001}, "blocks must be"),
        ({"low": (8.0,)}, "box"),
        ({"high": (np.inf,)}, "box"),
        ({"low": (0.0, 0.0)}, "box"),
        ({"epsilon": "1e-30"}, "rate"),
    ],
)
def test_what_cannot_be_averaged_is_refused(wrong, match):
    with pytest.raises(InvalidParameter, match=match):
        average(table_of([]), lambda block: pytest.fail("evaluated"), **wrong)


def test_only_single_records_are_hidden():
    class Owned:
        schema, neighbors = SCHEMA, AddRemoveUnit("person")

    with pytest.raises(InvalidParameter, match="one record"):
        average(Owned(), count)


def test_a_used_budget_is_refused_before_any_row_is_read():
    budget = Budget.seeded(1)
    budget.spend()
    with pytest.raises(BudgetAlreadyUsed):
        block_average(
            Run(table_of([]), rng=seeded(1)),
            lambda block: pytest.fail("evaluated"),
            low=np.zeros(1),
            high=np.ones(1),
            blocks=2,
            columns=SCHEMA.names,
            budget=budget,
        )


@CATALOG
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(method, monkeypatch):
    losses = []
    for seed in range(12):
        records = draw(6, seed)
        pair = table_of(records[:-1]), table_of(records)

        def run(table, seed=seed):
            return method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(seed))

        losses.append(privacy_loss(run, *pair, (run_module, noise), monkeypatch))
    assert max(losses) <= float(EPSILON) * (1 + 1e-9)
    assert max(losses) > 0


@CATALOG
@pytest.mark.parametrize("case", ["none", "one", "same", "missing"])
def test_degenerate_tables_have_a_model(method, case):
    records = {"none": [], "one": [(1, 0, 0, 3)], "same": [(8, 2, 1, 40)] * 30}
    records["missing"] = [(age, 3, 1, 40) for age in range(9)]
    budget = Budget.seeded("0.001")
    model = method.release(table_of(records[case]), budget=budget, rng=seeded(3))
    assert np.abs(model.weights).max() <= method.bound
    assert budget.cost() == budget.epsilon
    assert all(share.is_used for share in budget.account())


def test_a_block_is_fitted_by_least_squares():
    records = draw(500)
    codes = dict(zip(SCHEMA.names, np.array(records).T, strict=True))
    for method, signs, factor in (
        (GUPT(target="sex"), 2.0 * codes["sex"] - 1, 2),
        (GUPT(target="pay", model="linear"), codes["pay"] / 20 - 1, 1),
    ):
        task = method.model_task(SCHEMA)
        rows = task.features.matrix(codes) / FEATURE_UNIT
        best = factor * np.linalg.lstsq(rows, signs, rcond=None)[0]
        found = fit_block(table_of(records), task)
        assert rows @ found[0] == pytest.approx(rows @ best, abs=0.05)
    assert fit_block(table_of([]), task).tolist() == np.zeros((1, task.features.size)).tolist()


def test_with_much_budget_the_mean_predicts_well():
    method = GUPT(target="pay", model="linear", predictors=("age", "town"), blocks=20)
    records = draw(4000)
    model = method.release(table_of(records), budget=Budget.seeded(10**4), rng=seeded(1))
    codes = dict(zip(SCHEMA.names, np.array(records).T, strict=True))
    assert np.abs(model.predict_numbers(codes) - codes["pay"]).mean() < 1.6


def test_the_number_of_blocks_follows_from_the_noisy_number_of_records():
    assert [count_blocks(records) for records in (-9, 0, 10, 10**6)] == [2, 2, 3, 251]
    assert count_blocks(10**12) == 20_000
    model = GUPT(target="sex").release(
        table_of(draw(1000)), budget=Budget.seeded(50), rng=seeded(1)
    )
    assert "16 blocks" in model.notes[0]
    shares = dict(model.receipt.shares)
    assert shares == {"release/size": 1, "release/mean/answers": 49}


@CATALOG
def test_the_noise_is_predicted_and_falls_with_the_budget(method):
    one, two = (method.expected_error(SCHEMA, 1000, Fraction(e)).figures for e in (1, 2))
    assert one["weight_deviation"] == pytest.approx(2 * two["weight_deviation"])
    model = method.release(table_of(draw(50)), budget=Budget.seeded(1), rng=seeded(1))
    blocks = int(model.notes[0].split()[2])
    exact = one["weight_deviation"] * one["blocks"] / blocks
    assert model.standard_deviation == pytest.approx(np.full(model.weights.shape, exact))


def test_wrong_settings_are_refused():
    for wrong in ({"blocks": 1}, {"bound": Fraction(0)}):
        with pytest.raises(InvalidParameter):
            GUPT(target="sex", **wrong)
    with pytest.raises(InvalidParameter):
        GUPT(target="pay").expected_error(SCHEMA, None, Fraction(1))
    for method in (GUPT(target="sex"), GUPT(target="sex", blocks=2)):
        with pytest.raises(InvalidParameter, match="rate"):
            method.expected_error(SCHEMA, None, Fraction(1, 10**30))

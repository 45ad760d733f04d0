"""Losses of linear models: exact, blind to batches, bounded over the domain, not the data."""

import pickle
from itertools import product
from math import exp, floor, log1p

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models import signed_records
from dpublish.methods.linear_models.kernel_losses import (
    LOSS_UNIT,
    LinearLosses,
    look_up_losses,
    loss_table,
)
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 4], missing="category"),
        column("sex", "category", values=["F", "M"], missing="drop"),
        column("grade", "ordinal", values=["low", "mid", "high"]),
        column("income", "category", values=["poor", "middling", "rich"], missing="drop"),
    )
)
FEATURES = Features.of(SCHEMA, "income")
LOSSES = ("logistic", "hinge")


def draw_candidates(seed, count=6, largest=2000):
    return plain_generator(seed).integers(-largest, largest + 1, (count, FEATURES.size))


def draw_batch(seed, rows):
    rng = plain_generator(seed)
    return Batch(
        rows, codes={c.name: rng.integers(0, c.size, rows).astype(np.uint8) for c in SCHEMA.columns}
    )


def make(candidates, loss="logistic", positive=(2,)):
    return LinearLosses(SCHEMA, FEATURES, "income", positive, candidates, loss)


def answer_of(kernel, *batches):
    answer = kernel.zero()
    for batch in batches:
        kernel.add(batch, answer)
    return answer


def true_loss(margin, loss):
    """The loss of a whole margin, one number at a time."""
    z = margin / LOSS_UNIT
    value = max(0.0, 1 - z) if loss == "hinge" else max(-z, 0.0) + log1p(exp(-abs(z)))
    return floor(LOSS_UNIT * value + 0.5)


def losses_of_all_records(kernel):
    """The losses of every record of the domain (rows), for each candidate."""
    sizes = [SCHEMA[name].size for name in kernel.codes]
    return np.array(
        [
            answer_of(kernel, Batch(1, codes=dict(zip(kernel.codes, np.array([c]).T, strict=True))))
            for c in product(*map(range, sizes))
        ]
    )


def pull(losses):
    """How far one of some records can pull two candidates apart."""
    return int((losses.max(axis=1) - losses.min(axis=1)).max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("largest", [500, 20_000, 400_000])
@pytest.mark.parametrize("cells", [0, 1 << 13])
def test_losses_are_those_of_the_definition(loss, largest, cells, monkeypatch):
    monkeypatch.setattr(signed_records, "_FEW_CELLS", cells)  # listed one by one, or counted
    candidates = draw_candidates(1, largest=largest)
    batch = draw_batch(2, 60)
    features = FEATURES.matrix({name: batch.codes(name) for name in FEATURES.columns})
    expected = [0] * len(candidates)
    for record, code in zip(features.astype(int).tolist(), batch.codes("income"), strict=True):
        sign = 1 if code == 2 else -1
        for index, weights in enumerate(candidates.tolist()):
            margin = sign * sum(x * w for x, w in zip(record, weights, strict=True)) // FEATURE_UNIT
            expected[index] += true_loss(margin, loss)
    assert answer_of(make(candidates, loss), batch).tolist() == expected


@pytest.mark.parametrize("loss", LOSSES)
def test_the_table_falls_by_at_most_one_unit_a_step_and_is_never_negative(loss):
    table = loss_table(loss, 64 * LOSS_UNIT)
    steps = -np.diff(table)
    assert steps.min() >= 0
    assert steps.max() == 1
    assert table.min() == 0
    assert (table == np.floor(table)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_beyond_the_table_the_loss_is_the_same_straight_line(loss):
    margins = np.array([-300.0, -256.5, 256.5, 300.0]) * LOSS_UNIT
    found = look_up_losses(margins.copy(), 300.0 * LOSS_UNIT, loss)
    assert found.tolist() == [true_loss(floor(m), loss) for m in margins]


@given(st.integers(1, 40), st.integers(0, 5), st.sampled_from(LOSSES), st.sampled_from([0, 8192]))
def test_the_answer_does_not_depend_on_how_the_records_are_cut(rows, seed, loss, cells):
    whole = draw_batch(seed, 200)
    kernel = make(draw_candidates(seed), loss)
    once = answer_of(kernel, whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signed_records, "_FEW_CELLS", cells)
        copy = pickle.loads(pickle.dumps(make(draw_candidates(seed), loss)))
        parts = [answer_of(copy, part) for part in whole.cut(rows)]
    merged = copy.zero()
    for part in parts:
        copy.merge(merged, part)
    assert merged.tolist() == once.tolist()


def test_equal_candidates_are_scored_once_and_answered_each():
    candidates = draw_candidates(4)
    several = candidates[[2, 0, 2, 1]]
    batch = draw_batch(5, 30)
    alone = answer_of(make(candidates), batch)
    assert answer_of(make(several), batch).tolist() == alone[[2, 0, 2, 1]].tolist()


def test_records_that_a_rule_leaves_out_in_any_column_count_nowhere():
    table = open_table(
        pa.table(
            {
                "age": [None, 1, 1],
                "sex": ["F", None, "M"],
                "grade": ["low", "mid", "mid"],
                "income": ["rich", "rich", None],
            }
        ),
        SCHEMA,
    )
    candidates = draw_candidates(3)
    first = {"age": 5, "sex": 0, "grade": 0, "income": 2}
    alone = Batch(1, codes={name: np.array([c], np.uint8) for name, c in first.items()})
    kernel = make(candidates)
    assert table.sum(kernel).tolist() == answer_of(kernel, alone).tolist()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("largest", [1, 30, 300, 3000, 300_000])
@pytest.mark.parametrize("seed", range(6))
def test_no_record_of_the_domain_pulls_two_candidates_farther_apart_than_the_range(
    loss, largest, seed
):
    kernel = make(draw_candidates(seed, 5, largest), loss)
    stated = kernel.range_sensitivity(AddRemoveRecord())
    assert pull(losses_of_all_records(kernel)) <= stated


@pytest.mark.parametrize("seed", range(6))
def test_the_range_is_attained_by_a_corner_of_the_domain(seed):
    # Weights so small that every margin lies on the slope of the hinge.
    kernel = make(draw_candidates(seed, 5, 150), "hinge")
    stated = kernel.range_sensitivity(AddRemoveRecord())
    assert stated - 1 <= pull(losses_of_all_records(kernel)) <= stated


def test_the_range_of_a_logistic_pair_is_attained_up_to_rounding():
    # The second model turns the first around: its worst record is the other's best.
    first = np.array([300, 0, 0, 0, 0, 0], dtype=np.int64)
    first = np.append(first, np.zeros(FEATURES.size - first.size, dtype=np.int64))
    kernel = make(np.array([first, -first]))
    stated = kernel.range_sensitivity(AddRemoveRecord())
    assert stated - 2 <= pull(losses_of_all_records(kernel)) <= stated


def test_half_the_range_is_caught():
    kernel = make(draw_candidates(1, 5, 150), "hinge")
    halved = kernel.range_sensitivity(AddRemoveRecord()) // 2
    assert pull(losses_of_all_records(kernel)) > halved


def test_a_range_over_the_records_present_is_caught():
    kernel = make(draw_candidates(2, 5, 3000))
    losses = losses_of_all_records(kernel)
    ranges = (losses.max(axis=1) - losses.min(axis=1)).tolist()
    present = np.argsort(ranges)[:40]  # a table that lacks the record which pulls most
    assert pull(losses[present]) < pull(losses)
    assert kernel.range_sensitivity(AddRemoveRecord()) >= pull(losses)


def test_near_zero_the_logistic_range_is_half_of_the_distance():
    candidates = np.zeros((2, FEATURES.size), dtype=np.int64)
    candidates[1, 0] = 100
    assert make(candidates, "hinge").range_sensitivity(AddRemoveRecord()) == 100
    assert make(candidates, "logistic").range_sensitivity(AddRemoveRecord()) <= 54


def test_equal_candidates_still_state_a_range_of_one():
    same = np.zeros((3, FEATURES.size), dtype=np.int64)
    assert make(same).range_sensitivity(AddRemoveRecord()) == 1


@pytest.mark.parametrize("neighbors", [AddRemoveUnit("person"), ReplaceRecord()])
def test_other_neighbors_are_refused(neighbors):
    with pytest.raises(InvalidParameter):
        make(draw_candidates(1)).range_sensitivity(neighbors)


@pytest.mark.parametrize(
    ("candidates", "positive", "loss"),
    [
        (draw_candidates(1).astype(float), (2,), "hinge"),
        (draw_candidates(1)[:, 1:], (2,), "hinge"),
        (draw_candidates(1)[:0], (2,), "hinge"),
        (draw_candidates(1) * 2**40, (2,), "hinge"),
        (draw_candidates(1), (3,), "hinge"),
        (draw_candidates(1), (2,), "squared"),
    ],
)
def test_what_does_not_fit_is_refused(candidates, positive, loss):
    with pytest.raises(InvalidParameter):
        make(candidates, loss, positive)


def test_the_target_cannot_be_a_predictor():
    with pytest.raises(InvalidParameter, match="itself"):
        LinearLosses(SCHEMA, FEATURES, "sex", (1,), draw_candidates(1))

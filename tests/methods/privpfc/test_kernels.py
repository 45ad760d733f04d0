"""Counts by class as by hand; residual sums: how far one record moves them."""

import pickle
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.privpfc import kernels
from dpublish.methods.privpfc.kernels import ClassCuboids, ResidualSums, require_sums
from dpublish.methods.privpfc.score_card import (
    LIMIT,
    STEP,
    UNIT,
    ScoreCard,
    ScoreTerm,
    to_probabilities,
)
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.randomness import plain_generator

CUBOIDS = ((("age", 2), ("job", 1)), (), (("job", 2),), (("age", 1),))


def make_kernel(classes):
    schema = Schema(
        (
            column("age", "integer", bounds=[0, 7], branching=2, missing="drop"),
            column("job", "category", taxonomy={"paid": ["a", "b"], "unpaid": ["c"]}),
            column("class", "category", values=[f"c{i}" for i in range(classes)]),
        )
    )
    return ClassCuboids(schema, "class", ("age", "job"), CUBOIDS)


def random_codes(classes, count=300):
    rng = plain_generator(classes)
    sizes = {"age": 8, "job": 3, "class": classes}
    return {name: rng.integers(0, size, count).astype(np.uint8) for name, size in sizes.items()}


def add_in_batches(kernel, codes, cuts):
    answer = kernel.zero()
    size = len(codes["age"])
    for start, stop in pairwise([0, *sorted(min(cut, size) for cut in cuts), size]):
        part = {name: one[start:stop] for name, one in codes.items()}
        kernel.add(Batch(stop - start, part), answer)
    return answer


def count_by_hand(kernel, codes, cuboid):
    axes = [kernel.schema[name].axis(level) for name, level in cuboid]
    shape = (kernel.schema["class"].size, *(axis.size for axis in axes))
    counts = np.zeros(shape, dtype=np.int64)
    for row in range(len(codes["age"])):
        cell = tuple(int(axis.leaf_to_cell[codes[axis.column][row]]) for axis in axes)
        counts[(codes["class"][row], *cell)] += 1
    return counts


@pytest.mark.parametrize("classes", [2, 3, 5])
@given(cuts=st.lists(st.integers(0, 300), max_size=5))
def test_cells_are_counted_as_one_would_by_hand(classes, cuts):
    kernel = pickle.loads(pickle.dumps(make_kernel(classes)))
    codes = random_codes(classes)
    answer = add_in_batches(kernel, codes, cuts)
    merged = kernel.zero()
    kernel.merge(merged, answer)
    for cuboid, counts in zip(CUBOIDS, kernel.split(merged), strict=True):
        by_hand = count_by_hand(kernel, codes, cuboid)
        expected = by_hand[:1] - by_hand[1:] if classes == 2 else by_hand
        assert np.array_equal(counts, expected)
    assert kernel.count_records(merged) == 300


def test_a_record_that_misses_any_predictor_is_in_no_cuboid():
    kernel = make_kernel(2)
    rows = pa.table({"age": [None, 3], "job": ["a", "a"], "class": ["c0", "c0"]})
    answer = open_table(rows, kernel.schema).sum(kernel)
    assert kernel.count_records(answer) == 1
    assert [int(counts.sum()) for counts in kernel.split(answer)] == [1] * len(CUBOIDS)


RECORDS = AddRemoveRecord()
AGE = column("age", "integer", bounds=[0, 5], branching=2)
SEX = column("sex", "category", values=["F", "M"])
EXTREMES = (-LIMIT, -STEP, -1, 0, 1, STEP, LIMIT)


def schema_of(classes):
    return Schema((AGE, SEX, column("y", "category", values=[f"c{k}" for k in range(classes)])))


def card_of(*terms):
    """A card of terms given as (axes, scores)."""
    return ScoreCard(
        tuple(
            ScoreTerm(axes, scores.astype(np.int64), np.zeros(scores.shape[1], np.int64))
            for axes, scores in terms
        )
    )


def flat_card(scores):
    return card_of(((), np.array([scores])))


def random_card(classes, seed, largest=LIMIT):
    rng = plain_generator(seed)
    return card_of(
        ((AGE.axis(1), SEX.axis()), rng.integers(-largest, largest + 1, (4, classes))),
        ((AGE.axis(),), rng.integers(-largest, largest + 1, (6, classes))),
    )


def make(classes, card, predictors=("age", "sex")):
    return ResidualSums(schema_of(classes), "y", predictors, card)


def batch_of(records):
    columns = np.array(records, dtype=np.uint8).reshape(-1, 3)
    return Batch(len(columns), dict(zip(("age", "sex", "y"), columns.T, strict=True)))


def add_up(kernel, records, cuts=()):
    answer = kernel.zero()
    for part in np.split(np.array(records).reshape(-1, 3), cuts):
        kernel.add(batch_of(part), answer)
    return answer


def random_records(classes, size, seed):
    return plain_generator(seed).integers(0, [6, 2, classes], (size, 3))


# --- what one record does -----------------------------------------------------------------------


def shares_of(probabilities, own):
    """Residuals and variances that a record of class `own` adds, in plain Python."""
    planes = [1] if len(probabilities) == 2 else range(len(probabilities))
    residuals = [(UNIT if k == own else 0) - probabilities[k] for k in planes]
    variances = [probabilities[k] * (UNIT - probabilities[k]) // UNIT for k in planes]
    return residuals, variances


def bounds_of(classes):
    kernel = make(classes, flat_card([0] * classes))
    return kernel.sensitivity(RECORDS), kernel.range_sensitivity(RECORDS)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_no_record_moves_the_sums_of_a_predictor_by_more_than_the_sensitivity(classes):
    """All cards of extreme scores, for records of every class; the bound is attained."""
    sensitivity, _ = bounds_of(classes)
    scores = EXTREMES if classes < 5 else (-LIMIT, -STEP, 0, LIMIT)
    worst = 0
    for given_scores in product(scores, repeat=classes):
        kernel = make(classes, flat_card(given_scores))
        for own in range(classes):
            for part in kernel.split(add_up(kernel, [(3, 1, own)])):
                assert int(np.abs(part).sum()) == sensitivity  # remainders fill it up exactly
                worst = max(worst, int(np.abs(part[:2]).sum()))
    assert worst <= sensitivity
    assert worst >= sensitivity - 2 * classes  # but for rounding down


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_one_record_raises_one_sum_and_lowers_another_by_half_the_range_each(classes):
    """Absolute residuals by sex rise and those by age fall: R cannot be smaller."""
    sure = np.full((2, classes), -LIMIT)
    sure[0, 1] = sure[1, 0] = LIMIT  # the card is sure of class 1 for F, of class 0 for M
    kernel = make(classes, card_of(((SEX.axis(),), sure)))
    table = [(3, 0, 0)] * 5  # both classes are wrong for F: residuals lean one way
    before = [np.abs(part[0]).sum() for part in kernel.split(add_up(kernel, table))]
    wrong = (3, 1, 1)  # and the other way for M
    after = [np.abs(part[0]).sum() for part in kernel.split(add_up(kernel, [*table, wrong]))]
    by_age, by_sex = (int(b - a) for a, b in zip(before, after, strict=True))
    bound = kernel.range_sensitivity(RECORDS)
    assert by_age < 0 < by_sex
    assert bound - 4 * classes <= by_sex - by_age <= bound


@given(
    parts=st.lists(st.integers(0, UNIT), min_size=2, max_size=8),
    own=st.integers(0, 7),
    slack=st.integers(0, 8),
)
def test_the_bounds_hold_for_any_probabilities_that_add_up_to_one_at_most(parts, own, slack):
    total = max(sum(parts), 1)
    probabilities = [part * (UNIT - slack) // total for part in parts]
    residuals, variances = shares_of(probabilities, own % len(probabilities))
    sensitivity, bound = bounds_of(len(probabilities))
    assert 2 * sum(map(abs, residuals)) <= bound
    assert sum(map(abs, residuals)) + sum(variances) <= sensitivity


@pytest.mark.parametrize("classes", [3, 4, 5, 8, 30])
def test_the_sensitivity_of_many_classes_is_the_least_whole_bound(classes):
    """Equal probabilities of all other classes bound it, up to what rounding them down takes."""
    sensitivity, _ = bounds_of(classes)
    probabilities = [0] + [UNIT // (classes - 1)] * (classes - 1)
    residuals, variances = shares_of(probabilities, 0)
    attained = sum(map(abs, residuals)) + sum(variances)
    assert sensitivity - 3 * classes <= attained <= sensitivity
    assert sensitivity < 3 * UNIT


def test_probabilities_rounded_up_would_break_both_bounds():
    """The twin: probabilities that add up to more than one."""
    probabilities = [0] + [-(-UNIT // 7)] * 7
    residuals, variances = shares_of(probabilities, 0)
    sensitivity, bound = bounds_of(8)
    assert 2 * sum(map(abs, residuals)) > bound
    assert sum(map(abs, residuals)) + sum(variances) + 7 > sensitivity


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_record_adds_the_same_to_every_table(classes):
    card = random_card(classes, 3)
    kernel = make(classes, card)
    for seed in range(10):
        records = random_records(classes, 30, seed)
        for record in random_records(classes, 5, 100 + seed):
            alone = add_up(kernel, [record])
            more = add_up(kernel, [*records, record]) - add_up(kernel, records)
            assert more.tolist() == alone.tolist()


# --- what is added up ---------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("largest", [0, STEP, LIMIT])
def test_the_sums_are_those_of_a_plain_loop(classes, largest):
    card = random_card(classes, 7, largest)
    kernel = make(classes, card)
    records = random_records(classes, 200, 5)
    expected = np.zeros((2, len(kernel.planes), 8), dtype=object)
    remainders = np.zeros((classes, 8), dtype=object)
    sensitivity, _ = bounds_of(classes)
    for age, sex, own in records.tolist():
        scores = card.score({"age": np.array([age]), "sex": np.array([sex])}, 1)
        residuals, variances = shares_of(to_probabilities(scores)[0].tolist(), own)
        for leaf in (age, 6 + sex):
            expected[0, :, leaf] += residuals
            expected[1, :, leaf] += variances
            remainders[own, leaf] += sensitivity - sum(map(abs, residuals)) - sum(variances)
    found = add_up(kernel, records)
    assert found[:2].tolist() == expected.tolist()
    assert found[2:].reshape(classes, 8).tolist() == remainders.tolist()


@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_the_sums_do_not_depend_on_how_records_are_cut_into_batches(cuts):
    kernel = make(3, random_card(3, 2))
    records = random_records(3, 40, 8)
    whole = add_up(kernel, records)
    assert add_up(kernel, records, sorted(cuts)).tolist() == whole.tolist()
    merged = kernel.zero()
    for part in np.split(records, sorted(cuts)):
        kernel.merge(merged, add_up(kernel, part))
    assert merged.tolist() == whole.tolist()


def test_large_batches_are_worked_off_in_parts(monkeypatch):
    kernel = make(3, random_card(3, 2))
    records = random_records(3, 100, 8)
    whole = add_up(kernel, records)
    monkeypatch.setattr(kernels, "_PART", 21)  # seven records at a time
    assert add_up(kernel, records).tolist() == whole.tolist()
    monkeypatch.setattr(kernels, "_PART", 1)
    assert add_up(kernel, records).tolist() == whole.tolist()


def test_of_two_classes_the_second_tells_all():
    card = flat_card([0, STEP])
    probability = to_probabilities(card.score({}, 1))[0, 1]
    kernel = make(2, card)
    assert kernel.planes == (1,)
    by_age, by_sex = kernel.split(add_up(kernel, [(0, 0, 1), (0, 1, 0)]))
    assert by_age[0].tolist() == [[UNIT - 2 * probability, 0, 0, 0, 0, 0]]
    assert by_sex[0].tolist() == [[UNIT - probability, -probability]]
    assert by_sex[1].tolist() == [[probability * (UNIT - probability) // UNIT] * 2]


def test_no_records_no_sums():
    kernel = make(3, random_card(3, 1))
    assert not add_up(kernel, np.empty((0, 3), dtype=int)).any()


def test_all_predictors_are_read_whichever_the_card_uses():
    kernel = make(2, card_of(((SEX.axis(),), np.zeros((2, 2)))))
    assert kernel.codes == ("age", "sex", "y")
    assert kernel.values == ()


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", [ReplaceRecord(), AddRemoveUnit("age")])
def test_other_neighbors_are_refused(neighbors):
    kernel = make(2, flat_card([0, 0]))
    for bound in (kernel.sensitivity, kernel.range_sensitivity):
        with pytest.raises(InvalidParameter, match="single records"):
            bound(neighbors)


def test_a_card_about_other_classes_is_refused():
    with pytest.raises(InvalidParameter, match="classes"):
        make(3, flat_card([0, 0]))


def test_more_sums_than_fit_are_refused_from_public_sizes(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_SUMS", 3 * 3 * 8)
    require_sums(schema_of(3), "y", ("age", "sex"))
    with pytest.raises(InvalidParameter, match="96 sums"):
        require_sums(schema_of(4), "y", ("age", "sex"))
    with pytest.raises(InvalidParameter, match="too many"):
        make(4, flat_card([0] * 4))
    require_sums(schema_of(2), "y", ("age", "sex"))

"""Score cards: integers only, the same for a record wherever and with whomever it comes."""

from decimal import ROUND_FLOOR, Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.schema import column
from dpublish.errors import InvalidParameter
from dpublish.methods.privpfc import score_card
from dpublish.methods.privpfc.score_card import (
    LIMIT,
    STEP,
    UNIT,
    ScoreCard,
    ScoreTerm,
    to_probabilities,
)

AGE = column("age", "integer", bounds=[0, 5], branching=2)  # six leaves, three or two pairs
SEX = column("sex", "category", values=["F", "M"])


def term(*axes, classes=2, unknown=0, step=1):
    cells = int(np.prod([axis.size for axis in axes], dtype=int))
    scores = step * np.arange(cells * classes, dtype=np.int64).reshape(cells, classes)
    return ScoreTerm(axes, scores, np.full(classes, unknown, dtype=np.int64))


def plain_probabilities(scores):
    """What `to_probabilities` guarantees, in Python's own integers."""
    powers = [int(score_card._POWERS[min(max(scores) - s, 16 * STEP)]) for s in scores]
    return [power * UNIT // sum(powers) for power in powers]


def test_the_table_of_powers_is_the_same_on_every_machine():
    """Each power, to 30 digits, is far enough from a half to round alike with any error of exp."""
    getcontext().prec = 30
    for index, power in enumerate(score_card._POWERS.tolist()):
        exact = (Decimal(-index) / STEP).exp() * (1 << 30)
        nearest = (exact + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
        assert power == nearest
        assert abs(exact - nearest) < Decimal("0.5") - Decimal("0.00001")


@given(
    scores=st.lists(st.integers(-40 * STEP, 40 * STEP), min_size=2, max_size=7),
    shift=st.integers(-LIMIT, LIMIT),
)
def test_probabilities_are_whole_not_negative_and_never_more_than_one_in_all(scores, shift):
    (probabilities,) = to_probabilities(np.array([scores])).tolist()
    assert probabilities == plain_probabilities(scores)
    assert min(probabilities) >= 0
    assert UNIT - len(scores) < sum(probabilities) <= UNIT
    assert to_probabilities(np.array([scores]) + shift).tolist() == [probabilities]


def test_probabilities_are_those_of_the_log_odds():
    scores = np.array([[0, 2 * STEP, -STEP]])
    powers = np.exp(scores / STEP)
    assert to_probabilities(scores) / UNIT == pytest.approx(powers / powers.sum(), abs=1e-5)


def test_rounding_to_the_nearest_would_give_more_than_one():
    """The twin that the rounding down is there to avoid."""
    scores = np.array([[0, 0, 0, 0, 0, 0, 0]])
    powers = score_card._POWERS[-scores]
    nearest = (powers * UNIT + powers.sum() // 2) // powers.sum()
    assert nearest.sum() > UNIT
    assert to_probabilities(scores).sum() <= UNIT


def test_a_record_has_the_same_probabilities_in_every_company():
    scores = np.random.Generator(np.random.PCG64(1)).integers(-LIMIT, LIMIT, (50, 3))
    together = to_probabilities(scores)
    for index in range(len(scores)):
        assert to_probabilities(scores[index : index + 1]).tolist() == [together[index].tolist()]
    assert to_probabilities(scores[::-1]).tolist() == together[::-1].tolist()
    assert to_probabilities(scores[:0]).shape == (0, 3)


def test_terms_look_up_the_row_of_a_record_s_cell_in_row_major_order():
    one = term(AGE.axis(1), SEX.axis())
    found = one.look_up({"age": np.array([0, 5, 5]), "sex": np.array([1, 0, 1])}, 3)
    assert one.axes[0].labels == ("0..3", "4..5")
    assert found.tolist() == [[2, 3], [4, 5], [6, 7]]


def test_an_unknown_value_along_any_axis_takes_the_scores_set_aside_for_it():
    one = term(AGE.axis(), SEX.axis(), unknown=77)
    found = one.look_up({"age": np.array([-1, 3, 3]), "sex": np.array([0, -1, 0])}, 3)
    assert found.tolist() == [[77, 77], [77, 77], [12, 13]]
    assert one.scores.max() < 77  # and the term itself is as it was


def test_codes_of_tables_are_unsigned_and_never_unknown():
    one = term(SEX.axis(), unknown=77)
    assert one.look_up({"sex": np.array([1, 0], dtype=np.uint8)}, 2).tolist() == [[2, 3], [0, 1]]


def test_a_term_without_axes_is_the_same_for_all():
    assert term().look_up({}, 3).tolist() == [[0, 1]] * 3


def test_a_card_adds_up_its_terms():
    card = ScoreCard((term(SEX.axis()), term(AGE.axis(), step=10), term(SEX.axis())))
    assert card.columns == ("sex", "age")
    assert card.classes == 2
    codes = {"age": np.array([0, 2]), "sex": np.array([1, 0])}
    assert card.score(codes, 2).tolist() == [[4, 6 + 10], [40, 50 + 2]]


@pytest.mark.parametrize(
    ("scores", "unknown"),
    [
        (np.zeros((3, 2), np.int64), np.zeros(2, np.int64)),
        (np.zeros(2, np.int64), np.zeros(2, np.int64)),
        (np.zeros((2, 2)), np.zeros(2, np.int64)),
        (np.zeros((2, 2), np.int64), np.zeros(3, np.int64)),
        (np.zeros((2, 2), np.int64), np.zeros(2)),
        (np.full((2, 2), LIMIT + 1), np.zeros(2, np.int64)),
        (np.zeros((2, 2), np.int64), np.full(2, -LIMIT - 1)),
    ],
)
def test_scores_of_the_wrong_shape_kind_or_size_are_refused(scores, unknown):
    with pytest.raises(InvalidParameter):
        ScoreTerm((SEX.axis(),), scores, unknown)


@pytest.mark.parametrize("terms", [(), (term(SEX.axis()), term(SEX.axis(), classes=3))])
def test_a_card_of_no_terms_or_of_different_classes_is_refused(terms):
    with pytest.raises(InvalidParameter):
        ScoreCard(terms)

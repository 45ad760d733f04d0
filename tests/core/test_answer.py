"""An answer says on what its interval rests, in words and in plain values."""

import json
from dataclasses import replace

import pytest

from dpublish.core.answer import Answer
from dpublish.errors import InvalidParameter

PLAIN = Answer(1234, 1100, 1300, 0.95)
MODELED = Answer(1234, 1100, 1300, 0.95, "a copula joins the columns", kind="model")
NONE = Answer(1234, None, None, 0.95, "rows follow a model", kind="model")


def test_the_words_name_the_kind_of_the_interval():
    assert str(PLAIN) == "1,234 (95 % confidence interval 1,100 to 1,300)"
    assert str(MODELED) == "1,234 (95 % model interval 1,100 to 1,300)"
    assert str(NONE) == "1,234 (no confidence interval is offered)"


def test_plain_values_name_the_kind_of_an_interval_that_is_there():
    assert [each.to_dict()["interval"] for each in (PLAIN, MODELED, NONE)] == [
        "confidence",
        "model",
        None,
    ]
    assert json.loads(json.dumps(MODELED.to_dict())) == {
        "value": 1234,
        "low": 1100,
        "high": 1300,
        "confidence": 0.95,
        "assumption": "a copula joins the columns",
        "counts": None,
        "interval": "model",
        "bounds_low": None,
        "bounds_high": None,
    }
    bounded = replace(MODELED, bounds=(0.0, 2400.0))
    assert bounded.to_dict()["bounds_high"] == 2400
    assert str(bounded).endswith("; 0 to 2,400 whether the model fits or not)")


def test_a_confidence_interval_is_its_own_bounds():
    with pytest.raises(InvalidParameter, match="its own"):
        replace(PLAIN, bounds=(0.0, 2400.0))


def test_answers_of_two_kinds_differ():
    assert Answer(1, 0, 2, 0.95, None) == Answer(1, 0, 2, 0.95)
    assert Answer(1, 0, 2, 0.95, "x") != Answer(1, 0, 2, 0.95, "x", kind="model")
    assert replace(MODELED, counts="records with age") == MODELED


@pytest.mark.parametrize(
    ("assumption", "kind", "fault"),
    [
        (None, "model", "must state it"),
        ("", "model", "must state it"),
        ("a copula", "modle", "did you mean 'model'"),
    ],
)
def test_an_answer_that_rests_on_a_model_says_which(assumption, kind, fault):
    with pytest.raises(InvalidParameter, match=fault):
        Answer(1, 0, 2, 0.95, assumption, kind=kind)

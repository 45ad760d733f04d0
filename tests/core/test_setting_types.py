"""Settings of wrong types are refused by an error of ours that says what to pass."""

from dataclasses import fields
from typing import get_type_hints

import pandas as pd
import pytest

import dpublish
from dpublish.core.settings import build, method_class
from dpublish.errors import DPublishError, InvalidType
from method_examples import EXAMPLES

WRONG = (5, None, True, [], {}, b"x", object(), -1, [["a"]], pd.DataFrame({"a": [1]}))
"""What people pass by mistake; some of it is right for some settings."""


def refusal(call):
    """Return the error of ours, if there is one; any other error is a fault."""
    try:
        call()
    except DPublishError as error:
        return error
    return None


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_setting_of_a_wrong_type_ends_in_an_error_of_another_package(name):
    kind, given = method_class(name), EXAMPLES[name][0]
    hints = get_type_hints(kind)
    for field in fields(kind):
        for value in WRONG:
            settings = dict(given) | {field.name: value}
            found = refusal(lambda settings=settings: build(kind, name, settings))
            refusal(lambda settings=settings: kind(**settings))
            if hints[field.name] is str:
                assert isinstance(found, InvalidType), (field.name, value)
                assert "must be" in str(found)


def test_lists_are_taken_by_every_class():
    for kind in (dpublish.PrivQT, dpublish.PlainWaveCluster, dpublish.PrivTHR, dpublish.PSD):
        assert kind(columns=["age", "hours"]).columns == ("age", "hours")
    assert dpublish.PrivQT(columns="age, hours", cells=[8, 4]).cells == (8, 4)


def test_a_path_is_text(tmp_path):
    assert dpublish.Synth(prior=tmp_path).prior == str(tmp_path)

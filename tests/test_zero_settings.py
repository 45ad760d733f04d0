"""Nothing at all, as a setting: every method takes 0 for an exact number, or refuses it clearly."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.core.catalog import STREAMS
from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.method import make_stream_method, stream_settings
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import EXAMPLES, SCHEMA, arrow_table

EXACT = "an exact number"
TAKEN = {  # where 0 makes sense
    ("synth", "quality_share"),
    ("partitioning", "person_variance"),
    ("partitioning", "size_share"),
    ("t-round", "person_variance"),
    ("t-round", "size_share"),
    ("weighting", "person_variance"),
    *(
        (name, gain)
        for name in ("dsat", "dsat-w")
        for gain in ("proportional_gain", "integral_gain")
    ),
    *((name, "derivative_gain") for name in ("dsat", "dsat-w")),
}
ZEROS = ["0", "0.0", 0, 0.0, Fraction(0)]


def exact_settings(methods, settings_of):
    return [
        (name, each.name)
        for name in methods
        for each in settings_of(name)
        if EXACT in each.type_name.split(" or ")
    ]


METHOD_CASES = exact_settings(CATALOG, method_settings)
STREAM_CASES = exact_settings(STREAMS, stream_settings)


def test_there_are_methods_with_exact_settings():
    assert set(METHOD_CASES + STREAM_CASES) >= TAKEN
    assert len(METHOD_CASES) > 25


@pytest.mark.parametrize(("name", "setting"), METHOD_CASES)
def test_a_method_takes_zero_or_refuses_it_before_anything_is_paid(name, setting):
    for example in EXAMPLES[name]:
        if (name, setting) not in TAKEN:
            for zero in ZEROS:
                with pytest.raises(InvalidParameter, match=setting):
                    make_method(name, example | {setting: zero})
            continue
        [method] = {make_method(name, example | {setting: zero}) for zero in ZEROS}
        method.expected_error(SCHEMA, None, Fraction(3, 2))
        method.release(
            open_table(arrow_table(), SCHEMA), budget=Budget.seeded("1.5"), rng=seeded(1)
        )


@pytest.mark.parametrize(("name", "setting"), STREAM_CASES)
def test_a_stream_takes_zero_or_refuses_it_before_anything_is_paid(name, setting):
    schema = Schema((column("zone", "category", values=["a", "b", "c"]),), unit="user")
    span = {"window": 4} if name in ("bd", "ba", "dsat-w") else {"horizon": 12}
    given = {"columns": ("zone",), **span, setting: "0"}
    if "gain" in setting:
        given["controller"] = "schedule"
    if (name, setting) not in TAKEN:
        with pytest.raises(InvalidParameter, match=setting):
            make_stream_method(name, given)
        return
    method = make_stream_method(name, given)
    assert getattr(method, setting) == 0
    method.expected_error(schema, None, Fraction(1))
    stream = method.start(schema, budget=Budget.seeded(1), rng=seeded(1))
    for _ in range(12):
        stream.next_counts(np.array([50, 3, 20]), rng=seeded(2))


@pytest.mark.parametrize("name", [name for name in CATALOG if "levels" in EXAMPLES[name][0]])
def test_no_level_is_zero(name):
    for example in EXAMPLES[name]:
        if "preference" in example:
            with pytest.raises(InvalidParameter, match="a level"):
                make_method(name, example | {"levels": "0,3"})


@pytest.mark.parametrize("text", ["-0", "0.", "0e5", "0x0", "00.0.0", "", "zero", False])
def test_what_is_no_plain_zero_is_still_refused(text):
    with pytest.raises(InvalidParameter, match="person_variance"):
        make_method("t-round", EXAMPLES["t-round"][0] | {"person_variance": text})

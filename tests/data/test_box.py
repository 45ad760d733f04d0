"""The box: from the owner's units to -1 .. 1 and back, and onto a lattice, record by record."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter

AGE = column("age", "integer", bounds=[0, 99], bins=10)
HEIGHT = column("height", "numeric", bounds=[100, 220], missing="category")
SEX = column("sex", "category", values=["F", "M"])
SCHEMA = Schema((AGE, SEX, HEIGHT))


def lattice(box, **values):
    arrays = {name: np.array(numbers, dtype=float) for name, numbers in values.items()}
    return box.lattice(Batch(len(next(iter(arrays.values()))), values=arrays))


def test_it_takes_all_columns_of_numbers_or_the_named_ones_in_their_order():
    assert Box.of(SCHEMA).names == ("age", "height")
    assert Box.of(SCHEMA, ("height", "age")).names == ("height", "age")
    assert Box.of(SCHEMA, ("height",)).dimensions == 1


@pytest.mark.parametrize(
    ("schema", "names", "reason"),
    [
        (SCHEMA, ("sex",), "holds no numbers"),
        (SCHEMA, ("hight",), "did you mean 'height'"),
        (SCHEMA, ("age", "age"), "listed twice"),
        (Schema((SEX,)), (), "no column of numbers"),
        (Schema((column("n", "integer", bounds=[3, 3]),)), (), "one value only"),
        (Schema((AGE,), unit="person"), (), "single records"),
    ],
)
def test_it_refuses_what_has_no_box(schema, names, reason):
    with pytest.raises(InvalidParameter, match=reason):
        Box.of(schema, names)


def test_bounds_become_minus_one_and_one_and_values_beyond_are_clipped():
    box = Box.of(SCHEMA)
    points = np.array([[0, 100], [99, 220], [49.5, 160], [-5, 1e300]])
    assert box.scale(points).tolist() == [[-1, -1], [1, 1], [0, 0], [-1, 1]]
    assert box.unscale(np.array([[-1.0, 1.0], [0.0, 0.5]])).tolist() == [[0, 220], [49.5, 190]]


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.floats(0, 1))
def test_unscaling_undoes_scaling_but_for_rounding(low, width, part):
    if not low < low + width:
        return
    box = Box.of(Schema((column("x", "numeric", bounds=[low, low + width], bins=1),)))
    value = low + part * width
    back = box.unscale(box.scale(np.array([[value]])))[0, 0]
    assert back == pytest.approx(value, abs=1e-9 * width + 1e-15 * abs(low) * 8)


def test_lattice_coordinates_are_integers_from_minus_unit_to_unit():
    box = Box.of(SCHEMA)
    found = lattice(box, age=[0, 99, 49], height=[100, 160, 220])
    assert found.dtype == np.int64
    assert found.tolist() == [[-UNIT, UNIT, round(49 / 99 * 2 * UNIT) - UNIT], [-UNIT, 0, UNIT]]


@given(st.lists(st.floats(0.1, 0.7), min_size=1, max_size=40), st.integers(0, 40))
def test_a_record_has_the_same_position_in_every_batch(values, cut):
    box = Box.of(Schema((column("x", "numeric", bounds=[0.1, 0.7]),)))
    whole = lattice(box, x=values)
    assert np.all(np.abs(whole) <= UNIT)
    parts = [lattice(box, x=part) for part in (values[:cut], values[cut:])]
    assert np.array_equal(np.concatenate(parts, axis=1), whole)
    assert [lattice(box, x=[value])[0, 0] for value in values] == whole[0].tolist()

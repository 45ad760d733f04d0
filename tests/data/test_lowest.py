"""All rows of a unit share the smallest number that any of them has, in a column of its own."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.aggregates.counts import Counts
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.randomness import seeded

WARD = column("ward", "category", values=["a", "b", "c"], missing="drop")
SCHEMA = Schema((column("sex", "category", values=["F", "M"], missing="drop"), WARD), unit="who")
LEVEL = column("(level)", "integer", bounds=[0, 2])
NUMBERS = (1, 2, 0)  # not in the order of the codes, as the levels of a rule are not
ROW = st.tuples(
    st.sampled_from([None, "u", "v", "w"]),
    st.sampled_from(["F", "M", None]),
    st.sampled_from(["a", "b", "c", "a", "b", None]),
)


def opened(rows):
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    names = ("who", "sex", "ward")
    return open_table(
        pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)}), SCHEMA
    )


def lowest():
    return Lowest(WARD, NUMBERS, LEVEL)


def counts(table, *names):
    kernel = Counts(table.schema, (tuple((name, None) for name in names),))
    return table.sum(kernel)


@pytest.mark.parametrize("columns", [("sex",), ("sex", "ward")])
@given(rows=st.lists(ROW, max_size=14), most=st.integers(1, 3))
def test_every_row_has_the_smallest_number_of_its_unit(columns, rows, most):
    table = opened(rows).bound(most, b"key", columns, lowest=lowest())
    assert table.schema.names == (*columns, "(level)")
    expected = np.zeros(3, dtype=np.int64)
    for unit in "uvw":
        mine = [(sex, ward) for who, sex, ward in rows if who == unit]
        if not mine or any(ward is None for _, ward in mine):
            continue
        complete = sum(sex is not None for sex, _ in mine)
        expected[min(NUMBERS["abc".index(ward)] for _, ward in mine)] += min(complete, most)
    assert np.array_equal(counts(table, "(level)"), expected)


def test_the_column_that_gives_numbers_keeps_its_values():
    rows = [("u", "F", "a"), ("u", "F", "b"), ("v", "M", "b")]
    table = opened(rows).bound(2, b"key", ("ward",), lowest=lowest())
    assert counts(table, "ward", "(level)").reshape(3, 3).tolist() == [
        [0, 1, 0],
        [0, 1, 1],
        [0, 0, 0],
    ]
    picked = table.only("(level)", [1])
    assert picked.schema.names == ("ward",)
    assert counts(picked, "ward").tolist() == [1, 1, 0]
    drawn = table.sample_by("(level)", [Fraction(0), Fraction(0), Fraction(1)], seeded(1))
    assert counts(drawn, "ward").tolist() == [0, 1, 0]


def test_numbers_that_do_not_fit_are_refused():
    for numbers in ((1, 2), (0, 1, 3), (-1, 0, 1)):
        with pytest.raises(InvalidParameter):
            Lowest(WARD, numbers, LEVEL)
    with pytest.raises(InvalidParameter, match="no unit"):
        opened([]).bound(1, b"key", ("sex",)).bound(1, b"key", ("sex",), lowest=lowest())


def test_a_part_of_a_date_may_give_rows_their_numbers():
    admitted = column("admitted", "date", bounds=["2024-01-01", "2024-12-31"], missing="drop")
    quarter = column("quarter", source=admitted, part="quarter")
    schema = Schema((quarter, SCHEMA["sex"]), unit="who")
    days = ["2024-12-31", "2024-04-01", "2024-11-11", "2024-01-31", "2024-02-02", None]
    rows = pa.table({"who": [*"uuvwxx"], "admitted": days, "sex": [*"FMFMFM"]})
    level = Lowest(quarter, (2, 1, 0, 0), LEVEL)
    for columns in (("sex",), ("sex", "quarter")):
        table = open_table(rows, schema).bound(2, b"key", columns, lowest=level)
        assert counts(table, "sex", "(level)").reshape(2, 3).tolist() == [[2, 0, 0], [1, 0, 1]]

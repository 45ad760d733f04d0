"""Columns that follow from others: what is computed, and what is refused."""

import pickle
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.axis_rows import draw_rows
from dpublish.data.column_function import Formula, ValueMap, fill_functions, to_row_values
from dpublish.data.schema import Schema, column, keep_columns
from dpublish.errors import InvalidParameter, InvalidSchema

AGE = column("age", "integer", bounds=[0, 99])
TENS = column("tens", "integer", bounds=[0, 99], bins=10)
PAY = column("pay", "numeric", bounds=[0, 100], bins=4, missing="category")
SCHOOL = column(
    "school",
    "ordinal",
    taxonomy={"School": ["None", "HS-grad"], "College": ["Bachelors", "Masters"]},
)
YEARS = column("years", "integer", bounds=[0, 16])
LEVEL = column("level", "category", values=["low", "high"], other="odd")
BORN = column("born", "date", bounds=["1990-01-01", "2023-12-31"])
WEEKDAY = column("weekday", source=BORN, part="weekday")
CODED = column("coded", "category", values=["Female", "Male"], codes=["2", "1"])
COLUMNS = (AGE, TENS, PAY, SCHOOL, YEARS, LEVEL, BORN, CODED)
MAP = {"None": 0, "HS-grad": 9, "Bachelors": 13, "Masters": 14}


def bound(function, columns=COLUMNS):
    schema = Schema(columns, functions=(function,))
    return next(each for each in schema.functions if each.column == function.column)


def filled(function, columns=COLUMNS, **rows):
    return bound(function, columns).fill(pa.table(rows)).to_pylist()


def test_a_formula_computes_the_column_within_its_bounds():
    function = Formula("years", "age - 6")
    assert bound(function).of == ("age",)
    assert filled(function, age=[3, 7, 90]) == [0, 1, 16]
    assert bound(function).fill(pa.table({"age": [7]})).type == pa.int64()


@pytest.mark.parametrize(
    ("target", "expression", "rows", "values"),
    [
        ("level", "if(age >= 18, 'high', 'low')", {"age": [17, 18]}, ["low", "high"]),
        ("level", "if(age >= 18, 'high', 'strange')", {"age": [17, 18]}, ["odd", "high"]),
        ("level", "if(school = College, 'high', 'low')", {"school": ["Masters"]}, ["high"]),
        (
            "level",
            "if(coded = Male, 'high', 'low')",
            {"coded": ["Male", "Female"]},
            ["high", "low"],
        ),
        ("pay", "age / (age - 50)", {"age": [51, 50]}, [51.0, None]),
        ("pay", "years + tens", {"years": [1], "tens": [1]}, [2.0]),
        ("years", "pay", {"pay": [3.7, None]}, [3, None]),
        ("years", "month(born)", {"born": [date(2000, 5, 1)]}, [5]),
        ("born", "date('2001-01-01') + age", {"age": [1]}, [date(2001, 1, 2)]),
    ],
)
def test_formulas_of_every_kind_of_column(target, expression, rows, values):
    assert filled(Formula(target, expression), **rows) == values


def test_a_formula_may_use_a_part_of_a_date_and_another_function():
    columns = (*COLUMNS, WEEKDAY)
    weekend = Formula("level", "if(weekday in {Saturday, Sunday}, 'high', 'low')")
    years = Formula("years", "if(level = high, 1, 2)")
    schema = Schema(columns, functions=(years, weekend))
    assert [each.column for each in schema.functions] == ["weekday", "level", "years"]
    rows = fill_functions(
        pa.table({"born": [date(2023, 1, 1), date(2023, 1, 2)]}), schema.functions
    )
    assert rows.to_pylist() == [
        {"born": date(2023, 1, 1), "weekday": "Sunday", "level": "high", "years": 1},
        {"born": date(2023, 1, 2), "weekday": "Monday", "level": "low", "years": 2},
    ]


def test_a_table_of_values_is_looked_up():
    function = ValueMap("years", "school", MAP)
    assert bound(function).of == ("school",)
    assert filled(function, school=["Masters", "None", None]) == [14, 0, None]
    assert bound(function).fill(pa.table({"school": ["None"]})).type == pa.int64()


def test_a_table_may_name_groups_bins_codes_and_missing_values():
    groups = ValueMap("level", "school", {"School": "low", "College": "high"})
    assert filled(groups, school=["HS-grad", "Masters"]) == ["low", "high"]
    codes = ValueMap("level", "coded", {2: "low", "Male": "high"})
    assert codes == ValueMap("level", "coded", {"2": "low", "Male": "high"})
    assert filled(codes, coded=["Female", "Male"]) == ["low", "high"]
    bins = {"[0, 25)": 1, "[25, 50)": 2, "[50, 75)": 3, "[75, 100]": 4, "(missing)": 5}
    assert filled(ValueMap("years", "pay", bins), pay=[0.0, 60.0, None]) == [1, 3, 5]


def test_results_of_a_table_follow_the_rules_of_the_column():
    assert filled(ValueMap("years", "school", MAP | {"Masters": 99}), school=["Masters"]) == [16]
    values = dict.fromkeys(MAP, "low") | {"Masters": "rare"}
    assert filled(ValueMap("level", "school", values), school=["Masters"]) == ["odd"]
    gaps = (*COLUMNS[:4], replace(YEARS, missing="category"))
    some = ValueMap("years", "school", {"College": 13})
    assert filled(some, gaps, school=["None", "Masters"]) == [None, 13]


def test_parts_of_dates_are_functions_by_themselves():
    schema = Schema((BORN, WEEKDAY))
    (function,) = schema.functions
    assert (function.column, function.of) == ("weekday", ("born",))
    assert function.describe() == "weekday is the weekday of born"
    assert function.fill(pa.table({"born": [date(2023, 1, 1), None]})).to_pylist() == [
        "Sunday",
        None,
    ]
    assert Schema((WEEKDAY,)).functions == ()


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (Formula("yaers", "age"), "did you mean 'years'?"),
        (Formula("years", "aeg + 1"), "there is no column 'aeg'"),
        (Formula("years", "years + 1"), "cannot follow from itself"),
        (Formula("years", "3"), "uses no other column"),
        (Formula("born", "age + 1"), "computes what the column cannot hold"),
        (Formula("years", "school + 1"), "no value of 'school' in the schema is one"),
        (
            Formula("years", "coded + 1"),
            "no value of 'coded' in the schema is one",
        ),  # rows have names
        (Formula("weekday", "born"), "a part of a date follows from its date already"),
        (ValueMap("years", "shool", MAP), "did you mean 'school'?"),
        (ValueMap("years", "years", MAP), "cannot follow from itself"),
        (ValueMap("years", "school", {"College": 1}), "map has no value for 'None', 'HS-grad' of"),
        (
            ValueMap("years", "school", MAP | {"School": 1}),
            "names 'School', or a part of it, twice",
        ),
        (ValueMap("years", "school", MAP | {"PhD": 1}), "has no value 'PhD'"),
        (ValueMap("years", "school", MAP | {"None": "x"}), "no such value as map has for 'None'"),
        (ValueMap("years", "tens", {"15": 1}), "a part of a bin of 'tens'"),
        (ValueMap("years", "pay", {"[0, 100]": 1}), "'[0, 100]' is none"),
    ],
)
def test_functions_that_cannot_be_computed_are_refused(function, told):
    with pytest.raises(InvalidParameter) as refusal:
        Schema((*COLUMNS, WEEKDAY), functions=(function,))
    assert isinstance(refusal.value, InvalidSchema)
    assert told in str(refusal.value)
    assert repr(function.column) in str(refusal.value)


def test_an_expression_that_cannot_be_read_is_refused_at_once():
    with pytest.raises(InvalidSchema, match="function of 'years'"):
        Formula("years", "age +")


def test_a_table_holds_plain_values_only():
    with pytest.raises(InvalidSchema, match="'years': map must hold texts"):
        ValueMap("years", "school", MAP | {"None": date(2023, 1, 1)})


def test_times_are_those_of_the_wall_clock():
    seen = column("seen", "datetime", bounds=["2023", "2024"], bins="day", time_zone="Europe/Paris")
    rows = pa.table({"seen": pa.array([datetime(2023, 7, 1, 23, 30)], pa.timestamp("s"))})
    schema = Schema((seen, YEARS), functions=(Formula("years", "hour(seen) - 10"),))
    assert schema.functions[0].fill(rows).to_pylist() == [13]


def test_circles_and_second_functions_are_refused():
    circle = (Formula("years", "age + 1"), Formula("age", "tens + 1"), Formula("tens", "years"))
    with pytest.raises(InvalidSchema, match=r"in a circle \((years|age|tens) -> .*; remove"):
        Schema(COLUMNS, functions=circle)
    with pytest.raises(InvalidSchema, match="'years' has two functions"):
        Schema(COLUMNS, functions=(circle[0], Formula("years", "tens")))


def test_fewer_columns_keep_the_functions_whose_columns_are_there():
    schema = Schema(COLUMNS, functions=(Formula("years", "age - 6"), Formula("level", "school")))
    kept = keep_columns(schema, ["years", "age", "level"])
    assert [each.column for each in kept.functions] == ["years"]
    assert keep_columns(schema, ["years"]).functions == ()


def test_a_function_of_columns_that_are_cut_otherwise_fits_them_or_goes():
    schema = Schema((AGE, YEARS), functions=(Formula("years", "age - 6"),))
    wide = replace(schema, columns=(AGE, column("years", "integer", bounds=[0, 50])))
    assert wide.functions[0].fill(pa.table({"age": [40]})).to_pylist() == [34]
    assert replace(schema, columns=(AGE, replace(BORN, name="years"))).functions == ()


def test_schemas_with_functions_are_values():
    one, other = (
        Schema(COLUMNS, functions=(Formula("level", text), ValueMap("years", "school", MAP)))
        for text in ("if(age>=18,'high','low')", "if(age >= 18, 'high', 'low')")
    )
    assert one == other
    assert hash(one) == hash(other)
    assert one != Schema(COLUMNS)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.functions[1].fill(pa.table({"age": [20]})).to_pylist() == ["high"]


def test_the_order_of_functions_does_not_depend_on_how_they_were_written():
    functions = (Formula("years", "age - 6"), Formula("pay", "years"), Formula("level", "school"))
    one, other = (
        Schema((*COLUMNS, WEEKDAY), functions=each) for each in (functions, functions[::-1])
    )
    assert one == other
    order = [each.column for each in one.functions]
    assert order.index("years") < order.index("pay")


def test_an_unbound_function_says_what_to_do():
    with pytest.raises(InvalidParameter, match="part of a schema"):
        _ = Formula("years", "age").of


def test_rows_without_the_source_are_refused():
    with pytest.raises(InvalidParameter, match="must have a column 'age'"):
        filled(Formula("years", "age"), tens=[1])


def test_row_values_are_what_synthetic_rows_have():
    """The types and values that functions take and return are those that `draw_rows` makes."""
    axes = [each.axis() for each in (*COLUMNS, WEEKDAY)]
    cells = [np.arange(200) % axis.size for axis in axes]
    rows = draw_rows(axes, cells, np.random.Generator(np.random.PCG64(1)))
    for each in (*COLUMNS, WEEKDAY):
        drawn = rows[each.name].combine_chunks()
        assert to_row_values(each, drawn).equals(drawn), each.name

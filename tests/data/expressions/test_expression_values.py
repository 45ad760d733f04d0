"""What an expression computes for a record, against a plain loop, and by that record alone."""

import math
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.expressions import vectors
from dpublish.data.expressions.compiler import Field
from dpublish.data.expressions.functions import FUNCTIONS, compile_expression
from dpublish.data.expressions.language import parse_expression
from dpublish.data.expressions.vectors import to_arrow
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.randomness import seeded

NUMBERS = [None, 0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 1e308, -1e308, 5e-324, 0.1, 7.0, 1e16, 18.0]
ROWS = [
    {
        "x": NUMBERS[n % len(NUMBERS)],
        "y": NUMBERS[(5 * n + n // len(NUMBERS)) % len(NUMBERS)],
        "name": [None, "", " Ann ", "BOB", "ß é", "3.0", "TRUE", "a,b"][n % 8],
        "country": [None, "FR", "DE", " FR ", "IT"][n % 5],
        "smokes": [None, True, False][n % 3],
        "on": [None, date(2024, 2, 29), date(1969, 12, 31), date(2023, 12, 25)][n % 4],
        "at": [None, datetime(2024, 2, 29, 23, 59, 59), datetime(1970, 1, 1)][n % 3],
        "grade": ["low", "mid", None, "high", "odd"][n % 5],
    }
    for n in range(14 * 20)
]
KINDS = pa.schema(
    [
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("name", pa.string()),
        ("country", pa.string()),
        ("smokes", pa.bool_()),
        ("on", pa.date32()),
        ("at", pa.timestamp("us")),
        ("grade", pa.string()),
    ]
)
TYPED = pa.Table.from_pylist(ROWS, schema=KINDS)
SCHEMA = Schema(
    (
        column(
            "country", "category", values=["FR", "DE"], taxonomy={"West": ["FR"], "Mid": ["DE"]}
        ),
        column("grade", "ordinal", values=["low", "mid", "high"], missing="category"),
        column("x", "numeric", bounds=[0, 10]),
    )
)


def as_text(value):
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


TEXT = pa.table(
    {name: [as_text(row[name]) for row in ROWS] for name in KINDS.names},
    schema=pa.schema([(name, pa.string()) for name in KINDS.names]),
)


def fields(table, schema=None):
    declared = {} if schema is None else {c.name: c for c in schema.columns}
    return {f.name: Field(f.type, declared.get(f.name)) for f in table.schema}


def compute(text, table, schema=None):
    compiled = compile_expression(parse_expression(text), fields(table, schema))
    found = compiled.run(lambda name: table[name], table.num_rows)
    return to_arrow(found, compiled.form)


def guarded(function):
    """Missing operands give missing, and so does what has no finite result."""

    def run(row):
        try:
            result = function(row)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError):
            return None
        if isinstance(result, float) and not math.isfinite(result):
            return None
        return result

    return run


ARITHMETIC = {
    "x + y": lambda r: r["x"] + r["y"],
    "x - y * 2": lambda r: r["x"] - r["y"] * 2,
    "x / y": lambda r: r["x"] / r["y"],
    "x // y": lambda r: math.floor(r["x"] / r["y"]),
    "x % y": lambda r: r["x"] % r["y"],
    "x ** 2": lambda r: r["x"] * r["x"],
    "x ** 3": lambda r: r["x"] * r["x"] * r["x"],
    "x ** 0.5": lambda r: math.pow(r["x"], 0.5),
    "2 ** y": lambda r: math.pow(2, r["y"]),
    "-x": lambda r: -r["x"],
    "(x + 1) / (y - 1)": lambda r: (r["x"] + 1) / (r["y"] - 1),
    "log(x)": lambda r: math.log(r["x"]),
    "log10(x)": lambda r: math.log10(r["x"]),
    "exp(x)": lambda r: math.exp(r["x"]),
    "sqrt(x)": lambda r: math.sqrt(r["x"]),
    "abs(x)": lambda r: abs(r["x"]),
    "floor(x)": lambda r: math.floor(r["x"]),
    "ceil(x)": lambda r: math.ceil(r["x"]),
    "round(x)": lambda r: round(r["x"]),
    "round(x, 1)": lambda r: np.rint(r["x"] * 10) / 10,
    "min(x, y, 3)": lambda r: min(r["x"], r["y"], 3),
    "max(x, y)": lambda r: max(r["x"], r["y"]),
    "coalesce(x, y, 7)": lambda r: next(v for v in (r["x"], r["y"], 7) if v is not None),
    "if(x > 1, x + 0, y)": lambda r: r["x"] if r["x"] > 1 else r["y"],
    "year(on) * 100 + month(on)": lambda r: r["on"].year * 100 + r["on"].month,
    "day(on)": lambda r: r["on"].day,
    "quarter(on)": lambda r: (r["on"].month + 2) // 3,
    "hour(at)": lambda r: r["at"].hour,
    "days_between(on, at)": lambda r: (r["at"].date() - r["on"]).days,
    "days_between(on, 2024-03-01)": lambda r: (date(2024, 3, 1) - r["on"]).days,
    "length(name)": lambda r: len({"3.0": "3"}.get(r["name"], r["name"].strip())) or None,
}


@pytest.mark.parametrize("text", ARITHMETIC)
@pytest.mark.parametrize("table", [TYPED, TEXT], ids=["typed", "text"])
def test_numbers_are_those_of_a_plain_loop(text, table):
    found = compute(text, table).to_pylist()
    assert found == [guarded(ARITHMETIC[text])(row) for row in ROWS]


def truth(*conditions):
    """Kleene's and."""
    if False in conditions:
        return False
    return None if None in conditions else True


CONDITIONS = {
    "x > 1": lambda r: r["x"] > 1,
    "number(x) != column(y)": lambda r: (
        None if r["x"] is None or r["y"] is None else r["x"] != r["y"]
    ),
    "18 <= x": lambda r: r["x"] >= 18,
    "x in {1, 7, 2.5}": lambda r: None if r["x"] is None else r["x"] in (1, 7, 2.5),
    "x in 0..7": lambda r: 0 <= r["x"] <= 7,
    "x not in -2..2": lambda r: not -2 <= r["x"] <= 2,
    "x is missing": lambda r: r["x"] is None,
    "name is not missing": lambda r: bool(r["name"]),
    "name = Ann": lambda r: r["name"].strip() == "Ann" if r["name"] else None,
    "name = 3": lambda r: r["name"] == "3.0" if r["name"] in ("3.0",) else None,
    'name = "3"': lambda r: r["name"] == "3.0" if r["name"] else None,
    "name = true": lambda r: r["name"] == "TRUE" if r["name"] else None,
    'upper(name) = "BOB"': lambda r: r["name"].upper() == "BOB" if r["name"] else None,
    'lower(name) in {bob, "true"}': lambda r: (
        r["name"].lower() in ("bob", "true") if r["name"] else None
    ),
    'substring(name, 1, 2) = "BO"': lambda r: r["name"].strip()[:2] == "BO" if r["name"] else None,
    "country = FR": lambda r: r["country"].strip() == "FR",
    "smokes = true": lambda r: r["smokes"],
    "not (x > 1 and y > 1)": lambda r: _negate(truth(*(_above(r[k]) for k in "xy"))),
    "x > 1 or y > 1": lambda r: _negate(truth(*(_negate(_above(r[k])) for k in "xy"))),
    "on >= 2024-02-29": lambda r: r["on"] >= date(2024, 2, 29),
    "on = 2024-02": lambda r: (r["on"].year, r["on"].month) == (2024, 2),
    "on in 2023..2024-01": lambda r: date(2023, 1, 1) <= r["on"] <= date(2024, 1, 31),
    "at = 2024-02-29": lambda r: r["at"].date() == date(2024, 2, 29),
    "at > 2024-02-29T23:59": lambda r: r["at"] >= datetime(2024, 3, 1),
    "date(on) < datetime(at)": lambda r: datetime.combine(r["on"], datetime.min.time()) < r["at"],
    "date(on) + 366 > 2024-12-31": lambda r: (r["on"] - date(1970, 1, 1)).days + 366 > 20088,
    "datetime(at) - date(on) > 0.5": lambda r: (
        (r["at"] - datetime.combine(r["on"], datetime.min.time())).total_seconds() > 43200
    ),
    "weekday(on) = Thursday": lambda r: r["on"].weekday() == 3,
}


def _above(value):
    return None if value is None else value > 1


def _negate(value):
    return None if value is None else not value


@pytest.mark.parametrize("text", CONDITIONS)
@pytest.mark.parametrize("table", [TYPED, TEXT], ids=["typed", "text"])
def test_conditions_are_those_of_a_plain_loop(text, table):
    found = compute(text, table).to_pylist()
    assert found == [guarded(CONDITIONS[text])(row) for row in ROWS]


DECLARED = {
    "country = FR": lambda c: c.strip() == "FR" if c in ("FR", " FR ", "DE") else None,
    "country != FR": lambda c: c == "DE" if c in ("FR", " FR ", "DE") else None,
    "country = West": lambda c: c.strip() == "FR" if c in ("FR", " FR ", "DE") else None,
    "country is missing": lambda c: c not in ("FR", " FR ", "DE"),
    "trim(country) = IT": lambda c: c == "IT" if c else None,
}


@pytest.mark.parametrize("text", DECLARED)
def test_columns_of_the_schema_have_its_values_and_groups(text):
    found = compute(text, TEXT, SCHEMA).to_pylist()
    assert found == [DECLARED[text](row["country"] or "") for row in ROWS]


def test_an_ordinal_column_is_compared_by_the_order_of_the_schema():
    ranks = {"low": 0, "mid": 1, "high": 2}
    for text, test in {
        "grade >= mid": lambda rank: rank >= 1,
        "grade in low..mid": lambda rank: rank <= 1,
        "grade < low": lambda rank: False,
    }.items():
        found = compute(text, TEXT, SCHEMA).to_pylist()
        known = [ranks.get(row["grade"]) for row in ROWS]
        assert found == [None if rank is None else test(rank) for rank in known]


EVERY = [*ARITHMETIC, *CONDITIONS]


@pytest.mark.parametrize("table", [TYPED, TEXT], ids=["typed", "text"])
def test_a_record_gets_the_same_wherever_it_stands(table):
    """Bit by bit: alone, in pieces of odd length, and among others in another order."""
    order = seeded(4).words(table.num_rows).argsort()
    for text in EVERY:
        whole = compute(text, table)
        sizes = [1, 3, 17, 100]
        for size in sizes:
            parts = [compute(text, table.slice(n, size)) for n in range(0, table.num_rows, size)]
            assert pa.concat_arrays(parts).equals(whole), text
        assert compute(text, table.take(pa.array(order))).equals(whole.take(pa.array(order))), text


def test_exponentials_do_not_depend_on_the_position_in_an_array():
    base = np.exp(seeded(5).words(5000) / 2.0**64 * 600 - 300)
    exponent = seeded(6).words(5000) / 2.0**64 * 6 - 3
    for function in (
        lambda a, b: vectors.power(a, b),
        lambda a, b: vectors.each(math.exp, b * 100),
        lambda a, b: vectors.each(math.log, a),
        lambda a, b: vectors.calculate("%", a, b),
        lambda a, b: vectors.whole_power(a, 7),
    ):
        whole = function(base, exponent)
        for size in (1, 7, 16, 33):
            parts = [
                function(base[n : n + size], exponent[n : n + size]) for n in range(0, 5000, size)
            ]
            assert np.array_equal(np.concatenate(parts), whole, equal_nan=True)


def test_a_broken_twin_that_sees_the_batch_is_noticed():
    """The mean of a batch is no function of one record; the language cannot say it."""

    def centered(table):
        numbers = np.array([min(abs(v or 0.0), 9.0) for v in table["x"].to_pylist()])
        return numbers - numbers.mean()

    parts = [centered(TYPED.slice(n, 3)) for n in range(0, TYPED.num_rows, 3)]
    assert not np.array_equal(np.concatenate(parts), centered(TYPED))
    for word in ("mean", "sum", "count", "avg", "rank", "random", "now", "today", "row_number"):
        assert word not in FUNCTIONS
        with pytest.raises(InvalidParameter, match=f"there is no function '{word}'"):
            compute(f"x - {word}(x)", TYPED)


REFUSED = {
    "age > 3": "there is no column 'age', at 'age > 3'",
    "x > Ann": "'Ann' is no number, at 'Ann'",
    "x = name = 3": "a second comparison",
    "on > 7": "'7' is no date",
    "on + on > 3": "two dates cannot be added",
    "x + on": "a date stands to the left",
    "x + (y > 1)": "a number is needed, but this is a condition",
    "not x": "a condition is needed, but this is a number",
    "(x > 1) = 1": "a condition cannot be compared",
    "lower(x) < 3": "text has no order",
    "lower(x + 1) = 3": "text is needed, but this is a number",
    "year(x) = 3": "a date is needed, but this is a number",
    "logg(x) > 1": "did you mean 'log'",
    "log(x, 2) > 1": "log\\(..\\) takes 1 values, not 2",
    "round(x, y) > 1": "an integer from -15 to 15 must be written here",
    "substring(name, 0) = a": "an integer from 1",
    "if(x, 1, 2) > 1": "a condition is needed",
    "min(name, x) > 1": "",
    "coalesce(on, x) > 1": "must all be numbers, texts or dates",
    "x in 7..3": "ends before it starts",
    "x = y": "'y' may be a value or a column",
    "column(x, y) > 1": "takes the name of a column",
    "name < M": "'M' is no number",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_fit_is_refused_before_any_row(text):
    empty = TYPED.slice(0, 0)
    if text == "min(name, x) > 1":
        compute(text, empty)  # text is read as numbers here
        return
    with pytest.raises(InvalidParameter, match=REFUSED[text]):
        compute(text, empty)


def test_unlisted_values_of_a_declared_column_are_refused_with_a_way_out():
    with pytest.raises(InvalidParameter, match="write trim\\(country\\)"):
        compute("country = IT", TEXT, SCHEMA)
    with pytest.raises(InvalidParameter, match="has no order"):
        compute("country > FR", TEXT, SCHEMA)


def test_a_message_names_only_public_columns():
    expression = parse_expression("wieght > 3")
    with pytest.raises(InvalidParameter, match="did you mean 'weight'"):
        compile_expression(expression, fields(TYPED), ["weight"])
    with pytest.raises(InvalidParameter) as caught:
        compile_expression(parse_expression("nam > 3"), fields(TYPED), [])
    assert "'name'" not in str(caught.value)


def test_names_with_signs_are_columns_first_and_arithmetic_second():
    table = pa.table({"a-b": [1.0], "a": [5.0], "b": [2.0], "body weight": [3.0]})
    assert compute("a-b", table).to_pylist() == [1.0]
    assert compute("a - b", table).to_pylist() == [3.0]
    assert compute("a-b > 2", table).to_pylist() == [False]
    assert compute("b-a < 0", table).to_pylist() == [True]
    assert compute('"body weight" = 3', table).to_pylist() == [True]
    assert compute('column("body weight") * 2', table).to_pylist() == [6.0]


def test_types_that_have_no_values_here_are_refused():
    table = pa.table({"x": pa.array([[1]], pa.list_(pa.int64()))})
    with pytest.raises(InvalidParameter, match="cannot be used"):
        compute("x = 1", table)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"a\xff", b"x"], pa.binary()).cast(pa.binary()),
        pa.array(["x", None]).dictionary_encode(),
        pa.array([1, 2], pa.int8()),
        pa.array([2**63 - 1, -(2**63)], pa.int64()),
        pa.array([None, None], pa.null()),
        pa.array(["1e999", "nan"]),
    ],
    ids=str,
)
def test_odd_values_never_raise(array):
    table = pa.table({"x": array})
    if pa.types.is_binary(array.type):
        with pytest.raises(InvalidParameter):
            compute("x = 1", table)
        return
    for text in ("x = 1", "x + 1", "lower(text(x))", "x is missing"):
        assert len(compute(text, table)) == 2


def test_a_date_moved_by_more_days_than_can_be_counted_is_missing_without_a_warning():
    rows = pa.table({"on": [date(2024, 2, 29)] * 4, "days": [1.0, 1e308, math.inf, None]})
    for text in ("on + days", "on - days"):
        assert compute(text, rows).is_null().to_pylist() == [False, True, True, True]


@pytest.mark.parametrize("table", [TYPED, TEXT], ids=["typed", "text"])
@pytest.mark.parametrize("left", ["x", "name", "lower(name)", "x + 0", "on", "country"])
def test_a_list_is_what_its_values_are_one_by_one(table, left):
    lists = [["1", "18", "0"], ["Ann", "TRUE", "3"], ['""', "BOB"], ["1.0", '"a,b"', '" Ann "']]
    for values in [*lists, ["2024-02", "1969-12-31"], ["-1.5", "1e16", "7"]]:
        each = " or ".join(f"{left} = {value}" for value in values)
        try:
            expected = compute(each, table)
        except InvalidParameter:
            with pytest.raises(InvalidParameter):
                compute(f"{left} in {{{', '.join(values)}}}", table)
            continue
        assert compute(f"{left} in {{{', '.join(values)}}}", table).equals(expected)


def test_a_column_is_read_once_for_a_long_list():
    text = f"name in {{{', '.join(f'A{number}' for number in range(900))}}}"
    compiled = compile_expression(parse_expression(text), fields(TEXT))
    read = []
    compiled.run(lambda name: read.append(name) or TEXT[name], TEXT.num_rows)
    assert read == ["name"]

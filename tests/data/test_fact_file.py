"""What a schema states survives files and releases, and mistakes are named in a line."""

import json
import tomllib

import pytest

from dpublish import Histogram, datasets, load
from dpublish.data.schema import Schema, column, keep_columns
from dpublish.data.schema_file import dumps_toml, from_dict, load_schema, to_dict
from dpublish.data.sources import open_table
from dpublish.data.statements import Combination, KnownTotal
from dpublish.errors import InvalidSchema
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

FILE = """
[columns.age]
kind = "integer"
bounds = [0, 99]

[columns.school]
kind = "category"
values = ["None", "HS-grad", "Bachelors"]

[columns.born]
kind = "date"
bounds = ["1990-01-01", "2023-12-31"]

[columns.weekday]
from = "born"
part = "weekday"

[columns.years]
kind = "integer"
bounds = [0, 16]
"""
MAP = 'function_of = "school"\nmap = { None = 0, HS-grad = 9, Bachelors = 13 }\n'
REST = """
[columns.stage]
kind = "category"
values = ["school", "work", "rest"]
function = "if(age < 18, 'school', if(age < 65, 'work', 'rest'))"

[[impossible]]
where = "age<16 and school = Bachelors"

[[impossible]]
where = "age < 6 and school != None"

[[totals]]
count = 1000

[[totals]]
where = "school = HS-grad"
count = 12
source = "Census 2020, table P1"
"""


def read(tmp_path, text):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    return load_schema(path)


def refusal(tmp_path, text):
    with pytest.raises(InvalidSchema) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def schema(tmp_path):
    return read(tmp_path, FILE + MAP + REST)


def test_all_keys_of_a_file_have_their_meaning(schema):
    assert [each.where for each in schema.impossible] == [
        "age < 16 and school = Bachelors",
        "age < 6 and school != None",
    ]
    assert [(each.where, each.count, each.source) for each in schema.totals] == [
        ("", 1000, None),
        ("school = HS-grad", 12, "Census 2020, table P1"),
    ]
    assert [(each.column, each.of) for each in schema.functions] == [
        ("weekday", ("born",)),
        ("years", ("school",)),
        ("stage", ("age",)),
    ]


def test_statements_survive_json_and_toml_exactly(schema):
    for again in (
        from_dict(json.loads(json.dumps(to_dict(schema)))),
        from_dict(tomllib.loads(dumps_toml(schema))),
    ):
        assert again == schema
        assert to_dict(again) == to_dict(schema)
        assert again.impossible[0].codes[0].sum() == 16


def test_a_schema_of_fewer_columns_is_written_without_what_it_lacks(schema):
    narrow = keep_columns(schema, ["years", "age", "stage"])
    written = to_dict(narrow)
    assert "impossible" not in written
    assert written["totals"] == [{"count": 1000}]
    assert [key for each in written["columns"] for key in each if key.startswith("funct")] == [
        "function"
    ]
    assert from_dict(written) == narrow


def test_nothing_is_written_of_what_is_not_stated(tmp_path):
    plain = to_dict(read(tmp_path, FILE))
    assert set(plain) == {"name", "columns"}
    assert not {"function", "function_of", "map"} & {key for x in plain["columns"] for key in x}


def test_a_map_may_be_a_code_list(tmp_path, schema):
    (tmp_path / "codes.csv").write_text(
        "school,group,years\nNone,low,0\nHS-grad,low,9\nBachelors,high,13\n"
    )
    named = 'function_of = "school"\nmap = "codes.csv"\n'
    again = read(tmp_path, FILE + named + REST)
    assert [each.describe() for each in again.functions] == [
        each.describe() for each in schema.functions
    ]
    assert to_dict(again)["columns"][-2]["map"] == {"None": "0", "HS-grad": "9", "Bachelors": "13"}
    (tmp_path / "codes.csv").write_text("code,num\nNone,0\nHS-grad,9\nBachelors,13\n")
    assert read(tmp_path, FILE + named + REST) == again
    (tmp_path / "codes.csv").write_text("code,a,b\nNone,0,1\n")
    told = refusal(tmp_path, FILE + named + REST)
    assert "must have one column beside 'code', or one called 'years'" in told
    plain = to_dict(schema)
    plain["columns"][-2]["map"] = "codes.csv"
    with pytest.raises(InvalidSchema, match="not the name of a file"):
        from_dict(plain)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("[[impossible]]\nwher = 'age < 3'", "[[impossible]] number 1: there is no key 'wher'"),
        ("[[impossible]]", "[[impossible]] number 1: where is missing; it must be text, such as"),
        ("[[impossible]]\nwhere = 'age <'", "where = 'age <': expected a value"),
        ("[[impossible]]\nwhere = 'age < 3 and shool = None'", "did you mean 'school'?"),
        ("[impossible]\nwhere = 'age < 3'", "impossible must be tables [[impossible]]"),
        ("[[totals]]\nwhere = 'age < 3'", "[[totals]] number 1: count is missing"),
        ("[[totals]]\ncount = 3.5", "[[totals]] number 1: count must be an integer"),
        ("[[totals]]\ncount = -3", "[[totals]] number 1: where = '': count (-3) must be"),
        ("[[totals]]\ncount = 3\n[[totals]]\ncount = 3", "two totals are about the same records"),
    ],
)
def test_faulty_statements_are_named(tmp_path, stated, told):
    assert told in refusal(tmp_path, FILE + stated)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("function = 3", "column 'years': function must be text, an expression"),
        ("function = 'age +'", "column 'years': function of 'years'"),
        ("function = 'agee + 1'", "there is no column 'agee'"),
        ("function_of = 'school'", "column 'years': a table of values needs both"),
        ("map = { a = 1 }", "column 'years': a table of values needs both"),
        ("function = 'age'\nfunction_of = 'school'", "exclude each other"),
        ("function_of = 'school'\nmap = [1]", "column 'years': map must be a table of values"),
        ("function_of = 'school'\nmap = 'x.txt'", "must be a table of values, or a CSV file"),
        ("function_of = 'school'\nmap = 'x.csv'", "x.csv cannot be read"),
        ("function_of = 'school'\nmap = { None = 1 }", "map has no value for 'HS-grad', 'Bache"),
    ],
)
def test_faulty_functions_are_named(tmp_path, keys, told):
    assert told in refusal(tmp_path, FILE + keys)


def test_a_part_of_a_date_has_no_other_function(tmp_path):
    text = FILE.replace('part = "weekday"', 'part = "weekday"\nfunction = "born"')
    assert "follows from its date already" in refusal(tmp_path, text)


def test_a_release_keeps_what_is_stated_of_its_columns(tmp_path):
    rows = datasets.census(200, seed=1)
    stated = Schema(
        (
            column("age", "integer", bounds=[0, 99], bins=10),
            column("sex", "category", values=["Female", "Male"]),
        ),
        impossible=(Combination("age < 10 and sex = Male"),),
        totals=(KnownTotal("sex = Female", count=12, source="a table"),),
    )
    method = Histogram(columns=("age", "sex"))
    with_facts, without = (
        method.release(open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1))
        for schema in (stated, Schema(stated.columns))
    )
    assert with_facts.counts.tolist() == without.counts.tolist()  # a method that ignores them
    with_facts.save(tmp_path / "stated")
    again = load(tmp_path / "stated").schema
    assert again == stated
    assert again.totals[0].source == "a table"
    without.save(tmp_path / "plain")
    head = json.loads((tmp_path / "plain" / "release.json").read_text())
    assert set(head["schema"]) == {"name", "columns"}
